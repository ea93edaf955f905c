//! A scenario: the one description that all three arms perform. Its plan is the simulator's own (scripts, limits,
//! durations, faults), its cues are what is done from outside at moments that are found by looking on, and it says
//! how its runs must end. Plain data, read from `tests/scenarios/*.json`.
//!
//! Refuses what only a fake machine can do: such a plan is a trace of the simulator, not a scenario.

use super::transcript::Transcript;
use crate::sim::Act;
use crate::sim::plan::{Answer, Fault, Plan, Readiness, Script, Step};
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::record::Status;
use agentd_core::store::record_in;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its ending.
    pub name: String,
    /// What happens, and what must come of it.
    pub why: String,
    /// What children do, and the limits they live in.
    pub plan: Plan,
    /// What is done from outside, and when.
    #[serde(default)]
    pub cues: Vec<Cue>,
    /// How each run ends: `worker-1` or `sub-2` to its status, with the beginning of its error after a colon.
    pub ends: BTreeMap<String, String>,
    /// Log events that must come up, so that the scenario is known to go where it says.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Log events that must not.
    #[serde(default)]
    pub never_logs: Vec<String>,
}

/// Acts, and the moment for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cue {
    /// What must have been seen.
    pub on: Sight,
    /// How often.
    #[serde(default = "once")]
    pub times: u32,
    /// What is done then, in order, once.
    pub acts: Vec<Act>,
}

fn once() -> u32 {
    1
}

/// What can be seen from outside of the core: its events and its actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// The log says this.
    Log {
        /// The event's name.
        event: String,
        /// Only when it is about this run.
        #[serde(default)]
        handle: Option<String>,
    },
    /// A record is on its way to the store, and not yet known to be there.
    Saving {
        /// The run; `None` is a conversation's worker.
        #[serde(default)]
        handle: Option<String>,
        /// What the record says.
        status: Status,
    },
    /// The process of this node exists; nothing has been written to it yet.
    Born(u64),
    /// The process of this node could not be made.
    Unborn(u64),
    /// The pid of this node is free.
    Reaped(u64),
}

impl Sight {
    /// How often it is to be seen here.
    fn count(&self, event: &Event, actions: &[Action]) -> usize {
        match self {
            Sight::Log { event, handle } => {
                actions.iter().filter(|a| says(a, event, handle.as_deref())).count()
            }
            Sight::Saving { handle, status } => {
                actions.iter().filter(|a| saves(a, handle.as_deref(), *status)).count()
            }
            Sight::Born(n) => usize::from(matches!(event, Event::ChildSpawned { node, .. } if node.0 == *n)),
            Sight::Unborn(n) => usize::from(matches!(event, Event::SpawnFailed { node, .. } if node.0 == *n)),
            Sight::Reaped(n) => usize::from(matches!(event, Event::Reaped { node } if node.0 == *n)),
        }
    }
}

fn says(action: &Action, name: &str, handle: Option<&str>) -> bool {
    let Action::Note(note) = action else { return false };
    note.event == name && handle.is_none_or(|h| note.handle.is_some_and(|n| n.to_string() == h))
}

fn saves(action: &Action, handle: Option<&str>, status: Status) -> bool {
    let Action::Persist { writes, .. } = action else { return false };
    let Some(record) = record_in(writes) else { return false };
    record.status == status && record.handle.map(|h| h.to_string()).as_deref() == handle
}

/// Finds the moments.
#[derive(Debug)]
pub(super) struct Prompter {
    waiting: Vec<(Cue, usize)>,
}

impl Prompter {
    pub(super) fn new(cues: &[Cue]) -> Prompter {
        Prompter { waiting: cues.iter().map(|cue| (cue.clone(), cue.times as usize)).collect() }
    }

    /// The acts whose moment this is.
    pub(super) fn look(&mut self, event: &Event, actions: &[Action]) -> Vec<Act> {
        let mut acts = Vec::new();
        self.waiting.retain_mut(|(cue, left)| {
            *left = left.saturating_sub(cue.on.count(event, actions));
            if *left == 0 {
                acts.append(&mut cue.acts);
            }
            *left > 0
        });
        acts
    }

    /// Cues whose moment has not come.
    pub(super) fn missed(&self) -> Vec<&Cue> {
        self.waiting.iter().map(|(cue, _)| cue).collect()
    }
}

impl Scenario {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong in it.
    pub fn read(path: &Path) -> Result<Scenario, String> {
        let of = |what: String| format!("{}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| of(e.to_string()))?;
        let scenario: Scenario = serde_json::from_str(&text).map_err(|e| of(e.to_string()))?;
        if path.file_stem().and_then(|s| s.to_str()) != Some(scenario.name.as_str()) {
            return Err(of(format!("it is called {:?}", scenario.name)));
        }
        scenario.check().map_err(of)?;
        Ok(scenario)
    }

    /// Whether a transcript is what the scenario says it is: all arms could be wrong together.
    ///
    /// # Errors
    /// What is not as it says.
    pub fn judge(&self, transcript: &Transcript) -> Result<(), String> {
        let runs: Vec<&String> = transcript.runs.keys().collect();
        if !runs.iter().copied().eq(self.ends.keys()) {
            return Err(format!("its runs are {runs:?}, and it says {:?}", self.ends.keys()));
        }
        for (run, said) in &self.ends {
            let last = transcript
                .runs
                .get(run)
                .and_then(|lane| lane.iter().rev().find(|r| r.get("status").is_some()));
            let text = |key: &str| last.and_then(|r| r[key].as_str()).unwrap_or_default();
            let (status, error) = said.split_once(": ").unwrap_or((said, ""));
            if text("status") != status || !text("error").starts_with(error) {
                return Err(format!(
                    "{run} ends {}: {:?}, and it says {said:?}",
                    text("status"),
                    text("error")
                ));
            }
        }
        let names = transcript.log_names();
        if let Some(missing) = self.logs.iter().find(|name| !names.contains(name.as_str())) {
            return Err(format!("the log does not say {missing}; it says {names:?}"));
        }
        match self.never_logs.iter().find(|name| names.contains(name.as_str())) {
            Some(name) => Err(format!("the log says {name}")),
            None => Ok(()),
        }
    }

    /// Whether a result of several megabytes is about.
    pub(super) fn has_giants(&self) -> bool {
        let giant = |step: &Step| matches!(step, Step::Finish { answer: Answer::Huge, .. });
        self.plan.scripts.iter().any(|script| script.all_steps().any(giant))
    }

    /// Refuses what cannot mean the same in all arms.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        if !plan.prompts_ms.is_empty() {
            return Err("prompts_ms: prompts come by the clock; use a cue".to_owned());
        }
        if let Some(fault) = plan.faults.iter().find(|f| !is_for_all(f)) {
            return Err(format!("{fault:?}: only a fake machine can do this, or it comes by the clock"));
        }
        for script in &plan.scripts {
            check_script(script)?;
        }
        if !plan.knobs.one_shot
            && !self.cues.iter().any(|c| c.acts.iter().any(|a| matches!(a, Act::Signal(_))))
        {
            return Err("a conversation that nobody ends: a cue must send a signal".to_owned());
        }
        Ok(())
    }
}

fn check_script(script: &Script) -> Result<(), String> {
    if script.nature.dying_ms > 0 {
        return Err("dying_ms: how long a SIGKILL takes is the kernel's affair".to_owned());
    }
    if let Readiness::After(ms) = script.nature.ready
        && ms > 1
    {
        return Err(format!("ready after {ms} ms: it comes by the clock; use `never`"));
    }
    for step in script.all_steps() {
        match step {
            Step::Fork(what) if what.keeper_ms.is_some() || what.respawns > 0 || what.dying_ms > 0 => {
                return Err(format!("{what:?}: only a fake machine can do this"));
            }
            Step::Ask(_) => return Err("ask: what it waits for is by the clock".to_owned()),
            Step::Call { .. } => return Err("call: how long it takes is by the clock".to_owned()),
            Step::Wait(_) => return Err("wait: it is by the clock; use `until`".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether real arms can do it too.
fn is_for_all(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::SpawnFails { .. }
            | Fault::SpawnFrameFails { .. }
            | Fault::StoreSlow { .. }
            | Fault::StoreFails { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(change: impl Fn(&mut Value)) -> String {
        let mut value = json!({"name": "x", "why": "", "plan": {"seed": 1, "scripts": [{}]}, "ends": {}});
        let plain: Scenario = serde_json::from_value(value.clone()).expect("a scenario");
        assert_eq!(plain.check(), Ok(()));
        change(&mut value);
        let changed: Scenario = serde_json::from_value(value).expect("a scenario");
        changed.check().expect_err("it cannot mean the same in all arms")
    }

    #[test]
    fn what_only_a_fake_machine_can_do_is_refused() {
        let fault = |fault: Value| refused(|s| s["plan"]["faults"] = json!([fault]));
        assert!(fault(json!({"exit_late": {"nth": 1, "ms": 5}})).contains("ExitLate"));
        assert!(fault(json!({"signal": {"at_ms": 5, "signal": "term"}})).contains("by the clock"));
        let script = |script: Value| refused(|s| s["plan"]["scripts"] = json!([script]));
        assert!(script(json!({"steps": [{"wait": 5}]})).contains("until"));
        assert!(script(json!({"steps": [{"fork": {"respawns": 2}}]})).contains("only a fake machine"));
        assert!(script(json!({"nature": {"dying_ms": 5}})).contains("kernel"));
        assert!(script(json!({"nature": {"ready": {"after": 500}}})).contains("by the clock"));
        assert!(refused(|s| s["plan"]["prompts_ms"] = json!([5])).contains("use a cue"));
        assert!(refused(|s| s["plan"]["knobs"] = json!({"one_shot": false})).contains("signal"));
    }

    #[test]
    fn a_cue_comes_once_and_at_its_time() {
        let note = |n: usize| {
            let note = agentd_core::note::Note::of_daemon(agentd_core::note::Level::Info, "drain.start");
            vec![Action::Note(note); n]
        };
        let cue: Cue = serde_json::from_value(
            json!({"on": {"log": {"event": "drain.start"}}, "times": 3, "acts": [{"open": "door"}]}),
        )
        .expect("a cue");
        let mut prompter = Prompter::new(std::slice::from_ref(&cue));
        assert!(prompter.look(&Event::Tick, &note(2)).is_empty());
        assert_eq!(prompter.missed().len(), 1);
        assert_eq!(prompter.look(&Event::Tick, &note(5)), cue.acts);
        assert!(prompter.missed().is_empty());
        assert!(prompter.look(&Event::Tick, &note(9)).is_empty());
    }
}

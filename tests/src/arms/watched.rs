//! The core as all three arms drive it: under the scenario's own seed, with everything noted down that it was told
//! and that it decided, and with somebody looking on who knows the cues.

use super::scenario::{Prompter, Scenario};
use crate::sim::Act;
use crate::sim::replay::config;
use agentd_core::action::{Action, Actions};
use agentd_core::event::Event;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::snapshot::Snapshot;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use serde::{Deserialize, Serialize};

/// One event, and what the core answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The driver's clocks.
    pub now: Now,
    /// What happened.
    pub event: Event,
    /// What is to be done.
    pub actions: Vec<Action>,
}

/// What an arm does besides driving: it carries out acts, and makes faults where it sees them due.
pub(super) trait Stagehand {
    /// The core has decided, and nothing of it is done yet.
    fn saw(&mut self, event: &Event, actions: &[Action]);

    /// Does what a cue says.
    fn act(&mut self, act: Act);
}

/// See the module.
pub(super) struct Watched<S> {
    core: Core,
    seed: u64,
    prompter: Prompter,
    pub(super) stagehand: S,
    pub(super) turns: Vec<Turn>,
}

impl<S: Stagehand> Watched<S> {
    pub(super) fn new(scenario: &Scenario, stagehand: S) -> Watched<S> {
        Watched {
            core: fresh(scenario),
            seed: scenario.plan.seed,
            prompter: Prompter::new(&scenario.cues),
            stagehand,
            turns: Vec::new(),
        }
    }

    /// What was noted down.
    ///
    /// # Errors
    /// The scenario is over and the moment of a cue has not come.
    pub(super) fn finish(self) -> Result<Vec<Turn>, String> {
        match self.prompter.missed().first() {
            Some(cue) => Err(format!("the moment for this has not come: {cue:?}")),
            None => Ok(self.turns),
        }
    }
}

impl<S: Stagehand> Machine for Watched<S> {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        let event = match event {
            // One seed in all arms, so that jitter and the random part of ids are the same.
            Event::Seeded { .. } => Event::Seeded { seed: self.seed },
            other => other,
        };
        self.core.handle(now, event.clone(), out);
        self.stagehand.saw(&event, out);
        for act in self.prompter.look(&event, out) {
            self.stagehand.act(act);
        }
        self.turns.push(Turn { now, event, actions: out.clone() });
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.core.poll_timeout()
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.core.snapshot()
    }
}

fn fresh(scenario: &Scenario) -> Core {
    Core::new(config(&scenario.plan.knobs), Now::default())
}

/// Feeds what was noted down to a fresh core, after a journey through bytes, and compares each answer byte for byte.
///
/// # Errors
/// The first answer that differs, and what was expected.
pub(super) fn replay(scenario: &Scenario, turns: &[Turn]) -> Result<(), String> {
    let mut core = fresh(scenario);
    for (number, turn) in turns.iter().enumerate() {
        let read: Event = bytes(&turn.event)
            .and_then(|cbor| ciborium::from_reader(cbor.as_slice()).map_err(|e| e.to_string()))
            .map_err(|e| format!("event {number} does not survive being written: {e}: {:?}", turn.event))?;
        let mut actions = Actions::new();
        core.handle(turn.now, read, &mut actions);
        if bytes(&actions)? != bytes(&turn.actions)? {
            return Err(format!(
                "event {number} ({:?}): a fresh core answers\n  {actions:?}\nbut in this arm it answered\n  {:?}",
                turn.event, turn.actions
            ));
        }
    }
    Ok(())
}

/// As the journal writes.
fn bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut cbor = Vec::new();
    ciborium::into_writer(value, &mut cbor).map_err(|e| e.to_string())?;
    Ok(cbor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::time::Instant;

    struct Nobody;

    impl Stagehand for Nobody {
        fn saw(&mut self, _event: &Event, _actions: &[Action]) {}

        fn act(&mut self, _act: Act) {}
    }

    /// A recording that was changed anywhere is not what a fresh core answers.
    #[test]
    fn a_changed_recording_is_found() {
        let scenario: Scenario = serde_json::from_str(
            r#"{"name": "x", "why": "", "plan": {"seed": 3, "scripts": []}, "ends": {}}"#,
        )
        .expect("a scenario");
        let mut watched = Watched::new(&scenario, Nobody);
        let events = [Event::Seeded { seed: 99 }, Event::PromptSubmitted { text: "go".to_owned() }];
        for (ms, event) in (1..).zip(events) {
            let now = Now { mono: Instant::from_millis(ms), ..Now::default() };
            watched.handle(now, event, &mut Actions::new());
        }
        let turns = watched.finish().expect("no cue is missed");
        assert_eq!(turns[0].event, Event::Seeded { seed: 3 }, "the scenario's own");
        assert_eq!(replay(&scenario, &turns), Ok(()));
        let mut less = turns.clone();
        less[1].actions.pop().expect("a prompt makes something happen");
        assert!(replay(&scenario, &less).expect_err("it differs").contains("event 1"));
        let mut other = turns;
        other[0].event = Event::Seeded { seed: 4 };
        assert!(replay(&scenario, &other).is_err(), "ids come from the seed");
    }
}

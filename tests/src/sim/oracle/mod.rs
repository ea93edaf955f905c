//! The rules that hold in every life, whatever the plan. An oracle sees what a driver sees (events, actions) and what the
//! fake machine knows (who lives, who misbehaves); it never looks into the core.
//!
//! | file | rules |
//! |---|---|
//! | `facts` | none: what is known of every node, run and request |
//! | `ownership` | nothing is signalled, swept, reaped or written to that is not ours; reap last |
//! | `answers` | one answer per request, to the one that asked; no result but the record's |
//! | `operators` | one answer per operator's call |
//! | `records` | one outcome per run, with a cause; a terminal record stands; intent before effect |
//! | `turns` | every message one turn or a word that it has none; steers, finish, retirement |
//! | `prompts` | every prompt one answer; a daemon ends only by a drain |
//! | `queue` | who waits for a permit begins in order, and nobody overtakes |
//! | `shown` | a snapshot lists exactly the runs that are not over |
//! | `permits` | limits are never passed, and refuse only who is over them |
//! | `usage` | tokens and money are those that were reported, and a subtree's sum is the sum |
//! | `throttle` | what one run learns of a provider's limit reaches the others, and all go on after it |
//! | `plan` | a plan's items are what calls and the ends of runs made of them |
//! | `rest` | once nothing goes wrong any more all comes to rest; nothing outlives a daemon that was killed |
//! | `bounds` | how long anything may take; signals have a reason; timers move; rest comes |

mod answers;
mod bounds;
mod facts;
mod operators;
mod ownership;
mod permits;
mod plan;
mod prompts;
mod queue;
mod records;
mod rest;
mod shown;
mod throttle;
mod turns;
mod usage;

use crate::sim::kernel::Kernel;
use crate::sim::plan::Plan;
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::limits::END_OF_FILE_WAIT;
use agentd_core::note::Level;
use agentd_core::snapshot::Snapshot;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::Down;
use facts::Facts;
use permits::Permits;
use std::fmt;
use std::sync::Arc;

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule, in a few words that do not change from run to run.
    pub rule: &'static str,
    /// When.
    pub at: Instant,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.rule, self.at.nanos() as f64 / 1e9, self.seen)
    }
}

/// What a process does that gives a reason to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misdeed {
    /// Answers nothing any more.
    Silent,
    /// Cannot say anything any more.
    ClosedStdout,
}

/// See the module.
pub(crate) struct Oracles {
    facts: Facts,
    permits: Permits,
    bounds: bounds::Bounds,
    violation: Option<Violation>,
    exited: bool,
    /// When it was last looked for what is overdue.
    looked: Instant,
}

/// How long nobody looks for what is overdue after it was looked for: nothing has a bound as short as this.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Oracles {
    pub(crate) fn new(plan: Arc<Plan>) -> Oracles {
        Oracles {
            permits: Permits::new(&plan.knobs),
            bounds: bounds::Bounds::new(&plan),
            facts: Facts::new(plan),
            violation: None,
            exited: false,
            looked: Instant::ZERO,
        }
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    fn break_rule(&mut self, rule: &'static str, at: Instant, seen: String) {
        self.violation.get_or_insert(Violation { rule, at, seen });
    }

    fn check(&mut self, at: Instant, verdict: Verdict) {
        if let Err((rule, seen)) = verdict {
            self.break_rule(rule, at, seen);
        }
    }

    /// The core is about to take this event.
    pub(crate) fn fed(&mut self, now: Instant, event: &Event) {
        self.facts.fed(now, event);
        if let Event::Signalled { signal } = event
            && self.facts.stops(*signal)
        {
            self.bounds.interrupted(now);
        }
    }

    /// The core asked for this; it is about to be done.
    pub(crate) fn did(&mut self, now: Instant, action: &Action, kernel: &Kernel) {
        if self.exited {
            self.break_rule("exit is the last action", now, format!("{action:?}"));
        }
        let verdict = ownership::judge(&self.facts, now, action, kernel)
            .and_then(|()| bounds::judge_signal(&self.facts, &self.bounds, now, action));
        self.check(now, verdict);
        match action {
            Action::Persist { record, seq } => {
                let verdict = records::judge(&self.facts, &self.bounds, now, record, *seq)
                    .and_then(|()| usage::judge_record(&mut self.facts, record));
                self.check(now, verdict);
                let verdict = self.permits.persisted(&self.facts, now, record);
                self.check(now, verdict);
            }
            Action::Spawn { node, .. } => {
                let verdict = records::judge_spawn(&self.facts, *node)
                    .and_then(|()| self.permits.spawned(&self.facts, *node));
                self.check(now, verdict);
            }
            Action::Note(note) if note.level == Level::Error => {
                self.break_rule("no error is logged", now, format!("{} {:?}", note.event, note.fields));
            }
            Action::Note(note) => {
                let verdict = turns::judge_note(&mut self.facts, now, note);
                self.check(now, verdict);
            }
            Action::Answer { call, error, value } => {
                let verdict = operators::judge(&mut self.facts, *call, *error, value);
                self.check(now, verdict);
            }
            Action::Deliver { prompt, result, .. } => {
                let verdict = prompts::judge_delivery(&mut self.facts, now, *prompt, result);
                self.check(now, verdict);
            }
            Action::Exit { interrupted, leaked, usage, costliest } => {
                self.exited = true;
                let verdict = bounds::judge_exit(&self.facts, &self.bounds, kernel, *interrupted, *leaked)
                    .and_then(|()| records::judge_exit(&self.facts))
                    .and_then(|()| operators::judge_exit(&self.facts))
                    .and_then(|()| usage::judge_exit(&self.facts, usage, *costliest))
                    .and_then(|()| prompts::judge_exit(&self.facts, &self.bounds, *interrupted));
                self.check(now, verdict);
            }
            Action::SendToChild { node, frame } => {
                let said = self.facts.read_down(now, *node, frame);
                let verdict =
                    said.and_then(|said| said.iter().try_for_each(|down| self.said(now, *node, down)));
                self.check(now, verdict);
            }
            Action::SendSpawn { .. }
            | Action::CloseStdin { .. }
            | Action::Signal { .. }
            | Action::Sweep { .. }
            | Action::Reap { .. }
            | Action::ReapOrphans
            | Action::CallHostTool(_)
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. } => {}
        }
        self.facts.did(now, action);
    }

    fn said(&mut self, now: Instant, node: NodeId, down: &Down) -> Verdict {
        turns::judge_down(&mut self.facts, now, node, down)?;
        if let Down::Throttle(throttle) = down {
            throttle::judge(&mut self.facts, now, node, throttle)?;
        }
        let Down::ToolResult(answer) = down else { return Ok(()) };
        answers::judge(&mut self.facts, now, node, answer)?;
        self.permits.answered(&self.facts, now, node, answer)
    }

    /// The core has finished with an event, and wants its next `Tick` then.
    pub(crate) fn turned(&mut self, now: Instant, was_tick: bool, next: Option<Instant>) {
        if self.exited {
            return;
        }
        let verdict = self
            .bounds
            .turned(now, was_tick, next)
            .and_then(|()| turns::judge_settled(&mut self.facts, now))
            .and_then(|()| answers::judge_settled(&mut self.facts))
            .and_then(|()| throttle::judge_settled(&mut self.facts, now));
        self.check(now, verdict);
    }

    /// How the core says that things stand.
    pub(crate) fn shown(&mut self, now: Instant, snapshot: &Snapshot) {
        if !self.exited {
            let verdict = shown::judge(&self.facts, snapshot);
            self.check(now, verdict);
        }
    }

    /// Something happened: is anything overdue?
    pub(crate) fn look(&mut self, now: Instant, kernel: &Kernel) {
        if self.violation.is_some() || self.exited || now < self.looked + LOOK_AGAIN {
            return;
        }
        self.looked = now;
        let verdict = bounds::judge_time(&self.facts, &self.bounds, now, kernel)
            .and_then(|()| answers::judge_time(&self.facts, &self.bounds, now))
            .and_then(|()| prompts::judge_time(&self.facts, &self.bounds, now))
            .and_then(|()| prompts::judge_notes(&mut self.facts, &self.bounds, now))
            .and_then(|()| self.permits.judge_time(&self.facts, &self.bounds, now))
            .and_then(|()| operators::judge_time(&self.facts, &self.bounds, now))
            .and_then(|()| rest::judge_time(&self.facts, &self.bounds, now))
            .and_then(|()| self.bounds.orphans(&self.facts, now, kernel));
        self.check(now, verdict);
    }

    /// A node's process exists.
    pub(crate) fn born(&mut self, now: Instant, node: NodeId, kernel: &Kernel) {
        self.facts.node(node).born = Some(now);
        let verdict = permits::judge_live(&self.facts, kernel);
        self.check(now, verdict);
    }

    /// A node's process has ended.
    pub(crate) fn gone(&mut self, now: Instant, node: NodeId) {
        self.facts.node(node).gone = Some(now);
    }

    /// A node's process gives a reason.
    pub(crate) fn misdeed(&mut self, now: Instant, node: NodeId, what: Misdeed) {
        self.facts.node(node).misdeeds.push((now, what));
    }

    /// The daemon is stopped for so long.
    pub(crate) fn gap(&mut self, length: Duration) {
        self.bounds.gaps += length;
        // A shorter one leaves no mark that the core could see, when no timer falls into it.
        if length > END_OF_FILE_WAIT {
            self.facts.gaps += length;
        }
    }

    /// Something that was on its way came so much later, and nobody is to blame.
    pub(crate) fn late(&mut self, by: Duration) {
        self.bounds.gaps += by;
    }

    /// A program was sent something it never may be.
    pub(crate) fn child_complains(&mut self, now: Instant, node: NodeId, what: &str) {
        self.break_rule("a child is sent what it can use", now, format!("{node} got {what}"));
    }

    /// The daemon was killed: nothing is asked of it any more.
    pub(crate) fn crashed(&mut self) {
        self.exited = true;
    }

    /// It goes on for ever, or stops short.
    pub(crate) fn never_rests(&mut self, now: Instant, how: &str) {
        let seen = format!("{how}; {}", self.facts.unfinished());
        self.break_rule("everything comes to rest", now, seen);
    }

    /// The daemon was killed at `at`, and the time that something of it may live is over.
    pub(crate) fn after_crash(&mut self, at: Instant, now: Instant, kernel: &Kernel) {
        let verdict = rest::judge_crash(&self.bounds, at, kernel);
        self.check(now, verdict);
    }

    /// The life is over.
    pub(crate) fn at_the_end(&mut self, now: Instant, kernel: &Kernel) {
        if self.violation.is_none() && !self.exited {
            let alive = kernel.ours().count();
            self.break_rule("everything comes to rest", now, format!("no exit, {alive} processes"));
        }
    }
}

/// Whether a rule holds; else its name and what was seen.
type Verdict<T = ()> = Result<T, (&'static str, String)>;

fn unless(holds: bool, rule: &'static str, seen: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err((rule, seen())) }
}

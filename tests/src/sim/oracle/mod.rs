//! The rules that hold in every life, whatever the plan. An oracle sees what a driver sees (events, actions) and what the
//! fake machine knows (who lives, who misbehaves); it never looks into the core.
//!
//! | file | rules |
//! |---|---|
//! | `facts` | none: what is known of every node, run and request |
//! | `across` | what holds from one life of the daemon to the next |
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
//! | `budget` | no budget is ever passed; a call is refused only for lack of room, and waits for nothing else |
//! | `plan` | a plan's items are what calls and the ends of runs made of them |
//! | `rest` | once nothing goes wrong any more all comes to rest; nothing outlives a daemon that was killed |
//! | `bounds` | how long anything may take; signals have a reason; timers move; rest comes |

mod across;
mod answers;
mod bounds;
mod budget;
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

use crate::sim::disk::Disk;
use crate::sim::kernel::Kernel;
use crate::sim::plan::{Fault, Plan};
pub(crate) use across::Across;
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::limits::{END_OF_FILE_WAIT, LAST_SAVES};
use agentd_core::note::Level;
use agentd_core::record::ResultObject;
use agentd_core::snapshot::Snapshot;
use agentd_core::store::{Saved, record_in};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::{Down, Encoder};
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
    across: Across,
    permits: Permits,
    bounds: bounds::Bounds,
    violation: Option<Violation>,
    exited: bool,
    /// The daemon has said that it ends without what it could not save.
    gave_up: bool,
    /// When it was last looked for what is overdue.
    looked: Instant,
}

/// How long nobody looks for what is overdue after it was looked for: nothing has a bound as short as this.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Oracles {
    pub(crate) fn new(plan: Arc<Plan>, across: Across) -> Oracles {
        Oracles {
            across,
            permits: Permits::new(&plan.knobs),
            bounds: bounds::Bounds::new(&plan),
            facts: Facts::new(plan),
            violation: None,
            exited: false,
            gave_up: false,
            looked: Instant::ZERO,
        }
    }

    /// A daemon begins with what is durable.
    pub(crate) fn begin(&mut self, saved: &Saved) {
        self.across.begin(saved);
    }

    /// Which life of the daemon it is, from 1.
    pub(crate) fn life(&self) -> u32 {
        self.across.life()
    }

    /// What the next life is judged by.
    pub(crate) fn into_across(self) -> Across {
        self.across
    }

    /// Runs of an earlier life are not known from their beginning on: rules about how one came about are for the first.
    fn is_first_life(&self) -> bool {
        self.across.life() <= 1
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
        if let Event::ConfigReady(reloaded) = event
            && self.facts.draining().is_none()
        {
            self.permits.reloaded(now, &reloaded.config.subagents);
        }
        self.facts.fed(now, event);
        self.across.fed(event);
        if let Event::Signalled { signal } = event
            && self.facts.stops(*signal)
        {
            self.bounds.interrupted(now);
        }
    }

    /// The core asked for this; it is about to be done.
    pub(crate) fn did(&mut self, now: Instant, action: &Action, kernel: &Kernel, disk: &Disk) {
        if self.exited {
            self.break_rule("exit is the last action", now, format!("{action:?}"));
        }
        self.gave_up |= matches!(action, Action::Note(note) if note.event == "store.gave_up");
        if !self.is_first_life()
            && let Action::Persist { writes, .. } = action
            && let Some(record) = record_in(writes)
        {
            self.facts.decided_again(record);
        }
        let verdict = self.across.did(&self.facts, action).and_then(|()| self.judge_told(action, disk));
        self.check(now, verdict);
        if !self.is_first_life() {
            return self.did_again(now, action, kernel);
        }
        let verdict = ownership::judge(&self.facts, now, action, kernel)
            .and_then(|()| bounds::judge_signal(&self.facts, &self.bounds, now, action));
        self.check(now, verdict);
        match action {
            Action::Persist { writes, seq, .. } => {
                let verdict = records::judge_number(&self.facts, *seq);
                self.check(now, verdict);
                let Some(record) = record_in(writes) else { return self.facts.did(now, action) };
                let verdict = records::judge(&self.facts, &self.bounds, now, record)
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
            Action::Note(note) if note.event == "store.gave_up" => {
                let due = self.bounds.drain_end(&self.facts).map(|end| end + LAST_SAVES);
                let early = due.is_none_or(|due| now < due);
                let verdict = unless(!early, "saves are given up no sooner than the drain is over", || {
                    format!("due at {due:?}")
                });
                self.check(now, verdict);
                self.facts.given_up(now);
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
            Action::SendModel { node, number, payload } => {
                let down = Down::Model(payload.0.clone());
                let frame = Encoder::at(*number).encode_down(&down).unwrap_or_default();
                let said = self.facts.read_down(now, *node, &frame);
                self.check(now, said.map(drop));
            }
            Action::SendSpawn { .. }
            | Action::LoadConfig
            | Action::EndReload { .. }
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

    /// What holds in a later life as it does in the first.
    fn did_again(&mut self, now: Instant, action: &Action, kernel: &Kernel) {
        let verdict = ownership::judge(&self.facts, now, action, kernel);
        self.check(now, verdict);
        match action {
            Action::Persist { seq, .. } => {
                let verdict = records::judge_number(&self.facts, *seq);
                self.check(now, verdict);
            }
            Action::Spawn { node, .. } => {
                let verdict = records::judge_spawn(&self.facts, *node);
                self.check(now, verdict);
            }
            Action::Note(note) if note.level == Level::Error => {
                self.break_rule("no error is logged", now, format!("{} {:?}", note.event, note.fields));
            }
            Action::SendToChild { node, frame } => {
                let read = self.facts.read_down(now, *node, frame);
                for down in read.as_ref().into_iter().flatten() {
                    // What was said is remembered; a message may be one of an earlier life.
                    let _of_this_life = turns::judge_down(&mut self.facts, now, *node, down);
                }
                self.check(now, read.map(drop));
            }
            Action::Exit { .. } => self.exited = true,
            _ => {}
        }
        self.facts.did(now, action);
    }

    /// What is told to an operator or a person is durable, where commits are strict and the store works (S10.2).
    fn judge_told(&self, action: &Action, disk: &Disk) -> Verdict {
        let knobs = &self.facts.plan.knobs;
        let fails = |fault: &Fault| matches!(fault, Fault::StoreFails { .. });
        if !knobs.keeps || knobs.relaxed || self.gave_up || self.facts.plan.faults.iter().any(fails) {
            return Ok(());
        }
        let Action::Answer { error: false, value, .. } = action else { return Ok(()) };
        let object: Option<ResultObject> = serde_json::from_slice(&value.0).ok();
        match object.filter(|object| object.status.is_terminal()) {
            Some(object) => self.across.told(disk, object.run_id, object.status),
            None => Ok(()),
        }
    }

    fn said(&mut self, now: Instant, node: NodeId, down: &Down) -> Verdict {
        turns::judge_down(&mut self.facts, now, node, down)?;
        if let Down::Throttle(throttle) = down {
            throttle::judge(&mut self.facts, now, node, throttle)?;
        }
        if let Down::BudgetGrant(grant) = down {
            budget::judge(&mut self.facts, now, node, grant)?;
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
        if !self.is_first_life() {
            let verdict = self.bounds.turned(now, was_tick, next);
            return self.check(now, verdict);
        }
        let verdict = self
            .bounds
            .turned(now, was_tick, next)
            .and_then(|()| turns::judge_settled(&mut self.facts, now))
            .and_then(|()| answers::judge_settled(&mut self.facts))
            .and_then(|()| throttle::judge_settled(&mut self.facts, now))
            .and_then(|()| budget::judge_settled(&mut self.facts, now));
        self.check(now, verdict);
    }

    /// How the core says that things stand.
    pub(crate) fn shown(&mut self, now: Instant, snapshot: &Snapshot) {
        if !self.exited && self.is_first_life() {
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
        if !self.is_first_life() {
            return;
        }
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
        if self.is_first_life() {
            let verdict = permits::judge_live(&self.facts, kernel);
            self.check(now, verdict);
        }
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
    pub(crate) fn gap(&mut self, now: Instant, length: Duration) {
        self.bounds.stands_still(now, length);
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

//! The drain, and the end of the daemon: nothing is left, every outcome final and every process gone.

use super::conversation::Phase;
use super::keeping::Shelf;
use super::{Core, daemon_note, ms};
use crate::action::{Action, Actions, Costliest};
use crate::event::SupervisorSignal;
use crate::id::NodeId;
use crate::limits;
use crate::machine::Deadline;
use crate::note::Level;
use crate::record::{Status, UsageSum};
use crate::run::ladder::Push;
use crate::run::process::Process;
use crate::run::{Ending, Request, Run};
use crate::time::Instant;
use crate::wire::message::{Mode, Role};
use serde::{Deserialize, Serialize};

/// A drain in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Drain {
    /// `None` when an operator asked for it.
    signal: Option<SupervisorSignal>,
    since: Instant,
    until: Instant,
    /// What was left has been killed.
    forced: bool,
}

impl Core {
    /// The supervisor got a signal: the first begins a drain, a second ends it at once. SIGHUP does so where the
    /// terminal's end is the run's end; whoever outlives terminals reads the configuration again.
    pub(super) fn signalled(&mut self, signal: SupervisorSignal, out: &mut Actions) {
        match (signal, self.drain) {
            (SupervisorSignal::Hup, _) if !self.config.one_shot => {
                // A refusal is in the log, and nobody waits for another answer.
                let _load = self.ask_for_reload(signal_word(signal), out);
            }
            (SupervisorSignal::Term | SupervisorSignal::Int | SupervisorSignal::Hup, Some(_)) => {
                self.force_drain(out);
            }
            (SupervisorSignal::Term | SupervisorSignal::Int | SupervisorSignal::Hup, None) => {
                self.begin_drain(Some(signal), out);
            }
        }
    }

    /// An operator asks for a drain; one that goes on already goes on.
    pub(super) fn drain_asked(&mut self, out: &mut Actions) {
        if self.drain.is_none() {
            self.begin_drain(None, out);
        }
    }

    fn begin_drain(&mut self, signal: Option<SupervisorSignal>, out: &mut Actions) {
        let now = self.now.mono;
        let until = now + self.config.drain_timeout;
        self.drain = Some(Drain { signal, since: now, until, forced: false });
        out.push(
            daemon_note(Level::Info, "drain.start")
                .with("signal", signal.map_or("none", signal_word))
                .with("live", self.busy.len())
                .with("timeout_ms", ms(self.config.drain_timeout))
                .into(),
        );
        self.refuse_reloads(out);
        self.end_conversation(out);
        // A warm run never ends by itself, and what waits for a permit or its turn will not get one any more.
        let subagent = |run: &Run| run.record.role == Role::Subagent;
        let warm = |run: &Run| {
            run.record.mode == Mode::Warm
                || matches!(run.process, Process::Held { .. } | Process::Restored { .. })
        };
        for node in self.busy_with(|run| subagent(run) && warm(run)) {
            self.stop(node, Push::Ask, out);
        }
    }

    /// What is due of a drain.
    pub(super) fn tick_drain(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        if self.drain.is_some_and(|d| !d.forced && d.until <= now) {
            self.force_drain(out);
        }
        if self.saves_until().is_some_and(|until| until <= now) {
            self.give_up_saving(out);
        }
    }

    /// When a drain's time is up.
    pub(super) fn drain_due(&self) -> Option<Deadline> {
        let drain = self.drain.filter(|d| !d.forced).map(|d| Deadline { at: d.until, why: "the drain" });
        let saves = self.saves_until().map(|at| Deadline { at, why: "the last saves" });
        [drain, saves].into_iter().flatten().min_by_key(|d| d.at)
    }

    /// Time is up, or a second signal came: the rest is killed.
    fn force_drain(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        let Some(drain) = &mut self.drain else { return };
        if std::mem::replace(&mut drain.forced, true) {
            return;
        }
        drain.until = drain.until.min(now);
        let all = self.busy_with(|_| true);
        out.push(daemon_note(Level::Warn, "drain.forced").with("live", all.len()).into());
        for node in all {
            self.stop(node, Push::Force, out);
        }
    }

    /// Stops a run for a drain: `parked`, for the next start to take up, except what a turn was waiting on and
    /// the turn itself, which are asked for again when the turn is (S9.6).
    pub(super) fn stop(&mut self, node: NodeId, push: Push, out: &mut Actions) {
        let waited_on = self.runs.get(&node).is_some_and(|run| {
            run.record.role == Role::Worker
                || run.waiters.iter().any(|w| {
                    matches!(self.asked_by(*w), Some(Request::Run { child, sync: true }) if *child == node)
                })
        });
        let (status, why) = match (waited_on, self.drain.is_some()) {
            (true, _) => (Status::Cancelled, "stopped by a drain"),
            (false, true) => (Status::Parked, "stopped by a drain"),
            (false, false) => (Status::Parked, "stopped when the conversation that started it was over"),
        };
        self.decide(node, Ending::without_result(status, why), out);
        self.push_ladder(node, push, out);
    }

    /// Whether all that is left is to be saved, and when that is given up: a daemon that is asked to end does, whatever
    /// its disk does (S9.6).
    fn saves_until(&self) -> Option<Instant> {
        let drain = self.drain?;
        let gone = |run: &Run| run.outcome.is_decided() && matches!(run.process, Process::Gone);
        let only_saves = self.busy.iter().all(|node| self.runs.get(node).is_some_and(gone));
        only_saves.then_some(drain.until + limits::LAST_SAVES)
    }

    /// What could not be saved in time is told all the same; the next start finds what was durable before.
    fn give_up_saving(&mut self, out: &mut Actions) {
        let unsaved = self.busy_with(|_| true);
        let note = daemon_note(Level::Warn, "store.gave_up").with("unsaved", unsaved.len());
        out.push(note.into());
        for node in unsaved {
            self.ending_told(node, out);
        }
        self.tell_untold(out);
    }

    /// Runs that are not over yet, of which `which` holds.
    pub(super) fn busy_with(&self, which: impl Fn(&Run) -> bool) -> Vec<NodeId> {
        self.busy.iter().filter(|n| self.runs.get(n).is_some_and(&which)).copied().collect()
    }

    /// The last action ever, once everything has come to rest.
    pub(super) fn exit_if_done(&mut self, out: &mut Actions) {
        let over = self.config.one_shot && self.conversation.was_asked();
        let given_up = self.saves_until().is_some_and(|until| until <= self.now.mono);
        let saved = self.keeping.is_done() || given_up;
        if !self.busy.is_empty() || !saved || !(over || self.drain.is_some()) {
            return;
        }
        if let Some(drain) = self.drain {
            let took = ms(self.now.mono.since(drain.since));
            out.push(daemon_note(Level::Info, "drain.done").with("after_ms", took).into());
        }
        debug_assert!(!matches!(self.conversation.phase, Phase::Turn(_)), "a turn without its answer");
        debug_assert!(self.runs.values().all(|r| matches!(r.process, Process::Gone)));
        debug_assert!(self.operator.is_empty(), "every run is over, so nothing is waited for");
        self.end_logs(out);
        self.exited = true;
        out.push(Action::Exit {
            interrupted: self.drain.and_then(|d| d.signal),
            leaked: self.leaked,
            usage: self.conversation_usage(),
            costliest: self.costliest(),
        });
    }

    /// What the conversation and everything below it used.
    pub(super) fn conversation_usage(&self) -> UsageSum {
        let mut sum = self.conversation.spent;
        for run in self.runs.values().filter(|run| run.record.role == Role::Worker) {
            sum.own.add(&run.record.usage);
            sum.subtree.add(&run.subtree);
        }
        sum
    }

    /// The run that used most by itself: by money where any was priced, else by tokens.
    fn costliest(&self) -> Option<Costliest> {
        let subagents = self.runs.values().filter_map(as_costliest);
        subagents.chain(self.costliest).max_by_key(weight)
    }

    /// A run leaves the table for good: what only it knew of the sums is kept.
    pub(super) fn keep_sums_of(&mut self, run: &Run) {
        if run.record.role == Role::Worker {
            self.conversation.spent.own.add(&run.record.usage);
            self.conversation.spent.subtree.add(&run.subtree);
            self.mark(Shelf::Conversation);
        }
        self.costliest = as_costliest(run).into_iter().chain(self.costliest).max_by_key(weight);
    }
}

fn as_costliest(run: &Run) -> Option<Costliest> {
    run.record.handle.map(|handle| Costliest { handle, own: run.record.usage })
}

/// Of two that used the same, the earlier.
fn weight(run: &Costliest) -> (u64, u64, std::cmp::Reverse<u64>) {
    (run.own.usd.nanos(), run.own.both(), std::cmp::Reverse(run.handle.0))
}

fn signal_word(signal: SupervisorSignal) -> &'static str {
    match signal {
        SupervisorSignal::Term => "SIGTERM",
        SupervisorSignal::Int => "SIGINT",
        SupervisorSignal::Hup => "SIGHUP",
    }
}

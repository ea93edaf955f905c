//! The one-shot conversation, the drain, and the end of the daemon.
//!
//! `agentd run` is one turn. When its worker has answered, the synchronous and asynchronous runs it started
//! are waited for; a detached one gets the drain's time and no more (S9.6). The daemon ends when nothing is
//! left: every outcome final, every process gone.

use super::catalogue::delegation_tools;
use super::spawn::Plan;
use super::{Core, daemon_note, ms};
use crate::action::{Action, Actions, Walls};
use crate::event::SupervisorSignal;
use crate::id::NodeId;
use crate::machine::Deadline;
use crate::note::Level;
use crate::policy::grant::Grant;
use crate::record::{Status, UsageSum};
use crate::run::ladder::Push;
use crate::run::process::Process;
use crate::run::{Ending, Request};
use crate::time::Instant;
use crate::wire::message::{Mode, Role, Spawn, VERSION};

/// Where the one-shot conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversation {
    /// Nobody asked anything yet.
    Idle,
    /// Its worker is at work.
    Asked {
        /// The worker.
        worker: NodeId,
    },
    /// It has its answer; what it started is waited for.
    Answered {
        /// The worker.
        worker: NodeId,
        /// When detached runs are stopped.
        until: Instant,
        /// They were.
        stopped: bool,
    },
}

/// A drain in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drain {
    signal: SupervisorSignal,
    since: Instant,
    until: Instant,
    /// What was left has been killed.
    forced: bool,
}

impl Core {
    /// A person asked. One prompt a daemon: the second is ignored, and so is one that comes during a drain.
    pub(super) fn prompt_submitted(&mut self, text: String, out: &mut Actions) {
        if self.conversation != Conversation::Idle || self.drain.is_some() {
            out.push(daemon_note(Level::Warn, "prompt.ignored").into());
            return;
        }
        let (run_id, trace) = self.mint_names(None);
        let payload = Spawn {
            v: VERSION,
            run_id,
            handle: None,
            depth: 0,
            attempt: 1,
            role: Role::Worker,
            mode: Mode::Sync,
            trace,
            system: self.config.instruction.clone(),
            instruction: text,
            context: Vec::new(),
            output_contract: None,
            output_schema: None,
            servers: self.config.servers.clone(),
            tools: None,
            names: Vec::new(),
            own_tools: if self.admission.depth_allows(0) { delegation_tools() } else { Vec::new() },
            model: self.config.model.model.clone(),
            limits: self.config.run.clone(),
            log_level: self.config.log_level.clone(),
        };
        let plan = Plan {
            permit: None,
            parent: None,
            call_id: None,
            principal: "operator".to_owned(),
            grant: Grant::ALL,
            walls: Walls::default(),
            payload,
        };
        let worker = self.begin(plan, out);
        self.conversation = Conversation::Asked { worker };
    }

    /// The worker's outcome is final.
    pub(super) fn conversation_answered(&mut self, node: NodeId) {
        if self.conversation == (Conversation::Asked { worker: node }) {
            let until = self.now.mono + self.config.drain_timeout;
            self.conversation = Conversation::Answered { worker: node, until, stopped: false };
        }
    }

    /// The supervisor got a signal: the first begins a drain, a second ends it at once.
    pub(super) fn signalled(&mut self, signal: SupervisorSignal, out: &mut Actions) {
        match (signal, self.drain) {
            (SupervisorSignal::Hup, _) => {
                out.push(
                    daemon_note(Level::Info, "reload.ignored")
                        .with("why", "a one-shot run does not reload")
                        .into(),
                );
            }
            (SupervisorSignal::Term | SupervisorSignal::Int, Some(_)) => self.force_drain(out),
            (SupervisorSignal::Term | SupervisorSignal::Int, None) => {
                let now = self.now.mono;
                let until = now + self.config.drain_timeout;
                self.drain = Some(Drain { signal, since: now, until, forced: false });
                out.push(
                    daemon_note(Level::Info, "drain.start")
                        .with("signal", signal_word(signal))
                        .with("live", self.busy.len())
                        .with("timeout_ms", ms(self.config.drain_timeout))
                        .into(),
                );
            }
        }
    }

    /// What the conversation's own clocks do.
    pub(super) fn tick_conversation(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        if self.drain.is_some_and(|d| !d.forced && d.until <= now) {
            self.force_drain(out);
        }
        if let Conversation::Answered { worker, until, stopped: false } = self.conversation
            && until <= now
        {
            self.conversation = Conversation::Answered { worker, until, stopped: true };
            let detached: Vec<NodeId> = self.busy_with(|mode| mode == Mode::Detached);
            for node in detached {
                self.stop(node, out);
            }
        }
    }

    /// When the conversation's own clocks want a tick.
    pub(super) fn conversation_due(&self) -> Option<Deadline> {
        let drain = self.drain.filter(|d| !d.forced).map(|d| Deadline { at: d.until, why: "the drain" });
        let detached = match self.conversation {
            Conversation::Answered { until, stopped: false, .. } => {
                Some(Deadline { at: until, why: "detached runs" })
            }
            Conversation::Idle | Conversation::Asked { .. } | Conversation::Answered { .. } => None,
        };
        [drain, detached].into_iter().flatten().min_by_key(|d| d.at)
    }

    /// Time is up, or a second signal came: the rest is killed.
    fn force_drain(&mut self, out: &mut Actions) {
        let Some(drain) = &mut self.drain else { return };
        if std::mem::replace(&mut drain.forced, true) {
            return;
        }
        let all = self.busy_with(|_| true);
        out.push(daemon_note(Level::Warn, "drain.forced").with("live", all.len()).into());
        for node in all {
            self.stop(node, out);
        }
    }

    /// Stops a run for a drain: `parked`, for the next start to take up, except what a turn was waiting on and
    /// the turn itself, which are asked for again when the turn is (S9.6).
    fn stop(&mut self, node: NodeId, out: &mut Actions) {
        let waited_on = self.runs.get(&node).is_some_and(|run| {
            run.record.role == Role::Worker
                || run.waiters.iter().any(|w| {
                    let asked = self.runs.get(&w.node).and_then(|r| r.requests.get(&w.request));
                    matches!(asked, Some(Request::Run { child, sync: true }) if *child == node)
                })
        });
        let (status, why) = if waited_on {
            (Status::Cancelled, "stopped by a drain")
        } else {
            (Status::Parked, "stopped by a drain; the next start takes it up")
        };
        self.decide(node, Ending::without_result(status, why), out);
        self.push_ladder(node, Push::Force, out);
    }

    fn busy_with(&self, mode: impl Fn(Mode) -> bool) -> Vec<NodeId> {
        let of = |node: &NodeId| self.runs.get(node);
        self.busy.iter().filter(|n| of(n).is_some_and(|r| mode(r.record.mode))).copied().collect()
    }

    /// The last action ever, once everything has come to rest.
    pub(super) fn exit_if_done(&mut self, out: &mut Actions) {
        let asked = match self.conversation {
            Conversation::Idle => false,
            Conversation::Asked { .. } | Conversation::Answered { .. } => true,
        };
        if !self.busy.is_empty() || !(asked || self.drain.is_some()) {
            return;
        }
        if let Some(drain) = self.drain {
            let took = ms(self.now.mono.since(drain.since));
            out.push(daemon_note(Level::Info, "drain.done").with("after_ms", took).into());
        }
        let worker = match self.conversation {
            Conversation::Idle => None,
            Conversation::Asked { worker } | Conversation::Answered { worker, .. } => self.runs.get(&worker),
        };
        let usage = worker
            .map_or_else(UsageSum::default, |run| UsageSum { own: run.record.usage, subtree: run.subtree });
        self.exited = true;
        debug_assert!(self.runs.values().all(|r| matches!(r.process, Process::Gone)));
        out.push(Action::Exit {
            interrupted: self.drain.map(|d| d.signal),
            leaked: self.leaked,
            usage,
            costliest: None,
        });
    }
}

fn signal_word(signal: SupervisorSignal) -> &'static str {
    match signal {
        SupervisorSignal::Term => "SIGTERM",
        SupervisorSignal::Int => "SIGINT",
        SupervisorSignal::Hup => "SIGHUP",
    }
}

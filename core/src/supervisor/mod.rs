//! The supervisor: routes each event to the run it concerns, keeps the timers, and answers the one question a
//! driver asks, `poll_timeout`.
//!
//! | file | what it decides |
//! |---|---|
//! | `spawn` | from an admitted call or a prompt to a process |
//! | `gear` | what a run's process is given |
//! | `frames` | what a child says |
//! | `queue` | who waits for a permit |
//! | `warm` | messages to warm runs, their turns, their retirement |
//! | `models` | which model a run gets |
//! | `budget` | whether a model call may be made |
//! | `tools` | the calls of the supervisor's own tools |
//! | `host_tools` | the calls of the embedding program's tools |
//! | `operator` | who calls without being a run |
//! | `keeping` | what is made durable, and when |
//! | `acknowledging` | what is told once it is durable |
//! | `restore` | what a start takes up of an earlier life |
//! | `control` | what connections ask, and their answers |
//! | `ending` | how a run ends, who is told, what ends with it |
//! | `exit` | from the observed exit to the free pid |
//! | `throttling` | what one child learns of a provider's limit reaches the others |
//! | `handover` | what a process is told, from its first frame on |
//! | `conversation` | prompts and turns |
//! | `worker` | the process that serves them |
//! | `reload` | another configuration, and what it means to what there is |
//! | `swapping` | other models for runs that work |
//! | `answering` | how each prompt comes to its one answer |
//! | `notes` | what an ended run means to the conversation |
//! | `drain` | the drain and the end of the daemon |
//! | `view` | how things stand, for people |
//! | `checkpoint` | all that is known, as bytes and back |

mod acknowledging;
mod answering;
mod budget;
mod catalogue;
mod checkpoint;
mod control;
mod conversation;
mod drain;
mod ending;
mod exit;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gear;
mod handover;
mod host_tools;
mod keeping;
mod models;
mod notes;
mod operator;
mod queue;
mod reload;
mod restore;
mod spawn;
mod swapping;
mod throttling;
mod timers;
mod tools;
mod view;
mod warm;
mod worker;
mod writing;

use crate::action::Costliest;
use crate::action::{Action, Actions};
use crate::admit::Admission;
use crate::budget::Ledger;
use crate::config::Config;
use crate::event::Event;
use crate::id::{Handle, NodeId};
use crate::limits;
use crate::machine::{Deadline, Machine};
use crate::note::{Level, Note};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::run::Run;
use crate::run::warm::Warm;
use crate::snapshot::Snapshot;
use crate::throttle::Throttles;
use crate::time::{Instant, Now};
use budget::BudgetQueue;
pub use checkpoint::CheckpointError;
use control::Surface;
use conversation::Conversation;
use drain::Drain;
use keeping::Keeping;
use operator::Operator;
use queue::Queue;
use reload::Reload;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use timers::Timers;

/// The pure supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub struct Core {
    #[serde(serialize_with = "checkpoint::config_without_values")]
    config: Config,
    rng: Rng,
    now: Now,
    runs: BTreeMap<NodeId, Run>,
    by_handle: BTreeMap<Handle, NodeId>,
    /// Runs that are over and done with, oldest first; trimmed at `limits::ENDED_RUNS`.
    ended: VecDeque<NodeId>,
    /// Runs that are not yet both final and gone.
    busy: BTreeSet<NodeId>,
    last_node: u64,
    last_handle: u64,
    keeping: Keeping,
    admission: Admission,
    ledger: Ledger,
    budget: BudgetQueue,
    timers: Timers,
    /// Runs this event changed; their timers are set anew at its end.
    touched: BTreeSet<NodeId>,
    /// What each server offers, as a worker reported it.
    offered: BTreeMap<String, Vec<String>>,
    /// Which endpoints of models are to be left alone.
    throttles: Throttles,
    conversation: Conversation,
    plan: Option<Plan>,
    queue: Queue,
    /// The operator's open calls.
    operator: Operator,
    /// Connections, their requests and tasks, and what is counted.
    surface: Surface,
    /// Open calls of the embedding program's tools: whose, and its number there.
    host_calls: BTreeMap<u64, (NodeId, u64)>,
    last_host_call: u64,
    drain: Option<Drain>,
    reload: Reload,
    orphans_at: Option<Instant>,
    leaked: u32,
    /// Subagents that ended, and of these how many `completed`.
    ended_count: (u32, u32),
    /// Of the runs that are forgotten by now.
    costliest: Option<Costliest>,
    exited: bool,
}

impl Core {
    /// A supervisor without runs.
    pub fn new(config: Config, now: Now) -> Core {
        let window = (!config.one_shot).then_some(limits::TOTAL_WINDOW);
        let admission = Admission::new(config.subagents, window, now.mono);
        let ledger = Ledger::new(config.budget.clone(), now.wall);
        let orphans_at = config.reap_orphans_always.then(|| now.mono + limits::ORPHAN_SWEEP);
        Core {
            config,
            rng: Rng::new(0),
            now,
            runs: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            ended: VecDeque::new(),
            busy: BTreeSet::new(),
            last_node: 0,
            last_handle: 0,
            keeping: Keeping::default(),
            admission,
            ledger,
            budget: BudgetQueue::default(),
            timers: Timers::default(),
            touched: BTreeSet::new(),
            offered: BTreeMap::new(),
            throttles: Throttles::default(),
            conversation: Conversation::new(),
            plan: None,
            queue: Queue::default(),
            operator: Operator::default(),
            surface: Surface::default(),
            host_calls: BTreeMap::new(),
            last_host_call: 0,
            drain: None,
            reload: Reload::default(),
            orphans_at,
            leaked: 0,
            ended_count: (0, 0),
            costliest: None,
            exited: false,
        }
    }

    fn route(&mut self, event: Event, out: &mut Actions) {
        match event {
            Event::Seeded { seed } => {
                self.rng = Rng::new(seed);
                self.name_conversation();
            }
            Event::PromptSubmitted { text } => self.prompt_submitted(text, out),
            Event::TurnCancelled { prompt, reason } => self.turn_cancelled(prompt, &reason, out),
            Event::SpawnFrameFailed { node, error } => self.spawn_frame_failed(node, &error, out),
            Event::Tick => self.tick(out),
            Event::ChildSpawned { node, pid } => self.child_spawned(node, pid, out),
            Event::SpawnFailed { node, error, transient } => self.spawn_failed(node, &error, transient, out),
            Event::ChildBytes { node, bytes } => self.child_bytes(node, &bytes, out),
            Event::ChildEof { node } => self.child_eof(node, out),
            Event::ChildStderr { node, bytes } => self.child_stderr(node, &bytes, out),
            Event::ChildWrote { node, bytes } => {
                if let Some(run) = self.run(node) {
                    run.channel.wrote(bytes);
                }
                self.hand_next(node, out);
            }
            Event::ChildWriteFailed { node, error } => self.child_write_failed(node, &error, out),
            Event::ExitObserved { node, exit } => self.exit_observed(node, exit, out),
            Event::Swept { node, killed, remaining } => self.swept(node, killed, remaining, out),
            Event::Reaped { node } => self.reaped(node, out),
            Event::Stored { seq } => self.stored(seq, out),
            Event::StoreFailed { seq, error, retryable } => self.store_failed(seq, &error, retryable, out),
            Event::Signalled { signal } => self.signalled(signal, out),
            Event::ConfigReady(reloaded) => self.config_ready(*reloaded, out),
            Event::ConfigRefused { problems, text } => self.config_refused(problems, text, out),
            Event::ModelFrameFailed { node, id, error } => self.model_frame_failed(node, id, &error, out),
            Event::OperatorCalled { call, tool, args } => self.operator_called(call, &tool, &args, out),
            Event::OperatorHungUp { call } => self.operator_hung_up(call, out),
            Event::HostToolAnswered { call, error, value } => {
                self.host_tool_answered(call, error, value, out)
            }
            Event::Restored(saved) => self.restored(*saved, out),
            Event::ConnOpened { conn, door, peer } => self.conn_opened(conn, door, &peer, out),
            Event::ConnBytes { conn, bytes } => self.conn_bytes(conn, &bytes, out),
            Event::ConnWrote { conn, bytes } => self.conn_wrote(conn, bytes),
            Event::ConnEnded { conn } => self.conn_ended(conn, out),
            Event::ConnClosed { conn, error: _ } => self.conn_closed(conn, out),
        }
    }

    /// Everything that is due, each run once: whatever a run's tick does moves its own due time past now.
    fn tick(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        for node in self.timers.due(now) {
            match node {
                NodeId::OPERATOR => self.give_up_awaits(node, out),
                _ => self.tick_run(node, out),
            }
        }
        if self.orphans_at.is_some_and(|at| at <= now) {
            self.orphans_at = Some(now + limits::ORPHAN_SWEEP);
            out.push(Action::ReapOrphans);
        }
        self.tick_drain(out);
        self.tick_conversation(out);
        self.tick_keeping(out);
        self.tick_connections(out);
    }

    /// A run, to be changed: its timer is set anew when the event is done.
    fn run(&mut self, node: NodeId) -> Option<&mut Run> {
        self.touched.insert(node);
        self.runs.get_mut(&node)
    }

    /// A run's log event with its names filled in.
    fn note(&self, node: NodeId, level: Level, event: &str) -> NoteBuilder {
        let run = self.runs.get(&node);
        NoteBuilder(Note {
            level,
            event: event.to_owned(),
            run_id: run.map(|r| r.record.run_id),
            handle: run.and_then(|r| r.record.handle),
            node: Some(node),
            attempt: run.map(|r| r.record.attempt),
            trace_id: run.map(|r| r.trace_id.clone()),
            fields: BTreeMap::new(),
        })
    }

    /// Forgives what the daemon's own standstill looks like: a timer that is overdue by a good part of the
    /// shortest wait it could spoil was not missed by the children (S9.3). A long one is told.
    fn forgive_stall(&mut self, out: &mut Actions, previous: Instant) {
        let now = self.now.mono;
        // Any clock tells: a run whose sweep is out has none of its own.
        let Some(due) = self.poll_timeout().map(|deadline| deadline.at) else { return };
        let gap = now.since(due.max(previous));
        if gap <= limits::END_OF_FILE_WAIT.min(self.config.liveness.pong) / 4 {
            return;
        }
        let nodes: Vec<NodeId> = self.busy.iter().copied().collect();
        for node in nodes {
            if let Some(run) = self.run(node) {
                run.process.forgive(gap, now);
            }
        }
        if gap > limits::STALL_GAP {
            out.push(daemon_note(Level::Warn, "daemon.stalled").with("gap_ms", ms(gap)).into());
        }
    }

    /// Begins what may begin now and sets the timers of what this event changed.
    fn settle(&mut self, out: &mut Actions) {
        self.tell_unwaited(out);
        self.promote(out);
        self.grant_calls(out);
        for node in std::mem::take(&mut self.touched) {
            let Some(run) = self.runs.get(&node) else {
                self.timers.clear(node);
                continue;
            };
            self.timers.set(node, run.due(&self.config.liveness));
            if self.busy.contains(&node) && run.is_over() {
                self.busy.remove(&node);
                self.ended.push_back(node);
            }
        }
        while self.ended.len() > limits::ENDED_RUNS {
            let Some(run) = self.ended.pop_front().and_then(|node| self.runs.remove(&node)) else { continue };
            self.keep_sums_of(&run);
            let letters: Vec<u64> = run.warm.iter().flat_map(Warm::letters).collect();
            self.keep_no_longer(run.record.run_id, letters);
            self.ledger.close(run.record.node, self.now.wall);
            self.forget_log(run.record.node);
            if let Some(handle) = run.record.handle {
                self.by_handle.remove(&handle);
            }
        }
        // What a sweep gave up on may end at any later time, and lands here.
        if self.busy.is_empty() && !self.config.reap_orphans_always && self.leaked == 0 {
            self.orphans_at = None;
        } else {
            let at = self.now.mono + limits::ORPHAN_SWEEP;
            self.orphans_at.get_or_insert(at);
        }
        self.save_marked(out);
        debug_assert_eq!(
            self.admission.permits_out() as usize,
            self.runs.values().filter(|r| r.permit.is_some()).count(),
            "permits out must equal the runs that hold one"
        );
    }
}

impl Machine for Core {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        if self.exited {
            return;
        }
        let previous = self.now.mono;
        // Clocks that a driver reads backwards never move the core back.
        self.now = Now { mono: now.mono.max(previous), wall: now.wall };
        let before = out.len();
        self.forgive_stall(out, previous);
        self.route(event, out);
        self.settle(out);
        self.keep_notes(&out[before..]);
        self.hurry_followers();
        self.set_connection_timer();
        self.exit_if_done(out);
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        if self.exited {
            return None;
        }
        let runs = self.timers.first().map(|at| Deadline { at, why: "a run" });
        let orphans = self.orphans_at.map(|at| Deadline { at, why: "orphans" });
        let waits = [
            self.conversation_due(),
            self.drain_due(),
            self.queue_due(),
            self.budget_due(),
            self.keeping_due(),
        ];
        let own = waits.into_iter().chain([self.connections_due()]);
        [runs, orphans].into_iter().chain(own).flatten().min_by_key(|d| d.at)
    }

    fn checkpoint(&self) -> Result<Vec<u8>, String> {
        Core::checkpoint(self).map_err(|error| error.to_string())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(self.view())
    }
}

/// Builds a log event.
struct NoteBuilder(Note);

impl NoteBuilder {
    fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> NoteBuilder {
        self.0.fields.insert(key.to_owned(), value.into());
        self
    }
}

impl From<NoteBuilder> for Action {
    fn from(builder: NoteBuilder) -> Action {
        Action::Note(builder.0)
    }
}

fn daemon_note(level: Level, event: &str) -> NoteBuilder {
    NoteBuilder(Note::of_daemon(level, event))
}

/// Whole milliseconds, for log fields and answers.
fn ms(duration: crate::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

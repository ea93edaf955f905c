//! How things stand: the snapshot that people look at, and what `subagent.status` and `subagent.list` answer.

use super::spawn::mode_name;
use super::{Core, ms};
use crate::id::NodeId;
use crate::record::{Status, Tokens};
use crate::run::ladder::Rung;
use crate::run::process::Process;
use crate::run::{Request, Run};
use crate::snapshot::{RunView, Snapshot, Waits};
use crate::time::{Duration, Instant, Wall};
use crate::wire::message::{Role, WaitingOn};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Core {
    /// All that is not over.
    pub(super) fn view(&self) -> Snapshot {
        let runs = self.busy.iter().filter_map(|node| Some(self.run_view(*node, self.runs.get(node)?)));
        Snapshot {
            now: self.now,
            runs: runs.collect(),
            total: self.conversation_usage().subtree,
            ended: self.ended_count,
            draining: self.drain.is_some(),
            store: self.store_view(),
        }
    }

    fn run_view(&self, node: NodeId, run: &Run) -> RunView {
        let (waits, since) = self.waits_of(node, run);
        RunView {
            node,
            parent: run.parent,
            handle: run.record.handle,
            depth: run.record.depth,
            role: run.record.role,
            mode: run.record.mode,
            status: run.record.status,
            title: run.title.clone(),
            waits,
            since,
            step: run.waiting.as_ref().map_or(0, |(_, _, step)| *step),
            own: run.record.usage,
            subtree: run.subtree,
        }
    }

    /// The one reason, and since when (S17.1c).
    fn waits_of(&self, node: NodeId, run: &Run) -> (Waits, Instant) {
        let now = self.now.mono;
        let alive = match &run.process {
            Process::Held { .. } => {
                let (place, of) = self.queue.place(node);
                return (Waits::Queued { place, of }, run.admitted);
            }
            Process::Restored { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Retrying { .. } => {
                return (Waits::Start, run.admitted);
            }
            Process::Sweeping(_) | Process::Draining { .. } | Process::Reaping | Process::Gone => {
                return (Waits::Ending, run.decided.unwrap_or(now));
            }
            Process::Alive(alive) => alive,
        };
        if run.outcome.is_decided() || alive.ladder.rung() > Rung::None {
            return (Waits::Ending, run.decided.unwrap_or(now));
        }
        if !alive.liveness.is_ready() {
            return (Waits::Start, alive.since);
        }
        let keys = &self.config.liveness;
        let (silent, no_pong) = (alive.liveness.silent(now), alive.liveness.no_pong(now));
        // One ping may still be on its way; two that are not answered are told.
        if no_pong > keys.ping * 2 && silent > keys.ping {
            let (silent_since, stuck_at) = (now.before(silent), keys.pong);
            return (Waits::NoPong { silent, no_pong, stuck_at }, silent_since);
        }
        match &run.waiting {
            None => (Waits::Silent, now.before(silent)),
            Some((on, since, _)) => (self.waits_on(run, on), *since),
        }
    }

    fn waits_on(&self, run: &Run, on: &WaitingOn) -> Waits {
        match on {
            WaitingOn::Servers => Waits::Servers,
            WaitingOn::Model => Waits::Model,
            WaitingOn::Tools(names) => Waits::Tools(names.clone()),
            WaitingOn::Supervisor => Waits::Children(children_waited_on(run)),
            WaitingOn::Throttled(until) => Waits::Throttled { until: Wall(*until) },
            WaitingOn::Message => Waits::Message,
            WaitingOn::Paused => Waits::Paused,
            WaitingOn::Budget => Waits::Budget,
            WaitingOn::Closing => Waits::Ending,
        }
    }

    /// What a run is doing, for `subagent.status`, with what the last turn of a warm one gave.
    pub(super) fn status_of(&self, node: NodeId) -> Value {
        let mut value = self.doing_of(node);
        if let Some(warm) = self.runs.get(&node).and_then(|run| run.warm.as_ref()) {
            value["last_turn"] = warm.results().last().and_then(|(_, json)| json.parse().ok()).into();
        }
        value
    }

    /// The same without any result, which may be long: for lists, which a model reads whole.
    pub(super) fn doing_of(&self, node: NodeId) -> Value {
        let Some(run) = self.runs.get(&node) else { return Value::Null };
        let now = self.now.mono;
        let mut value = json!({
            "handle": run.record.handle,
            "run_id": run.record.run_id,
            "status": run.record.status,
            "mode": mode_name(run.record.mode),
            "depth": run.record.depth,
            "attempt": run.record.attempt,
            "title": run.title,
            "usage": { "own": run.record.usage, "subtree": run.subtree },
        });
        if !run.outcome.is_decided() {
            let view = self.run_view(node, run);
            value["waits"] = view.words(now, |until| until.to_string()).into();
            value["waiting_ms"] = ms(now.since(view.since)).into();
            value["step"] = view.step.into();
        }
        if let Some((on, ..)) = run.waiting.as_ref().filter(|_| !run.outcome.is_decided()) {
            value["waiting_on"] = serde_json::to_value(on).unwrap_or(Value::Null);
        }
        if let Process::Alive(alive) = &run.process {
            value["last_progress_ms"] = ms(alive.liveness.silent(now)).into();
        }
        if let Some(warm) = &run.warm {
            value["turn"] = warm.in_hand().into();
            value["queued"] = warm.waiting().into();
        }
        value
    }

    /// Counts an ended run for the snapshot.
    pub(super) fn count_ended(&mut self, node: NodeId) {
        let Some(run) = self.runs.get(&node) else { return };
        if run.record.role == Role::Subagent {
            self.ended_count.0 = self.ended_count.0.saturating_add(1);
            let completed = u32::from(run.record.status == Status::Completed);
            self.ended_count.1 = self.ended_count.1.saturating_add(completed);
        }
    }
}

/// Runs that somebody's open calls wait for, each once.
fn children_waited_on(run: &Run) -> u32 {
    let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
    for request in run.requests.values() {
        match request {
            Request::Run { child: node, .. } | Request::Turn { node, .. } | Request::Kill { node } => {
                nodes.insert(*node);
            }
            Request::Await { nodes: many, .. } => nodes.extend(many.iter().copied()),
            Request::Sent { .. } | Request::Host { .. } => {}
        }
    }
    u32::try_from(nodes.len()).unwrap_or(u32::MAX)
}

impl Instant {
    /// The instant this long ago, or the epoch.
    pub(super) fn before(self, ago: Duration) -> Instant {
        Instant::from_nanos(self.nanos().saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Tokens {
    /// Input and output together.
    pub(super) fn both(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

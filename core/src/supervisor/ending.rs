//! How a run ends: decided once, made durable, then told; and what ends with it.

use super::keeping::Purpose;
use super::{Core, ms};
use crate::action::{Action, Actions, ChildSignal};
use crate::bytes::Json;
use crate::config::Commit;
use crate::id::NodeId;
use crate::limits;
use crate::metrics::Counter;
use crate::note::Level;
use crate::record::Status;
use crate::run::channel::Sent;
use crate::run::ladder::{Push, Rung};
use crate::run::process::Process;
use crate::run::warm::Warm;
use crate::run::{Ending, Outcome, Request, Run, Waiter};
use crate::time::Now;
use crate::wire::message::{Cancel, Down, Role, ToolResult};
use serde_json::{Value, json};

/// Room left in a frame around a tool result's value.
const FRAME_ROOM: usize = 1024;

impl Core {
    /// Decides a run's outcome; the first decision stands. Saves it, and cancels what cannot outlive it.
    pub(super) fn decide(&mut self, node: NodeId, ending: Ending, out: &mut Actions) {
        let Now { mono: now, wall } = self.now;
        let Some(run) = self.run(node) else { return };
        if run.outcome.is_decided() {
            return;
        }
        self.charge_in_flight(node);
        let keeps = self.config.store.keeps;
        let Some(run) = self.run(node) else { return };
        // The next start takes a parked run up, with its last turn's result and the messages that wait for it.
        let kept = ending.status == Status::Parked && keeps;
        run.record.status = ending.status;
        if kept {
            run.restarts = 0;
        } else {
            run.record.result = ending.result;
            run.record.partial = ending.partial;
        }
        run.record.error = ending.error;
        run.record.ended = Some(wall);
        run.outcome = Outcome::Saving { wait: limits::STORE_RETRY.0 };
        run.decided = Some(now);
        run.waiting = None;
        run.steers.clear();
        run.early.clear();
        let unread = match &mut run.warm {
            Some(warm) if !kept => warm.drop_waiting(),
            Some(_) | None => Vec::new(),
        };
        self.unkept_all(node, &unread);
        match self.is_worker(node) {
            true => self.worker_left_unread(node, &unread),
            false => self.note_dropped(node, &unread, out),
        }
        self.persist(node, Purpose::Ending, out);
        if self.config.store.commit == Commit::Relaxed && !self.is_kill(node) && !self.is_unrecorded(node) {
            self.keeping.to_tell.push(node);
        }
        self.note_ending(node, out);
        self.drop_requests(node, out);
    }

    /// Messages that never get a turn, and one whose turn was cut off.
    fn unkept_all(&mut self, node: NodeId, unread: &[u64]) {
        if let Some(run) = self.run(node).filter(|run| run.record.status.has_ended()) {
            run.unkept.extend(unread.iter().copied());
            let in_hand = run.warm.as_ref().and_then(Warm::in_hand);
            run.unkept.extend(in_hand);
        }
    }

    /// Whoever killed it hears so no sooner than it is durable, for nothing may revive it then (S9.4).
    fn is_kill(&self, node: NodeId) -> bool {
        self.runs.get(&node).is_some_and(|run| run.record.status == Status::Cancelled)
    }

    /// Nothing of it is durable yet: there may never be such a run.
    fn is_unrecorded(&self, node: NodeId) -> bool {
        let begins = |run: &Run| matches!(run.process, Process::Recording | Process::Held { stored: false });
        self.runs.get(&node).is_some_and(begins)
    }

    /// Tells the ends that wait for no store.
    pub(super) fn tell_unwaited(&mut self, out: &mut Actions) {
        while let Some(node) = self.keeping.to_tell.pop() {
            self.ending_told(node, out);
        }
    }

    fn note_ending(&self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.runs.get(&node) else { return };
        let event = match run.record.role {
            Role::Worker => "worker.result",
            Role::Subagent => "subagent.result",
        };
        let mut note = self
            .note(node, Level::Info, event)
            .with("status", run.record.status.name())
            .with("duration_ms", ms(self.now.mono.since(run.admitted)))
            .with("input_tokens", run.record.usage.input)
            .with("output_tokens", run.record.usage.output);
        if let Some(error) = &run.record.error {
            note = note.with("error", error.as_str());
        }
        out.push(note.into());
    }

    /// What a run that has ended was waiting for: its synchronous runs end with it (S6.7), and each open call
    /// is still answered, for a child that is asked to cancel may be waiting on just that.
    pub(super) fn drop_requests(&mut self, node: NodeId, out: &mut Actions) {
        let open: Vec<u64> = self.requests(node).map(|r| r.keys().copied().collect()).unwrap_or_default();
        for request in open {
            self.drop_request(node, request, true, "the run that waited for it has ended", out);
        }
    }

    /// One call that its caller no longer waits for, answered all the same if `answered`. What it waited for
    /// synchronously ends, because `why`.
    pub(super) fn drop_request(
        &mut self,
        node: NodeId,
        request: u64,
        answered: bool,
        why: &str,
        out: &mut Actions,
    ) {
        let waiter = Waiter { node, request };
        let Some(asked) = self.asked_by(waiter) else { return };
        let (mut child, mut call) = (None, None);
        let others = match asked {
            Request::Run { child: of, sync } => {
                child = sync.then_some(*of);
                vec![*of]
            }
            Request::Await { nodes, .. } => nodes.clone(),
            Request::Turn { node: of, .. } | Request::Kill { node: of } | Request::Sent { node: of, .. } => {
                vec![*of]
            }
            Request::Host { call: of } => {
                call = Some(*of);
                Vec::new()
            }
        };
        if answered {
            let why = json!({ "error": { "gate": "cancelled", "message": "this run has ended" } });
            self.answer(node, request, true, &why, out);
        } else {
            self.close_request(node, request);
        }
        self.wait_no_longer(&others, waiter);
        if let Some(call) = call {
            self.cancel_host_tool(call, out);
        }
        if let Some(child) = child {
            self.cancel(child, why, out);
        }
    }

    /// Cancels one run: the record at once, the process by the ladder (S9.4).
    pub(super) fn cancel(&mut self, node: NodeId, why: &str, out: &mut Actions) {
        if self.runs.get(&node).is_none_or(|run| run.outcome.is_decided()) {
            return;
        }
        self.decide(node, Ending::without_result(Status::Cancelled, why), out);
        self.push_ladder(node, Push::Ask, out);
    }

    /// Enters a process's ladder, or hurries it, and takes the rungs that are due at once. Without a process
    /// there is nothing to climb: what has no pid yet is dealt with when it gets one.
    pub(super) fn push_ladder(&mut self, node: NodeId, push: Push, out: &mut Actions) {
        let (now, keys) = (self.now.mono, self.config.kill);
        if let Some(run) = self.run(node)
            && let Process::Alive(alive) = &mut run.process
        {
            alive.ladder.push(push, now, &keys);
            self.climb(node, out);
        } else if let Some(run) = self.run(node)
            && let Process::Retrying { .. } | Process::Held { .. } | Process::Restored { .. } = run.process
        {
            // Nobody will want the fork or the permit that is being waited for.
            self.never_made(node, out);
        }
    }

    /// Takes every rung that is due.
    pub(super) fn climb(&mut self, node: NodeId, out: &mut Actions) {
        let (now, keys) = (self.now.mono, self.config.kill);
        while let Some(run) = self.run(node)
            && let Process::Alive(alive) = &mut run.process
            && let Some(rung) = alive.ladder.climb(now, &keys)
        {
            let after = ms(alive.ladder.age(now));
            match rung {
                Rung::None => {}
                Rung::Cancel => {
                    let reason = run.record.error.clone().unwrap_or_default();
                    if let Sent::Frame(frame) = run.channel.send(&Down::Cancel(Cancel { reason, turn: None }))
                    {
                        self.queue(node, frame, out);
                    }
                }
                Rung::Term => self.signal(node, ChildSignal::TermCont, "SIGTERM", after, out),
                Rung::Kill => self.signal(node, ChildSignal::Kill, "SIGKILL", after, out),
            }
        }
    }

    fn signal(&mut self, node: NodeId, signal: ChildSignal, name: &str, after_ms: u64, out: &mut Actions) {
        out.push(Action::Signal { node, signal });
        self.meter(Counter::Signals, &[name]);
        out.push(
            self.note(node, Level::Info, "subagent.kill.escalated")
                .with("signal", name)
                .with("after_ms", after_ms)
                .into(),
        );
    }

    /// An ending that could not be saved is due again.
    pub(super) fn save_again(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if let Outcome::Unsaved { wait, .. } = run.outcome {
            run.outcome = Outcome::Saving { wait };
            self.persist(node, Purpose::Ending, out);
        }
    }

    /// The outcome is final: whoever waits is told, once, with the same bytes.
    pub(super) fn ending_told(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if !matches!(run.outcome, Outcome::Saving { .. } | Outcome::Unsaved { .. }) {
            return;
        }
        let object = run.object();
        let json = serde_json::to_value(&object).map(|v| Json::of(&v)).unwrap_or_default();
        run.outcome = Outcome::Final(json);
        self.count_ended(node);
        self.conversation_learns(node, out);
        let waiters = self.run(node).map(|run| std::mem::take(&mut run.waiters)).unwrap_or_default();
        if self.is_worker(node) {
            self.worker_ended(node, out);
        }
        for waiter in waiters {
            self.tell(waiter.node, waiter.request, out);
        }
    }

    /// Answers a request whose condition may have come true.
    pub(super) fn tell(&mut self, node: NodeId, request: u64, out: &mut Actions) {
        let Some(asked) = self.asked_by(Waiter { node, request }) else { return };
        let (value, others) = match asked {
            Request::Turn { node: of, message, .. } => {
                let (of, message) = (*of, *message);
                if let Some((error, value)) = self.turn_result(of, message) {
                    self.answer_json(node, request, error, value, out);
                    self.wait_no_longer(&[of], Waiter { node, request });
                }
                return;
            }
            Request::Run { child, .. } | Request::Kill { node: child } => {
                (self.final_object(*child), Vec::new())
            }
            Request::Await { nodes, any, single, .. } => {
                (self.awaited(nodes, *any, *single, false), nodes.clone())
            }
            Request::Sent { node: of, message } => {
                // Its end is told, and with it was saved what became of the message.
                let (of, message, sender) = (*of, *message, Waiter { node, request });
                return self.acknowledge(sender, of, message, true, out);
            }
            // The embedding program answers it.
            Request::Host { .. } => return,
        };
        if let Some(value) = value {
            self.answer_json(node, request, false, value, out);
            self.wait_no_longer(&others, Waiter { node, request });
        }
    }

    /// A run's final object, if it is final.
    pub(super) fn final_object(&self, node: NodeId) -> Option<Json> {
        match &self.runs.get(&node)?.outcome {
            Outcome::Final(json) => Some(json.clone()),
            Outcome::Open | Outcome::Saving { .. } | Outcome::Unsaved { .. } => None,
        }
    }

    /// Answers one open request, exactly once.
    pub(super) fn answer(
        &mut self,
        node: NodeId,
        request: u64,
        error: bool,
        value: &Value,
        out: &mut Actions,
    ) {
        self.answer_json(node, request, error, Json::of(value), out);
    }

    pub(super) fn answer_json(
        &mut self,
        node: NodeId,
        request: u64,
        error: bool,
        value: Json,
        out: &mut Actions,
    ) {
        self.close_request(node, request);
        if node == NodeId::OPERATOR {
            if !self.answers_connection(request, error, &value, out) {
                out.push(Action::Answer { call: request, error, value });
            }
            return;
        }
        let Some(run) = self.run(node) else { return };
        let (error, value) = if value.0.len() > limits::FRAME_BYTES - FRAME_ROOM {
            (true, Json::of(&too_large(value.0.len())))
        } else {
            (error, value)
        };
        match run.channel.send(&Down::ToolResult(ToolResult { id: request, error, value })) {
            Sent::Frame(frame) => self.queue(node, frame, out),
            Sent::Closed => {}
            Sent::Full => self.does_not_read(node, out),
        }
    }

    /// A child whose queue is full of what it asked for (S2.7).
    pub(super) fn does_not_read(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.channel.close();
        self.decide(node, Ending::without_result(Status::Failed, "does not read"), out);
        self.push_ladder(node, Push::Insist, out);
    }

    /// A run and everything it delegated, nearest first.
    pub(super) fn subtree(&self, node: NodeId) -> Vec<NodeId> {
        let mut all = vec![node];
        let mut at = 0;
        while let Some(next) = all.get(at) {
            if let Some(run) = self.runs.get(next) {
                all.extend(run.children.iter().copied());
            }
            at += 1;
        }
        all
    }
}

impl Run {
    /// Its outcome is final and its process is gone: nothing more will happen to it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.outcome, Outcome::Final(_)) && matches!(self.process, Process::Gone)
    }
}

fn too_large(bytes: usize) -> Value {
    json!({ "error": {
        "gate": "size",
        "message": format!("the answer has {bytes} bytes and a frame holds {}", limits::FRAME_BYTES),
        "hint": "ask for one handle at a time, or for a smaller result",
    } })
}

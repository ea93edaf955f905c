//! Warm runs: messages to their turns, the turns' ends, retirement (S6.3, S6.5).

use super::Core;
use super::frames::ending_of;
use crate::action::Actions;
use crate::bytes::Json;
use crate::id::NodeId;
use crate::note::Level;
use crate::record::Status;
use crate::run::channel::Sent;
use crate::run::ladder::Push;
use crate::run::process::Process;
use crate::run::{Ending, Request, Run};
use crate::time::Duration;
use crate::wire::Down;
use crate::wire::message::{Turn, TurnOutcome, WaitingOn};
use serde_json::json;

impl Run {
    /// The number of the next message or steer to it.
    pub(super) fn next_text(&mut self) -> u64 {
        self.last_text += 1;
        self.last_text
    }
}

impl Core {
    /// Hands an idle warm child its next message. One that cannot be sent yet waits on: it is tried again when
    /// bytes have left.
    pub(super) fn hand_next(&mut self, node: NodeId, out: &mut Actions) {
        let (now, keys) = (self.now.mono, self.config.liveness);
        let Some(run) = self.run(node) else { return };
        let (false, Process::Alive(alive), Some(warm)) =
            (run.outcome.is_decided() || run.payload.is_some(), &mut run.process, &mut run.warm)
        else {
            return;
        };
        let Some(message) = warm.take_next(now) else { return };
        match run.channel.send(&Down::Message(message.clone())) {
            Sent::Frame(frame) => {
                alive.liveness.turn_begun(now, run.deadline, &keys);
                self.queue(node, frame, out);
                self.ledger.renew(node);
                out.push(
                    self.note(node, Level::Debug, "subagent.message").with("message", message.id).into(),
                );
            }
            Sent::Full | Sent::Closed => warm.put_back(message),
        }
    }

    /// A warm child's turn has ended.
    pub(super) fn turn_ended(&mut self, node: NodeId, turn: Turn, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        if run.outcome.is_decided() {
            out.push(self.note(node, Level::Debug, "child.late_result").into());
            return;
        }
        if run.warm.as_ref().and_then(|warm| warm.in_hand()) != Some(turn.id) {
            self.protocol_error(node, "a `turn` that is not in hand", out);
            return;
        }
        let (fault, evidence) = match &turn.outcome {
            TurnOutcome::Result(result) => (None, result.evidence),
            TurnOutcome::Failed(failed) => (Some(failed.kind), failed.evidence),
        };
        let ending = ending_of(self.is_worker(node), turn.outcome);
        let Some(run) = self.run(node) else { return };
        run.counted = evidence;
        run.in_flight = None;
        let step = run.waiting.as_ref().map_or(0, |(_, _, step)| *step);
        run.waiting = Some((WaitingOn::Message, now, step));
        run.record.result = ending.result.clone();
        run.record.partial = ending.partial;
        if let Process::Alive(alive) = &mut run.process {
            alive.liveness.turn_ended();
        }
        let took = run.warm.as_ref().map_or(Duration::ZERO, |warm| warm.took(now));
        let object = Json::of(&run.turn_object(turn.id, &ending, took));
        run.restarts = 0;
        let forgotten = run.warm.as_mut().and_then(|warm| warm.ended(ending.clone(), object));
        self.mark_step(node, out);
        self.mark_letter(node, turn.id);
        if let Some(forgotten) = forgotten {
            self.mark_letter(node, forgotten);
        }
        self.note_turn(node, turn.id, &ending, out);
        // What the turn was waiting for ends with it (S6.7).
        self.drop_requests(node, out);
        self.tell_turn(node, out);
        match self.is_worker(node) {
            true => self.worker_turn_ended(node, &ending, fault, out),
            // One that a restart took up has messages yet that it had been handed before.
            false if self.runs.get(&node).is_some_and(|run| run.is_retiring() && run.nothing_waits()) => {
                self.complete_retirement(node, out)
            }
            false => {
                self.note_to_conversation(node, ending.status, &ending, out);
                self.hand_next(node, out);
            }
        }
    }

    fn note_turn(&self, node: NodeId, id: u64, ending: &Ending, out: &mut Actions) {
        let event = if self.is_worker(node) { "worker.turn" } else { "subagent.turn" };
        let mut note =
            self.note(node, Level::Info, event).with("message", id).with("status", ending.status.name());
        if let Some(error) = &ending.error {
            note = note.with("error", error.as_str());
        }
        out.push(note.into());
    }

    /// Tells those who wait for a turn of this run.
    fn tell_turn(&mut self, node: NodeId, out: &mut Actions) {
        let waiters = self.runs.get(&node).map(|run| run.waiters.clone()).unwrap_or_default();
        for waiter in waiters {
            if matches!(self.asked_by(waiter), Some(Request::Turn { .. })) {
                self.tell(waiter.node, waiter.request, out);
            }
        }
    }

    /// Takes no more messages: those that wait are dropped and named, and the run ends with the turn in hand.
    pub(super) fn retire(&mut self, node: NodeId, out: &mut Actions) -> Vec<u64> {
        let Some(warm) = self.run(node).and_then(|run| run.warm.as_mut()) else { return Vec::new() };
        let dropped = warm.retire();
        let idle = warm.in_hand().is_none();
        dropped.iter().for_each(|id| self.mark_letter(node, *id));
        self.note_dropped(node, &dropped, out);
        // Whoever waits for a turn that will not come is told now.
        self.tell_turn(node, out);
        if idle {
            self.complete_retirement(node, out);
        } else {
            self.mark_retiring(node, out);
        }
        dropped
    }

    /// Makes durable that a run retires. One that waits for a permit stays `held` until it begins, and one whose intent
    /// is on the way to the store is saved after it: nothing is saved of a run that may never be.
    pub(super) fn mark_retiring(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node).filter(|run| !matches!(run.process, Process::Held { .. })) else {
            return;
        };
        run.record.status = Status::Retiring;
        if !matches!(run.process, Process::Recording) {
            self.mark_step(node, out);
        }
    }

    /// Says which messages never get a turn.
    pub(super) fn note_dropped(&self, node: NodeId, dropped: &[u64], out: &mut Actions) {
        if !dropped.is_empty() {
            let note = self.note(node, Level::Warn, "subagent.messages_dropped").with("count", dropped.len());
            out.push(note.with("messages", json!(dropped)).into());
        }
    }

    /// A warm run between turns ends `completed`, with its last turn's result.
    pub(super) fn complete_retirement(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.runs.get(&node) else { return };
        let last = run.warm.as_ref().and_then(|warm| warm.last());
        let ending = Ending {
            status: Status::Completed,
            result: last.map_or(serde_json::Value::Null, |last| last.result.clone()),
            partial: last.is_some_and(|last| last.partial),
            error: None,
        };
        self.decide(node, ending, out);
        self.push_ladder(node, Push::Ask, out);
    }
}

impl Run {
    /// No message waits for its turn.
    fn nothing_waits(&self) -> bool {
        self.warm.as_ref().is_none_or(|warm| warm.waiting() == 0)
    }

    /// Takes no more messages and ends with the turn in hand.
    pub(super) fn is_retiring(&self) -> bool {
        self.warm.as_ref().is_some_and(|warm| warm.is_retiring())
    }
}

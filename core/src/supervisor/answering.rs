//! How a prompt comes to its answer: with its turn, with its worker's end, or without ever having had a turn. Each
//! prompt has exactly one.

use super::Core;
use super::conversation::{Phase, Prompt};
use super::keeping::Shelf;
use crate::action::{Action, Actions};
use crate::id::NodeId;
use crate::record::{Evidence, ResultObject, Status, UsageSum};
use crate::run::Ending;
use crate::run::ladder::Push;
use crate::wire::message::{FailKind, Mode};
use serde_json::Value;

impl Core {
    /// A warm worker's turn has ended.
    pub(super) fn worker_turn_ended(
        &mut self,
        node: NodeId,
        ending: &Ending,
        fault: Option<FailKind>,
        out: &mut Actions,
    ) {
        let Some(run) = self.runs.get(&node) else { return };
        let result = run.object_with(ending);
        self.conversation.idle_until = Some(self.now.mono + self.config.worker_idle);
        self.deliver(node, result, fault, out);
        if self.drain.is_some() {
            self.retire_worker(out);
        } else {
            if self.conversation.outdated {
                self.retire_worker(out);
            }
            self.next_turn(out);
            self.wake_for_notes(out);
        }
    }

    /// A worker ends, and was not handed these messages.
    pub(super) fn worker_left_unread(&mut self, node: NodeId, unread: &[u64]) {
        if let Phase::Turn(turn) = &mut self.conversation.phase
            && turn.worker == node
        {
            turn.unhanded = unread.contains(&turn.message);
        }
    }

    /// The turn's prompt, if this worker failed before it was handed it: another worker takes it up.
    fn taken_up(&mut self, node: NodeId) -> bool {
        let failed = self.runs.get(&node).is_some_and(|run| run.record.status == Status::Failed);
        let Some(turn) = self.conversation.turn_of(node) else { return false };
        if !failed || !turn.unhanded || turn.cancel_until.is_some() || self.drain.is_some() {
            return false;
        }
        let prompt = Prompt { number: turn.prompt, text: turn.text.clone() };
        self.conversation.phase = Phase::Quiet;
        self.conversation.waiting.push_front(prompt);
        self.mark(Shelf::Conversation);
        true
    }

    /// A worker's outcome is final: the turn it was in has its answer, or another worker.
    pub(super) fn worker_ended(&mut self, node: NodeId, out: &mut Actions) {
        let was_current = self.conversation.worker == Some(node);
        if was_current {
            self.conversation.worker = None;
            self.conversation.idle_until = None;
            self.conversation.outdated = false;
        }
        if !self.taken_up(node)
            && let Some(run) = self.runs.get(&node)
        {
            let (result, fault) = (run.object(), run.fault);
            self.deliver(node, result, fault, out);
        }
        if was_current {
            self.hand_on_notes(out);
        }
        self.next_turn(out);
    }

    fn deliver(&mut self, node: NodeId, result: ResultObject, fault: Option<FailKind>, out: &mut Actions) {
        let Some(turn) = self.conversation.turn_of(node).cloned() else { return };
        let answered = match (&result.result, &result.error) {
            (Value::String(text), _) => text.clone(),
            (Value::Null, Some(error)) => format!("[no answer: {error}]"),
            (value, _) => value.to_string(),
        };
        self.conversation.remember(&turn.text, answered);
        self.mark(Shelf::Conversation);
        self.task_ends(turn.prompt, &result, out);
        out.push(Action::Deliver { prompt: turn.prompt, result: Box::new(result), fault });
        if !self.config.one_shot {
            self.conversation.phase = Phase::Quiet;
            return;
        }
        let until = self.now.mono + self.config.drain_timeout;
        self.conversation.phase = Phase::Over { until, stopped: false };
        self.stop_warm_when_over(out);
    }

    /// A warm run never ends by itself, and nobody is there any more to end it.
    pub(super) fn stop_warm_when_over(&mut self, out: &mut Actions) {
        if self.conversation.is_over() {
            for warm in self.busy_with(|run| run.record.mode == Mode::Warm) {
                self.stop(warm, Push::Ask, out);
            }
        }
    }

    /// Answers a prompt that never became a turn.
    pub(super) fn answer_unbegun(&mut self, prompt: u64, status: Status, why: String, out: &mut Actions) {
        let (run_id, _) = self.mint_names(None, None);
        let result = ResultObject {
            handle: None,
            run_id,
            status,
            result: Value::Null,
            partial: false,
            error: Some(why),
            usage: UsageSum::default(),
            evidence: Evidence::default(),
            attempt: 1,
        };
        self.task_ends(prompt, &result, out);
        out.push(Action::Deliver { prompt, result: Box::new(result), fault: None });
    }
}

//! What an ended run means to the conversation: its plan settles, and with `agent.wake_on: [subagent_result]` it is
//! told (S8.4).

use super::Core;
use super::keeping::Shelf;
use crate::action::Actions;
use crate::id::NodeId;
use crate::limits;
use crate::record::Status;
use crate::run::{Ending, Request};
use crate::wire::Down;
use crate::wire::message::{Role, Text};
use serde_json::Value;

/// What a turn is begun with when all there is to tell is on its way as steers.
const UNTAKEN: &str = "subagents ended as the last turn did; what they gave follows";

impl Core {
    /// A subagent's outcome is final. Call it before its waiters are told: one whose result is a call's own answer
    /// needs no note besides.
    pub(super) fn conversation_learns(&mut self, node: NodeId, out: &mut Actions) {
        self.settle_plan(node);
        let Some(run) = self.runs.get(&node).filter(|run| run.record.role == Role::Subagent) else { return };
        let status = run.record.status;
        let answered = run.waiters.iter().any(|waiter| {
            self.is_worker(waiter.node)
                && matches!(
                    self.asked_by(*waiter),
                    Some(Request::Run { .. } | Request::Await { .. } | Request::Kill { .. })
                )
        });
        if !answered {
            let ending = Ending {
                status,
                result: run.record.result.clone(),
                partial: run.record.partial,
                error: run.record.error.clone(),
            };
            self.note_to_conversation(node, status, &ending, out);
        }
    }

    /// Settles the plan's items that are bound to this run, whose outcome is final.
    pub(super) fn settle_plan(&mut self, node: NodeId) {
        let (Some(run), Some(plan)) = (self.runs.get(&node), &mut self.plan) else { return };
        let (Some(handle), status) = (run.record.handle, run.record.status) else { return };
        let cause = run.record.error.as_deref().unwrap_or(status.name());
        if plan.settle(handle, (status != Status::Completed).then_some(cause)) {
            self.mark(Shelf::Plan);
        }
    }

    /// Tells the conversation of an ended run or turn, if it wants to be told: in the turn in hand, else by a turn
    /// of its own.
    pub(super) fn note_to_conversation(
        &mut self,
        node: NodeId,
        status: Status,
        ending: &Ending,
        out: &mut Actions,
    ) {
        let Some(handle) = self.runs.get(&node).and_then(|run| run.record.handle) else { return };
        if !self.config.wake_on_results || self.drain.is_some() || self.is_operators(node) {
            return;
        }
        let gist = match (&ending.result, &ending.error) {
            (Value::Null, Some(error)) => error.clone(),
            (Value::String(text), _) => text.clone(),
            (Value::Null, None) => "no result".to_owned(),
            (value, _) => value.to_string(),
        };
        let text = shortened(&format!("subagent {handle} {}: {gist}", status.name()));
        let at_work = self.conversation.at_work();
        // A worker that takes no more steers, or is about to end, leaves it for the next turn.
        match at_work.and_then(|worker| self.steer(worker, text.clone(), out).ok()) {
            Some(steer) => self.told_by_steer(steer, text),
            None if !self.config.one_shot => self.note_as_prompt(&text, out),
            None => {}
        }
    }

    /// Whether an operator asked for this run, or for one above it: then the conversation has nothing to do with it.
    fn is_operators(&self, node: NodeId) -> bool {
        let mut top = node;
        while let Some(parent) = self.runs.get(&top).and_then(|run| run.parent) {
            top = parent;
        }
        self.runs.get(&top).is_some_and(|run| run.record.role != Role::Worker)
    }

    /// A note was told by a steer in the turn in hand.
    pub(super) fn told_by_steer(&mut self, id: u64, text: String) {
        self.conversation.told.insert(id, text);
        self.mark(Shelf::Conversation);
    }

    /// The worker has taken a steer.
    pub(super) fn steer_taken(&mut self, node: NodeId, id: u64) {
        if self.conversation.worker == Some(node) {
            let told = self.conversation.told.remove(&id).is_some();
            if told {
                self.mark(Shelf::Conversation);
            }
        }
    }

    /// Notes that crossed the end of the turn wait at the worker for its next one. When nobody asks for that, it is
    /// woken (S8.4).
    pub(super) fn wake_for_notes(&mut self, out: &mut Actions) {
        if !self.conversation.told.is_empty() && self.conversation.nobody_waits() {
            self.note_as_prompt(UNTAKEN, out);
        }
    }

    /// The worker has ended: the notes that it did not take are for the next one.
    pub(super) fn hand_on_notes(&mut self, out: &mut Actions) {
        for text in std::mem::take(&mut self.conversation.told).into_values() {
            if self.drain.is_none() && !self.config.one_shot {
                self.note_as_prompt(&text, out);
            }
        }
    }

    /// Sends a text to be told at the run's next step.
    pub(super) fn steer(&mut self, node: NodeId, text: String, out: &mut Actions) -> Result<u64, String> {
        let Some(run) = self.run(node) else { return Err("it has ended".to_owned()) };
        if run.steers.len() >= limits::STEERS {
            return Err(format!("{} steers wait to be taken already", limits::STEERS));
        }
        let id = run.next_text();
        run.steers.insert(id);
        let told = self.tell_child(node, Down::Steer(Text { id, text }), out);
        if told.is_err()
            && let Some(run) = self.run(node)
        {
            run.steers.remove(&id);
        }
        told.map(|()| id)
    }
}

/// At most [`limits::NOTE_CHARS`] characters, on one line, marked where it was cut.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= limits::NOTE_CHARS {
        return line;
    }
    let head: String = line.chars().take(limits::NOTE_CHARS - 1).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_four_hundred_characters_at_most() {
        assert_eq!(shortened("subagent sub-1 completed: a\n b"), "subagent sub-1 completed: a b");
        let long = shortened(&"ü".repeat(900));
        assert_eq!((long.chars().count(), long.ends_with('…')), (400, true));
        assert_eq!(shortened(&"x".repeat(400)), "x".repeat(400));
    }
}

//! What is acknowledged once it is durable: an operator's message to a warm run. (A run's handle and its end have saves of their
//! own, and a client's task is told of with the conversation. A model that sends something is answered at once: it ends with
//! the daemon, and its own transcript says what it sent.)
//!
//! Owns when an operator hears of it. Refuses what is sent while the store fails, and to wait on a store that fails under
//! way: then the operator is told that it is not saved. Called by `tools` and by `keeping`.

use super::Core;
use crate::action::Actions;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::run::{Request, Waiter};
use serde_json::json;

impl Core {
    /// Whether what this caller sends can be kept.
    ///
    /// # Errors
    /// The store fails, and a save that it owes is still to be tried again.
    pub(super) fn can_keep(&self, sender: NodeId) -> Result<(), Refusal> {
        let Some(error) = self.store_owes().filter(|_| sender == NodeId::OPERATOR) else { return Ok(()) };
        Err(Refusal {
            gate: "store".into(),
            message: format!("the store fails, so that this would be forgotten: {error}"),
            limit: None,
            observed: None,
            hint: "try again when the store works; nothing was sent".into(),
        })
    }

    /// A message is taken: its sender is told at once, an operator when it is durable.
    pub(super) fn message_taken(&mut self, sender: Waiter, target: NodeId, message: u64, out: &mut Actions) {
        if !self.config.store.keeps || sender.node != NodeId::OPERATOR {
            return self.acknowledge(sender, target, message, true, out);
        }
        let Some(run) = self.run(target) else { return };
        run.waiters.push(sender);
        self.open_request(sender.node, sender.request, Request::Sent { node: target, message });
    }

    /// These messages of a run are durable, or could not be saved.
    pub(super) fn messages_kept(&mut self, target: NodeId, messages: &[u64], kept: bool, out: &mut Actions) {
        let Some(run) = self.runs.get(&target).filter(|_| !messages.is_empty()) else { return };
        let waiters = run.waiters.iter().copied();
        let told = waiters.filter_map(|waiter| match self.asked_by(waiter) {
            Some(Request::Sent { message, .. }) if messages.contains(message) => Some((waiter, *message)),
            Some(_) | None => None,
        });
        let told: Vec<(Waiter, u64)> = told.collect();
        for (sender, message) in told {
            self.acknowledge(sender, target, message, kept, out);
            self.wait_no_longer(&[target], sender);
        }
    }

    /// The answer of `subagent.send`.
    pub(super) fn acknowledge(
        &mut self,
        sender: Waiter,
        target: NodeId,
        message: u64,
        kept: bool,
        out: &mut Actions,
    ) {
        let Some(run) = self.runs.get(&target) else { return };
        let queued = run.warm.as_ref().map_or(0, |warm| warm.waiting());
        let mut answer = json!({ "handle": run.record.handle, "message_id": message, "queued": queued });
        if !kept {
            answer["saved"] = false.into();
        }
        self.answer(sender.node, sender.request, false, &answer, out);
    }
}

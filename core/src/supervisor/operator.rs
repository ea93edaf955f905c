//! Who is not a run and asks all the same: the operator, behind an embedding program or a control connection.
//!
//! Owns the operator's open calls and what sets the operator apart as a caller: it has every server, sees every
//! handle, delegates at depth 1 and may wait in the queue. A call goes through the same code as a model's. Refuses the
//! tools that belong to a conversation. Called by `route`, and by `tools` wherever a caller is looked at.

use super::tools::Caller;
use super::{Core, catalogue, daemon_note};
use crate::action::{Action, Actions};
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::json;
use crate::limits;
use crate::note::Level;
use crate::run::{Request, Waiter};
use std::collections::BTreeMap;

/// The principal of the operator and of the root conversation, which acts for it.
pub(super) const PRINCIPAL: &str = "operator";

impl Core {
    /// A call of the operator. Answered exactly once, now or later.
    pub(super) fn operator_called(&mut self, call: u64, tool: &str, args: &Json, out: &mut Actions) {
        if self.operator.contains_key(&call) {
            // Whoever used the number twice gets one answer for both.
            out.push(daemon_note(Level::Warn, "operator.repeated").with("call", call).into());
            return;
        }
        let done = if self.operator.len() >= limits::OPERATOR_CALLS {
            Err(too_many())
        } else if catalogue::is_operators(tool) {
            self.dispatch(Caller { node: NodeId::OPERATOR, id: call, call_id: None }, tool, args, out)
        } else {
            let seen = json::preview(tool, limits::PREVIEW_BYTES);
            Err(unknown(&seen))
        };
        if let Err(refusal) = done {
            self.answer_refusal(NodeId::OPERATOR, call, &refusal, out);
        }
        self.set_operator_timer();
    }

    /// Nobody waits for this answer any more; what was waited for synchronously ends with it (S6.7).
    pub(super) fn operator_hung_up(&mut self, call: u64, out: &mut Actions) {
        self.drop_request(NodeId::OPERATOR, call, false, "the operator who waited for it has gone", out);
        self.set_operator_timer();
    }

    /// The open calls of a caller.
    pub(super) fn requests(&self, caller: NodeId) -> Option<&BTreeMap<u64, Request>> {
        match caller {
            NodeId::OPERATOR => Some(&self.operator),
            _ => self.runs.get(&caller).map(|run| &run.requests),
        }
    }

    /// The same, to be changed.
    pub(super) fn requests_mut(&mut self, caller: NodeId) -> Option<&mut BTreeMap<u64, Request>> {
        match caller {
            NodeId::OPERATOR => Some(&mut self.operator),
            _ => self.run(caller).map(|run| &mut run.requests),
        }
    }

    /// What a waiter asked, while that is open.
    pub(super) fn asked_by(&self, waiter: Waiter) -> Option<&Request> {
        self.requests(waiter.node)?.get(&waiter.request)
    }

    /// Who a caller acts for; nobody when it is gone.
    pub(super) fn principal_of(&self, caller: NodeId) -> Option<&str> {
        match caller {
            NodeId::OPERATOR => Some(PRINCIPAL),
            _ => self.runs.get(&caller).map(|run| run.record.principal.as_str()),
        }
    }

    /// A caller's name in records and logs.
    pub(super) fn caller_name(&self, caller: NodeId) -> String {
        match self.runs.get(&caller).and_then(|run| run.record.handle) {
            Some(handle) => handle.to_string(),
            None if caller == NodeId::OPERATOR => "the operator".to_owned(),
            None => "the conversation".to_owned(),
        }
    }

    /// The operator's awaits whose time is up.
    pub(super) fn tick_operator(&mut self, out: &mut Actions) {
        self.give_up_awaits(NodeId::OPERATOR, out);
        self.set_operator_timer();
    }

    /// Awaits keep their timeouts, by the same timers as those of runs.
    pub(super) fn set_operator_timer(&mut self) {
        let due = self.operator.values().filter_map(Request::due).min();
        self.timers.set(NodeId::OPERATOR, due);
    }

    /// Answers one call of the operator.
    pub(super) fn answer_operator(&mut self, call: u64, error: bool, value: Json, out: &mut Actions) {
        self.operator.remove(&call);
        self.set_operator_timer();
        out.push(Action::Answer { call, error, value });
    }
}

fn too_many() -> Refusal {
    let most = limits::OPERATOR_CALLS;
    Refusal {
        gate: "calls".into(),
        message: format!("{most} of {most} calls of operators are open"),
        limit: Some(most.to_string()),
        observed: Some(most.to_string()),
        hint: "wait for one of them".into(),
    }
}

fn unknown(tool: &str) -> Refusal {
    Refusal {
        gate: "tool".into(),
        message: format!("unknown tool {tool}; accepted are {}", catalogue::OPERATORS.join(", ")),
        limit: None,
        observed: None,
        hint: "name one of these".into(),
    }
}

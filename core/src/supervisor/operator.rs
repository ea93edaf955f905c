//! Who is not a run and asks all the same: the operator, behind an embedding program or a control connection.
//!
//! Owns the operator's open calls and what sets the operator apart as a caller: it has every server, sees every
//! handle, delegates at depth 1 and may wait in the queue. A call goes through the same code as a model's. Refuses the
//! tools that belong to a conversation. Called by `route`, and by `tools` wherever a caller is looked at.

use super::tools::Caller;
use super::{Core, catalogue, daemon_note};
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::json;
use crate::limits;
use crate::note::Level;
use crate::run::{Request, Waiter};
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The principal of the operator and of the root conversation, which acts for it.
pub(super) const PRINCIPAL: &str = "operator";

/// The operator's open calls, and when those that have a time limit are answered at the latest.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Operator {
    calls: BTreeMap<u64, Request>,
    due: BTreeSet<(Instant, u64)>,
}

impl Operator {
    fn open(&mut self, call: u64, request: Request) {
        self.close(call);
        self.due.extend(request.due().map(|at| (at, call)));
        self.calls.insert(call, request);
    }

    fn close(&mut self, call: u64) {
        if let Some(at) = self.calls.remove(&call).as_ref().and_then(Request::due) {
            self.due.remove(&(at, call));
        }
    }

    /// Nobody waits for anything.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Core {
    /// A call of the operator. Answered exactly once, now or later.
    pub(super) fn operator_called(&mut self, call: u64, tool: &str, args: &Json, out: &mut Actions) {
        if self.operator.calls.contains_key(&call) {
            // Whoever used the number twice gets one answer for both.
            out.push(daemon_note(Level::Warn, "operator.repeated").with("call", call).into());
            return;
        }
        let done = if self.operator.calls.len() >= limits::OPERATOR_CALLS {
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
    }

    /// Nobody waits for this answer any more; what was waited for synchronously ends with it (S6.7).
    pub(super) fn operator_hung_up(&mut self, call: u64, out: &mut Actions) {
        self.drop_request(NodeId::OPERATOR, call, false, "the operator who waited for it has gone", out);
    }

    /// The open calls of a caller.
    pub(super) fn requests(&self, caller: NodeId) -> Option<&BTreeMap<u64, Request>> {
        match caller {
            NodeId::OPERATOR => Some(&self.operator.calls),
            _ => self.runs.get(&caller).map(|run| &run.requests),
        }
    }

    /// A call of this caller waits for its answer from now on.
    pub(super) fn open_request(&mut self, caller: NodeId, id: u64, request: Request) {
        if caller == NodeId::OPERATOR {
            self.operator.open(id, request);
            self.set_operator_timer();
        } else if let Some(run) = self.run(caller) {
            run.requests.insert(id, request);
        }
    }

    /// A call of this caller has its answer, or needs none any more.
    pub(super) fn close_request(&mut self, caller: NodeId, id: u64) {
        if caller == NodeId::OPERATOR {
            self.operator.close(id);
            self.set_operator_timer();
        } else if let Some(run) = self.run(caller) {
            run.requests.remove(&id);
        }
    }

    /// Calls of this caller whose time is up.
    pub(super) fn overdue(&self, caller: NodeId) -> Vec<u64> {
        let now = self.now.mono;
        if caller == NodeId::OPERATOR {
            return self.operator.due.range(..=(now, u64::MAX)).map(|(_, call)| *call).collect();
        }
        let Some(run) = self.runs.get(&caller) else { return Vec::new() };
        let over = run.requests.iter().filter(|(_, request)| request.due().is_some_and(|at| at <= now));
        over.map(|(id, _)| *id).collect()
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

    /// Awaits keep their timeouts, by the same timers as those of runs.
    fn set_operator_timer(&mut self) {
        let due = self.operator.due.first().map(|(at, _)| *at);
        self.timers.set(NodeId::OPERATOR, due);
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

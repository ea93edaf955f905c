//! Calls that name a handle: status, list, kill. Another principal's handle reads exactly as an unknown one.

use super::talk::text_or_empty;
use super::{Call, accept_only, arguments};
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::{Handle, NodeId};
use crate::json;
use crate::limits;
use crate::note::Level;
use crate::record::Status;
use crate::run::ladder::Push;
use crate::run::{Ending, Request, Waiter};
use crate::supervisor::Core;
use serde_json::{Map, Value, json};

impl Core {
    pub(super) fn subagent_status(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle"])?;
        let of = self.owned(node, handle_arg(args)?)?;
        let value = self.final_object(of).unwrap_or_else(|| Json::of(&self.status_of(of)));
        self.answer_json(node, id, false, value, out);
        Ok(())
    }

    pub(super) fn subagent_list(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &[])?;
        let own = self.by_handle.values().copied();
        let own: Vec<NodeId> = own.filter(|n| self.may_name(node, *n)).collect();
        let runs: Vec<Value> = own.iter().map(|n| self.doing_of(*n)).collect();
        self.answer(node, id, false, &json!({ "runs": runs }), out);
        Ok(())
    }

    pub(super) fn subagent_kill(&mut self, call: &Call<'_>, out: &mut Actions) -> Result<(), Refusal> {
        let Call { node, id, args } = *call;
        accept_only(args, &["handle", "reason", "only"])?;
        let target = self.owned(node, handle_arg(args)?)?;
        let reason = text_or_empty(args, "reason")?;
        let only = match args.get("only") {
            None => false,
            Some(Value::Bool(b)) => *b,
            Some(_) => return Err(arguments("only: accepted is true or false".into())),
        };
        let who = self.caller_name(node);
        if let Some(value) = self.final_object(target) {
            self.answer_json(node, id, false, value, out);
        } else {
            self.open_request(node, id, Request::Kill { node: target });
            if let Some(run) = self.run(target) {
                run.waiters.push(Waiter { node, request: id });
            }
        }
        self.kill(target, &who, &reason, only, out);
        Ok(())
    }

    /// Kills a run, and what it delegated unless `only` (S9.4). A second kill changes nothing.
    pub(in crate::supervisor) fn kill(
        &mut self,
        target: NodeId,
        who: &str,
        reason: &str,
        only: bool,
        out: &mut Actions,
    ) {
        let all = if only { vec![target] } else { self.subtree(target) };
        let why = json::preview(reason, limits::PREVIEW_BYTES);
        for node in all {
            let error = match (node == target, reason.is_empty()) {
                (true, true) => format!("killed by {who}"),
                (true, false) => format!("killed by {who}: {why}"),
                (false, _) => format!("the run that delegated it was killed by {who}"),
            };
            if self.runs.get(&node).is_none_or(|r| r.outcome.is_decided()) {
                continue;
            }
            out.push(
                self.note(node, Level::Info, "subagent.kill")
                    .with("by", who)
                    .with("reason", why.as_str())
                    .into(),
            );
            // With `only`, what it delegated is left alone, synchronous runs included.
            if only {
                self.leave_children(node);
            }
            if let Some(run) = self.run(node) {
                run.takes_below = !only;
            }
            self.decide(node, Ending::without_result(Status::Cancelled, error), out);
            self.push_ladder(node, Push::Ask, out);
        }
    }

    /// Turns a run's waits for synchronous runs into waits that nothing hangs on.
    fn leave_children(&mut self, node: NodeId) {
        if let Some(run) = self.run(node) {
            for request in run.requests.values_mut() {
                if let Request::Run { sync, .. } = request {
                    *sync = false;
                }
            }
        }
    }

    /// The run behind a handle, if it is the caller's to name: another principal's reads as unknown (S6.5).
    pub(in crate::supervisor) fn owned(&self, caller: NodeId, handle: &str) -> Result<NodeId, Refusal> {
        let found = handle.parse::<Handle>().ok().and_then(|h| self.by_handle.get(&h)).copied();
        found.filter(|n| self.may_name(caller, *n)).ok_or_else(|| Refusal {
            gate: "handle".into(),
            message: format!("unknown handle {}", json::preview(handle, limits::PREVIEW_BYTES)),
            limit: None,
            observed: None,
            hint: "subagent_list shows the handles there are".into(),
        })
    }

    /// The operator may name every run, anybody else those of its own principal.
    fn may_name(&self, caller: NodeId, run: NodeId) -> bool {
        let Some(run) = self.runs.get(&run) else { return false };
        caller == NodeId::OPERATOR || self.principal_of(caller) == Some(run.record.principal.as_str())
    }
}

pub(in crate::supervisor) fn handle_arg(args: &Map<String, Value>) -> Result<&str, Refusal> {
    args.get("handle")
        .and_then(Value::as_str)
        .ok_or_else(|| arguments("handle: accepted is a handle such as sub-7".into()))
}

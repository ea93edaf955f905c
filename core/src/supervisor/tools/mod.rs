//! The calls of the supervisor's own tools. Arguments are read strictly: a call that is not understood is answered with what
//! is accepted, and does nothing.

mod handles;
mod plan;
mod run;
mod talk;
mod waiting;

pub(super) use handles::handle_arg;

use super::Core;
use super::catalogue;
use crate::action::Actions;
use crate::bytes::Json;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::json;
use crate::limits;
use crate::wire::message::ToolRequest;
use serde_json::{Map, Value, json};

/// Who calls, and by which number.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    /// A run, or the operator.
    pub(super) node: NodeId,
    /// Its own number of the call.
    pub(super) id: u64,
    /// The model's id of the tool call, when a model made it.
    pub(super) call_id: Option<&'a str>,
}

/// One call that was understood as far as its arguments are an object.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// Who calls.
    node: NodeId,
    /// Its number there.
    id: u64,
    args: &'a Map<String, Value>,
}

impl Core {
    /// One call of a supervisor tool. Every id is answered exactly once, now or later.
    pub(super) fn tool_request(&mut self, node: NodeId, request: ToolRequest, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if request.id <= run.last_request {
            self.protocol_error(node, "a `tool_request` id that is not above the last one", out);
            return;
        }
        if run.requests.len() >= limits::OPEN_REQUESTS {
            self.protocol_error(node, "too many open `tool_request`s", out);
            return;
        }
        run.last_request = request.id;
        let id = request.id;
        if run.outcome.is_decided() {
            let why = json!({ "error": { "gate": "cancelled", "message": "this run has ended" } });
            self.answer(node, id, true, &why, out);
            return;
        }
        if !run.offered.contains(&request.name) {
            // The same words for a tool that does not exist and one that is not offered here.
            let name = json::preview(request.name, limits::PREVIEW_BYTES);
            let why = json!({ "error": { "gate": "tool", "message": format!("unknown tool {name}") } });
            self.answer(node, id, true, &why, out);
            return;
        }
        let caller = Caller { node, id, call_id: Some(&request.call_id) };
        if let Err(refusal) = self.dispatch(caller, &request.name, &request.args, out) {
            self.answer_refusal(node, id, &refusal, out);
        }
    }

    /// Does what a call asks for, of a tool that its caller was offered.
    pub(super) fn dispatch(
        &mut self,
        caller: Caller<'_>,
        tool: &str,
        args: &Json,
        out: &mut Actions,
    ) -> Result<(), Refusal> {
        let object = json::object(&args.0, limits::ARGUMENT_BYTES, limits::ARGUMENT_DEPTH)
            .map_err(|problem| arguments(problem.to_string()))?;
        if let Some(host_tool) = self.host_tool(tool) {
            self.call_host_tool(caller, host_tool, args, out);
            return Ok(());
        }
        let call = Call { node: caller.node, id: caller.id, args: &object };
        match tool {
            catalogue::RUN => self.subagent_run(caller, &object, out),
            catalogue::AWAIT => self.subagent_await(&call, out),
            catalogue::STATUS => self.subagent_status(&call, out),
            catalogue::LIST => self.subagent_list(&call, out),
            catalogue::KILL => self.subagent_kill(&call, out),
            catalogue::SEND => self.subagent_send(&call, out),
            catalogue::STEER => self.subagent_steer(&call, out),
            catalogue::FINISH => self.subagent_finish(&call, out),
            catalogue::RETIRE => self.subagent_retire(&call, out),
            catalogue::PAUSE => self.subagent_pause(&call, out),
            catalogue::RESUME => self.subagent_resume(&call, out),
            catalogue::PLAN_CREATE => self.plan_create(&call, out),
            catalogue::PLAN_GET => self.plan_get(&call, out),
            catalogue::PLAN_UPDATE => self.plan_update(&call, out),
            catalogue::OVERVIEW => self.overview(&call, out),
            // `finish` ends a turn inside the loop and never comes up here.
            other => Err(arguments(format!("{other} is not called this way"))),
        }
    }
}

pub(super) fn accept_only(args: &Map<String, Value>, accepted: &[&str]) -> Result<(), Refusal> {
    match args.keys().find(|k| !accepted.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => {
            let key = json::preview(key, limits::PREVIEW_BYTES);
            Err(arguments(format!("{key}: unknown; accepted are {}", list(accepted))))
        }
    }
}

pub(super) fn arguments(message: String) -> Refusal {
    Refusal {
        gate: "arguments".into(),
        message,
        limit: None,
        observed: None,
        hint: "correct the arguments and call again".into(),
    }
}

pub(super) fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

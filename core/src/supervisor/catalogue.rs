//! The supervisor's own tools as a model is told of them (S6). `docs/tools.md` is printed from here.

use crate::bytes::Json;
use crate::limits;
use crate::wire::message::ToolDecl;
use serde_json::{Value, json};

/// `subagent.run`'s registry name.
pub(super) const RUN: &str = "subagent.run";
/// `subagent.await`'s registry name.
pub(super) const AWAIT: &str = "subagent.await";
/// `subagent.status`'s registry name.
pub(super) const STATUS: &str = "subagent.status";
/// `subagent.list`'s registry name.
pub(super) const LIST: &str = "subagent.list";
/// `subagent.kill`'s registry name.
pub(super) const KILL: &str = "subagent.kill";
/// `subagent.send`'s registry name.
pub(super) const SEND: &str = "subagent.send";
/// `subagent.steer`'s registry name.
pub(super) const STEER: &str = "subagent.steer";
/// `subagent.finish`'s registry name.
pub(super) const FINISH: &str = "subagent.finish";
/// `subagent.retire`'s registry name.
pub(super) const RETIRE: &str = "subagent.retire";
/// `subagent.pause`'s name.
pub(super) const PAUSE: &str = "subagent.pause";
/// `subagent.resume`'s name.
pub(super) const RESUME: &str = "subagent.resume";
/// `plan.create`'s registry name.
pub(super) const PLAN_CREATE: &str = "plan.create";
/// `plan.get`'s registry name.
pub(super) const PLAN_GET: &str = "plan.get";
/// `plan.update`'s registry name.
pub(super) const PLAN_UPDATE: &str = "plan.update";
/// `status`'s registry name.
pub(super) const OVERVIEW: &str = "status";

/// What an operator may call: delegation, what only a person may do, and how things stand. A plan is its
/// conversation's to change.
pub(super) const OPERATORS: [&str; 13] =
    [RUN, AWAIT, STATUS, LIST, SEND, STEER, FINISH, RETIRE, KILL, PAUSE, RESUME, PLAN_GET, OVERVIEW];

/// Whether an operator may call the tool of this name.
pub(super) fn is_operators(tool: &str) -> bool {
    OPERATORS.contains(&tool)
}

/// What a conversation's worker is offered: delegation while it may delegate, its plan, how things stand, and the
/// end of its turn.
pub(super) fn worker_tools(delegates: bool) -> Vec<ToolDecl> {
    let mut tools = if delegates { delegation_tools() } else { Vec::new() };
    tools.extend(plan_tools());
    tools.push(decl(
        OVERVIEW,
        "How things stand: live runs and what each waits on, the plan, and what is left of tokens, time, spawns and the \
         budgets in tokens and dollars.",
        object(json!({}), &[]),
    ));
    tools.push(decl(
        crate::wire::message::FINISH_TOOL,
        "End this turn with the given result as the answer. Text that you only write ends the turn too; this is for \
         a result that is data, or for ending together with other calls.",
        object(json!({ "result": { "description": "the answer: text, or a JSON value" } }), &["result"]),
    ));
    tools
}

/// Delegation, in the order a model sees it.
pub(super) fn delegation_tools() -> Vec<ToolDecl> {
    vec![
        decl(
            RUN,
            "Delegate one bounded piece of work to a subagent: a separate process with its own context window. \
             It sees only `instruction` and `context`, and only its final answer comes back. Several calls in one \
             message run in parallel.",
            run_schema(),
        ),
        decl(
            AWAIT,
            "Wait for subagents started with mode async or detached and get their results, or with `message_id` for \
             one turn of a warm one. With a timeout the answer says timed_out and they go on.",
            await_schema(),
        ),
        decl(
            STATUS,
            "What one subagent is doing: its status, what it waits on, its step and usage; its result once it ended.",
            object(json!({ "handle": handle() }), &["handle"]),
        ),
        decl(LIST, "All subagents of this run's principal, newest last.", object(json!({}), &[])),
        decl(
            SEND,
            "Send a warm subagent its next message: one turn, after those sent before it. The answer names the \
             message_id that subagent_await takes.",
            object(json!({ "handle": handle(), "text": { "type": "string" } }), &["handle", "text"]),
        ),
        decl(
            STEER,
            "Tell a running subagent something at its next step. Its work so far is kept.",
            object(json!({ "handle": handle(), "text": { "type": "string" } }), &["handle", "text"]),
        ),
        decl(
            FINISH,
            "Ask a running subagent for its result now: it makes one last model call without tools and ends with a \
             partial result.",
            object(json!({ "handle": handle(), "reason": reason() }), &["handle"]),
        ),
        decl(
            RETIRE,
            "End a warm subagent: it takes no more messages, ends the turn in hand, and completes with that turn's \
             result. Messages that still wait are dropped and named in the answer.",
            object(json!({ "handle": handle() }), &["handle"]),
        ),
        decl(
            KILL,
            "Stop a subagent and everything it delegated. It ends as cancelled at once; its process is gone within \
             8 seconds.",
            object(
                json!({
                    "handle": handle(),
                    "reason": reason(),
                    "only": { "type": "boolean", "description": "leave what it delegated running" },
                }),
                &["handle"],
            ),
        ),
    ]
}

fn plan_tools() -> [ToolDecl; 3] {
    let text = || json!({ "type": "string" });
    let items = json!({
        "type": "array", "minItems": 1, "maxItems": limits::PLAN_ITEMS,
        "items": object(json!({ "title": text(), "detail": text() }), &["title"]),
    });
    [
        decl(
            PLAN_CREATE,
            "Make the plan of this conversation, in place of the one before: a goal and up to 32 items.",
            object(json!({ "goal": text(), "items": items }), &["goal", "items"]),
        ),
        decl(PLAN_GET, "The plan as it stands.", object(json!({}), &[])),
        decl(
            PLAN_UPDATE,
            "Change one item of the plan. An item bound to a subagent settles by itself when that ends: done, or \
             blocked with the cause.",
            object(
                json!({
                    "item": { "type": "integer", "minimum": 1 },
                    "status": { "type": "string", "enum": ["pending", "in_progress", "done", "blocked", "skipped"] },
                    "title": text(),
                    "detail": text(),
                    "note": text(),
                    "bind": handle(),
                }),
                &["item"],
            ),
        ),
    ]
}

fn await_schema() -> Value {
    object(
        json!({
            "handle": { "type": "string", "description": "one handle, such as sub-7" },
            "handles": { "type": "array", "items": { "type": "string" }, "description": "several handles" },
            "until": { "type": "string", "enum": ["any", "all"], "description": "default all" },
            "timeout": { "type": "string", "description": "such as 30s; default: no limit" },
            "message_id": { "type": "integer", "description": "with handle: that turn of a warm subagent; its instruction is 1" },
        }),
        &[],
    )
}

fn run_schema() -> Value {
    object(
        json!({
            "instruction": { "type": "string", "description": "what to do and what to return; self-contained" },
            "mode": { "type": "string", "enum": ["sync", "async", "detached", "warm"],
                "description": "sync (default): the result is this call's answer; async: a handle at once, collect with subagent_await; detached: nobody waits; warm: stays, the instruction is its first turn and each subagent_send one more" },
            "servers": { "type": "array", "items": { "type": "string" }, "description": "tool servers it may use; default all, [] none" },
            "tools": { "type": "array", "items": { "type": "string" }, "description": "tool names or prefix* patterns it may use; default all of its servers, [] none" },
            "context": { "type": "array", "description": "messages it starts with; default none", "items": {
                "type": "object", "required": ["role", "content"], "additionalProperties": false,
                "properties": { "role": { "type": "string", "enum": ["user", "assistant"] }, "content": { "type": "string" } } } },
            "output_contract": { "type": "string", "description": "what the answer should look like, in prose" },
            "output_schema": { "type": "object", "description": "JSON Schema that its answer must fit" },
            "model": { "type": "string", "description": "a configured model, or inherit for this run's own" },
            "limits": { "type": "object", "additionalProperties": false, "properties": {
                "steps": { "type": "integer", "minimum": 1 },
                "tokens": { "type": "integer", "minimum": 1 },
                "usd": { "type": "number", "exclusiveMinimum": 0, "description": "dollars, of it and all it delegates" },
                "deadline": { "type": "string", "description": "such as 5m" },
                "memory": { "type": "string", "description": "such as 700MB, per process" },
                "cpu": { "type": "string", "description": "such as 90s, per process" } } },
            "priority": { "type": "string", "enum": ["low", "normal", "high"] },
            "delegate": { "type": "boolean", "description": "it may delegate onward, while depth allows" },
            "plan_item": { "type": "integer", "minimum": 1, "description": "the plan's item that it works on" },
            "durable": { "type": "boolean", "description": "false: it is gone when the daemon restarts; else it is taken up again" },
            "resume": { "type": "boolean", "description": "false: a restart begins it anew, whatever it had done" },
        }),
        &["instruction"],
    )
}

fn handle() -> Value {
    json!({ "type": "string", "description": "such as sub-7" })
}

fn reason() -> Value {
    json!({ "type": "string", "description": "for the record" })
}

fn decl(name: &str, description: &str, schema: Value) -> ToolDecl {
    ToolDecl { name: name.to_owned(), description: description.to_owned(), schema: Json::of(&schema) }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[cfg(test)]
mod page;

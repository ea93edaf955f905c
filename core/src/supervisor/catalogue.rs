//! The supervisor's own tools as a model is told of them.

use crate::bytes::Json;
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

/// All of them, in the order a model sees them.
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
            "Wait for subagents started with mode async or detached and get their results. With a timeout the \
             answer says timed_out and they go on.",
            object(
                json!({
                    "handle": { "type": "string", "description": "one handle, such as sub-7" },
                    "handles": { "type": "array", "items": { "type": "string" }, "description": "several handles" },
                    "until": { "type": "string", "enum": ["any", "all"], "description": "default all" },
                    "timeout": { "type": "string", "description": "such as 30s; default: no limit" },
                }),
                &[],
            ),
        ),
        decl(
            STATUS,
            "What one subagent is doing: its status, what it waits on, its step and usage; its result once it ended.",
            object(json!({ "handle": { "type": "string" } }), &["handle"]),
        ),
        decl(LIST, "All subagents of this run's principal, newest last.", object(json!({}), &[])),
        decl(
            KILL,
            "Stop a subagent and everything it delegated. It ends as cancelled at once; its process is gone within \
             8 seconds.",
            object(
                json!({
                    "handle": { "type": "string" },
                    "reason": { "type": "string", "description": "for the record" },
                    "only": { "type": "boolean", "description": "leave what it delegated running" },
                }),
                &["handle"],
            ),
        ),
    ]
}

fn run_schema() -> Value {
    object(
        json!({
            "instruction": { "type": "string", "description": "what to do and what to return; self-contained" },
            "mode": { "type": "string", "enum": ["sync", "async", "detached"],
                "description": "sync (default): the result is this call's answer; async: a handle at once, collect with subagent_await; detached: nobody waits" },
            "servers": { "type": "array", "items": { "type": "string" }, "description": "tool servers it may use; default all, [] none" },
            "tools": { "type": "array", "items": { "type": "string" }, "description": "tool names or prefix* patterns it may use; default all of its servers, [] none" },
            "context": { "type": "array", "description": "messages it starts with; default none", "items": {
                "type": "object", "required": ["role", "content"], "additionalProperties": false,
                "properties": { "role": { "type": "string", "enum": ["user", "assistant"] }, "content": { "type": "string" } } } },
            "output_contract": { "type": "string", "description": "what the answer should look like, in prose" },
            "limits": { "type": "object", "additionalProperties": false, "properties": {
                "steps": { "type": "integer", "minimum": 1 },
                "tokens": { "type": "integer", "minimum": 1 },
                "deadline": { "type": "string", "description": "such as 5m" },
                "memory": { "type": "string", "description": "such as 700MB, per process" },
                "cpu": { "type": "string", "description": "such as 90s, per process" } } },
            "priority": { "type": "string", "enum": ["low", "normal", "high"] },
            "delegate": { "type": "boolean", "description": "it may delegate onward, while depth allows" },
        }),
        &["instruction"],
    )
}

fn decl(name: &str, description: &str, schema: Value) -> ToolDecl {
    ToolDecl { name: name.to_owned(), description: description.to_owned(), schema: Json::of(&schema) }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

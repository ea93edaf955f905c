//! The `event` frames a loop sends, for people and logs. None holds what a tool or a model said.

use crate::agent::Output;
use crate::agent::catalogue::Catalogue;
use crate::agent::round::Slot;
use crate::model::{ModelError, Reply};
use crate::policy::{Pattern, PatternProblem};
use crate::time::Duration;
use crate::wire::Up;
use crate::wire::message::{Event, Usage};

/// Every event name a loop uses.
pub const EVENTS: [&str; 8] = [
    "agent.answer.misfit",
    "agent.compacted",
    "agent.grant.unmatched",
    "agent.grant.unreadable",
    "mcp.tools",
    "mcp.tools.collision",
    "model.call",
    "tool.call",
];

/// Which tools the model is offered (S14.6).
pub(super) fn tools(catalogue: &Catalogue) -> Output {
    let (tools, servers, own) = catalogue.count();
    event(
        "info",
        "mcp.tools",
        [
            (
                "text",
                format!("tools: {tools} from {servers} {}", if servers == 1 { "server" } else { "servers" }),
            ),
            ("tools", tools.to_string()),
            ("servers", servers.to_string()),
            ("own", own.to_string()),
        ],
    )
}

/// Tools that a model knows by another name than theirs.
pub(super) fn renamed(catalogue: &Catalogue) -> impl Iterator<Item = Output> {
    catalogue.renamed().map(|text| event("warn", "mcp.tools.collision", [("text", text)]))
}

/// The minted grant cannot be read, so it grants nothing.
pub(super) fn unreadable_grant(problem: &PatternProblem) -> Output {
    event("warn", "agent.grant.unreadable", [("problem", problem.to_string())])
}

/// A pattern that grants nothing.
pub(super) fn unmatched_grant(pattern: &Pattern) -> Output {
    event("warn", "agent.grant.unmatched", [("pattern", pattern.to_string())])
}

/// A model call that was answered.
pub(super) fn model_answered(step: u32, took: Duration, reply: &Reply, usage: &Usage) -> Output {
    event(
        "info",
        "model.call",
        [
            ("step", step.to_string()),
            ("ms", took.as_millis().to_string()),
            ("finish", crate::json::preview(reply.finish.name(), 40)),
            ("calls", reply.calls.len().to_string()),
            ("input", usage.input.to_string()),
            ("output", usage.output.to_string()),
            ("estimated", usage.estimated.to_string()),
        ],
    )
}

/// A model call that failed.
pub(super) fn model_failed(step: u32, took: Duration, error: &ModelError) -> Output {
    event(
        "warn",
        "model.call",
        [
            ("step", step.to_string()),
            ("ms", took.as_millis().to_string()),
            ("kind", error.kind.name().to_owned()),
            ("error", error.message.clone()),
        ],
    )
}

/// A model call that was given up.
pub(super) fn model_abandoned(step: u32, took: Duration, why: &str) -> Output {
    event(
        "info",
        "model.call",
        [("step", step.to_string()), ("ms", took.as_millis().to_string()), ("abandoned", why.to_owned())],
    )
}

/// An answer that does not fit its schema, in so many ways.
pub(super) fn misfit(step: u32, ways: usize) -> Output {
    event("info", "agent.answer.misfit", [("step", step.to_string()), ("misfits", ways.to_string())])
}

/// The history was made shorter: bytes before and after, how many messages were folded, and whether a summary of the
/// model's stands for them.
pub(super) fn compacted(step: u32, before: usize, after: usize, folded: usize, summary: bool) -> Output {
    event(
        "info",
        "agent.compacted",
        [
            ("step", step.to_string()),
            ("bytes", before.to_string()),
            ("left", after.to_string()),
            ("folded", folded.to_string()),
            ("summary", summary.to_string()),
        ],
    )
}

/// A tool call that has its result.
pub(super) fn tool_called(slot: &Slot, took: Duration, error: bool) -> Output {
    event(
        "info",
        "tool.call",
        [
            ("name", slot.label.clone()),
            ("call_id", slot.call.id.clone()),
            ("ms", took.as_millis().to_string()),
            ("error", error.to_string()),
        ],
    )
}

fn event<const N: usize>(level: &str, name: &str, fields: [(&str, String); N]) -> Output {
    Output::Emit(Up::Event(Event {
        level: level.to_owned(),
        name: name.to_owned(),
        fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    }))
}

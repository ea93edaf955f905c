//! The supervisor's reasons as sentences about one run, for somebody who never saw the log: "it is ready, 12 ms after
//! its process was made". What has no sentence of its own is told by the event's meaning and its fields.

use super::words::{fields, span, value};
use agentd_core::note::{Note, names};
use agentd_core::time::Duration;
use agentd_core::wire::message::Event;
use serde_json::Value;

/// The sentence; none for what an event or an action tells better.
pub(super) fn sentence(note: &Note) -> Option<String> {
    let text = |key: &str| note.fields.get(key).map(value).unwrap_or_default();
    let number = |key: &str| note.fields.get(key).and_then(Value::as_u64).unwrap_or(0);
    let time = |key: &str| span(Duration::from_millis(number(key)));
    Some(match note.event.as_str() {
        // Told by the event or the action that it goes with.
        "child.exit"
        | "subagent.kill.escalated"
        | "subagent.spawn"
        | "worker.spawn"
        | "child.spawn_failed"
        | "subagent.steer"
        | "subagent.message"
        | "subagent.finish"
        | "subagent.refused" => return None,
        "child.ready" => format!("it is ready, {} after its process was made", time("after_ms")),
        "child.unhealthy" => format!(
            "it is judged {}",
            note.fields.get("verdict").and_then(Value::as_str).unwrap_or("unhealthy")
        ),
        "child.swept" => format!("processes that it left behind were killed: {}", number("killed")),
        "child.sweep_gave_up" => {
            format!("{} processes that it left could not be killed in time", number("left"))
        }
        "child.protocol_error" => format!("it broke the control protocol: {}", text("error")),
        "subagent.promoted" => format!("it has a permit, after {} in the queue", time("after_ms")),
        "subagent.kill" => {
            let by = match note.fields.get("by") {
                Some(Value::String(by)) => by.clone(),
                _ => "the conversation".to_owned(),
            };
            format!("it is killed by {by}: {}", text("reason"))
        }
        "subagent.result" | "worker.result" => {
            let error =
                note.fields.get("error").map_or_else(String::new, |error| format!(", {}", value(error)));
            format!(
                "it is over: {}{error}; it took {} and used {} tokens in, {} out",
                text("status"),
                time("duration_ms"),
                number("input_tokens"),
                number("output_tokens"),
            )
        }
        "subagent.turn" | "worker.turn" => {
            format!("its turn {} ended: {}", number("message"), text("status"))
        }
        "child.stderr" => format!("on stderr: {}", text("line")),
        "daemon.stalled" => {
            format!("the daemon or the machine stood still for {}; nobody is judged by it", time("gap_ms"))
        }
        "drain.start" => format!("the supervisor got {} and takes no new runs", text("signal")),
        "drain.forced" => {
            "the drain's time is up, or a second signal came: what is left is killed".to_owned()
        }
        other => {
            let meaning =
                names::ALL.iter().find(|(name, _)| *name == other).map_or(other, |(_, meaning)| meaning);
            format!("{other}:{} ({meaning})", fields(&note.fields))
        }
    })
}

/// Whether a note repeats what a child said.
pub(super) fn is_of_child(note: &Note) -> bool {
    note.node.is_some()
        && ["tool.", "model.", "mcp.", "agent."].iter().any(|kind| note.event.starts_with(kind))
}

/// What a child tells of its own doing; none for what is of no interest to anybody but its maker.
pub(super) fn of_child(event: &Event) -> Option<String> {
    let field = |key: &str| event.fields.get(key).map(|text| value(&Value::from(text.as_str())));
    let text = |key: &str| field(key).unwrap_or_default();
    let took = || event.fields.get("ms").and_then(|ms| ms.parse().ok()).map(Duration::from_millis).map(span);
    let after = || took().map_or_else(String::new, |took| format!(", after {took}"));
    let all = || event.fields.iter().map(|(key, field)| (key.clone(), Value::from(field.as_str()))).collect();
    Some(match event.name.as_str() {
        "mcp.tools" => return None,
        "mcp.connect" if event.fields.get("outcome").is_some_and(|outcome| outcome == "connected") => {
            format!("its server {} is connected: {}", text("server"), text("text"))
        }
        "model.call" if field("finish").is_some() => {
            let next = match event.fields.get("calls").map_or("0", String::as_str) {
                "0" => "it makes no calls".to_owned(),
                calls => format!("tool calls it makes: {calls}"),
            };
            let (input, output) = (text("input"), text("output"));
            format!("model call {}: {input} tokens in, {output} out{}; {next}", text("step"), after())
        }
        "tool.call" => {
            let outcome = if event.fields.get("error").is_some_and(|error| error == "true") {
                "failed"
            } else {
                "answered"
            };
            format!("its tool {} {outcome}{}", text("name"), after())
        }
        other => {
            let name = names::ALL.iter().find(|(name, _)| *name == other);
            let meaning = name.map_or_else(String::new, |(_, meaning)| format!(" ({meaning})"));
            format!("it tells {}{}{meaning}", value(&Value::from(other)), fields(&all()))
        }
    })
}

/// Whether a note about the daemon matters to whoever lives.
pub(super) fn concerns_all(note: &Note) -> bool {
    note.node.is_none() && matches!(note.event.as_str(), "daemon.stalled" | "drain.start" | "drain.forced")
}

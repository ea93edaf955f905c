//! What the tests of the state, the keys and the view share: a daemon's answers.

use super::state::State;
use serde_json::{Value, json};

/// One row of `ps`.
pub(super) fn row(handle: &str, parent: &str, status: &str, about: &str, title: &str) -> Value {
    let is_live = !matches!(status, "completed" | "failed" | "cancelled");
    let (waits, error) = if is_live { (json!(about), Value::Null) } else { (Value::Null, json!(about)) };
    let worker = handle == "root";
    json!({
        "handle": if worker { Value::Null } else { handle.into() }, "run_id": format!("id-{handle}"),
        "role": if worker { "worker" } else { "subagent" },
        "parent": if parent.is_empty() { Value::Null } else { parent.into() }, "delegated": !worker,
        "status": status, "mode": if worker { "warm" } else { "async" }, "waits": waits, "error": error,
        "title": title, "step": if is_live && status != "held" { json!(3) } else { Value::Null },
        "usage": {
            "own": used(u64::from(status != "held")), "subtree": used(3),
        },
    })
}

fn used(times: u64) -> Value {
    let usd = 0.0123 * f64::from(u32::try_from(times).expect("few"));
    json!({"input": 9_000 * times, "output": 210 * times, "usd": usd, "unpriced": false})
}

/// An answer of `ps`.
pub(super) fn ps(runs: Vec<Value>) -> Value {
    json!({ "runs": runs, "held": 1, "prompts_waiting": 0, "draining": false,
        "used": {"input": 180_000, "output": 4_200, "usd": 0.2460} })
}

/// A conversation with some runs below it, of which one delegated another.
pub(super) fn runs() -> Vec<Value> {
    vec![
        row("root", "", "running", "children 2", "Which of these crates can panic?"),
        row("sub-1", "", "running", "tool files.grep 3s", "Look for unwrap and expect in core"),
        row("sub-2", "", "running", "children 1", "Look through the drivers"),
        row("sub-3", "sub-2", "running", "model 42s", "Look for unwrap in io-mio"),
        row("sub-4", "", "held", "queued 1/1", "Look for unwrap in io-tokio"),
        row("sub-5", "", "running", "silent 130s, no pong 8s (stuck at 10s)", "Read the issues"),
    ]
}

/// The screen's state over these runs.
pub(super) fn state(runs: Vec<Value>) -> State {
    let mut state = State::new("panics", false);
    state.told(&ps(runs));
    state
}

/// A page of events.
pub(super) fn page() -> Value {
    let event = |at: u64, level: &str, name: &str, fields: Value| json!({"ts": format!("2026-12-01T14:05:{at:02}.000Z"), "level": level, "event": name, "fields": fields});
    json!({"lost": 0, "ended": false, "last": 4, "events": [
        event(1, "info", "subagent.spawn", json!({"pid": 4711})),
        event(2, "info", "mcp.connect", json!({"server": "files", "tools": 5})),
        event(9, "info", "tool.call", json!({"tool": "files.grep", "ms": 812})),
        event(12, "warn", "model.retry", json!({"after_ms": 250, "why": "529 overloaded"})),
    ]})
}

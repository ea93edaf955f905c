//! Frames as values that people can read and that compare key by key.

use agentd_core::bytes::Json;
use agentd_core::wire::{Down, Up};
use serde_json::{Value, json};

/// A frame as a value, its JSON read.
pub(super) fn down_value(down: &Down) -> Value {
    match down {
        Down::Spawn(x) => {
            let mut value = json!({ "spawn": x });
            // The tools that are offered say for themselves what they are; their names are enough.
            value["spawn"]["own_tools"] = x.own_tools.iter().map(|tool| json!(tool.name)).collect();
            value
        }
        Down::Ping(x) => json!({ "ping": x }),
        Down::Cancel(x) => json!({ "cancel": x }),
        Down::ToolResult(x) => {
            json!({ "tool_result": { "id": x.id, "error": x.error, "value": read(&x.value) } })
        }
        Down::Message(x) => json!({ "message": x }),
        Down::Steer(x) => json!({ "steer": x }),
        Down::Finish(x) => json!({ "finish": x }),
        Down::Pause(x) => json!({ "pause": x }),
        Down::Resume(x) => json!({ "resume": x }),
        Down::BudgetGrant(x) => json!({ "budget_grant": x }),
        Down::Throttle(x) => json!({ "throttle": x }),
        Down::Model(x) => json!({ "model": x }),
    }
}

/// See [`down_value`].
pub(super) fn up_value(up: &Up) -> Value {
    match up {
        Up::Ready(x) => json!({ "ready": x }),
        Up::Pong(x) => json!({ "pong": x }),
        Up::Event(x) => json!({ "event": x }),
        Up::State(x) => json!({ "state": x }),
        Up::Usage(x) => json!({ "usage": x }),
        Up::Tools(x) => json!({ "tools": x }),
        Up::ToolRequest(x) => {
            json!({ "tool_request": { "id": x.id, "call_id": x.call_id, "name": x.name, "args": read(&x.args) } })
        }
        Up::BudgetRequest(x) => json!({ "budget_request": x }),
        Up::Ack(x) => json!({ "ack": x }),
        Up::ModelHealth(x) => json!({ "model_health": x }),
        Up::Turn(x) => json!({ "turn": x }),
        Up::Result(x) => json!({ "result": x }),
        Up::Failed(x) => json!({ "failed": x }),
    }
}

/// A JSON text as a value.
pub(super) fn read(json: &Json) -> Value {
    json.parse().unwrap_or_else(|e| Value::String(format!("no JSON: {e}")))
}

//! JSON-RPC 2.0: one call in a request, one answer or a stream of answers, and the codes of errors.

use crate::json;
use crate::limits;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Rpc {
    /// The client's own: a string, a number or null.
    pub id: Value,
    /// What it calls.
    pub method: Method,
    /// Its parameters; empty when there are none.
    pub params: Map<String, Value>,
}

/// The methods that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One turn of the conversation, or an operator's command.
    SendMessage,
    /// One turn, told as it goes.
    SendStreamingMessage,
    /// One task.
    GetTask,
    /// The caller's tasks.
    ListTasks,
    /// The end of a task.
    CancelTask,
    /// A task that goes on, told from here.
    SubscribeToTask,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// JSON-RPC's or the protocol's.
    pub code: i64,
    /// The protocol's name of it.
    reason: &'static str,
    /// For people.
    pub message: String,
}

impl Method {
    const ALL: [(&str, Method); 6] = [
        ("SendMessage", Method::SendMessage),
        ("SendStreamingMessage", Method::SendStreamingMessage),
        ("GetTask", Method::GetTask),
        ("ListTasks", Method::ListTasks),
        ("CancelTask", Method::CancelTask),
        ("SubscribeToTask", Method::SubscribeToTask),
    ];

    fn named(name: &str) -> Result<Method, RpcError> {
        if let Some((_, method)) = Method::ALL.iter().find(|(known, _)| *known == name) {
            return Ok(*method);
        }
        if name.contains("PushNotificationConfig") {
            let message = "there are no push notifications here: subscribe, or ask for the task".to_owned();
            return Err(RpcError { code: -32_003, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", message });
        }
        if name == "GetExtendedAgentCard" {
            let message = "the card at its well-known path is all there is".to_owned();
            return Err(RpcError { code: -32_007, reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", message });
        }
        let names: Vec<&str> = Method::ALL.iter().map(|(name, _)| *name).collect();
        let seen = json::preview(name, limits::PREVIEW_BYTES);
        let message = format!("unknown method {seen}; accepted are {}", names.join(", "));
        Err(RpcError { code: -32_601, reason: "METHOD_NOT_FOUND", message })
    }
}

impl Rpc {
    /// Reads a request's content.
    ///
    /// # Errors
    /// It is no call that can be acted on; the id that an answer has to name, as far as it was seen.
    pub fn read(body: &[u8]) -> Result<Rpc, (Value, RpcError)> {
        let value = json::value(body, limits::HTTP_BODY_BYTES, limits::FRAME_DEPTH)
            .map_err(|problem| (Value::Null, RpcError::unreadable(problem.to_string())))?;
        let Value::Object(mut call) = value else {
            let why = "one call is one JSON object; batches are not taken";
            return Err((Value::Null, RpcError::request(why)));
        };
        let id = match call.remove("id") {
            Some(id @ (Value::String(_) | Value::Number(_) | Value::Null)) => id,
            Some(_) => return Err((Value::Null, RpcError::request("id: accepted is a string or a number"))),
            None => {
                return Err((
                    Value::Null,
                    RpcError::request("id: every call here has an answer, so it needs one"),
                ));
            }
        };
        if id.as_str().is_some_and(|id| id.len() > limits::RPC_ID_BYTES) {
            let why = format!("id: at most {} bytes are accepted", limits::RPC_ID_BYTES);
            return Err((Value::Null, RpcError::request(&why)));
        }
        if call.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err((id, RpcError::request("jsonrpc: accepted is \"2.0\"")));
        }
        let Some(method) = call.get("method").and_then(Value::as_str) else {
            return Err((id, RpcError::request("method: accepted is a string")));
        };
        let method = match Method::named(method) {
            Ok(method) => method,
            Err(error) => return Err((id, error)),
        };
        match call.remove("params") {
            None => Ok(Rpc { id, method, params: Map::new() }),
            Some(Value::Object(params)) => Ok(Rpc { id, method, params }),
            Some(_) => Err((id, RpcError::params("params: accepted is an object".into()))),
        }
    }
}

impl RpcError {
    fn unreadable(message: String) -> RpcError {
        RpcError { code: -32_700, reason: "PARSE_ERROR", message }
    }

    fn request(message: &str) -> RpcError {
        RpcError { code: -32_600, reason: "INVALID_REQUEST", message: message.to_owned() }
    }

    /// Parameters that are not what is accepted.
    pub fn params(message: String) -> RpcError {
        RpcError { code: -32_602, reason: "INVALID_PARAMS", message }
    }

    /// A task that is not there, or is not the caller's.
    pub fn no_task(id: &str) -> RpcError {
        let id = json::preview(id, limits::PREVIEW_BYTES);
        RpcError { code: -32_001, reason: "TASK_NOT_FOUND", message: format!("there is no task {id}") }
    }

    /// A task that has ended.
    pub fn not_cancelable(state: super::TaskState) -> RpcError {
        let message = format!("the task has ended as {}", state.name());
        RpcError { code: -32_002, reason: "TASK_NOT_CANCELABLE", message }
    }

    /// What this agent does not do.
    pub fn unsupported(message: String) -> RpcError {
        RpcError { code: -32_004, reason: "UNSUPPORTED_OPERATION", message }
    }

    /// What cannot be done now and may be later.
    pub fn unavailable(message: String) -> RpcError {
        RpcError { code: -32_603, reason: "UNAVAILABLE", message }
    }

    /// A part of a kind that is not read.
    pub fn content(message: String) -> RpcError {
        RpcError { code: -32_005, reason: "CONTENT_TYPE_NOT_SUPPORTED", message }
    }

    /// Another version of the protocol.
    pub fn version(seen: Option<&[u8]>) -> RpcError {
        let seen = match seen {
            Some(seen) => format!("the header says {}", json::preview(seen, 32)),
            None => "there is no header A2A-Version, which means 0.3".to_owned(),
        };
        let message = format!("only A2A {} is spoken here, and {seen}", super::VERSION);
        RpcError { code: -32_009, reason: "VERSION_NOT_SUPPORTED", message }
    }

    /// What a principal may not do.
    pub fn forbidden(message: String) -> RpcError {
        RpcError { code: -32_000, reason: "PERMISSION_DENIED", message }
    }
}

/// The answer to a call.
pub fn result(id: &Value, result: &Value) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a> {
        id: &'a Value,
        jsonrpc: &'static str,
        result: &'a Value,
    }
    // Writing a value that was read or made here cannot fail.
    serde_json::to_vec(&Answer { id, jsonrpc: "2.0", result }).unwrap_or_default()
}

/// The answer to a call that has no result.
pub fn error(id: &Value, error: &RpcError) -> Vec<u8> {
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": error.reason, "domain": "a2a-protocol.org",
    });
    let error = json!({ "code": error.code, "message": error.message, "data": [info] });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

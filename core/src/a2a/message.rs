//! What clients send: messages, and what they ask of tasks. Unknown keys are a newer client's and are let be; what is
//! known is read strictly.

use super::rpc::RpcError;
use super::task::TaskState;
use crate::bytes::Json;
use crate::json;
use crate::limits;
use serde_json::{Map, Value, json};

/// One message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// The client's name of it: the same one sent twice is one turn.
    pub message_id: String,
    /// The conversation it is for, if it says.
    pub context_id: Option<String>,
    /// The task it goes on with, if it says.
    pub task_id: Option<String>,
    /// What it says.
    pub content: Content,
    /// The answer is the task as it stands and not as it ends.
    pub at_once: bool,
    /// How many messages of its history a task shows; all when absent.
    pub history: Option<usize>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A prompt for the conversation.
    Text(String),
    /// An operator's command: its name and its arguments.
    Op(String, Json),
}

impl Incoming {
    /// Reads the parameters of `SendMessage` and `SendStreamingMessage`.
    ///
    /// # Errors
    /// Which key is not as it has to be.
    pub fn read(params: &Map<String, Value>) -> Result<Incoming, RpcError> {
        let Some(Value::Object(message)) = params.get("message") else {
            return Err(RpcError::params("message: accepted is an object".into()));
        };
        let message_id = name(message, "messageId", "message.messageId")?
            .ok_or_else(|| RpcError::params("message.messageId: is required".into()))?;
        if message.get("role").and_then(Value::as_str) != Some("ROLE_USER") {
            return Err(RpcError::params("message.role: accepted is ROLE_USER".into()));
        }
        let configuration = match params.get("configuration") {
            None | Some(Value::Null) => &Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(RpcError::params("configuration: accepted is an object".into())),
        };
        if configuration.get("taskPushNotificationConfig").is_some_and(|config| !config.is_null()) {
            return Err(RpcError::unsupported("there are no push notifications here".into()));
        }
        Ok(Incoming {
            message_id,
            context_id: name(message, "contextId", "message.contextId")?,
            task_id: name(message, "taskId", "message.taskId")?,
            content: content(message)?,
            at_once: flag(configuration, "returnImmediately", "configuration.returnImmediately")?,
            history: count(configuration, "historyLength", "configuration.historyLength")?,
        })
    }
}

fn content(message: &Map<String, Value>) -> Result<Content, RpcError> {
    let parts = match message.get("parts") {
        Some(Value::Array(parts)) if !parts.is_empty() && parts.len() <= limits::MESSAGE_PARTS => parts,
        _ => {
            let most = limits::MESSAGE_PARTS;
            return Err(RpcError::params(format!("message.parts: accepted is a list of 1 to {most} parts")));
        }
    };
    let (mut texts, mut op) = (Vec::new(), None);
    for part in parts {
        if let Some(text) = part.get("text") {
            let text = text.as_str().ok_or_else(|| RpcError::params("a part's text is no string".into()))?;
            texts.push(text.to_owned());
        } else if let Some(command) = part.get("data").and_then(|data| data.get("agentd")) {
            if op.replace(command).is_some() {
                return Err(RpcError::params("a message holds one command".into()));
            }
        } else if let Some(data) = part.get("data") {
            texts.push(data.to_string());
        } else {
            return Err(RpcError::content("a part is read that has text or data; files are not".into()));
        }
    }
    match op {
        Some(command) if texts.is_empty() => command_of(command),
        Some(_) => Err(RpcError::params("a message is a command or a text, not both".into())),
        None => {
            let text = texts.join("\n");
            if text.trim().is_empty() {
                return Err(RpcError::params("message.parts: the text is empty".into()));
            }
            if text.len() > limits::MESSAGE_BYTES {
                let (seen, most) = (text.len(), limits::MESSAGE_BYTES);
                return Err(RpcError::params(format!(
                    "message.parts: {seen} bytes, at most {most} are accepted"
                )));
            }
            Ok(Content::Text(text))
        }
    }
}

fn command_of(command: &Value) -> Result<Content, RpcError> {
    let fault = || RpcError::params("data.agentd: accepted is {\"op\": NAME, …}".into());
    let mut args = command.as_object().cloned().ok_or_else(fault)?;
    match args.remove("op") {
        Some(Value::String(op)) => Ok(Content::Op(op, Json::of(&whole_numbers(Value::Object(args))))),
        _ => Err(fault()),
    }
}

/// Clients whose data goes through Protobuf know one kind of number and write `3.0`: what is whole is meant as such.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Up to here every whole number has a form of its own.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= 9e15 => {
                json!(float as i64)
            }
            Some(_) | None => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, whole_numbers(value))).collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

/// What a client asks of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// Which.
    pub id: String,
    /// How many messages of its history are shown; all when absent.
    pub history: Option<usize>,
}

impl TaskQuery {
    /// Reads the parameters of `GetTask`, `CancelTask` and `SubscribeToTask`.
    ///
    /// # Errors
    /// Which key is not as it has to be.
    pub fn read(params: &Map<String, Value>) -> Result<TaskQuery, RpcError> {
        let id = name(params, "id", "id")?.ok_or_else(|| RpcError::params("id: is required".into()))?;
        Ok(TaskQuery { id, history: count(params, "historyLength", "historyLength")? })
    }
}

/// What a client asks of the list of its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paging {
    /// Only of this conversation.
    pub context_id: Option<String>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Tasks of one page.
    pub size: usize,
    /// Where the page before ended.
    pub after: Option<String>,
    /// How many messages of their history are shown.
    pub history: Option<usize>,
    /// With what they gave.
    pub artifacts: bool,
}

impl Paging {
    /// Reads the parameters of `ListTasks`.
    ///
    /// # Errors
    /// Which key is not as it has to be.
    pub fn read(params: &Map<String, Value>) -> Result<Paging, RpcError> {
        let state = match name(params, "status", "status")?.as_deref() {
            None | Some("TASK_STATE_UNSPECIFIED") => None,
            Some(name) => Some(TaskState::named(name).ok_or_else(|| {
                let seen = json::preview(name, limits::PREVIEW_BYTES);
                RpcError::params(format!("status: {seen} is no state of a task"))
            })?),
        };
        let size = count(params, "pageSize", "pageSize")?.filter(|size| *size > 0).unwrap_or(50);
        if size > 100 {
            return Err(RpcError::params("pageSize: accepted is 1 to 100".into()));
        }
        Ok(Paging {
            context_id: name(params, "contextId", "contextId")?,
            state,
            size,
            after: name(params, "pageToken", "pageToken")?,
            history: count(params, "historyLength", "historyLength")?,
            artifacts: flag(params, "includeArtifacts", "includeArtifacts")?,
        })
    }
}

/// The answer to an operator's command: a message with what a caller of the tool reads.
pub fn operator_answer(message_id: &str, context_id: &str, op: &str, error: bool, value: Value) -> Value {
    let mut answer = json!({ "message": {
        "messageId": message_id, "contextId": context_id, "role": "ROLE_AGENT",
        "parts": [{ "data": { "agentd": { "op": op, "error": error } }, "mediaType": "application/json" }],
    } });
    // Moved in: the macro would copy it, once for each level around it.
    answer["message"]["parts"][0]["data"]["agentd"]["value"] = value;
    answer
}

/// A name that may be absent; an empty one is absent too, as Protobuf has it.
fn name(map: &Map<String, Value>, key: &str, path: &str) -> Result<Option<String>, RpcError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= limits::RPC_ID_BYTES => Ok(Some(text.clone())),
        Some(_) => {
            let most = limits::RPC_ID_BYTES;
            Err(RpcError::params(format!("{path}: accepted is a string of at most {most} bytes")))
        }
    }
}

fn flag(map: &Map<String, Value>, key: &str, path: &str) -> Result<bool, RpcError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(RpcError::params(format!("{path}: accepted is true or false"))),
    }
}

fn count(map: &Map<String, Value>, key: &str, path: &str) -> Result<Option<usize>, RpcError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|count| usize::try_from(count).ok()) {
            Some(count) => Ok(Some(count)),
            None => Err(RpcError::params(format!("{path}: accepted is a whole number from 0 on"))),
        },
    }
}

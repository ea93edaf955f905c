//! The server's side of MCP's `initialize` era: one request in, at most one answer out. What goes wrong with the
//! protocol is a JSON-RPC error; what goes wrong with a tool is a result with `isError`, which a model reads.

use super::edit::Reads;
use super::report::Failure;
use super::root::Root;
use super::tools;
use agentd_core::mcp::VERSIONS;
use serde_json::{Map, Value, json};

/// One session over one folder.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) root: Root,
    /// Whether tools that change files are offered.
    pub(super) write: bool,
    /// Files that were read in this session, as they were then.
    pub(super) reads: Reads,
}

/// A JSON-RPC error.
struct Refusal {
    code: i32,
    message: String,
}

impl Server {
    /// A session that has read nothing yet.
    pub(super) fn new(root: Root, write: bool) -> Server {
        Server { root, write, reads: Reads::default() }
    }

    /// Takes one line; the answer is one line without its newline. Notifications have none, blank lines neither.
    pub(super) fn answer(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let (id, outcome) = match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(message)) => self.message(message)?,
            Ok(_) => (Value::Null, refuse(-32600, "one JSON-RPC request a line; batches are not taken")),
            Err(e) => (Value::Null, refuse(-32700, format!("not JSON: {e}"))),
        };
        let answer = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Refusal { code, message }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        Some(answer.to_string().into_bytes())
    }

    fn message(&mut self, mut message: Map<String, Value>) -> Option<(Value, Result<Value, Refusal>)> {
        let id = message.remove("id").filter(|id| !id.is_null());
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // A response to a request we never make, or no message at all.
            let silent = message.contains_key("result") || message.contains_key("error");
            return (!silent).then(|| (id.unwrap_or_default(), refuse(-32600, "a request has a method")));
        };
        let id = id?;
        if !id.is_string() && !id.is_number() {
            return Some((Value::Null, refuse(-32600, "an id is a string or a number")));
        }
        let params = message.get("params");
        let outcome = match method {
            "initialize" => Ok(hello(params)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": tools::declared(self.write)})),
            "tools/call" => self.call(params),
            other => {
                let shown: String = other.chars().take(64).collect();
                refuse(-32601, format!("method not found: {shown:?}"))
            }
        };
        Some((id, outcome))
    }

    fn call(&mut self, params: Option<&Value>) -> Result<Value, Refusal> {
        let name = params.and_then(|p| p.get("name")).and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = tools::offered(self.write).find(|tool| tool.name == name) else {
            let names: Vec<&str> = tools::offered(self.write).map(|tool| tool.name).collect();
            let shown: String = name.chars().take(64).collect();
            return refuse(-32602, format!("unknown tool {shown:?}; the tools are {}", names.join(", ")));
        };
        Ok(match tool.run(self, params.and_then(|p| p.get("arguments"))) {
            Ok(value) => json!({
                "content": [{"type": "text", "text": value.to_string()}],
                "structuredContent": value,
                "isError": false,
            }),
            Err(Failure(text)) => json!({"content": [{"type": "text", "text": text}], "isError": true}),
        })
    }
}

fn hello(params: Option<&Value>) -> Value {
    let asked = params.and_then(|p| p.get("protocolVersion")).and_then(Value::as_str);
    let latest = VERSIONS[VERSIONS.len() - 1];
    json!({
        "protocolVersion": asked.filter(|v| VERSIONS.contains(v)).unwrap_or(latest),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "agentd-files", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn refuse(code: i32, message: impl Into<String>) -> Result<Value, Refusal> {
    Err(Refusal { code, message: message.into() })
}

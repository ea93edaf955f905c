//! What the 2025-11-25 schema says of the messages a client sends, by hand: exact keys, types, constants.

use serde_json::Value;

/// Panics unless `message` is one of the messages our client may send, in its shape.
pub(crate) fn check(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let params = &message["params"];
    match message["method"].as_str() {
        Some("initialize") => {
            keys(message, &["jsonrpc", "id", "method", "params"]);
            keys(params, &["protocolVersion", "capabilities", "clientInfo"]);
            assert!(params["protocolVersion"].is_string() && params["capabilities"].is_object());
            keys(&params["clientInfo"], &["name", "version"]);
            assert!(params["clientInfo"]["name"].is_string() && params["clientInfo"]["version"].is_string());
        }
        // Of the other era: what it wants in each request is in `_meta`.
        Some("server/discover") => {
            keys(message, &["jsonrpc", "id", "method", "params"]);
            keys(params, &["_meta"]);
            let meta = ["protocolVersion", "clientCapabilities", "clientInfo"];
            let meta = meta.map(|key| format!("io.modelcontextprotocol/{key}"));
            keys(&params["_meta"], &meta.each_ref().map(String::as_str));
        }
        Some("notifications/initialized") => keys(message, &["jsonrpc", "method", "params"]),
        Some("tools/list") => {
            keys(message, &["jsonrpc", "id", "method", "params"]);
            if params.as_object().is_some_and(|p| !p.is_empty()) {
                keys(params, &["cursor"]);
                assert!(params["cursor"].is_string());
            }
        }
        Some("tools/call") => {
            keys(message, &["jsonrpc", "id", "method", "params"]);
            keys(params, &["name", "arguments", "_meta"]);
            assert!(params["name"].is_string() && params["arguments"].is_object());
            keys(&params["_meta"], &["progressToken"]);
            assert_eq!(params["_meta"]["progressToken"], message["id"], "one token a call");
        }
        Some("notifications/cancelled") => {
            keys(message, &["jsonrpc", "method", "params"]);
            keys(params, &["requestId", "reason"]);
            assert!(params["requestId"].is_u64() && params["reason"].is_string());
        }
        Some(other) => panic!("a client does not send {other}: {message}"),
        None if message.get("error").is_some() => {
            keys(message, &["jsonrpc", "id", "error"]);
            keys(&message["error"], &["code", "message"]);
            assert!(message["error"]["code"].is_i64() && message["error"]["message"].is_string());
        }
        None => {
            keys(message, &["jsonrpc", "id", "result"]);
            assert!(message["result"].is_object());
        }
    }
    if let Some(id) = message.get("id") {
        assert!(id.is_u64() || message.get("method").is_none() && id.is_string(), "{message}");
    }
}

fn keys(object: &Value, want: &[&str]) {
    let mut have: Vec<&str> =
        object.as_object().unwrap_or_else(|| panic!("{object}")).keys().map(String::as_str).collect();
    let mut want = want.to_vec();
    have.sort_unstable();
    want.sort_unstable();
    assert_eq!(have, want, "{object}");
}

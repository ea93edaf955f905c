use super::*;
use agentd_core::limits;
use std::io::{self, Write};

fn one(root: &Path, request: Value) -> Value {
    let answers = served(root, request.to_string().as_bytes()).unwrap();
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers[0].clone()
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

#[test]
fn the_handshake_agrees_on_a_version_both_speak() {
    let dir = TempDir::new().unwrap();
    for (asked, agreed) in [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!(null), "2025-11-25"),
        (json!(7), "2025-11-25"),
    ] {
        let answer = one(dir.path(), request("initialize", json!({"protocolVersion": asked})));
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(answer["id"], 7);
    }
}

#[test]
fn what_is_no_request_gets_an_error_or_silence_and_the_session_goes_on() {
    let dir = TempDir::new().unwrap();
    for (line, code) in [
        ("{", Some(-32700)),
        ("\u{fffd}", Some(-32700)),
        ("[]", Some(-32600)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Some(-32600)),
        ("7", Some(-32600)),
        ("{}", Some(-32600)),
        (r#"{"id":{},"method":"ping"}"#, Some(-32600)),
        (r#"{"id":1,"method":"server/discover"}"#, Some(-32601)),
        (r#"{"id":1,"method":"resources/list"}"#, Some(-32601)),
        (r#"{"id":1,"method":"tools/call"}"#, Some(-32602)),
        (r#"{"id":1,"method":"tools/call","params":{"name":"nope"}}"#, Some(-32602)),
        (r#"{"id":1,"method":"tools/call","params":{"name":"write","arguments":{}}}"#, Some(-32602)),
        ("", None),
        (" \t\r", None),
        (r#"{"method":"notifications/initialized"}"#, None),
        (r#"{"method":"tools/call","params":{"name":"list"}}"#, None),
        (r#"{"id":1,"result":{}}"#, None),
    ] {
        let input = format!("{line}\n{}\n", r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        let answers = served(dir.path(), input.as_bytes()).unwrap();
        assert_eq!(answers.first().and_then(|a| a["error"]["code"].as_i64()), code, "{line}");
        assert_eq!(*answers.last().unwrap(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    }
    let unknown = one(dir.path(), request("tools/call", json!({"name": "edit"})));
    assert_eq!(
        unknown["error"]["message"],
        "unknown tool \"edit\"; the tools are list, read, grep, glob, stat"
    );
}

#[test]
fn tools_are_declared_with_strict_schemas() {
    for (write, names) in [
        (false, &["list", "read", "grep", "glob", "stat"][..]),
        (true, &["list", "read", "grep", "glob", "stat", "write", "edit"]),
    ] {
        let mut session = Session::new(write);
        let answer = session.server.answer(request("tools/list", json!({})).to_string().as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.iter().map(|t| t["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        for tool in tools {
            let schema = &tool["inputSchema"];
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
            assert!(tool["description"].as_str().unwrap().len() > 40);
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].as_str().is_some_and(|d| d.len() > 10), "{tool} {name}");
            }
        }
    }
}

#[test]
fn arguments_are_strict_and_every_problem_is_told_at_once() {
    let mut session = Session::new(true);
    session.put("a", "x\n");
    let told = session.err("read", json!({"paht": "a", "limit": "5", "offset": -1}));
    assert_eq!(
        told,
        "\"paht\" is not a parameter; \"path\" is missing; \"offset\" must be a whole number from 0 to \
         1000000000000, not -1; \"limit\" must be a whole number from 1 to 100000, not a string. Accepted: \
         path (string, required), offset (number 0 to 1000000000000, default 0), limit (number 1 to 100000, \
         default 2000)"
    );
    for (tool, args) in [
        ("grep", json!({"pattern": "x", "literal": "yes"})),
        ("grep", json!({"pattern": "x", "max": 1_001})),
        ("grep", json!({"pattern": "x", "max": 1.5})),
        ("list", json!({"path": 7})),
        ("list", json!([])),
        ("list", json!("a")),
        ("edit", json!({"path": "a", "old": "x"})),
        ("read", json!({"path": "a", "limit": 0})),
    ] {
        session.err(tool, args);
    }
    assert!(session.err("list", json!({"k".repeat(10_000): 1})).len() < 300);
    for args in [json!(null), json!({}), json!({"path": null}), json!({"path": "."})] {
        session.ok("list", args);
    }
    session.ok("read", json!({"path": "a", "limit": 5.0}));
}

#[test]
fn a_session_ends_with_its_input_and_a_last_request_counts_without_a_newline() {
    let dir = TempDir::new().unwrap();
    assert_eq!(served(dir.path(), b"").unwrap(), [] as [Value; 0]);
    assert_eq!(served(dir.path(), br#"{"id":1,"method":"ping"}"#).unwrap().len(), 1);
    let missing = serve(&dir.path().join("nope"), false, &b""[..], Vec::new()).unwrap_err();
    assert!(missing.to_string().contains("nope"), "{missing}");
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(serve(&dir.path().join("file"), false, &b""[..], Vec::new()).is_err());
}

#[test]
fn a_request_that_never_ends_ends_the_session_at_the_limit() {
    let dir = TempDir::new().unwrap();
    let endless = io::repeat(b'x');
    let e = serve(dir.path(), false, endless, Vec::new()).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::InvalidData);
    let ping = r#"{"id":1,"method":"ping"}"#;
    let full = format!("{}{ping}\n", " ".repeat(limits::MCP_LINE_BYTES - ping.len()));
    assert_eq!(served(dir.path(), full.as_bytes()).unwrap().len(), 1, "exactly the limit is served");
    assert!(served(dir.path(), format!(" {full}").as_bytes()).is_err());
}

#[test]
fn a_reader_that_went_away_is_an_end() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = TempDir::new().unwrap();
    serve(dir.path(), false, &br#"{"id":1,"method":"ping"}"#[..], Gone).unwrap();
}

use super::*;
use crate::bytes::Json;
use crate::time::Wall;
use serde_json::{Map, Value, json};

fn params(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn message(parts: Value) -> Result<Incoming, RpcError> {
    Incoming::read(&params(json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts } })))
}

#[test]
fn calls_are_read_strictly_and_faults_name_the_id() {
    for (body, id, code) in [
        ("", Value::Null, -32_700),
        ("{", Value::Null, -32_700),
        (r#"{"id":1,"id":2}"#, Value::Null, -32_700),
        ("[]", Value::Null, -32_600),
        (r#"{"jsonrpc":"2.0","method":"GetTask"}"#, Value::Null, -32_600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, Value::Null, -32_600),
        (r#"{"jsonrpc":"1.0","id":7,"method":"GetTask"}"#, json!(7), -32_600),
        (r#"{"jsonrpc":"2.0","id":"a","method":3}"#, json!("a"), -32_600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"message/send"}"#, json!("a"), -32_601),
        (r#"{"jsonrpc":"2.0","id":"a","method":"CreateTaskPushNotificationConfig"}"#, json!("a"), -32_003),
        (r#"{"jsonrpc":"2.0","id":"a","method":"GetExtendedAgentCard"}"#, json!("a"), -32_007),
        (r#"{"jsonrpc":"2.0","id":"a","method":"GetTask","params":[]}"#, json!("a"), -32_602),
    ] {
        let (seen, error) = Rpc::read(body.as_bytes()).expect_err(body);
        assert_eq!((seen, error.code), (id, code), "{body}: {}", error.message);
    }
    let call = Rpc::read(br#"{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":"t"}}"#).unwrap();
    assert_eq!((call.method, call.id), (Method::GetTask, json!("a")));
}

#[test]
fn messages_are_texts_or_one_command() {
    let text = |content: Content| match content {
        Content::Text(text) => text,
        other @ Content::Op(..) => panic!("{other:?}"),
    };
    assert_eq!(
        text(message(json!([{ "text": "a" }, { "data": { "b": 1 } }])).unwrap().content),
        "a\n{\"b\":1}"
    );
    let kill = json!([{ "data": { "agentd": { "op": "subagent.kill", "handle": "sub-1" } } }]);
    let op = Content::Op("subagent.kill".into(), Json::of(&json!({ "handle": "sub-1" })));
    assert_eq!(message(kill.clone()).unwrap().content, op);
    let numbers = json!([{ "data": { "agentd": { "op": "x", "a": [3.0, 0.5, 7, { "b": -1.0 }] } } }]);
    let op = Content::Op("x".into(), Json::of(&json!({ "a": [3, 0.5, 7, { "b": -1 }] })));
    assert_eq!(message(numbers).unwrap().content, op, "Protobuf has no whole numbers");
    for (parts, code) in [
        (json!([]), -32_602),
        (json!("text"), -32_602),
        (json!([{ "text": " \n" }]), -32_602),
        (json!([{ "text": 3 }]), -32_602),
        (json!([{ "url": "https://x.example/a" }]), -32_005),
        (json!([{ "raw": "AAAA" }]), -32_005),
        (json!([{ "text": "a" }, kill[0]]), -32_602),
        (json!([kill[0], kill[0]]), -32_602),
        (json!([{ "data": { "agentd": { "op": 3 } } }]), -32_602),
        (json!([{ "data": { "agentd": "kill" } }]), -32_602),
        (json!([{ "text": "x".repeat(crate::limits::MESSAGE_BYTES + 1) }]), -32_602),
    ] {
        assert_eq!(message(parts.clone()).expect_err(&parts.to_string()).code, code, "{parts}");
    }
    for bad in [
        json!({}),
        json!({ "message": { "role": "ROLE_USER", "parts": [{ "text": "a" }] } }),
        json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "a" }] } }),
        json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "text": "a" }] } }),
        json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "a" }] }, "configuration": 3 }),
    ] {
        assert_eq!(Incoming::read(&params(bad.clone())).expect_err("is refused").code, -32_602, "{bad}");
    }
}

#[test]
fn only_the_one_version_is_spoken() {
    for version in ["1.0", "1.0.1"] {
        assert!(speaks(Some(version.as_bytes())), "{version}");
    }
    for version in ["", "0.3", "1", "1.01", "1.1", "2.0", "\u{fe}"] {
        assert!(!speaks(Some(version.as_bytes())), "{version}");
    }
    assert!(!speaks(None));
    assert!(RpcError::version(None).message.contains("0.3"));
}

#[test]
fn pages_are_bounded() {
    let read = |value: Value| Paging::read(&params(value));
    assert_eq!(read(json!({})).unwrap().size, 50);
    assert_eq!(read(json!({ "pageSize": 100 })).unwrap().size, 100);
    for bad in [json!({ "pageSize": 101 }), json!({ "pageSize": -1 }), json!({ "status": "DONE" })] {
        assert_eq!(read(bad).expect_err("is refused").code, -32_602);
    }
    let state = read(json!({ "status": "TASK_STATE_WORKING" })).unwrap().state;
    assert_eq!(state, Some(TaskState::Working));
}

#[test]
fn a_task_has_the_protocols_form() {
    let view = TaskView {
        id: "t",
        context_id: "c",
        state: TaskState::Failed,
        since: Wall(0),
        error: Some("why"),
        result: &json!("half"),
        partial: true,
        asked: ("m", "text"),
    };
    let task = view.json(None, true);
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(task["status"]["timestamp"], "1970-01-01T00:00:00.000Z");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "why");
    assert_eq!(task["artifacts"][0]["metadata"]["partial"], true);
    assert_eq!(task["history"][0]["parts"][0]["text"], "text");
    assert!(view.json(Some(0), false).get("history").is_none());
    assert!(artifact_update(&TaskView { result: &Value::Null, ..view }).is_none());
}

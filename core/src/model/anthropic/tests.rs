use super::*;
use crate::model::tests::{asking, endpoint, past, remote, result};
use crate::model::{Finish, Message, ModelErrorKind, Reply, ReplyUsage, WireNames};
use crate::wire::message::ToolDecl;
use serde_json::{Value, json};
use std::sync::Arc;

fn stream(events: &[Value]) -> Reply {
    let mut reader = Reader::new();
    for event in events {
        reader.push(
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("odd")).as_bytes(),
        );
    }
    reader.push(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    reader.finish().unwrap_or_else(|e| panic!("{e}: {events:#?}"))
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: Option<u64>, json: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}})
}

fn tool(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

#[test]
fn every_stop_reason_beside_every_content() {
    let reasons = [
        (json!("end_turn"), Finish::Stop),
        (json!("stop_sequence"), Finish::Stop),
        (json!("tool_use"), Finish::ToolCalls),
        (json!("max_tokens"), Finish::Length),
        (json!("model_context_window_exceeded"), Finish::Length),
        (json!("refusal"), Finish::Refusal),
        (json!("pause_turn"), Finish::Other("pause_turn".into())),
        (json!("weird"), Finish::Other("weird".into())),
        (json!(null), Finish::Missing),
        (json!(7), Finish::Missing),
    ];
    let contents = [
        (json!([{"type": "text", "text": "hello"}]), Some("hello"), 0),
        (json!([tool("a", "f", json!({"x": 1}))]), None, 1),
        (
            json!([{"type": "text", "text": "hello"}, tool("a", "f", json!({})), tool("b", "g", json!({}))]),
            Some("hello"),
            2,
        ),
        (json!([]), None, 0),
        (json!([{"type": "thinking", "thinking": "hm"}]), None, 0),
        (json!(null), None, 0),
        (json!(""), None, 0),
    ];
    for (reason, finish) in &reasons {
        for (content, text, calls) in &contents {
            let blocks = content.as_array().cloned().unwrap_or_default();
            let mut events =
                vec![json!({"type": "message_start", "message": {"content": [], "stop_reason": null}})];
            events.extend((0..).zip(blocks).map(|(index, block)| start(index, block)));
            events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
            let mut whole = Reader::new();
            whole.push(
                json!({"type": "message", "content": content, "stop_reason": reason}).to_string().as_bytes(),
            );
            for reply in [stream(&events), whole.finish().expect("a message")] {
                assert_eq!(reply.finish, *finish, "{reason} {content}");
                assert_eq!(reply.text.as_deref(), *text, "{reason} {content}");
                assert_eq!(reply.calls.len(), *calls, "{reason} {content}");
            }
        }
    }
}

#[test]
fn input_comes_whole_or_in_pieces_or_not_at_all() {
    let args = |events: &[Value]| {
        let calls = stream(events).calls;
        calls.into_iter().map(|call| (call.id, call.args)).collect::<Vec<_>>()
    };
    let two = [start(1, tool("a", "f", json!({}))), start(2, tool("b", "g", json!({})))];
    let seen =
        args(&[&two[..], &[piece(Some(1), "{\"x\""), piece(Some(2), "{}"), piece(Some(1), ":1}")]].concat());
    assert_eq!(seen, [("a".into(), "{\"x\":1}".into()), ("b".into(), "{}".into())]);
    let (id, none) = ("a".to_owned(), "{}".to_owned());
    assert_eq!(
        args(&[start(0, tool("a", "f", json!({}))), piece(Some(0), "")]),
        [(id.clone(), none.clone())]
    );
    assert_eq!(args(&[start(0, tool("a", "f", json!(null)))]), [(id.clone(), none)]);
    assert_eq!(args(&[start(0, tool("a", "f", json!({"x": 1})))]), [(id.clone(), "{\"x\":1}".into())]);
    let without_index = [start(0, tool("a", "f", json!({}))), piece(None, "{\"y\":2}")];
    assert_eq!(args(&without_index), [(id.clone(), "{\"y\":2}".into())]);
    assert_eq!(
        args(&[start(0, tool("a", "f", json!({}))), piece(Some(0), "{\"cut")]),
        [(id, "{\"cut".into())]
    );
    assert_eq!(args(&[piece(Some(3), "{\"x\":1}")]), [], "pieces of a block that is not read");
}

#[test]
fn the_three_parts_of_what_went_in_add_up_once() {
    let message = json!({"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 1});
    let reply = stream(&[
        json!({"type": "message_start", "message": {"usage": message}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 9}}),
    ]);
    assert_eq!(reply.usage, ReplyUsage { input: Some(240), output: Some(9), cached: Some(200) });
    let odd = stream(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": "10", "cache_read_input_tokens": null}}}),
        json!({"type": "message_delta", "usage": null}),
    ]);
    assert_eq!(odd.usage, ReplyUsage { input: Some(10), output: None, cached: None });
}

#[test]
fn what_later_versions_add_is_passed_over() {
    let reply = stream(&[
        json!({"type": "message_start", "message": null}),
        json!({"type": "ping"}),
        json!({"type": "brand_new", "value": [1]}),
        json!({"odd": true}),
        start(0, json!({"type": "server_tool_use", "id": "s", "name": "web", "input": {}})),
        start(1, json!({"type": "text", "text": "a"})),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": null}),
        json!({"type": "content_block_stop"}),
    ]);
    assert_eq!(reply.text.as_deref(), Some("ab"));
    assert_eq!((reply.calls.len(), reply.finish), (0, Finish::Missing));
}

#[test]
fn an_error_after_the_beginning_is_a_failed_call() {
    let mut reader = Reader::new();
    reader.push(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"half\"}}\n\n");
    reader.push(b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n");
    assert!(reader.is_done());
    reader.push(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    let error = reader.finish().expect_err("an error");
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert!(error.message.contains("Overloaded"), "{error}");
}

#[test]
fn pings_mean_nothing() {
    let mut reader = Reader::new();
    let mut push = |event: Value| reader.push(format!("data: {event}\n\n").as_bytes());
    assert_eq!(push(json!({"type": "message_start", "message": {}})), 1);
    assert_eq!(push(json!({"type": "ping"})), 0);
    assert_eq!(push(json!({"type": "keep_alive"})), 0);
    assert_eq!(
        push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}})),
        0
    );
    assert_eq!(
        push(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}})
        ),
        1
    );
}

#[test]
fn the_request_as_it_goes_out() {
    let mut request = asking(vec![
        Message::Assistant { text: Some("before".into()), calls: Vec::new() },
        Message::User("  ".into()),
        Message::User("do it".into()),
        Message::Assistant {
            text: Some(String::new()),
            calls: vec![
                past("functions.f:0", "f", "{\"x\":12345678901234567890123}"),
                past("functions_f_0", "g", "{}"),
            ],
        },
        Message::Results(vec![result("functions.f:0", false, ""), result("functions_f_0", true, "no")]),
        Message::User("steer".into()),
    ]);
    request.tokens_left = 900;
    request.tools = Arc::from([ToolDecl {
        name: "f".into(),
        description: String::new(),
        schema: crate::bytes::Json::of(&json!({})),
    }]);
    request.names = Arc::new(WireNames::new(["f"]));
    let sent = super::request(&remote(), &endpoint("https://api.example"), &request);
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(super::request(&remote(), &endpoint("https://api.example/v1/"), &request).path, "/messages");
    assert!(sent.headers.contains(&("x-api-key".into(), "key".into())));
    assert!(sent.headers.contains(&("anthropic-version".into(), "2023-06-01".into())));
    assert!(!sent.headers.iter().any(|(name, _)| name == "authorization"));
    let text = String::from_utf8(sent.body.clone()).expect("UTF-8");
    assert!(text.contains("12345678901234567890123"), "numbers go out as they came in: {text}");
    let mut body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    body["messages"][3]["content"][0]["input"] = json!("seen");
    assert_eq!(
        body,
        json!({
            "model": "the-model",
            "stream": true,
            "max_tokens": 900,
            "system": "Be brief.",
            "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "(The conversation so far follows.)"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "before"}]},
                {"role": "user", "content": [{"type": "text", "text": "do it"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "functions_f_0_2", "name": "f", "input": "seen"},
                    {"type": "tool_use", "id": "functions_f_0", "name": "g", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "functions_f_0_2"},
                    {"type": "tool_result", "tool_use_id": "functions_f_0", "content": "no", "is_error": true},
                    {"type": "text", "text": "steer"},
                ]},
            ],
        })
    );
}

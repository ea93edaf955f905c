use super::*;
use crate::model::tests::{asking, endpoint, past, remote, result};
use crate::model::{Finish, Message, ModelError, ModelErrorKind, Reply, ReplyUsage};
use crate::wire::message::ToolDecl;
use serde_json::{Value, json};
use std::sync::Arc;

fn read(events: &[Value]) -> Result<Reply, ModelError> {
    let mut reader = Reader::new();
    for event in events {
        let name = event["type"].as_str().unwrap_or("odd");
        reader.push(format!("event: {name}\ndata: {event}\n\n").as_bytes());
    }
    reader.finish()
}

/// The reply to a stream of these events that is completed.
fn stream(events: &[Value]) -> Reply {
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    read(&[events, &[end]].concat()).unwrap_or_else(|e| panic!("{e}: {events:#?}"))
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn call(id: &str, name: &str, args: Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": args})
}

fn text(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn args(index: Option<u64>, delta: Value) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta})
}

fn calls(events: &[Value]) -> Vec<(String, String, String)> {
    stream(events).calls.into_iter().map(|call| (call.id, call.name, call.args)).collect()
}

fn made(id: &str, name: &str, args: &str) -> (String, String, String) {
    (id.into(), name.into(), args.into())
}

#[test]
fn every_end_beside_every_content() {
    let ends = [
        ("completed", json!(null), None),
        ("incomplete", json!({"reason": "max_output_tokens"}), Some(Finish::Length)),
        ("incomplete", json!({"reason": "content_filter"}), Some(Finish::Refusal)),
        ("incomplete", json!({"reason": "brand_new"}), Some(Finish::Length)),
        ("incomplete", json!(null), Some(Finish::Length)),
    ];
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]});
    let contents = [
        (json!([text("hello")]), Some("hello"), 0, Finish::Stop),
        (json!([call("a", "f", json!("{}"))]), None, 1, Finish::ToolCalls),
        (
            json!([{"type": "reasoning", "summary": []}, text("hello"), call("a", "f", json!("{}")), call("b", "g", json!("{}"))]),
            Some("hello"),
            2,
            Finish::ToolCalls,
        ),
        (json!([refusal]), Some("I will not."), 0, Finish::Refusal),
        (json!([{"type": "reasoning", "summary": []}]), None, 0, Finish::Stop),
        (json!([]), None, 0, Finish::Stop),
    ];
    for (status, details, finish) in &ends {
        for (output, said, count, usual) in &contents {
            let response = json!({"status": status, "incomplete_details": details, "output": output});
            let items = output.as_array().cloned().unwrap_or_default();
            let mut events: Vec<Value> = (0..).zip(items).map(|(index, item)| done(index, item)).collect();
            let end = |output: &Value| {
                let response = json!({"status": status, "incomplete_details": details, "output": output});
                json!({"type": format!("response.{status}"), "response": response})
            };
            // In pieces of items, in the last event alone, told twice, and as one JSON text.
            let last_alone = read(&[end(output)]);
            let mut whole = Reader::new();
            whole.push(response.to_string().as_bytes());
            let twice = read(&[&events[..], &[end(output)]].concat());
            events.push(end(&json!([])));
            for reply in [read(&events), last_alone, twice, whole.finish()] {
                let reply = reply.expect("a reply");
                let cut_calls = *finish == Some(Finish::Length) && *usual == Finish::Refusal;
                let want = if cut_calls { Finish::Length } else { finish.clone().unwrap_or(usual.clone()) };
                assert_eq!(reply.finish, want, "{status} {details} {output}");
                assert_eq!(reply.text.as_deref(), *said, "{status} {details} {output}");
                assert_eq!(reply.calls.len(), *count, "{status} {details} {output}");
            }
        }
    }
}

#[test]
fn arguments_come_whole_or_in_pieces_or_not_at_all() {
    let begun = [added(1, call("a", "f", json!(""))), added(2, call("b", "g", json!(null)))];
    let both = [
        &begun[..],
        &[args(Some(1), json!("{\"x\"")), args(Some(2), json!("{}")), args(Some(1), json!(":1}"))],
    ];
    assert_eq!(calls(&both.concat()), [made("a", "f", "{\"x\":1}"), made("b", "g", "{}")]);
    // Told whole after its pieces: once.
    let told = [
        added(0, call("a", "f", json!(""))),
        args(Some(0), json!("{\"x\":1}")),
        json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{\"x\":1}"}),
        done(0, call("a", "f", json!("{\"x\":1}"))),
    ];
    assert_eq!(calls(&told), [made("a", "f", "{\"x\":1}")]);
    // What is told whole takes the place of pieces that were lost.
    let lost = [told[0].clone(), args(Some(0), json!("{\"x\"")), told[3].clone()];
    assert_eq!(calls(&lost), [made("a", "f", "{\"x\":1}")]);
    assert_eq!(calls(&[done(0, call("a", "f", json!({"x": 1})))]), [made("a", "f", "{\"x\":1}")]);
    assert_eq!(calls(&[done(0, call("a", "f", json!("")))]), [made("a", "f", "{}")]);
    assert_eq!(
        calls(&[added(0, call("a", "f", json!(""))), args(None, json!("{}"))]),
        [made("a", "f", "{}")]
    );
    // Without its beginning.
    assert_eq!(
        calls(&[args(Some(4), json!("{}")), done(4, call("a", "f", json!("")))]),
        [made("a", "f", "{}")]
    );
    assert_eq!(
        calls(&[added(0, call("a", "f", json!(""))), args(Some(0), json!("{\"cut"))]),
        [made("a", "f", "{\"cut")]
    );
}

#[test]
fn an_item_that_changes_its_id_on_the_way_is_one_item() {
    let mut later = call("a", "f", json!("{}"));
    later["id"] = json!("another");
    assert_eq!(calls(&[added(3, call("a", "f", json!(""))), done(3, later)]), [made("a", "f", "{}")]);
    let delta =
        |id: &str, said: &str| json!({"type": "response.output_text.delta", "item_id": id, "delta": said});
    let reply = stream(&[delta("m1", "one "), delta("m2", "two "), delta("m1", "more ")]);
    assert_eq!(reply.text.as_deref(), Some("one more two "), "without a place the ids tell them apart");
}

#[test]
fn a_text_in_parts_is_put_together_in_their_order() {
    let delta = |part: u64, said: &str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": part, "delta": said});
    let whole = |part: u64, said: &str| json!({"type": "response.output_text.done", "output_index": 0, "content_index": part, "text": said});
    let reply =
        stream(&[delta(0, "on"), delta(1, "two"), delta(0, "e "), whole(0, "one "), whole(2, " three")]);
    assert_eq!(reply.text.as_deref(), Some("one two three"));
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."});
    let reply = stream(&[refusal]);
    assert_eq!((reply.finish, reply.text.as_deref()), (Finish::Refusal, Some("No.")));
}

#[test]
fn what_fails_says_whose_fault_it_is() {
    let failed =
        |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let begun = added(0, text("half"));
    for (event, kind, word) in [
        (failed(json!({"code": "server_error", "message": "oops"})), ModelErrorKind::Unreachable, "oops"),
        (
            failed(json!({"code": "rate_limit_exceeded", "message": "slow"})),
            ModelErrorKind::Overloaded,
            "slow",
        ),
        (
            failed(json!({"code": "context_length_exceeded", "message": "big"})),
            ModelErrorKind::TooLong,
            "big",
        ),
        (failed(json!(null)), ModelErrorKind::Unreachable, "without saying why"),
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "flat", "param": null}),
            ModelErrorKind::Overloaded,
            "flat",
        ),
        (
            json!({"type": "error", "error": {"code": 529, "message": "inner"}}),
            ModelErrorKind::Overloaded,
            "inner",
        ),
        (json!({"error": {"message": "nameless"}}), ModelErrorKind::Unreachable, "nameless"),
    ] {
        let error = read(&[begun.clone(), event.clone()]).expect_err("failed");
        assert_eq!(error.kind, kind, "{event}");
        assert!(error.message.contains(word), "{error}");
    }
    let mut queued = Reader::new();
    queued.push(json!({"status": "queued", "output": []}).to_string().as_bytes());
    assert!(queued.finish().expect_err("not finished").message.contains("still queued"));
}

#[test]
fn reasoning_is_inside_what_went_out_and_the_same_sum_counts_once() {
    let usage = json!({
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 25}, "total_tokens": 130,
    });
    let created = json!({"type": "response.created", "response": {"usage": usage}});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": [text("a")], "usage": usage}});
    let reply = read(&[created, end]).expect("a reply");
    assert_eq!(reply.usage, ReplyUsage { input: Some(100), output: Some(30), cached: Some(60) });
    let none = json!({"type": "response.completed", "response": {"output": [text("a")], "usage": null}});
    assert_eq!(read(&[none]).expect("a reply").usage, ReplyUsage::default());
}

#[test]
fn odd_fields_are_no_failure() {
    let reply = stream(&[
        json!({"type": "brand.new", "data": 1}),
        json!({"type": "response.output_item.added", "item": null}),
        json!({"type": "response.output_item.added", "output_index": "0", "item": {"type": "message", "content": null}}),
        json!({"type": "response.content_part.added", "output_index": 0, "part": {"type": "output_text", "text": ""}}),
        json!({"type": "response.output_text.delta", "output_index": 0.0, "delta": "do"}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": null}),
        json!({"type": "response.output_text.delta", "output_index": "0", "delta": "ne"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "new_call", "id": 7}}),
    ]);
    assert_eq!((reply.text.as_deref(), reply.calls.len()), (Some("done"), 0));
}

#[test]
fn only_what_gets_on_is_a_sign_of_life() {
    let mut reader = Reader::new();
    let mut seen = |event: Value| reader.push(format!("data: {event}\n\n").as_bytes());
    assert_eq!(seen(json!({"type": "response.created", "response": {}})), 1);
    for idle in [
        json!({"type": "response.in_progress", "response": {}}),
        json!({"type": "response.queued"}),
        json!({"type": "keepalive"}),
        json!({"type": "response.output_text.delta", "delta": ""}),
    ] {
        assert_eq!(seen(idle.clone()), 0, "{idle}");
    }
    for news in [
        json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
        json!({"type": "response.output_text.delta", "delta": "a"}),
    ] {
        assert_eq!(seen(news.clone()), 1, "{news}");
    }
}

#[test]
fn a_request_as_published() {
    let calls = vec![past("a", "f", "{\"x\":1}"), past("b", "g", "{}")];
    let mut asked = asking(vec![
        Message::User("Do it.".into()),
        Message::Assistant { text: Some("I look.".into()), calls },
        Message::Results(vec![result("a", false, "found"), result("b", true, "broke")]),
        Message::User(" ".into()),
    ]);
    let schema = crate::bytes::Json::of(&json!({"type": "object", "properties": {"x": {}}}));
    asked.tools = Arc::from([ToolDecl { name: "f".into(), description: String::new(), schema }]);
    let bounded = crate::wire::message::Remote { max_output: Some(3), ..remote() };
    let sent = request(&bounded, &endpoint("https://api.example/v1"), &asked);
    assert_eq!(sent.path, "/responses");
    assert!(sent.headers.contains(&("authorization".into(), "Bearer key".into())));
    let body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    let want = json!({
        "model": "the-model",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": "Do it."},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}"},
            {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "found"},
            {"type": "function_call_output", "call_id": "b", "output": "error: broke"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"x": {}}}, "strict": false}],
        "stream": true,
        "store": false,
        "max_output_tokens": 16,
    });
    assert_eq!(body, want);
}

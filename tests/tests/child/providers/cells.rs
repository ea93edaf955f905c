//! Finish reasons beside contents (F02, F03), tool calls in odd pieces (F04), odd fields (F18): what reaches a tool
//! and what the next request holds.

use super::{Tools, asking};
use crate::rig::{PATIENCE, Rig};
use agentd_core::wire::message::FailKind;
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::{Value, json};

#[test]
fn a_call_that_was_cut_is_never_made() {
    for speaks in Speaks::ALL {
        let cut = match speaks {
            Speaks::Openai => "length",
            Speaks::Responses => "max_output_tokens",
            Speaks::Anthropic => "max_tokens",
        };
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)));
        let call = |id: &str, args: &str| Answer::text("").call(id, "fake_echo", args);
        let mut exchange = server.next();
        for (id, args, finish, word) in [
            ("a", "{\"text\":\"hal", Some(cut), "cut"),
            ("b", "{}", Some(cut), "cut"),
            ("c", "{\"other\":1}", Some(cut), "cut"),
            ("d", "{\"text\":\"hal", None, "cut or never finished"),
        ] {
            let answer = call(id, args);
            exchange.answer(&match finish {
                Some(finish) => answer.finish(finish),
                None => answer,
            });
            exchange = server.next();
            let results = exchange.request.results();
            assert_eq!(results.len(), 1, "{results:?}");
            assert_eq!(results[0].0, id);
            assert!(results[0].1.contains(word), "{id}: {results:?}");
        }
        exchange.answer(&Answer::text("half an an").finish(cut));
        match rig.terminal() {
            agentd_core::wire::Up::Result(result) => {
                assert!(result.partial, "a text that was cut is no whole answer");
                assert_eq!(result.evidence.model_calls, 5, "every one of them is a step");
            }
            other => panic!("{other:?}"),
        }
        assert!(rig.end().0.success());
        assert_eq!(tools.calls(), [], "{speaks:?}");
    }
}

/// Finish reasons as they are, as they should not be, and missing.
fn finishes(speaks: Speaks) -> Vec<Value> {
    if speaks == Speaks::Responses {
        // It has no reason to stop, only reasons to be incomplete.
        return vec![json!(""), json!(null)];
    }
    let mut finishes =
        vec![json!("stop"), json!("tool_calls"), json!("function_call"), json!("weird"), json!(null)];
    if speaks == Speaks::Anthropic {
        finishes.extend([json!("end_turn"), json!("tool_use"), json!("pause_turn")]);
    }
    finishes
}

#[test]
fn whole_calls_are_made_whatever_the_reason_to_stop_says() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)));
        let mut wanted = Vec::new();
        for (nth, finish) in finishes(speaks).into_iter().enumerate() {
            let args = |which: usize| format!("{{\"text\":\"{nth}-{which}\"}}");
            let one =
                Answer::text("t").call(&format!("{nth}a"), "fake_echo", &args(0)).finish(finish.clone());
            let two = Answer::text("")
                .call(&format!("{nth}b"), "fake_echo", &args(1))
                .call(&format!("{nth}c"), "fake_echo", &args(2))
                .finish(finish);
            server.next().answer(&one);
            server.next().answer(&two);
            wanted.extend((0..3).map(|which| format!("{nth}-{which}")));
        }
        server.next().answer(&Answer::text("done"));
        assert_eq!(rig.completed(), "done");
        assert!(rig.end().0.success());
        let calls = tools.calls();
        let mut seen: Vec<_> = calls.iter().filter_map(|(_, args)| args["text"].as_str()).collect();
        // Calls of one message run in parallel.
        seen.sort_unstable();
        wanted.sort();
        assert_eq!(seen, wanted);
    }
}

#[test]
fn text_alone_is_the_answer_and_nothing_at_all_never_is() {
    for speaks in Speaks::ALL {
        for finish in finishes(speaks) {
            let server = ModelServer::start(speaks);
            let mut rig = Rig::start(asking(&server));
            server.next().answer(&Answer::text("").finish(finish.clone()));
            server.next().answer(&Answer::text("said").finish(finish.clone()));
            assert_eq!(rig.completed(), "said", "{finish}");
            assert!(rig.end().0.success());
        }
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        server.next().answer(&Answer::text(""));
        server.next().answer(&Answer::text("").finish(Value::Null));
        assert_eq!(rig.failed().kind, FailKind::EmptyReply);
        assert!(rig.end().0.success());
    }
}

/// One chunk with these entries of `tool_calls`.
fn chunk(entries: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": entries}}]})
}

fn function(name: Option<&str>, args: Value) -> Value {
    match name {
        Some(name) => json!({"name": name, "arguments": args}),
        None => json!({"arguments": args}),
    }
}

#[test]
fn pieces_of_calls_find_together_however_they_are_marked() {
    let echo = Some("fake_echo");
    let cases: Vec<(&str, Vec<Value>, Vec<&str>)> = vec![
        (
            "index absent, one call",
            vec![
                chunk(json!([{"id": "a", "function": function(echo, json!("{\"text\":"))}])),
                chunk(json!([{"function": function(None, json!("\"1\"}"))}])),
            ],
            vec!["1"],
        ),
        (
            "index absent, told apart by id",
            vec![
                chunk(json!([{"id": "b", "function": function(echo, json!("{\"text\":\"2\"}"))}])),
                chunk(json!([{"id": "c", "function": function(echo, json!("{\"text\":\"3\"}"))}])),
            ],
            vec!["2", "3"],
        ),
        (
            "both under index 0 in the first chunk",
            vec![chunk(json!([
                {"index": 0, "id": "d", "function": function(echo, json!("{\"text\":\"4\"}"))},
                {"index": 0, "id": "e", "function": function(echo, json!("{\"text\":\"5\"}"))},
            ]))],
            vec!["4", "5"],
        ),
        (
            "interleaved",
            vec![
                chunk(json!([{"index": 0, "id": "f", "function": function(echo, json!(""))}])),
                chunk(json!([{"index": 1, "id": "g", "function": function(echo, json!(null))}])),
                chunk(json!([{"index": 0, "function": function(None, json!("{\"text\":"))}])),
                chunk(json!([{"index": 1, "function": function(None, json!("{\"text\":"))}])),
                chunk(json!([{"index": 0, "function": function(None, json!("\"6\"}"))}])),
                chunk(json!([{"index": 1, "function": function(None, json!("\"7\"}"))}])),
            ],
            vec!["6", "7"],
        ),
        (
            "id only in the last delta",
            vec![
                chunk(json!([{"index": 0, "function": function(echo, json!("{\"text\":\"8\"}"))}])),
                chunk(json!([{"index": 0, "id": "h", "function": function(None, json!(null))}])),
            ],
            vec!["8"],
        ),
        (
            "name in every delta",
            vec![
                chunk(json!([{"index": 0, "id": "i", "function": function(echo, json!("{\"text\":"))}])),
                chunk(json!([{"index": 0, "id": "i", "function": function(echo, json!("\"9\"}"))}])),
            ],
            vec!["9"],
        ),
    ];
    let (server, tools) = (ModelServer::start(Speaks::Openai), Tools::new());
    let mut rig = Rig::start(tools.give(asking(&server)));
    for (_, chunks, _) in &cases {
        server.next().events(chunks);
    }
    let nothing = chunk(json!([{"index": 0, "id": "z", "function": {"name": "fake_fail", "arguments": ""}}]));
    server.next().events(&[nothing]);
    server.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
    let calls = tools.calls();
    let mut seen: Vec<_> =
        calls.iter().filter(|c| c.0 == "echo").map(|c| c.1["text"].as_str().unwrap_or("")).collect();
    // Calls of one message run in parallel.
    seen.sort_unstable();
    assert_eq!(seen, cases.iter().flat_map(|case| case.2.clone()).collect::<Vec<_>>());
    assert_eq!(
        calls.last(),
        Some(&("fail".to_owned(), json!({}))),
        "a call without arguments is made with none"
    );
}

#[test]
fn odd_fields_are_no_failure() {
    let odd_chat = vec![
        json!({"choices": null, "usage": null, "new": {"deep": [1]}}),
        json!({"choices": [{"delta": {"role": "assistant", "content": null, "tool_calls": null}, "logprobs": null}]}),
        json!({"choices": [{"index": "0", "delta": {"content": [{"type": "text", "text": "do"}, {"type": "new"}]}}]}),
        json!({"choices": [{"delta": {"content": "ne"}, "finish_reason": "brand_new"}], "usage": {"prompt_tokens": null}}),
        json!({"choices": [], "usage": {"prompt_tokens": "12", "completion_tokens": 3.0, "prompt_tokens_details": null}}),
    ];
    let odd_messages = vec![
        json!({"type": "brand_new_event", "data": 1}),
        json!({"type": "message_start", "message": {"content": null, "usage": {"input_tokens": "12", "new": {}}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "brand_new_block"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "do"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "brand_new_delta"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ne"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "brand_new"}, "usage": {"output_tokens": 3.0}}),
    ];
    let odd_responses = vec![
        json!({"type": "brand.new", "data": 1}),
        json!({"type": "response.created", "response": {"usage": {"input_tokens": "12", "output_tokens": 3.0}}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "brand_new_item"}}),
        json!({"type": "response.output_item.added", "output_index": "1", "item": {"type": "message", "content": null}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "do", "logprobs": null}),
        json!({"type": "response.output_text.delta", "output_index": 1.0, "delta": "ne"}),
    ];
    for (speaks, events) in Speaks::ALL.into_iter().zip([odd_chat, odd_responses, odd_messages]) {
        let server = ModelServer::start(speaks);
        let mut rig = Rig::start(asking(&server));
        server.next().events(&events);
        assert_eq!(rig.completed(), "done", "{speaks:?}");
        assert_eq!(super::usages(&rig), [(12, 3, false)]);
        assert!(rig.end_within(PATIENCE).0.success());
    }
}

#[test]
fn every_call_of_a_message_has_its_result_in_order_before_anything_else() {
    for speaks in Speaks::ALL {
        let (server, tools) = (ModelServer::start(speaks), Tools::new());
        let mut rig = Rig::start(tools.give(asking(&server)));
        let four = Answer::text("")
            .call("a", "fake_sleep", "{\"ms\":50}")
            .call("b", "fake_fail", "{\"text\":\"no luck\"}")
            .call("b", "no_such_tool", "{}")
            .call("", "fake_echo", "[]")
            .call("bad:id", "fake_echo", "{\"text\":\"x\"}");
        server.next().answer(&four);
        // The server refuses a request in which they are not answered one by one.
        let second = server.next().answer(&Answer::text("done"));
        let texts: Vec<String> = second.results().into_iter().map(|(_, text)| text).collect();
        for (text, word) in texts.iter().zip(["slept", "no luck", "there is no tool", "an array", "x"]) {
            assert!(text.contains(word), "{word}: {texts:?}");
        }
        assert_eq!(texts.len(), 5);
        assert_eq!(rig.completed(), "done");
        assert!(rig.end().0.success());
    }
}

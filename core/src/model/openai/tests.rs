use super::*;
use crate::model::tests::{asking, endpoint, past, remote, result};
use crate::model::{Finish, Message, Reply, ReplyUsage};
use serde_json::{Value, json};

/// The reply to a stream of these chunks, properly ended.
fn stream(chunks: &[Value]) -> Reply {
    let mut reader = Reader::new();
    for chunk in chunks {
        reader.push(format!("data: {chunk}\n\n").as_bytes());
    }
    reader.push(b"data: [DONE]\n\n");
    reader.finish().unwrap_or_else(|e| panic!("{e}: {chunks:#?}"))
}

/// A stream whose chunks hold these lists of `tool_calls`.
fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let chunks: Vec<_> =
        deltas.iter().map(|list| json!({"choices": [{"delta": {"tool_calls": list}}]})).collect();
    stream(&chunks).calls.into_iter().map(|call| (call.id, call.name, call.args)).collect()
}

fn call(id: &str, name: &str, args: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), args.to_owned())
}

/// A piece: what is `""` is left out, but for the arguments.
fn piece(index: Option<u64>, id: &str, name: &str, args: Value) -> Value {
    let mut piece = json!({"type": "function", "function": {"arguments": args}});
    if let Some(index) = index {
        piece["index"] = json!(index);
    }
    if !id.is_empty() {
        piece["id"] = json!(id);
    }
    if !name.is_empty() {
        piece["function"]["name"] = json!(name);
    }
    piece
}

#[test]
fn deltas_as_published() {
    let seen = calls(&[
        json!([piece(Some(0), "a", "f", json!(""))]),
        json!([piece(Some(0), "", "", json!("{\"x\""))]),
        json!([piece(Some(0), "", "", json!(":1}"))]),
        json!([piece(Some(1), "b", "g", json!("{}"))]),
    ]);
    assert_eq!(seen, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
}

#[test]
fn one_call_without_an_index() {
    let seen =
        calls(&[json!([piece(None, "a", "f", json!("{\"x\""))]), json!([piece(None, "", "", json!(":1}"))])]);
    assert_eq!(seen, [call("a", "f", "{\"x\":1}")]);
}

#[test]
fn two_calls_without_an_index_told_apart_by_id() {
    let seen = calls(&[
        json!([piece(None, "a", "f", json!("{\"x\""))]),
        json!([piece(None, "b", "f", json!("{\"y\""))]),
        json!([piece(None, "a", "", json!(":1}"))]),
        json!([piece(None, "b", "", json!(":2}"))]),
    ]);
    assert_eq!(seen, [call("a", "f", "{\"x\":1}"), call("b", "f", "{\"y\":2}")]);
    let at_once = calls(&[json!([piece(None, "a", "f", json!("{}")), piece(None, "b", "f", json!("{}")),])]);
    assert_eq!(at_once, [call("a", "f", "{}"), call("b", "f", "{}")]);
}

#[test]
fn both_under_index_zero_in_the_first_chunk() {
    for later in [
        vec![json!([piece(Some(0), "", "", json!("1}")), piece(Some(0), "", "", json!("2}"))])],
        vec![json!([piece(Some(0), "a", "", json!("1}"))]), json!([piece(Some(0), "b", "", json!("2}"))])],
    ] {
        let first =
            json!([piece(Some(0), "a", "f", json!("{\"x\":")), piece(Some(0), "b", "g", json!("{\"y\":"))]);
        let seen = calls(&[vec![first], later].concat());
        assert_eq!(seen, [call("a", "f", "{\"x\":1}"), call("b", "g", "{\"y\":2}")]);
    }
    let nameless = json!([piece(Some(0), "", "f", json!("{}")), piece(Some(0), "", "f", json!("{\"y\":1}"))]);
    assert_eq!(calls(&[nameless]), [call("", "f", "{}"), call("", "f", "{\"y\":1}")]);
}

#[test]
fn interleaved_pieces() {
    let seen = calls(&[
        json!([piece(Some(0), "a", "f", json!(""))]),
        json!([piece(Some(1), "b", "f", json!(""))]),
        json!([piece(Some(0), "", "", json!("{\"x\""))]),
        json!([piece(Some(1), "", "", json!("{\"y\""))]),
        json!([piece(Some(0), "", "", json!(":1}"))]),
        json!([piece(Some(1), "", "", json!(":2}"))]),
    ]);
    assert_eq!(seen, [call("a", "f", "{\"x\":1}"), call("b", "f", "{\"y\":2}")]);
}

#[test]
fn an_id_that_comes_last() {
    for index in [Some(0), None] {
        let seen = calls(&[
            json!([piece(index, "", "f", json!("{\"x\""))]),
            json!([piece(index, "", "", json!(":1}"))]),
            json!([piece(index, "a", "", json!(""))]),
        ]);
        assert_eq!(seen, [call("a", "f", "{\"x\":1}")], "{index:?}");
    }
    let two = calls(&[
        json!([piece(Some(0), "", "f", json!("{}")), piece(Some(1), "", "g", json!("{}"))]),
        json!([piece(Some(0), "a", "", json!("")), piece(Some(1), "b", "", json!(null))]),
    ]);
    assert_eq!(two, [call("a", "f", "{}"), call("b", "g", "{}")]);
}

#[test]
fn a_name_and_an_id_in_every_delta() {
    for (index, id) in [(Some(0), "a"), (Some(0), ""), (None, "a"), (None, "")] {
        let seen = calls(&[
            json!([piece(index, id, "f", json!(""))]),
            json!([piece(index, id, "f", json!("{\"x\""))]),
            json!([piece(index, id, "f", json!(":1}"))]),
            json!([piece(index, id, "f", json!(""))]),
        ]);
        assert_eq!(seen, [call(id, "f", "{\"x\":1}")], "{index:?} {id:?}");
    }
}

#[test]
fn the_whole_call_once_more_at_its_end() {
    let whole = piece(Some(0), "a", "f", json!("{\"x\":1}"));
    assert_eq!(calls(&[json!([whole]), json!([whole])]), [call("a", "f", "{\"x\":1}")]);
}

#[test]
fn calls_one_after_another_that_nothing_tells_apart_but_their_names_and_ends() {
    let seen = calls(&[
        json!([piece(None, "", "f", json!("{\"x\":1}"))]),
        json!([piece(None, "", "f", json!("{\"x\":2}"))]),
        json!([piece(None, "", "g", json!("{}"))]),
    ]);
    assert_eq!(seen, [call("", "f", "{\"x\":1}"), call("", "f", "{\"x\":2}"), call("", "g", "{}")]);
    let under_zero = calls(&[
        json!([piece(Some(0), "a", "f", json!("{\"x\":1}"))]),
        json!([piece(Some(0), "b", "f", json!("{\"x\":2}"))]),
    ]);
    assert_eq!(under_zero, [call("a", "f", "{\"x\":1}"), call("b", "f", "{\"x\":2}")]);
    let one_id = calls(&[json!([
        piece(Some(0), "same", "f", json!("{\"x\":1}")),
        piece(Some(1), "same", "f", json!("{\"x\":2}")),
    ])]);
    assert_eq!(one_id, [call("same", "f", "{\"x\":1}"), call("same", "f", "{\"x\":2}")]);
}

#[test]
fn arguments_in_every_dress() {
    for (args, want) in [
        (json!(""), "{}"),
        (json!(null), "{}"),
        (json!("  "), "{}"),
        (json!({"x": 1}), "{\"x\":1}"),
        (json!("{"), "{"),
        (json!("[]"), "[]"),
        (json!(7), "{}"),
    ] {
        assert_eq!(calls(&[json!([piece(Some(0), "a", "f", args)])]), [call("a", "f", want)]);
    }
    let bare =
        stream(&[json!({"choices": [{"delta": {"tool_calls": [{"id": "a", "function": {"name": "f"}}]}}]})]);
    assert_eq!(bare.calls[0].args, "{}");
}

#[test]
fn odd_entries_are_read_for_what_they_are() {
    assert_eq!(calls(&[json!(null), json!([]), json!([null]), json!([{}]), json!("x")]), []);
    assert_eq!(calls(&[json!(piece(Some(0), "a", "f", json!("{}")))]), [call("a", "f", "{}")]);
    let text_index = json!([{"index": "0", "id": "a", "function": {"name": "f", "arguments": "{"}}]);
    assert_eq!(calls(&[text_index, json!([piece(Some(0), "", "", json!("}"))])]), [call("a", "f", "{}")]);
    let old = stream(&[
        json!({"choices": [{"delta": {"function_call": {"name": "f", "arguments": "{\"x\""}}}]}),
        json!({"choices": [{"delta": {"function_call": {"arguments": ":1}"}}, "finish_reason": "function_call"}]}),
    ]);
    assert_eq!((old.calls[0].name.as_str(), old.calls[0].args.as_str()), ("f", "{\"x\":1}"));
    assert_eq!(old.finish, Finish::Other("function_call".into()));
}

#[test]
fn every_finish_reason_beside_every_content() {
    let finishes = [
        (json!({"finish_reason": "stop"}), Finish::Stop),
        (json!({"finish_reason": "tool_calls"}), Finish::ToolCalls),
        (json!({"finish_reason": "length"}), Finish::Length),
        (json!({"finish_reason": "max_tokens"}), Finish::Length),
        (json!({"finish_reason": "content_filter"}), Finish::Refusal),
        (json!({"finish_reason": "function_call"}), Finish::Other("function_call".into())),
        (json!({"finish_reason": "weird"}), Finish::Other("weird".into())),
        (json!({"finish_reason": null}), Finish::Missing),
        (json!({"finish_reason": ""}), Finish::Missing),
        (json!({}), Finish::Missing),
    ];
    let one = json!([piece(Some(0), "a", "f", json!("{\"x\""))]);
    let two = json!([piece(Some(0), "a", "f", json!("{}")), piece(Some(1), "b", "g", json!("{}"))]);
    let contents = [
        (json!({"content": "hello"}), Some("hello"), 0),
        (json!({"content": null, "tool_calls": one}), None, 1),
        (json!({"content": "hello", "tool_calls": two}), Some("hello"), 2),
        (json!({"content": ""}), None, 0),
        (json!({"content": [], "tool_calls": null}), None, 0),
        (json!({}), None, 0),
    ];
    for (end, finish) in &finishes {
        for (delta, text, count) in &contents {
            let mut last = end.clone();
            last["delta"] = json!({});
            let streamed = stream(&[json!({"choices": [{"delta": delta}]}), json!({"choices": [last]})]);
            let mut choice = end.clone();
            choice["message"] = delta.clone();
            let mut whole = Reader::new();
            whole.push(json!({"choices": [choice]}).to_string().as_bytes());
            for reply in [streamed, whole.finish().expect("a completion")] {
                assert_eq!(reply.finish, *finish, "{end} {delta}");
                assert_eq!(reply.text.as_deref(), *text, "{end} {delta}");
                assert_eq!(reply.calls.len(), *count, "{end} {delta}");
            }
        }
    }
}

#[test]
fn a_cut_reply_stays_cut_whatever_comes_after() {
    let reply = stream(&[
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ]);
    assert_eq!(reply.finish, Finish::Length);
}

#[test]
fn a_refusal_in_the_models_own_words() {
    let reply = stream(&[
        json!({"choices": [{"delta": {"refusal": "I can"}}]}),
        json!({"choices": [{"delta": {"refusal": "not."}, "finish_reason": "stop"}]}),
    ]);
    assert_eq!((reply.finish, reply.text.as_deref()), (Finish::Refusal, Some("I cannot.")));
}

#[test]
fn usage_is_the_last_word_and_not_a_sum() {
    let used = |usages: &[Value]| {
        stream(&usages.iter().map(|usage| json!({"choices": [], "usage": usage})).collect::<Vec<_>>()).usage
    };
    let of = |input, output, cached| ReplyUsage { input, output, cached };
    let total =
        json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}});
    assert_eq!(used(std::slice::from_ref(&total)), of(Some(10), Some(4), Some(3)));
    let growing = json!({"prompt_tokens": 10, "completion_tokens": 1});
    assert_eq!(used(&[growing.clone(), growing, total.clone(), total]), of(Some(10), Some(4), Some(3)));
    assert_eq!(used(&[]), ReplyUsage::default());
    assert_eq!(used(&[json!(null)]), ReplyUsage::default());
    assert_eq!(used(&[json!({"prompt_tokens": null, "completion_tokens": "7"})]), of(None, Some(7), None));
    assert_eq!(
        used(&[json!({"prompt_tokens": 10.0, "prompt_tokens_details": null})]),
        of(Some(10), None, None)
    );
}

#[test]
fn only_the_first_choice_is_read_and_odd_chunks_are_passed_over() {
    let reply = stream(&[
        json!({"choices": [{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "this"}}]}),
        json!({"choices": null}),
        json!({"choices": [null, 7, {"delta": null}, {"delta": 7}]}),
        json!({"object": "new.kind", "more": [1, 2]}),
        json!(null),
        json!([1]),
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "!"}, {"type": "odd"}], "new": {}}}]}),
        json!({"error": null, "choices": []}),
    ]);
    assert_eq!(reply.text.as_deref(), Some("this!"));
}

#[test]
fn errors_inside_the_stream_are_failed_calls() {
    for chunk in [
        json!({"error": {"message": "overloaded", "code": 503}}),
        json!({"error": "it broke"}),
        json!({"choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": {"message": "x"}}),
        json!({"choices": [{"delta": {}, "finish_reason": "error"}]}),
    ] {
        let mut reader = Reader::new();
        reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n");
        reader.push(format!("data: {chunk}\n\n").as_bytes());
        reader.push(b"data: [DONE]\n\n");
        assert!(reader.finish().is_err(), "{chunk}");
    }
    let mut whole = Reader::new();
    whole.push(br#"{"error": {"message": "invalid api key", "code": "401"}}"#);
    assert_eq!(whole.finish().expect_err("an error").kind, ModelErrorKind::Credential);
}

#[test]
fn keep_alives_mean_nothing() {
    let mut reader = Reader::new();
    let mut push = |text: &str| reader.push(text.as_bytes());
    assert_eq!(push(": OPENROUTER PROCESSING\n\n"), 0);
    assert_eq!(push("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"), 1);
    for idle in [
        "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"choices\":[]}\n\n",
        "data:\n\n",
        ":\n\n",
        "\n\n",
    ] {
        assert_eq!(push(idle), 0, "{idle}");
    }
    assert_eq!(push("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"), 1);
    assert_eq!(push("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"), 1);
    assert_eq!(push("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"), 0);
}

#[test]
fn the_request_as_it_goes_out() {
    let request = asking(vec![
        Message::User("one".into()),
        Message::User("two".into()),
        Message::Assistant { text: None, calls: vec![past("a", "f", "{\"x\":1}"), past("b", "g", "{}")] },
        Message::Results(vec![result("a", false, "fine"), result("b", true, "no file")]),
        Message::Assistant { text: Some("so".into()), calls: Vec::new() },
        Message::User("go on".into()),
    ]);
    let sent = super::request(&remote(), &endpoint("https://api.example/v1"), &request, Manner::default());
    assert_eq!(sent.path, "/chat/completions");
    assert!(sent.headers.contains(&("authorization".into(), "Bearer key".into())));
    let body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    let of = |id: &str, name: &str, args: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}});
    assert_eq!(
        body,
        json!({
            "model": "the-model",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "one\n\ntwo"},
                {"role": "assistant", "content": null, "tool_calls": [of("a", "f", "{\"x\":1}"), of("b", "g", "{}")]},
                {"role": "tool", "tool_call_id": "a", "content": "fine"},
                {"role": "tool", "tool_call_id": "b", "content": "error: no file"},
                {"role": "assistant", "content": "so"},
                {"role": "user", "content": "go on"},
            ],
        })
    );
}

#[test]
fn a_server_is_asked_in_the_manner_it_takes() {
    let refused = |message: &str| ModelError::new(ModelErrorKind::Rejected, message);
    let mut manner = Manner::default();
    assert!(!manner.learn(&refused("HTTP 400: no such model")));
    assert!(manner.learn(&refused("HTTP 400: Unrecognized request argument supplied: stream_options")));
    assert!(
        !manner.learn(&refused("HTTP 400: Unrecognized request argument supplied: stream_options")),
        "once"
    );
    assert!(
        manner
            .learn(&refused("HTTP 400: 'max_tokens' is not supported: use 'max_completion_tokens' instead"))
    );
    let mut remote = remote();
    remote.max_output = Some(5_000_000);
    let sent = super::request(&remote, &endpoint("https://a.example/v1"), &asking(Vec::new()), manner);
    let body: Value = serde_json::from_slice(&sent.body).expect("JSON");
    assert_eq!(body["max_completion_tokens"], 1_000_000, "no more than the budget has");
    assert!(body.get("max_tokens").is_none() && body.get("stream_options").is_none());
}

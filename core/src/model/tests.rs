//! What is true of every dialect: any split reads the same, nothing half-received is a reply, every request is valid.

use super::*;
use crate::bytes::Bytes;
use crate::model::api::{Api, Reader};
use crate::model::fuzzing::model_stream;
use crate::wire::message::{Dialect, Endpoint, Remote};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request with this history and no tools.
pub(super) fn asking(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "ref".into(),
        degraded: false,
        max_output: None,
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        context: 0,
        begins: 0,
        turn: 1,
        tools: Arc::from([]),
        declared: Arc::from([]),
        names: Arc::default(),
        step: 1,
        tokens_left: 1_000_000,
    }
}

pub(super) fn remote() -> Remote {
    Remote {
        model: "the-model".into(),
        endpoints: vec![endpoint("https://api.example/v1")],
        headers: BTreeMap::new(),
        timeout_ms: 60_000,
        max_output: None,
    }
}

pub(super) fn endpoint(url: &str) -> Endpoint {
    Endpoint { url: url.into(), token: Some("key".into()) }
}

pub(super) fn past(id: &str, name: &str, args: &str) -> PastCall {
    PastCall { id: id.into(), name: name.into(), args: Json(Bytes::from(args.as_bytes())) }
}

pub(super) fn result(id: &str, error: bool, text: &str) -> CallResult {
    CallResult { id: id.into(), name: "t".into(), error, text: text.into() }
}

pub(super) fn body(api: &Api, request: &ModelRequest) -> Value {
    let request = api.request(&remote(), &endpoint("https://api.example/v1"), request);
    serde_json::from_slice(&request.body).expect("a body is JSON")
}

fn apis() -> [Api; 3] {
    let dialects = [Dialect::Openai, Dialect::OpenaiResponses, Dialect::Anthropic];
    dialects.map(|dialect| Api::of(&dialect(remote())).expect("remote").0)
}

const CHAT: &str = concat!(
    ": keep-alive\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Zwölf €\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",",
    "\"arguments\":\"\"}}]}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}},",
    "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\r\n\r\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\r\n\r\n",
    "data: [DONE]\r\n\r\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"output\":[],",
    "\"usage\":null}}\n\n",
    "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":",
    "{\"type\":\"message\",\"id\":\"m\",\"status\":\"in_progress\",\"content\":[]}}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",",
    "\"output_index\":0,\"content_index\":0,\"delta\":\"Zwölf €\"}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":",
    "{\"type\":\"function_call\",\"id\":\"i\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"\"}}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",",
    "\"item_id\":\"i\",\"output_index\":1,\"delta\":\"{\\\"x\\\":\"}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",",
    "\"item_id\":\"i\",\"output_index\":1,\"delta\":\"1}\"}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":",
    "{\"type\":\"function_call\",\"id\":\"j\",\"call_id\":\"b\",\"name\":\"g\",\"arguments\":\"{}\",\"status\":\"completed\"}}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],",
    "\"usage\":{\"input_tokens\":10,\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":2}}}}\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":10,",
    "\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",",
    "\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",",
    "\"text\":\"Zwölf €\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",",
    "\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":",
    "\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":",
    "\"input_json_delta\",\"partial_json\":\"1}\"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",",
    "\"id\":\"b\",\"name\":\"g\",\"input\":{}}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":",
    "{\"output_tokens\":5}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn want() -> Reply {
    let call =
        |id: &str, name: &str, args: &str| Call { id: id.into(), name: name.into(), args: args.into() };
    Reply {
        text: Some("Zwölf €".into()),
        calls: vec![call("a", "f", "{\"x\":1}"), call("b", "g", "{}")],
        finish: Finish::ToolCalls,
        usage: ReplyUsage { input: Some(10), output: Some(5), cached: None },
    }
}

fn read<'a>(
    mut reader: Reader,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (usize, Result<Reply, ModelError>) {
    let seen = pieces.into_iter().map(|piece| reader.push(piece)).sum();
    (seen, reader.finish())
}

#[test]
fn every_split_of_a_stream_gives_the_same_reply() {
    for (api, stream, meaningful) in
        apis().iter().zip([(CHAT, 8), (RESPONSES, 8), (MESSAGES, 10)]).map(|(a, (s, m))| (a, s, m))
    {
        let bytes = stream.as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(
                read(api.reader(), [&bytes[..at], &bytes[at..]]),
                (meaningful, Ok(want())),
                "{api:?} {at}"
            );
        }
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(read(api.reader(), bytes.chunks(size)), (meaningful, Ok(want())), "{api:?} {size}");
        }
    }
}

#[test]
fn every_stream_that_is_cut_is_a_failed_call() {
    let ends = [(CHAT, "[DONE]"), (RESPONSES, "\"reasoning_tokens\":2}}}}"), (MESSAGES, "\"message_stop\"}")];
    for (api, (stream, end)) in apis().iter().zip(ends) {
        let whole = stream.rfind(end).expect("there") + end.len();
        // A chat whose reason to stop came may end without its last word, at the end of any later event.
        let stopped = stream.find("\"finish_reason\":\"tool_calls\"}]}").unwrap_or(whole);
        for at in 0..whole {
            match read(api.reader(), [&stream.as_bytes()[..at]]).1 {
                Err(error) => assert_eq!(error.kind, ModelErrorKind::Malformed, "{api:?} {at}"),
                Ok(reply) => {
                    assert!(at > stopped, "{api:?} {at}");
                    let usage =
                        if reply.usage.input.is_some() { want().usage } else { ReplyUsage::default() };
                    assert_eq!(reply, Reply { usage, ..want() }, "{api:?} {at}");
                }
            }
        }
        assert_eq!(read(api.reader(), [&stream.as_bytes()[..whole]]).1, Ok(want()), "{api:?}");
    }
}

#[test]
fn what_comes_after_the_end_changes_nothing() {
    for (api, stream) in apis().iter().zip([CHAT, RESPONSES, MESSAGES]) {
        let mut reader = api.reader();
        reader.push(stream.as_bytes());
        assert!(reader.is_done());
        assert_eq!(reader.push(b"data: {\"error\": \"late\"}\n\n"), 0);
        assert_eq!(reader.finish(), Ok(want()));
    }
}

#[test]
fn what_is_neither_stream_nor_reply_says_what_it_is() {
    for api in apis() {
        for (answer, word) in [
            ("", "empty"),
            (" \r\n ", "empty"),
            ("<html>Sign in</html>", "<html>Sign in</html>"),
            ("{\"ok\":true}", "is this the address of a"),
            ("{\"cut\":", "not valid JSON"),
            ("{}{}", "not valid JSON"),
            ("data: oops\n\n", "`oops`"),
            ("data: {\n\n", "not valid JSON"),
        ] {
            let error = read(api.reader(), [answer.as_bytes()]).1.expect_err(answer);
            assert_eq!(error.kind, ModelErrorKind::Malformed, "{answer}");
            assert!(error.message.contains(word), "{answer}: {error}");
        }
        let deep = format!("data: {}\n\n", "[".repeat(100_000));
        assert!(read(api.reader(), [deep.as_bytes()]).1.is_err());
    }
}

#[test]
fn a_reply_without_end_is_bounded() {
    let text = "x".repeat(1024 * 1024);
    for (api, event) in apis().iter().zip([
        json!({"choices": [{"delta": {"content": text}}]}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    ]) {
        let event = format!("data: {event}\n\n");
        let mut reader = api.reader();
        for _ in 0..7 {
            reader.push(event.as_bytes());
        }
        assert!(reader.is_done(), "nobody reads on");
        assert!(reader.finish().expect_err("too big").message.contains("6291456 bytes"));
    }
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n";
    let mut reader = openai::Reader::new();
    for _ in 0..=crate::limits::REPLY_CALLS {
        reader.push(call.as_bytes());
    }
    assert!(reader.finish().expect_err("too many").message.contains("1024 tool calls"));
}

/// Histories as the loop makes them, with any context before.
fn history() -> impl Strategy<Value = Vec<Message>> {
    let text = "[ a-zé\n]{0,6}";
    let context = prop_oneof![
        text.prop_map(Message::User),
        text.prop_map(|t| Message::Assistant { text: Some(t), calls: Vec::new() }),
    ];
    let call = ("[a-z:._-]{1,3}", any::<bool>(), "[ a-z]{0,4}");
    let round = (proptest::option::of(text), proptest::collection::vec(call, 1..4), any::<bool>());
    (proptest::collection::vec(context, 0..4), proptest::collection::vec(round, 0..4)).prop_map(
        |(context, rounds)| {
            let mut messages = context;
            messages.push(Message::User("Do it.".into()));
            let mut seen = std::collections::BTreeSet::new();
            for (text, calls, steered) in rounds {
                let calls: Vec<_> = calls.into_iter().filter(|(id, ..)| seen.insert(id.clone())).collect();
                if calls.is_empty() {
                    continue;
                }
                let past_calls = calls.iter().map(|(id, ..)| past(id, "t", "{\"n\":1}")).collect();
                messages.push(Message::Assistant { text, calls: past_calls });
                messages.push(Message::Results(calls.iter().map(|(id, e, t)| result(id, *e, t)).collect()));
                if steered {
                    messages.push(Message::User("And this.".into()));
                }
            }
            messages
        },
    )
}

/// Each call answered once, in order, right after it, before anything else.
fn chat_is_valid(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message["role"].as_str().expect("a role") {
            "tool" => {
                assert!(!open.is_empty(), "an answer to nothing: {message}");
                assert_eq!(message["tool_call_id"], open.remove(0));
                assert!(message["content"].is_string());
            }
            role => {
                assert!(open.is_empty(), "{open:?} are not answered before {message}");
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                assert!(calls.is_empty() || role == "assistant");
                assert!(message["content"].is_string() || !calls.is_empty(), "{message}");
                open = calls.iter().map(|call| call["id"].as_str().expect("an id")).collect();
                let args = calls.iter().map(|call| call["function"]["arguments"].as_str().expect("a text"));
                args.for_each(|args| {
                    drop(serde_json::from_str::<serde_json::Map<_, _>>(args).expect("an object"))
                });
            }
        }
    }
    assert!(open.is_empty());
}

/// Each call answered once, right after its message's calls, before anything else.
fn responses_are_valid(items: &[Value]) {
    assert!(!items.is_empty());
    let mut open: Vec<&str> = Vec::new();
    let mut answering = false;
    for item in items {
        match item["type"].as_str().expect("a type") {
            "function_call" => {
                assert!(!answering || open.is_empty(), "{item} before {open:?} are answered");
                answering = false;
                let args = item["arguments"].as_str().expect("a text");
                drop(serde_json::from_str::<serde_json::Map<_, _>>(args).expect("an object"));
                assert!(item.get("id").is_none(), "an id of what the provider does not keep");
                open.push(item["call_id"].as_str().expect("an id"));
            }
            "function_call_output" => {
                answering = true;
                assert_eq!(item["call_id"], open.remove(0));
                assert!(item["output"].is_string());
            }
            "message" => {
                assert!(open.is_empty(), "{open:?} are not answered before {item}");
                assert!(!item["content"].as_str().expect("a text").trim().is_empty());
                assert!(["user", "assistant"].contains(&item["role"].as_str().expect("a role")));
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
}

/// Turns alternate, none is empty, and results come first in the turn after their calls.
fn messages_are_valid(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], ["user", "assistant"][nth % 2]);
        let blocks = message["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty());
        for id in std::mem::take(&mut open).iter().zip(blocks) {
            assert_eq!(id.1["tool_use_id"], *id.0);
        }
        for block in blocks {
            match block["type"].as_str().expect("a type") {
                "text" => assert!(!block["text"].as_str().expect("text").trim().is_empty()),
                "tool_use" => {
                    let id = block["id"].as_str().expect("an id");
                    assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{id}");
                    assert!(!open.contains(&id), "{id} twice");
                    assert!(block["input"].is_object());
                    open.push(id);
                }
                "tool_result" => assert_ne!(block.get("content"), Some(&json!(""))),
                other => panic!("{other}"),
            }
        }
    }
    assert!(open.is_empty());
}

proptest! {
    #[test]
    fn every_history_makes_a_valid_request(messages in history()) {
        let request = asking(messages);
        let [chat, responses, anthropic] = apis().map(|api| body(&api, &request));
        responses_are_valid(responses["input"].as_array().expect("a list"));
        chat_is_valid(chat["messages"].as_array().expect("a list"));
        messages_are_valid(anthropic["messages"].as_array().expect("a list"));
    }

    #[test]
    fn no_bytes_panic_and_no_split_changes_what_is_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        events in "([\r\n ]{0,2}data: (\\{\"(choices|type|error|delta|item|response)\":[\\[\\{\"a-z:1\\}\\],]{0,20}\\}|\\[DONE\\])[\r\n]{0,2}){0,4}",
    ) {
        model_stream(&bytes);
        model_stream(&[&bytes[..bytes.len().min(1)], events.as_bytes()].concat());
    }
}

/// S6.9 on the wire: a history with calls keeps their declarations, and no tool may be called.
#[test]
fn a_last_call_declares_what_its_history_calls_and_allows_none() {
    let tool =
        ToolDecl { name: "files_list".into(), description: String::new(), schema: Json::of(&json!({})) };
    let calls = vec![PastCall { id: "1".into(), name: "files_list".into(), args: Json::of(&json!({})) }];
    let result = CallResult { id: "1".into(), name: "files_list".into(), error: false, text: "a".into() };
    let history = vec![
        Message::User("look".into()),
        Message::Assistant { text: None, calls },
        Message::Results(vec![result]),
        Message::User("answer now".into()),
    ];
    let mut last = asking(history);
    last.declared = Arc::from([tool]);
    let fresh = ModelRequest { messages: last.messages[..1].to_vec(), ..last.clone() };
    for (api, none) in apis().into_iter().zip([json!("none"), json!("none"), json!({"type": "none"})]) {
        let body = |request: &ModelRequest| -> Value {
            serde_json::from_slice(&api.request(&remote(), &endpoint("https://api.example/v1"), request).body)
                .expect("JSON")
        };
        assert_eq!(
            (&body(&last)["tool_choice"], body(&last)["tools"].as_array().map(Vec::len)),
            (&none, Some(1))
        );
        assert_eq!((&body(&fresh)["tool_choice"], body(&fresh).get("tools")), (&Value::Null, None));
    }
}

#[test]
fn no_dialect_asks_for_more_than_was_set_aside() {
    for (configured, asked, sent) in [
        (None, None, None),
        (Some(900), None, Some(900)),
        (None, Some(600), Some(600)),
        (Some(900), Some(600), Some(600)),
        (Some(500), Some(600), Some(500)),
    ] {
        let remote = Remote { max_output: configured, ..remote() };
        let request = ModelRequest { max_output: asked, ..asking(vec![Message::User("go".into())]) };
        assert_eq!(request.most_output(&remote), sent);
        let of = |dialect: Dialect, keys: &[&str]| {
            let (api, _) = Api::of(&dialect).expect("a provider's dialect");
            let body = api.request(&remote, &endpoint("https://a.example"), &request).body;
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            keys.iter().find_map(|key| body.get(*key)?.as_u64())
        };
        assert_eq!(of(Dialect::Openai(remote.clone()), &["max_tokens", "max_completion_tokens"]), sent);
        assert_eq!(of(Dialect::OpenaiResponses(remote.clone()), &["max_output_tokens"]), sent);
        let always = sent.or(Some(crate::limits::MODEL_OUTPUT));
        assert_eq!(of(Dialect::Anthropic(remote.clone()), &["max_tokens"]), always);
    }
}

//! Trees of runs with every kind of ending, read into spans, and what collectors make of them.

use super::*;
use crate::http::dial::Trust;
use agentd_core::id::RunId;
use agentd_core::time::Wall;
use agentd_core::transcript::{
    AgentEvent, Entry, Item, ItemCall, ItemResult, Meta, SessionMeta, line, place, span,
};
use agentd_core::wire::message::{
    FailKind, Failed, LoopEnd, LoopEvidence, Mode, Role, RunResult, TurnOutcome,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

const AT: u64 = 1_796_066_309_000;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn id(n: u32) -> RunId {
    format!("01939f3e-9a31-7c4b-8f00-00000000000{n}").parse().expect("an id")
}

fn head(n: u32, depth: u32, span: &str, parent: Option<String>) -> Entry {
    let meta = Meta {
        agent_id: id(n),
        agent_type: "general-purpose".into(),
        description: "x".into(),
        tool_call_id: None,
        parent_session_id: None,
        root_session_id: id(1),
        spawn_depth: depth,
        timestamp: Wall(AT).to_string(),
    };
    Entry::SessionMeta(Box::new(SessionMeta {
        run_id: id(n),
        meta,
        version: 1,
        agentd: "0.1.0".into(),
        handle: (n > 1).then(|| format!("sub-{n}").parse().expect("a handle")),
        attempt: 1,
        role: Role::Subagent,
        mode: Mode::Sync,
        model: "big".into(),
        trace_id: TRACE.into(),
        span_id: span.into(),
        parent_span_id: parent,
        resumed: false,
    }))
}

fn turn() -> Entry {
    Entry::ResponseItem(Item::Turn { turn: 1, text: "SECRET-ASKED".into() })
}

fn calls(ids: &[&str]) -> Entry {
    let call = |id: &&str| ItemCall {
        id: (*id).into(),
        name: "subagent_run".into(),
        args: json!({"instruction": "SECRET-ARGS"}),
    };
    Entry::ResponseItem(Item::Assistant { text: None, calls: ids.iter().map(call).collect(), partial: false })
}

fn result(id: &str, error: bool) -> Entry {
    let name = "subagent_run".to_owned();
    Entry::ResponseItem(Item::ToolResult(ItemResult {
        id: id.into(),
        name,
        error,
        text: "SECRET-RESULT".into(),
    }))
}

fn event(name: &str, fields: serde_json::Value) -> Entry {
    let fields = fields.as_object().cloned().unwrap_or_default();
    Entry::AgentEvent(AgentEvent { event: name.into(), fields })
}

fn ended(outcome: TurnOutcome) -> Entry {
    Entry::ResponseItem(Item::Ended { turn: 1, outcome, stopped: false })
}

fn with(end: LoopEnd) -> Entry {
    let evidence = LoopEvidence::default();
    ended(TurnOutcome::Result(RunResult {
        end,
        text: None,
        partial: false,
        error: Some("why".into()),
        evidence,
    }))
}

fn failed() -> Entry {
    let (kind, evidence) = (FailKind::Model, LoopEvidence::default());
    ended(TurnOutcome::Failed(Failed { kind, error: "model big: HTTP 500".into(), text: None, evidence }))
}

fn write_file(path: &Path, entries: &[Entry]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
    let lines: Vec<u8> =
        (0..).zip(entries).flat_map(|(n, entry)| line(Wall(AT + 1_000 * n), entry)).collect();
    fs::write(path, lines).expect("writes");
}

/// A conversation that delegated to three, one of which delegated once more: completed, failed, cancelled, and one that
/// never said how it ended.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(place::session(Wall(AT), id(1)));
    let spans =
        ["00f067aa0ba90001", "00f067aa0ba90002", "00f067aa0ba90003", "00f067aa0ba90004", "00f067aa0ba90005"];
    let below = |parent: usize, call: &str| Some(span::of_call(spans[parent], call));
    write_file(
        &root,
        &[
            head(1, 0, spans[0], None),
            turn(),
            event(
                "usage",
                json!({"input": 100, "output": 20, "cached": 5, "estimated": false, "model": "big"}),
            ),
            event(
                "model.call",
                json!({"step": "1", "ms": "400", "finish": "tool_calls", "input": "100", "output": "20"}),
            ),
            calls(&["a", "b", "c"]),
            result("a", false),
            event(
                "tool.call",
                json!({"name": "subagent.run", "call_id": "a", "ms": "100", "error": "false"}),
            ),
            result("b", true),
            with(LoopEnd::Completed),
        ],
    );
    let child = |n: u32| PathBuf::from(place::child(&root.to_string_lossy(), id(n)));
    write_file(
        &child(2),
        &[head(2, 1, spans[1], below(0, "a")), turn(), calls(&["z"]), result("z", false), failed()],
    );
    write_file(&child(3), &[head(3, 1, spans[2], below(0, "b")), turn(), with(LoopEnd::Cancelled)]);
    write_file(&child(4), &[head(4, 1, spans[3], below(0, "c")), turn()]);
    let grandchild = PathBuf::from(place::child(&child(2).to_string_lossy(), id(5)));
    write_file(&grandchild, &[head(5, 2, spans[4], below(1, "z")), turn(), with(LoopEnd::Deadline)]);
    (folder, root)
}

fn spans(exported: &Exported) -> Vec<Span> {
    let scopes = exported.requests.iter().flat_map(|r| &r.resource_spans).flat_map(|r| &r.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

fn told(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    Some(match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        other => format!("{other:?}"),
    })
}

#[test]
fn a_tree_of_runs_is_one_connected_trace() {
    let (_folder, root) = folder();
    let exported = export(vec![root], false);
    assert_eq!((exported.runs, exported.damaged, exported.problems.len()), (5, 0, 0));
    let spans = spans(&exported);
    // Five runs, one model call, and the calls a, b, c and z.
    assert_eq!((spans.len(), exported.spans), (10, 10));
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    assert_eq!(ids.len(), spans.len(), "no id twice");
    for span in &spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.start_time_unix_nano > 0);
        let parent = span.parent_span_id.as_slice();
        assert!(
            parent.is_empty()
                == (span.name == "invoke_agent general-purpose"
                    && told(span, "agentd.depth").as_deref() == Some("0"))
        );
        assert!(parent.is_empty() || ids.contains(parent), "{} has a parent that is not there", span.name);
    }
}

#[test]
fn endings_are_told_apart() {
    let (_folder, root) = folder();
    let spans = spans(&export(vec![root], false));
    let ends: BTreeMap<String, (String, Option<i32>)> = spans
        .iter()
        .filter(|span| span.name.starts_with("invoke_agent"))
        .map(|span| {
            let status = told(span, "agentd.status").expect("a status");
            (told(span, "gen_ai.agent.id").expect("an id"), (status, span.status.as_ref().map(|s| s.code)))
        })
        .collect();
    let (ok, error) = (Some(1), Some(2));
    for (n, status, code) in [
        (1, "completed", ok),
        (2, "failed", error),
        (3, "cancelled", None),
        (4, "unterminated", None),
        (5, "deadline", error),
    ] {
        assert_eq!(ends[&id(n).to_string()], (status.to_owned(), code));
    }
    let tools: BTreeMap<String, &Span> =
        spans.iter().filter_map(|span| Some((told(span, "gen_ai.tool.call.id")?, span))).collect();
    assert_eq!(tools["a"].name, "execute_tool subagent.run", "the registry's name");
    assert_eq!((tools["a"].status.as_ref(), tools["b"].status.as_ref().map(|s| s.code)), (None, error));
    assert_eq!(told(tools["c"], "agentd.status").as_deref(), Some("unterminated"));
    let chat = spans.iter().find(|span| span.name == "chat big").expect("a model call");
    assert_eq!(chat.end_time_unix_nano - chat.start_time_unix_nano, 400_000_000);
    assert_eq!(told(chat, "gen_ai.usage.input_tokens").as_deref(), Some("100"));
}

#[test]
fn the_same_files_give_the_same_bytes_and_no_content_unless_asked() {
    let (_folder, root) = folder();
    for form in [Form::Protobuf, Form::Json] {
        let bytes = |content| {
            let mut bytes = Vec::new();
            write(&export(vec![root.clone()], content).requests, form, &mut bytes).expect("writes");
            bytes
        };
        assert_eq!(bytes(false), bytes(false));
        let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
        for secret in ["SECRET-ASKED", "SECRET-ARGS", "SECRET-RESULT"] {
            assert!(!holds(&bytes(false), secret), "{secret} in {form:?}");
            assert!(holds(&bytes(true), secret), "{secret} not in {form:?}");
        }
    }
}

#[test]
fn json_has_hex_ids_and_long_numbers_as_text() {
    let (_folder, root) = folder();
    let mut bytes = Vec::new();
    write(&export(vec![root], false).requests, Form::Json, &mut bytes).expect("writes");
    let line: serde_json::Value = serde_json::from_slice(&bytes).expect("one line of JSON");
    let span = &line["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], TRACE);
    assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
    assert!(span["startTimeUnixNano"].as_str().is_some_and(|nanos| nanos.parse::<u64>().is_ok()), "{span}");
    assert!(span["kind"].is_u64());
}

#[test]
fn what_is_damaged_is_counted_and_the_rest_goes_along() {
    let (_folder, root) = folder();
    let child = PathBuf::from(place::child(&root.to_string_lossy(), id(3)));
    let mut text = fs::read(&child).expect("reads");
    text.truncate(text.len() - 9);
    fs::write(&child, text).expect("writes");
    fs::write(place::child(&root.to_string_lossy(), id(4)), b"").expect("writes");
    let exported = export(vec![root], false);
    assert_eq!((exported.runs, exported.damaged), (5, 1));
    assert_eq!(exported.spans, 9);
}

/// Heads and bodies of requests.
type Seen = Vec<(String, Vec<u8>)>;

/// A collector that answers each request in turn.
fn collector(answers: Vec<Vec<u8>>) -> (String, std::thread::JoinHandle<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serves = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().expect("a request");
            let mut reader = BufReader::new(stream.try_clone().expect("clones"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("reads");
                if line == "\r\n" {
                    break;
                }
                if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().expect("a length");
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            (&stream).write_all(&answer).expect("answers");
            seen.push((head, body));
        }
        seen
    });
    (url, serves)
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_collector_gets_what_the_file_would_hold_once_it_can_take_it() {
    let (_folder, root) = folder();
    let exported = export(vec![root], false);
    let (url, serves) = collector(vec![answer("503 Service Unavailable", b""), answer("200 OK", b"")]);
    let headers = BTreeMap::from([("x-team".to_owned(), "tools".to_owned())]);
    post(&exported.requests, Form::Protobuf, &url, &headers, &Trust::default()).expect("taken");
    let seen = serves.join().expect("served");
    assert_eq!(seen[0], seen[1]);
    assert!(seen[1].0.starts_with("POST /v1/traces HTTP/1.1\r\n") && seen[1].0.contains("x-team: tools"));
    assert!(seen[1].0.contains("content-type: application/x-protobuf"));
    let taken = ExportTraceServiceRequest::decode(seen[1].1.as_slice()).expect("decodes");
    assert_eq!(taken, exported.requests[0]);
}

#[test]
fn what_a_collector_does_not_take_is_told() {
    let (_folder, root) = folder();
    let requests = export(vec![root], false).requests;
    let say = |answer: Vec<u8>, form| {
        let (url, serves) = collector(vec![answer]);
        let said = post(&requests, form, &url, &BTreeMap::new(), &Trust::default()).unwrap_err().to_string();
        serves.join().expect("served");
        said
    };
    let said = say(answer("404 Not Found", b""), Form::Protobuf);
    assert!(said.contains("404 Not Found; is it the address of an OTLP collector over HTTP?"), "{said}");
    let said = say(answer("400 Bad Request", b"{\"message\":\"no\"}"), Form::Json);
    assert!(said.contains("400 Bad Request {\"message\":\"no\"}"), "{said}");
    let part = b"{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}";
    let said = say(answer("200 OK", part), Form::Json);
    assert!(said.contains("3 spans were rejected (too old)"), "{said}");
    let said = post(&requests, Form::Json, "http://collector.example", &BTreeMap::new(), &Trust::default());
    assert!(said.unwrap_err().to_string().contains("neither https nor on this machine"));
}

//! The client against scripted bytes; properties are in `properties`.
use super::super::{ToolInfo, Value};
use super::*;
use crate::bytes::Json;
use crate::mcp::handshake;
use serde_json::json;

mod eras;
mod properties;
mod streamable;

const MINUTE: Duration = Duration::from_secs(60);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn drain(client: &mut Client) -> Vec<Output> {
    std::iter::from_fn(|| client.pop()).collect()
}

/// Sent lines as JSON.
fn sent(outputs: &[Output]) -> Vec<serde_json::Value> {
    let mut lines = Vec::new();
    for output in outputs {
        if let Output::Send(bytes) = output {
            assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "one line each");
            lines.push(serde_json::from_slice(bytes).unwrap());
        }
    }
    lines
}

fn events(outputs: &[Output]) -> Vec<&'static str> {
    let mut events = Vec::new();
    for output in outputs {
        if let Output::Log { event, .. } = output {
            events.push(*event);
        }
    }
    events
}

fn answers(outputs: &[Output]) -> Vec<(u64, bool, String)> {
    let mut answers = Vec::new();
    for output in outputs {
        if let Output::CallDone { key, outcome: Outcome { error, value, .. } } = output {
            let text = match value {
                Value::Text(text) => text.clone(),
                Value::Json(json) => String::from_utf8(json.0.to_vec()).unwrap(),
            };
            answers.push((*key, *error, text));
        }
    }
    answers
}

fn fresh() -> Client {
    let info = ClientInfo { name: "agentd".into(), version: "1.2.3".into() };
    let mut client = Client::lines(info, at(0), MINUTE).only(Era::Initialize);
    client.start();
    client
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"9"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","description":"d","inputSchema":{"type":"object"}}]}}"#;

fn feed(client: &mut Client, ms: u64, line: &str) {
    client.received(at(ms), line.as_bytes());
    client.received(at(ms), b"\n");
}

fn ready_speaking(version: &str) -> Client {
    let mut client = fresh();
    feed(&mut client, 1, &HELLO.replace("2025-11-25", version));
    feed(&mut client, 1, LIST);
    assert!(drain(&mut client).iter().any(|o| matches!(o, Output::Ready { .. })));
    client
}

fn ready() -> Client {
    ready_speaking("2025-11-25")
}

fn call(client: &mut Client, ms: u64, key: u64) {
    client.call(at(ms), key, "echo", &Json::of(&json!({"text": "x"})), Duration::from_secs(5));
}

fn result(id: u64, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

#[test]
fn handshake_in_its_order() {
    let mut client = fresh();
    client.start();
    let first = sent(&drain(&mut client));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "agentd", "version": "1.2.3"}}});
    assert_eq!(first, [hello]);
    assert_eq!(client.poll_timeout(), Some(at(60_000)));
    feed(&mut client, 1, HELLO);
    assert_eq!(
        sent(&drain(&mut client)),
        [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
        ]
    );
    feed(&mut client, 2, LIST);
    let tool = ToolInfo {
        name: "echo".into(),
        description: "d".into(),
        schema: Json::of(&json!({"type": "object"})),
    };
    let ready = Output::Ready {
        server_name: "s".into(),
        version: "9".into(),
        protocol: "2025-11-25".into(),
        era: Era::Initialize,
        capabilities: Json::of(&json!({"tools": {}})),
        tools: vec![tool],
        resources: vec![],
    };
    assert_eq!(drain(&mut client), [ready]);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn every_listed_version_is_accepted_and_others_are_refused_naming_both() {
    for version in handshake::VERSIONS {
        ready_speaking(version);
    }
    for version in ["2026-07-28", "2024-11-05x", "", "1"] {
        let mut client = fresh();
        drain(&mut client);
        feed(&mut client, 1, &HELLO.replace("2025-11-25", version));
        let out = drain(&mut client);
        let [Output::Failed { error }, Output::Close { why }] = &out[..] else { panic!("{out:?}") };
        assert_eq!(error, why);
        assert!(
            error.contains(&format!("{version:?}"))
                && error.contains("2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25")
        );
    }
}

#[test]
fn a_hello_that_cannot_be_used_fails_the_server_at_once() {
    for (body, says) in [
        (r#""result":{}"#, "protocolVersion"),
        (r#""result":[]"#, "object"),
        (r#""result":"hi""#, "initialize"),
        (r#""error":{"code":-32601,"message":"no such method"}"#, "error -32601: no such method"),
        (r#""x":1"#, "neither a result nor an error"),
    ] {
        let mut client = fresh();
        feed(&mut client, 1, &format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#));
        let out = drain(&mut client);
        assert!(out.iter().any(|o| matches!(o, Output::Failed { error } if error.contains(says))), "{out:?}");
        assert!(matches!(out.last(), Some(Output::Close { .. })));
        assert_eq!(client.poll_timeout(), None);
    }
}

#[test]
fn sparse_hellos_are_enough() {
    let mut client = fresh();
    feed(
        &mut client,
        1,
        r#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":"2024-11-05","capabilities":null,"serverInfo":7}}"#,
    );
    let out = drain(&mut client);
    assert!(
        matches!(out.last(), Some(Output::Ready { server_name, tools, .. }) if server_name == "unnamed" && tools.is_empty())
    );
    assert_eq!(events(&out), ["mcp.tools.none"]);
    assert!(sent(&out).iter().all(|m| m["method"] != "tools/list"), "no list without the capability");
}

#[test]
fn a_slow_start_ends_at_its_limit_naming_what_is_missing() {
    let mut client = fresh();
    client.tick(at(59_999));
    assert!(!drain(&mut client).iter().any(|o| matches!(o, Output::Failed { .. })));
    feed(&mut client, 59_999, HELLO);
    client.tick(at(60_000));
    let out = drain(&mut client);
    assert!(
        out.iter()
            .any(|o| matches!(o, Output::Failed { error } if error.contains("`tools/list` within 60s"))),
        "{out:?}"
    );
    assert!(out.iter().all(|o| !matches!(o, Output::Send(b) if b.windows(9).any(|w| w == b"cancelled"))));
    feed(&mut client, 60_001, LIST);
    assert_eq!(drain(&mut client), []);

    let mut silent = fresh();
    silent.tick(at(60_000));
    assert!(
        drain(&mut silent)
            .iter()
            .any(|o| matches!(o, Output::Failed { error } if error.contains("`initialize`")))
    );
}

#[test]
fn the_list_is_read_over_its_pages() {
    let mut client = fresh();
    feed(&mut client, 1, HELLO);
    drain(&mut client);
    feed(
        &mut client,
        1,
        r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"p2"}}"#,
    );
    let out = drain(&mut client);
    assert_eq!(
        sent(&out),
        [json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "p2"}})]
    );
    feed(
        &mut client,
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"b","inputSchema":{"type":"object"}}]}}"#,
    );
    let out = drain(&mut client);
    assert!(matches!(&out[..], [Output::Ready { tools, .. }] if tools.len() == 2), "{out:?}");
}

#[test]
fn calls_are_answered_in_any_order_and_once() {
    let mut client = ready();
    call(&mut client, 10, 71);
    call(&mut client, 10, 72);
    let requests = sent(&drain(&mut client));
    assert_eq!(
        requests[0],
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": 3}}})
    );
    feed(&mut client, 11, &result(4, "second"));
    feed(&mut client, 11, &result(3, "first"));
    feed(&mut client, 11, &result(3, "again"));
    feed(&mut client, 11, &result(99, "never asked"));
    feed(&mut client, 11, &result(1, "hello again"));
    let out = drain(&mut client);
    assert_eq!(answers(&out), [(72, false, "second".into()), (71, false, "first".into())]);
    assert_eq!(events(&out), ["mcp.stray"], "told once");
    client.closed("exit status 0");
    let out = drain(&mut client);
    assert!(
        matches!(&out[..], [Output::Log { event: "mcp.stray", text, .. }] if text.starts_with("3 ")),
        "{out:?}"
    );
}

#[test]
fn a_late_answer_never_reaches_another_call() {
    let mut client = ready();
    call(&mut client, 0, 1);
    assert_eq!(client.poll_timeout(), Some(at(5_000)));
    client.tick(at(4_999));
    client.tick(at(5_000));
    let out = drain(&mut client);
    assert_eq!(
        sent(&out)[1],
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "timed out"}})
    );
    let [(1, true, said)] = &answers(&out)[..] else { panic!("{out:?}") };
    assert!(said.contains("`echo` within 5s"), "{said}");
    call(&mut client, 5_001, 2);
    feed(&mut client, 5_002, &result(3, "late"));
    let out = drain(&mut client);
    assert_eq!(answers(&out), []);
    feed(&mut client, 5_003, &result(4, "on time"));
    assert_eq!(answers(&drain(&mut client)), [(2, false, "on time".into())]);
}

#[test]
fn cancel_tells_the_server_and_answers_at_once() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    client.cancel(2, "nobody has this key");
    assert_eq!(drain(&mut client), []);
    client.cancel(1, "killed by the operator");
    client.cancel(1, "again");
    let out = drain(&mut client);
    assert_eq!(sent(&out)[0]["params"], json!({"requestId": 3, "reason": "killed by the operator"}));
    let [(1, true, said)] = &answers(&out)[..] else { panic!("{out:?}") };
    assert!(said.contains("killed by the operator"));
    feed(&mut client, 1, &result(3, "late"));
    assert_eq!(answers(&drain(&mut client)), []);
}

#[test]
fn the_end_of_a_server_answers_everyone() {
    let mut client = ready();
    call(&mut client, 0, 1);
    call(&mut client, 0, 2);
    client.received(at(1), result(3, "cut off before the newline").as_bytes());
    client.closed("`srv` exited with status 3: last words");
    client.closed("twice");
    let out = drain(&mut client);
    let got = answers(&out);
    assert_eq!(got[0], (1, false, "cut off before the newline".into()));
    assert!(got[1].0 == 2 && got[1].1 && got[1].2.contains("exited with status 3: last words"), "{got:?}");
    assert_eq!(got.len(), 2);
    call(&mut client, 2, 3);
    let [(3, true, said)] = &answers(&drain(&mut client))[..] else { panic!() };
    assert!(said.contains("the server is gone: `srv` exited with status 3"), "{said}");
    assert_eq!(client.poll_timeout(), None);

    for lines in [&[][..], &[HELLO][..]] {
        let mut starting = fresh();
        for line in lines {
            feed(&mut starting, 1, line);
        }
        drain(&mut starting);
        starting.closed("exit status 1");
        assert_eq!(drain(&mut starting), [Output::Failed { error: "exit status 1".into() }]);
    }
}

#[test]
fn calls_that_cannot_be_made_are_answered_at_once() {
    let mut early = fresh();
    drain(&mut early);
    call(&mut early, 0, 1);
    assert!(matches!(&answers(&drain(&mut early))[..], [(1, true, said)] if said.contains("not started")));

    let mut client = ready();
    for (key, args) in ["{", "[]", "\"x\"", "null", "", "{} {}"].into_iter().enumerate() {
        let args = Json(crate::bytes::Bytes::from(args.as_bytes()));
        client.call(at(0), key as u64, "echo", &args, MINUTE);
        let out = drain(&mut client);
        assert_eq!(sent(&out), [] as [serde_json::Value; 0]);
        assert!(
            matches!(&answers(&out)[..], [(_, true, said)] if said.contains("nothing was called")),
            "{out:?}"
        );
    }
    for key in 0..limits::MCP_OPEN_CALLS as u64 {
        call(&mut client, 0, key);
    }
    drain(&mut client);
    call(&mut client, 0, 9_999);
    assert!(
        matches!(&answers(&drain(&mut client))[..], [(9_999, true, said)] if said.contains("256 calls are open"))
    );
    call(&mut client, 0, 5);
    assert_eq!(events(&drain(&mut client)), ["mcp.call.duplicate"]);
}

#[test]
fn arguments_with_line_breaks_stay_on_one_line() {
    let mut client = ready();
    let args = Json(crate::bytes::Bytes::from(&b"{\n \"text\":\r\n \"a\\nb\"\n}"[..]));
    client.call(at(0), 1, "a\nb", &args, MINUTE);
    let requests = sent(&drain(&mut client));
    assert_eq!(requests[0]["params"]["arguments"], json!({"text": "a\nb"}));
    assert_eq!(requests[0]["params"]["name"], "a\nb");
}

#[test]
fn junk_is_skipped_told_once_and_counted() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    let junk: [&[u8]; 9] = [
        b"Server running",
        b"",
        b"\r",
        b"\x1b[31mred\x1b[0m",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]",
        b"{",
    ];
    for line in junk {
        client.received(at(1), line);
        client.received(at(1), b"\n");
    }
    let out = drain(&mut client);
    assert!(
        matches!(&out[..], [Output::Log { event: "mcp.junk", text, .. }] if text.contains("Server running")),
        "{out:?}"
    );
    feed(&mut client, 2, &result(3, "fine"));
    assert_eq!(answers(&drain(&mut client)), [(1, false, "fine".into())]);
    client.closed("over");
    assert!(matches!(&drain(&mut client)[..], [Output::Log { text, .. }] if text.starts_with("9 ")));
}

#[test]
fn a_bad_byte_inside_an_answer_costs_that_character_only() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    client.received(at(1), b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\"}]}}\r\n");
    assert_eq!(answers(&drain(&mut client)), [(1, false, "a\u{fffd}b".into())]);
}

#[test]
fn batches_are_read_only_in_the_version_that_has_them() {
    let batch = format!("[{},7,{}]", result(3, "a"), r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    let mut client = ready_speaking("2025-03-26");
    call(&mut client, 0, 1);
    drain(&mut client);
    feed(&mut client, 1, &batch);
    let out = drain(&mut client);
    assert_eq!(answers(&out), [(1, false, "a".into())]);
    assert_eq!(sent(&out), [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);
    assert_eq!(events(&out), ["mcp.junk"]);
    feed(&mut client, 1, "[");
    let flood = format!("[{}0]", "0,".repeat(100_000));
    feed(&mut client, 1, &flood);
    assert_eq!(drain(&mut client), []);

    let mut strict = ready();
    call(&mut strict, 0, 1);
    drain(&mut strict);
    feed(&mut strict, 1, &batch);
    assert_eq!(events(&drain(&mut strict)), ["mcp.junk"]);
}

#[test]
fn requests_of_the_server_are_answered_within_a_rate() {
    let mut client = ready();
    feed(&mut client, 0, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    assert_eq!(sent(&drain(&mut client)), [json!({"jsonrpc": "2.0", "id": 7, "result": {}})]);
    for method in ["roots/list", "sampling/createMessage", "x"] {
        feed(&mut client, 0, &format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{{}}}}"#));
        let got = sent(&drain(&mut client));
        assert_eq!((got[0]["id"].as_str(), got[0]["error"]["code"].as_i64()), (Some("q"), Some(-32601)));
        assert!(got[0]["error"]["message"].as_str().unwrap().contains(method));
    }
    for _ in 0..10_000 {
        feed(&mut client, 5_000, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    }
    let out = drain(&mut client);
    assert_eq!(sent(&out).len(), limits::MCP_REPLIES_PER_SECOND as usize);
    assert_eq!(events(&out), ["mcp.request.dropped"]);
    feed(&mut client, 6_000, r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
    assert_eq!(sent(&drain(&mut client)).len(), 1);
    feed(&mut client, 6_000, &format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "i".repeat(300)));
    assert_eq!(sent(&drain(&mut client)).len(), 0);
}

#[test]
fn a_flood_of_notifications_leaves_a_handful_of_outputs() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    let mut flood = String::new();
    for i in 0..100_000 {
        flood.push_str(match i % 4 {
            0 => r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
            1 => r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
            2 => r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            _ => r#"{"jsonrpc":"2.0","method":"notifications/who/knows","params":[]}"#,
        });
        flood.push('\n');
    }
    client.received(at(10), flood.as_bytes());
    feed(&mut client, 10, &result(3, "alive"));
    let out = drain(&mut client);
    assert!(out.len() < 30, "{}", out.len());
    assert_eq!(out.iter().filter(|o| **o == Output::Progress { key: 1 }).count(), 1);
    assert_eq!(answers(&out), [(1, false, "alive".into())]);
}

#[test]
fn progress_is_passed_on_for_open_calls_only() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5}}}}"#
        )
    };
    feed(&mut client, 10, &progress("3"));
    feed(&mut client, 500, &progress("3"));
    feed(&mut client, 1_010, &progress("\"3\""));
    assert_eq!(drain(&mut client), vec![Output::Progress { key: 1 }; 2]);
    for token in ["4", "\"x\"", "null", "{}"] {
        feed(&mut client, 9_000, &progress(token));
    }
    assert_eq!(events(&drain(&mut client)), ["mcp.notification.ignored"]);
    client.tick(at(6_009));
    assert_eq!(answers(&drain(&mut client)), [], "the limit counts from the last sign of life");
    client.tick(at(6_010));
    let out = drain(&mut client);
    let [(1, true, said)] = &answers(&out)[..] else { panic!("{out:?}") };
    assert!(said.contains("`echo` within 5s of its last sign of progress"), "{said}");

    call(&mut client, 10_000, 2);
    for second in 1..100 {
        feed(&mut client, 10_000 + second * 1_000, &progress("4"));
    }
    assert_eq!(client.poll_timeout(), Some(at(60_000)), "progress does not put it off for ever");
    client.tick(at(60_000));
    let out = drain(&mut client);
    let [(2, true, said)] = &answers(&out)[..] else { panic!("{out:?}") };
    assert!(
        said.contains("went on reporting progress on `echo`") && said.contains("ended after 50s"),
        "{said}"
    );
    assert!(!said.contains("within"), "{said}");
}

#[test]
fn a_line_over_the_limit_closes_the_server_and_keeps_what_came_before() {
    let limit = limits::MCP_LINE_BYTES;
    let padded = |len: usize| {
        let frame = result(4, "");
        result(4, &"x".repeat(len - frame.len()))
    };
    for (len, closes) in
        [(132 * 1024, false), (5 << 20, false), (limit - 1, false), (limit, false), (limit + 1, true)]
    {
        let bytes = format!("{}\n{}\n{}\n", result(3, "before"), padded(len), result(5, "after"));
        for chunk in [bytes.len(), 1024] {
            let mut client = ready();
            for key in 1..=3 {
                call(&mut client, 0, key);
            }
            drain(&mut client);
            for piece in bytes.as_bytes().chunks(chunk) {
                client.received(at(1), piece);
            }
            let out = drain(&mut client);
            let got = answers(&out);
            assert_eq!(got[0], (1, false, "before".into()));
            assert_eq!(
                got.iter().map(|a| (a.0, a.1)).collect::<Vec<_>>(),
                [(1, false), (2, closes), (3, closes)],
                "{len}"
            );
            assert_eq!(out.iter().any(|o| matches!(o, Output::Close { .. })), closes);
        }
    }
}

#[test]
fn a_line_that_never_ends_is_given_up_at_the_limit() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    let mut fed = 0;
    while !client.is_closed() {
        client.received(at(1), &[b'x'; 1024]);
        fed += 1024;
    }
    assert_eq!(fed, limits::MCP_LINE_BYTES + 1024);
    client.received(at(2), b"\n{}\n");
    let out = drain(&mut client);
    assert!(matches!(&answers(&out)[..], [(1, true, said)] if said.contains("8388608 bytes")), "{out:?}");
    assert_eq!(out.iter().filter(|o| matches!(o, Output::Close { .. })).count(), 1);
}

#[test]
fn errors_reach_the_model_with_code_and_words() {
    let mut client = ready();
    call(&mut client, 0, 1);
    drain(&mut client);
    feed(
        &mut client,
        1,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Unknown tool: echo"}}"#,
    );
    assert_eq!(
        answers(&drain(&mut client)),
        [(1, true, "the server answered `echo` with error -32602: Unknown tool: echo".into())]
    );
}

//! Streamable HTTP of both eras, exchange by exchange.

// A test picks the outputs it looks at.
#![allow(clippy::wildcard_enum_match_arm)]

use super::*;
use crate::mcp::fuzzing::mcp_http;
use crate::mcp::http::{Broken, Exchange, Method};
use proptest::prelude::*;

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";

struct Net {
    client: Client,
    open: Vec<Exchange>,
    shut: Vec<u64>,
    out: Vec<Output>,
}

impl Net {
    fn new() -> Net {
        let info = ClientInfo { name: "agentd".into(), version: "1.2.3".into() };
        let mut client = Client::http(info, at(0), MINUTE);
        client.start();
        let mut net = Net { client, open: Vec::new(), shut: Vec::new(), out: Vec::new() };
        net.turn();
        net
    }

    fn turn(&mut self) {
        for output in drain(&mut self.client) {
            match output {
                Output::Open(exchange) => self.open.push(exchange),
                Output::Shut { exchange } => {
                    self.open.retain(|open| open.number != exchange);
                    self.shut.push(exchange);
                }
                other => self.out.push(other),
            }
        }
    }

    /// The open exchange with this method of the protocol, or of HTTP.
    fn find(&self, method: &str) -> Exchange {
        let found = self.open.iter().find(|open| message(open)["method"] == method || verb(open) == method);
        found.unwrap_or_else(|| panic!("no {method} among {:?}", self.open)).clone()
    }

    fn head(&mut self, exchange: &Exchange, status: u16, kind: &str, session: Option<&str>) {
        let mut headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        headers.extend(session.map(|id| ("Mcp-Session-Id".to_owned(), id.to_owned())));
        self.client.head(at(1), exchange.number, status, &headers);
        self.turn();
    }

    fn body(&mut self, exchange: &Exchange, text: &str) {
        self.client.body(at(1), exchange.number, text.as_bytes());
        self.turn();
    }

    fn end(&mut self, exchange: &Exchange) {
        self.open.retain(|open| open.number != exchange.number);
        self.client.ended(at(1), exchange.number, Ok(()));
        self.turn();
    }

    fn cut(&mut self, exchange: &Exchange, reached: bool) {
        self.open.retain(|open| open.number != exchange.number);
        self.client.ended(at(1), exchange.number, Err(Broken { reached, why: "it broke".into() }));
        self.turn();
    }

    fn answer(&mut self, method: &str, status: u16, kind: &str, session: Option<&str>, text: &str) {
        let exchange = self.find(method);
        self.head(&exchange, status, kind, session);
        self.body(&exchange, text);
        self.end(&exchange);
    }

    /// Answers a request with a result.
    fn result(&mut self, method: &str, result: serde_json::Value) {
        let id = message(&self.find(method))["id"].clone();
        let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        self.answer(method, 200, JSON, None, &text);
    }

    fn call(&mut self, key: u64) {
        call(&mut self.client, 1, key);
        self.turn();
    }

    fn is_ready(&self) -> bool {
        self.out.iter().any(|output| matches!(output, Output::Ready { .. }))
    }

    fn answers(&self) -> Vec<(u64, bool, String)> {
        answers(&self.out)
    }

    fn failed(&self) -> String {
        let failed = self
            .out
            .iter()
            .find_map(|o| if let Output::Failed { error } = o { Some(error.clone()) } else { None });
        failed.unwrap_or_else(|| panic!("{:?}", self.out))
    }
}

fn message(exchange: &Exchange) -> serde_json::Value {
    serde_json::from_slice(&exchange.body).unwrap_or_default()
}

fn verb(exchange: &Exchange) -> &'static str {
    match exchange.method {
        Method::Post => "POST",
        Method::Get => "GET",
        Method::Delete => "DELETE",
    }
}

fn header<'a>(exchange: &'a Exchange, name: &str) -> Option<&'a str> {
    exchange.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

fn tool(hints: serde_json::Value) -> serde_json::Value {
    json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}, "annotations": hints}]})
}

/// A server with a session that has said all of itself, and is asked for its stream.
fn asked_for_its_stream(hints: serde_json::Value) -> Net {
    let mut net = Net::new();
    net.answer(
        "server/discover",
        400,
        JSON,
        None,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}"#,
    );
    let id = message(&net.find("initialize"))["id"].clone();
    let hello = HELLO.replace("\"id\":1", &format!("\"id\":{id}"));
    net.answer("initialize", 200, JSON, Some("s-1"), &hello);
    net.answer("notifications/initialized", 202, "", None, "");
    net.result("tools/list", tool(hints));
    assert!(!net.is_ready(), "{:?}", net.out);
    net
}

/// A server with a session, ready; its GET stream is open.
fn session(hints: serde_json::Value) -> Net {
    let mut net = asked_for_its_stream(hints);
    let stream = net.find("GET");
    net.head(&stream, 200, SSE, None);
    assert!(net.is_ready(), "{:?}", net.out);
    net
}

/// A server with a session, ready, that has no such stream.
fn session_without_a_stream(hints: serde_json::Value) -> Net {
    let mut net = asked_for_its_stream(hints);
    net.answer("GET", 405, "", None, "");
    assert!(net.is_ready(), "{:?}", net.out);
    net
}

fn stateless(hints: serde_json::Value) -> Net {
    let mut net = Net::new();
    net.result(
        "server/discover",
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
    );
    net.result("tools/list", tool(hints));
    assert!(net.out.iter().any(|o| matches!(o, Output::Ready { era: Era::Stateless, .. })), "{:?}", net.out);
    net
}

#[test]
fn a_session_is_begun_used_and_ended() {
    let mut net = Net::new();
    let discover = net.find("server/discover");
    let has = |exchange: &Exchange, name: &str| header(exchange, name).map(str::to_owned);
    assert_eq!(has(&discover, "accept").as_deref(), Some("application/json, text/event-stream"));
    assert_eq!(has(&discover, "mcp-protocol-version").as_deref(), Some("2026-07-28"));
    assert_eq!(
        (has(&discover, "mcp-method").as_deref(), has(&discover, "mcp-name")),
        (Some("server/discover"), None)
    );
    net.answer("server/discover", 404, JSON, Some("no-session-yet"), "Not found");
    let initialize = net.find("initialize");
    for name in ["mcp-session-id", "mcp-protocol-version", "mcp-method"] {
        assert_eq!(header(&initialize, name), None, "{name}");
    }
    net.answer("initialize", 200, JSON, Some("s-1"), &HELLO.replace("\"id\":1", "\"id\":2"));
    assert_eq!(net.open.len(), 1, "nothing is asked before the handshake is over");
    net.answer("notifications/initialized", 202, "", None, "");
    let list = net.find("tools/list");
    assert_eq!(header(&list, "mcp-session-id"), Some("s-1"));
    assert_eq!(header(&list, "mcp-protocol-version"), Some("2025-11-25"));
    net.result("tools/list", tool(json!({})));
    assert_eq!(header(&net.find("GET"), "accept"), Some(SSE));
    net.answer("GET", 405, "", None, "");
    net.call(7);
    let made = net.find("tools/call");
    net.head(&made, 200, SSE, None);
    net.body(&made, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":4}}\n\n");
    assert_eq!(net.out.last(), Some(&Output::Progress { key: 7 }));
    net.body(&made, &format!("data: {}\n\n", result(4, "hi")));
    assert_eq!(net.answers(), [(7, false, "hi".into())]);
    assert_eq!(net.shut, [made.number], "a stream is not kept after its answer");
    net.client.farewell(at(9));
    net.turn();
    assert_eq!(header(&net.find("DELETE"), "mcp-session-id"), Some("s-1"));
    assert_eq!(net.client.poll_timeout(), None);
}

#[test]
fn the_stateless_era_says_in_headers_what_is_in_the_body() {
    let mut net = Net::new();
    net.result(
        "server/discover",
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
    );
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}});
    let bad = json!({"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}});
    net.result(
        "tools/list",
        json!({"tools": [{"name": "echo", "inputSchema": schema}, {"name": "bad", "inputSchema": bad}]}),
    );
    let Some(Output::Ready { tools, .. }) = net.out.iter().find(|o| matches!(o, Output::Ready { .. })) else {
        panic!()
    };
    assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["echo"]);
    assert!(net.out.iter().any(
        |o| matches!(o, Output::Log { event: "mcp.tools.skipped", text, .. } if text.contains("\"bad\""))
    ));
    net.call(1);
    let made = net.find("tools/call");
    for (name, value) in [
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("mcp-param-text", "x"),
        ("mcp-protocol-version", "2026-07-28"),
    ] {
        assert_eq!(header(&made, name), Some(value), "{name}");
    }
    net.client.cancel(1, "enough");
    net.turn();
    assert_eq!(
        (net.shut.as_slice(), net.open.len()),
        ([made.number].as_slice(), 0),
        "closing it is the word for it"
    );
    net.client.call(at(1), 2, "gr\u{fc}\u{df}e", &Json::of(&json!({})), MINUTE);
    net.turn();
    assert_eq!(header(&net.find("tools/call"), "mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
}

#[test]
fn a_cancel_in_a_session_is_told_and_the_exchange_shut() {
    let mut net = session(json!({}));
    net.call(1);
    let made = net.find("tools/call");
    net.client.cancel(1, "enough");
    net.turn();
    assert_eq!(net.shut, [made.number]);
    assert_eq!(message(&net.find("notifications/cancelled"))["params"]["requestId"], message(&made)["id"]);
    net.client.body(at(2), made.number, b"late");
    net.client.ended(at(2), made.number, Ok(()));
    net.turn();
    assert_eq!(net.answers().len(), 1);
}

#[test]
fn a_session_that_is_forgotten_is_begun_anew_once_and_refused_calls_are_made_in_it() {
    let mut net = session(json!({}));
    net.call(1);
    net.call(2);
    let [first, second] = [0, 1].map(|n| {
        net.open.iter().filter(|open| message(open)["method"] == "tools/call").nth(n).unwrap().clone()
    });
    let not_found = |net: &mut Net, exchange: &Exchange| {
        net.head(exchange, 404, JSON, Some("s-1"));
        let gone = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
        net.body(exchange, gone);
        net.end(exchange);
    };
    not_found(&mut net, &first);
    assert_eq!(net.answers(), []);
    net.call(3);
    assert_eq!(net.open.iter().filter(|open| message(open)["method"] == "initialize").count(), 1);
    assert_eq!(header(&net.find("initialize"), "mcp-session-id"), None);
    let made = |net: &Net| net.open.iter().filter(|open| message(open)["method"] == "tools/call").count();
    assert_eq!(made(&net), 1, "what is made anew waits for the session");
    let id = message(&net.find("initialize"))["id"].clone();
    net.answer("initialize", 200, JSON, Some("s-2"), &HELLO.replace("\"id\":1", &format!("\"id\":{id}")));
    net.answer("notifications/initialized", 202, "", None, "");
    // One that was in the old session too, and is told so only now, needs no third.
    not_found(&mut net, &second);
    assert!(net.open.iter().all(|open| message(open)["method"] != "initialize"));
    for _ in 0..3 {
        let again = net.find("tools/call");
        assert_eq!(header(&again, "mcp-session-id"), Some("s-2"));
        assert!(message(&again)["id"].as_u64() > message(&second)["id"].as_u64());
        net.result("tools/call", json!({"content": [{"type": "text", "text": "ok"}]}));
    }
    assert_eq!(net.answers(), [(1, false, "ok".into()), (3, false, "ok".into()), (2, false, "ok".into())]);

    // Forgotten again, and no new one: the calls say so, and the next one tries again.
    net.call(4);
    net.answer("tools/call", 404, "", None, "");
    net.answer("initialize", 503, "text/plain", None, "down");
    assert!(
        matches!(net.answers().last(), Some((4, true, said)) if said.contains("status 503")),
        "{:?}",
        net.answers()
    );
    net.call(5);
    net.find("initialize");
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again_only_where_that_is_harmless() {
    for (hints, again) in
        [(json!({}), false), (json!({"readOnlyHint": true}), true), (json!({"idempotentHint": true}), true)]
    {
        for make in [session, stateless] {
            let mut net = make(hints.clone());
            net.call(1);
            let made = net.find("tools/call");
            net.head(&made, 200, SSE, None);
            net.body(&made, "data: {\"jsonrpc\"");
            net.cut(&made, true);
            if again {
                assert_eq!(net.answers(), []);
                let second = net.find("tools/call");
                assert_ne!(message(&second)["id"], message(&made)["id"]);
                net.cut(&second, true);
            }
            let [(1, true, said)] = &net.answers()[..] else { panic!("{:?}", net.out) };
            assert!(said.contains("outcome is unknown") && said.contains("it broke"), "{said}");
            net.call(2);
            let unreached = net.find("tools/call");
            net.cut(&unreached, false);
            assert!(
                matches!(net.answers().last(), Some((2, true, said)) if said.contains("nothing was called"))
            );
        }
    }
}

#[test]
fn a_stream_that_says_where_it_was_is_taken_up_there() {
    let mut net = session_without_a_stream(json!({}));
    net.call(1);
    let made = net.find("tools/call");
    net.head(&made, 200, SSE, None);
    net.body(&made, "id: e-1\nretry: 500\ndata:\n\n");
    net.end(&made);
    assert_eq!((net.answers(), net.open.len()), (vec![], 0));
    assert_eq!(net.client.poll_timeout(), Some(at(501)));
    net.client.tick(at(500));
    net.turn();
    assert_eq!(net.open, []);
    net.client.tick(at(501));
    net.turn();
    let resumed = net.find("GET");
    assert_eq!(
        (header(&resumed, "last-event-id"), header(&resumed, "mcp-session-id")),
        (Some("e-1"), Some("s-1"))
    );
    net.head(&resumed, 200, SSE, None);
    net.body(&resumed, &format!("id: e-2\ndata: {}\n\n", result(4, "late but whole")));
    assert_eq!(net.answers(), [(1, false, "late but whole".into())]);

    // One that ends again and again without an event is given up.
    net.call(2);
    let made = net.find("tools/call");
    net.head(&made, 200, SSE, None);
    net.body(&made, "id: e-3\nretry: 1\ndata:\n\n");
    net.end(&made);
    let mut resumes = 0;
    while net.answers().len() == 1 {
        resumes += 1;
        net.client.tick(at(600 + resumes * 1_100));
        net.turn();
        let resumed = net.find("GET");
        net.head(&resumed, 200, SSE, None);
        net.end(&resumed);
        assert!(resumes < 20);
    }
    assert!(
        matches!(net.answers().last(), Some((2, true, said)) if said.contains("outcome is unknown")),
        "{:?}",
        net.answers()
    );
}

/// A call whose answer began, broke off and is being asked for the rest of: the exchange that asks.
fn broken_off(net: &mut Net, key: u64) -> Exchange {
    net.call(key);
    let made = net.find("tools/call");
    net.head(&made, 200, SSE, None);
    net.body(&made, "id: e-1\nretry: 1\ndata:\n\n");
    net.cut(&made, true);
    let due = net.client.poll_timeout().unwrap();
    net.client.tick(due);
    net.turn();
    let resumed = net.find("GET");
    assert_eq!(header(&resumed, "last-event-id"), Some("e-1"));
    resumed
}

#[test]
fn a_refusal_to_go_on_with_an_answer_does_not_mean_that_nothing_was_called() {
    let gone = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    for (status, body, renews) in [
        (404, gone, true),
        (404, "", true),
        (405, "", false),
        (401, "", false),
        (400, gone, false),
        (500, "oh no", false),
        // Nobody is there to ask.
        (0, "", false),
    ] {
        for hints in [json!({}), json!({"readOnlyHint": true}), json!({"idempotentHint": true})] {
            let harmless = hints != json!({});
            let mut net = session_without_a_stream(hints);
            let resumed = broken_off(&mut net, 1);
            match status {
                0 => net.cut(&resumed, false),
                _ => {
                    net.head(&resumed, status, JSON, None);
                    net.body(&resumed, body);
                    net.end(&resumed);
                }
            }
            let calls = |net: &Net| net.open.iter().filter(|o| message(o)["method"] == "tools/call").count();
            assert_eq!(calls(&net), usize::from(harmless && !renews), "{status}");
            if renews {
                let id = message(&net.find("initialize"))["id"].clone();
                let hello = HELLO.replace("\"id\":1", &format!("\"id\":{id}"));
                net.answer("initialize", 200, JSON, Some("s-2"), &hello);
                net.answer("notifications/initialized", 202, "", None, "");
            }
            assert_eq!(calls(&net), usize::from(harmless), "{status}");
            if harmless {
                net.result("tools/call", json!({"content": [{"type": "text", "text": "ok"}]}));
                assert_eq!(net.answers(), [(1, false, "ok".into())], "{status}");
            } else {
                let [(1, true, said)] = &net.answers()[..] else { panic!("{status}: {:?}", net.out) };
                assert!(said.contains("may have had an effect") && !said.contains("was refused"), "{said}");
                assert!(!said.contains("credentials") && !said.contains("nothing was called"), "{said}");
                assert!(status == 0 || said.contains("the rest of its answer"), "{said}");
            }
            net.call(2);
            let session = if renews { "s-2" } else { "s-1" };
            assert_eq!(header(&net.find("tools/call"), "mcp-session-id"), Some(session), "{status}");
        }
    }

    // A server without sessions.
    let mut net = Net::new();
    net.answer("server/discover", 400, "", None, "");
    net.answer("initialize", 200, JSON, None, &HELLO.replace("\"id\":1", "\"id\":2"));
    net.answer("notifications/initialized", 202, "", None, "");
    net.result("tools/list", tool(json!({})));
    net.answer("GET", 405, "", None, "");
    let resumed = broken_off(&mut net, 1);
    net.head(&resumed, 404, "", None);
    net.end(&resumed);
    let [(1, true, said)] = &net.answers()[..] else { panic!("{:?}", net.out) };
    assert!(said.contains("may have had an effect") && !said.contains("MCP endpoint"), "{said}");
    assert_eq!(net.open, []);
}

#[test]
fn answers_that_are_none_end_their_call_at_once() {
    let long = "x".repeat(limits::MCP_LINE_BYTES + 1);
    for (status, kind, body, says) in [
        (202, "", "", "status 202 and gave no answer"),
        (200, "text/html", "<html>", "\"text/html\""),
        (200, "", "{}", "no content type"),
        (200, JSON, "not JSON", "without the message that was due"),
        (200, JSON, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, "without the message that was due"),
        (200, JSON, &long, "over 8388608 bytes"),
        (200, SSE, &long, "cannot be read"),
        (200, SSE, "data: {}\n\n", "without the message that was due"),
        (307, "", "", "redirect"),
        (401, "", "", "credentials"),
        (500, "text/plain", "oh no", "oh no"),
        (
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad args"}}"#,
            "error -32602: bad args",
        ),
    ] {
        for make in [session, stateless] {
            let mut net = make(json!({}));
            net.call(1);
            net.answer("tools/call", status, kind, None, body);
            let [(1, true, said)] = &net.answers()[..] else { panic!("{status} {kind}: {:?}", net.out) };
            assert!(said.contains(says), "{status} {kind}: {said}");
            net.call(2);
            net.result("tools/call", json!({"content": []}));
            assert!(matches!(net.answers().last(), Some((2, false, _))), "one bad answer costs no server");
        }
    }
}

#[test]
fn starts_that_come_to_nothing_say_why() {
    let mut net = Net::new();
    let discover = net.find("server/discover");
    net.cut(&discover, false);
    assert_eq!(net.failed(), "it broke");

    let mut net = Net::new();
    net.answer("server/discover", 401, "", None, "");
    assert!(net.failed().contains("credentials"), "{}", net.failed());

    // The transport of 2024-11-05.
    let mut net = Net::new();
    net.answer("server/discover", 405, "", None, "");
    net.answer("initialize", 405, "", None, "");
    let sniff = net.find("GET");
    net.head(&sniff, 200, SSE, None);
    net.body(&sniff, "event: endpoint\ndata: /messages?session=1\n\n");
    assert!(net.failed().contains("HTTP+SSE transport of 2024-11-05"), "{}", net.failed());

    // No server of ours at all.
    let mut net = Net::new();
    net.answer("server/discover", 404, "text/html", None, "<html>");
    net.answer("initialize", 404, "text/html", None, "<html>");
    net.answer("GET", 404, "text/html", None, "<html>");
    assert!(net.failed().contains("status 404"), "{}", net.failed());

    // Silence counts after a while, and a slow server can still be of the new era.
    let mut net = Net::new();
    net.client.tick(at(10_000));
    net.turn();
    net.find("initialize");
    net.result("server/discover", json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}));
    net.answer(
        "initialize",
        400,
        JSON,
        None,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"m"}}"#,
    );
    assert!(net.out.iter().any(|o| matches!(o, Output::Ready { era: Era::Stateless, .. })), "{:?}", net.out);
}

/// A call that made the server ask something before the stream was open would wait for an answer for ever.
#[test]
fn a_server_is_ready_once_its_stream_is_answered_or_a_second_has_passed() {
    for broken in [true, false] {
        let mut net = asked_for_its_stream(json!({}));
        let stream = net.find("GET");
        if broken {
            net.cut(&stream, false);
        } else {
            net.head(&stream, 200, SSE, None);
        }
        assert!(net.is_ready(), "{:?}", net.out);
    }
    let mut net = asked_for_its_stream(json!({}));
    let due = net.client.poll_timeout().expect("it is bounded");
    assert_eq!(due, at(1) + limits::MCP_LISTEN_WAIT);
    net.client.tick(at(1_000));
    net.turn();
    assert!(!net.is_ready());
    net.client.tick(due);
    net.turn();
    assert!(net.is_ready());
    // An answer that comes late after all changes nothing, and one that is gone before it was ready never was.
    let stream = net.find("GET");
    net.head(&stream, 200, SSE, None);
    assert_eq!(net.out.iter().filter(|o| matches!(o, Output::Ready { .. })).count(), 1);
    let mut net = asked_for_its_stream(json!({}));
    net.client.closed("it went away");
    net.turn();
    assert!(!net.is_ready() && net.failed().contains("it went away"), "{:?}", net.out);
}

#[test]
fn what_is_said_unasked_comes_on_a_stream_of_its_own() {
    let mut net = session(json!({}));
    let stream = net.find("GET");
    net.body(&stream, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n");
    let reply =
        net.open.iter().find(|open| message(open)["error"]["code"] == -32601).cloned().expect("a reply");
    net.answer("POST", 202, "", None, "");
    assert_eq!(message(&reply)["id"], 1);
    net.body(&stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    net.client.tick(at(1_001));
    net.turn();
    net.result("tools/list", json!({"tools": []}));
    assert!(matches!(net.out.last(), Some(Output::Changed { tools, .. }) if tools.is_empty()));
    // It ends, and is opened again after a pause.
    net.end(&stream);
    let due = net.client.poll_timeout().unwrap();
    net.client.tick(due);
    net.client.tick(at(4_000));
    net.turn();
    net.find("GET");
}

#[test]
fn exchanges_over_the_bound_wait_for_others_to_end() {
    let mut net = stateless(json!({}));
    let most = limits::MCP_EXCHANGES;
    for key in 0..most as u64 + 3 {
        net.call(key);
    }
    assert_eq!(net.open.len(), most);
    net.result("tools/call", json!({"content": []}));
    assert_eq!(net.open.len(), most);
    net.client.cancel(most as u64 + 2, "it had not begun");
    net.turn();
    assert_eq!(net.shut, [] as [u64; 0]);
    for _ in 0..most + 1 {
        net.result("tools/call", json!({"content": []}));
    }
    assert_eq!((net.open.len(), net.answers().len()), (0, most + 3));
}

fn script() -> impl Strategy<Value = Vec<u8>> {
    let id = 1u64..9;
    let body = prop_oneof![
        Just(r#""result":{"content":[{"type":"text","text":"t"}]}"#),
        Just(
            r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{}}}"#
        ),
        Just(
            r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#
        ),
        Just(r#""result":{"tools":[{"name":"echo","annotations":{"readOnlyHint":true}}]}"#),
        Just(
            r#""result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"requestedSchema":{}}}}}"#
        ),
        Just(r#""result":{"resources":[{"uri":"a://1"}]}"#),
        Just(r#""error":{"code":-32601,"message":"m"}"#),
        Just(r#""method":"ping""#),
        Just(r#""method":"notifications/tools/list_changed""#),
    ];
    let message = (id, body).prop_map(|(id, body)| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#));
    let line = prop_oneof![
        8 => message.clone().prop_map(String::into_bytes),
        6 => message.prop_map(|m| format!("data: {m}\r\r").into_bytes()),
        2 => Just(b"id: 1\rretry: 5\rdata:\r\r".to_vec()),
        // Steps: a head, an end, a break, a call, a cancel, time, a reply.
        12 => (0u8..10).prop_map(|with| vec![5, with]),
        8 => Just(vec![6]),
        2 => (0u8..2).prop_map(|with| vec![7, with]),
        4 => (0u8..6).prop_map(|with| vec![1, with]),
        1 => (0u8..6).prop_map(|with| vec![2, with]),
        2 => (0u8..255).prop_map(|with| vec![3, with]),
        1 => (0u8..4).prop_map(|with| vec![8, with]),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    (any::<u8>(), proptest::collection::vec(line, 0..40)).prop_map(|(cut, lines)| {
        let mut script = vec![cut];
        script.extend(lines.join(&b'\n'));
        script
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_bytes_in_any_pieces_answer_every_call_once(script in script()) {
        mcp_http(&script);
    }
}

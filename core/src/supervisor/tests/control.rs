//! The control surface: who is let in, one answer for each request in order, tasks that end once, and clients that are
//! slow, gone or hostile.

use super::*;
use crate::config::{Control, Principal, PrincipalRole};
use crate::event::{Door, Peer, SupervisorSignal};
use crate::limits;
use crate::session::TOKEN_MARK;

fn principal(id: &str, role: PrincipalRole) -> Principal {
    Principal { id: id.into(), role }
}

pub(super) fn daemon() -> Desk {
    let principals = vec![
        principal("operator", PrincipalRole::Operator),
        principal("ops", PrincipalRole::Operator),
        principal("ann", PrincipalRole::User),
        principal("bob", PrincipalRole::User),
    ];
    let control = Some(Control { principals, tls: false });
    let mut desk = Desk::new(Config { one_shot: false, control, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    desk
}

pub(super) fn own() -> Peer {
    Peer::Local { uid: 1_000, own_uid: 1_000, pid: 42, supervised: Some(false) }
}

pub(super) fn token(place: usize) -> Vec<u8> {
    let mut token = vec![TOKEN_MARK];
    token.extend_from_slice(place.to_string().as_bytes());
    token.resize(32, TOKEN_MARK);
    token
}

pub(super) fn request(token: &[u8], body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let mut bytes =
        b"POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
            .to_vec();
    if !token.is_empty() {
        bytes.extend_from_slice(b"Authorization: Bearer ");
        bytes.extend_from_slice(token);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    bytes
}

pub(super) fn rpc(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn message(id: &str, text: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

pub(super) fn command(op: &str, mut args: Value) -> Value {
    args["op"] = op.into();
    let parts = json!([{ "data": { "agentd": args } }]);
    rpc("SendMessage", json!({ "message": { "messageId": "c", "role": "ROLE_USER", "parts": parts } }))
}

impl Desk {
    pub(super) fn open(&mut self, conn: u64, door: Door, peer: Peer) {
        self.event(Event::ConnOpened { conn: ConnId(conn), door, peer });
    }

    pub(super) fn bytes(&mut self, conn: u64, bytes: &[u8]) {
        self.event(Event::ConnBytes { conn: ConnId(conn), bytes: Bytes::from(bytes) });
    }

    /// What a client was sent since the last look, as text.
    pub(super) fn got(&mut self, conn: u64) -> String {
        let bytes = self.sent.remove(&ConnId(conn)).unwrap_or_default();
        String::from_utf8(bytes).expect("text")
    }

    /// The JSON of the one response that came.
    pub(super) fn json(&mut self, conn: u64) -> Value {
        let text = self.got(conn);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}"))
    }

    /// A call of the operator on the control socket, and its answer.
    fn called(&mut self, conn: u64, body: &Value) -> Value {
        self.bytes(conn, &request(&token(0), body));
        self.json(conn)
    }

    /// A command's value.
    fn commanded(&mut self, conn: u64, op: &str, args: Value) -> Value {
        let answer = self.called(conn, &command(op, args));
        op_value(&answer).1
    }
}

pub(super) fn op_value(answer: &Value) -> (bool, Value) {
    let told = &answer["result"]["message"]["parts"][0]["data"]["agentd"];
    (told["error"] == true, told["value"].clone())
}

fn operator() -> Desk {
    let mut desk = daemon();
    desk.open(1, Door::Control, own());
    desk
}

#[test]
fn only_an_operator_of_this_machine_with_the_token_is_let_in() {
    let body = command("ps", json!({}));
    let local = |uid, supervised| Peer::Local { uid, own_uid: 1_000, pid: 42, supervised };
    for (peer, token, wanted) in [
        (local(1_000, Some(false)), token(0), "200"),
        (local(0, Some(false)), token(0), "200"),
        (local(1_000, Some(false)), Vec::new(), "401"),
        (local(1_000, Some(false)), b"guess".to_vec(), "401"),
        (local(1_000, Some(false)), token(1), "401"),
        (local(1_000, Some(false)), token(99), "401"),
        (local(1_001, Some(false)), token(0), "403"),
        (local(1_000, Some(true)), token(0), "403"),
        (local(0, Some(true)), token(0), "403"),
        (local(1_000, Some(true)), Vec::new(), "403"),
        (local(1_000, None), token(0), "403"),
        (Peer::Remote { address: "127.0.0.1:1".into() }, token(0), "403"),
    ] {
        let mut desk = daemon();
        desk.open(1, Door::Control, peer.clone());
        desk.bytes(1, &request(&token, &body));
        let got = desk.got(1);
        assert!(got.starts_with(&format!("HTTP/1.1 {wanted} ")), "{peer:?}: {got}");
        assert_eq!(desk.noted("operator.refused"), usize::from(wanted != "200"), "{peer:?}");
    }
    // Over TCP the principals' tokens count and the socket's does not.
    for (place, wanted) in [(0, "401"), (1, "200"), (2, "403")] {
        let mut desk = daemon();
        desk.open(1, Door::Tcp, Peer::Remote { address: "127.0.0.1:1".into() });
        desk.bytes(1, &request(&token(place), &body));
        let got = desk.got(1);
        let refused = wanted == "403" && got.contains("PERMISSION_DENIED");
        assert!(refused || got.starts_with(&format!("HTTP/1.1 {wanted} ")), "{place}: {got}");
    }
}

#[test]
fn a_mark_that_is_not_whole_is_no_token() {
    for bad in [
        [TOKEN_MARK].as_slice(),
        &[TOKEN_MARK, b'0'],
        &[b'0', TOKEN_MARK],
        &[TOKEN_MARK, b'-', b'1', TOKEN_MARK],
        &[TOKEN_MARK, TOKEN_MARK],
        &[TOKEN_MARK, b'0', TOKEN_MARK, b'1', TOKEN_MARK],
    ] {
        let mut desk = operator();
        desk.bytes(1, &request(bad, &command("ps", json!({}))));
        assert!(desk.got(1).starts_with("HTTP/1.1 401 "), "{bad:?}");
    }
}

#[test]
fn a_token_in_what_is_asked_is_refused_and_reaches_nobody() {
    let mut desk = operator();
    let mut bytes = request(&token(0), &rpc("SendMessage", message("m1", "my token is ?")));
    let at = bytes.iter().rposition(|byte| *byte == b'?').expect("the mark's place");
    bytes[at] = TOKEN_MARK;
    desk.bytes(1, &bytes);
    let got = desk.got(1);
    assert!(got.starts_with("HTTP/1.1 400 ") && got.contains("holds a token"), "{got}");
    assert!(desk.core.runs.is_empty());
}

#[test]
fn a_message_is_a_turn_and_its_answer_is_the_task() {
    let mut desk = operator();
    desk.bytes(1, &request(&token(0), &rpc("SendMessage", message("m1", "count"))));
    assert_eq!(desk.got(1), "", "it is answered when the turn has ended");
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "three");
    let task = desk.json(1)["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "three");
    assert_eq!(task["history"][0]["parts"][0]["text"], "count");
    let get = rpc("GetTask", json!({ "id": task["id"], "historyLength": 0 }));
    let again = desk.called(1, &get)["result"].clone();
    assert_eq!((&again["id"], &again["artifacts"]), (&task["id"], &task["artifacts"]));
    assert!(again.get("history").is_none());
    // The same message again is the same turn: nothing is asked twice.
    let repeated = desk.called(1, &rpc("SendMessage", message("m1", "count")));
    assert_eq!(repeated["result"]["task"]["id"], task["id"]);
    assert_eq!(desk.prompts, [1]);
    let unknown = desk.called(1, &rpc("GetTask", json!({ "id": "nobody" })));
    assert_eq!(unknown["error"]["code"], -32_001);
    assert_eq!(unknown["error"]["data"][0]["reason"], "TASK_NOT_FOUND");
}

#[test]
fn a_stream_tells_the_task_from_its_beginning_to_its_end() {
    let mut desk = operator();
    desk.bytes(1, &request(&token(0), &rpc("SendStreamingMessage", message("m1", "count"))));
    desk.open(2, Door::Control, own());
    let head = desk.got(1);
    assert!(
        head.contains("Content-Type: text/event-stream\r\n") && head.contains("TASK_STATE_WORKING"),
        "{head}"
    );
    let tasks = desk.called(2, &rpc("ListTasks", json!({})))["result"].clone();
    let subscribe = rpc("SubscribeToTask", json!({ "id": tasks["tasks"][0]["id"] }));
    desk.bytes(2, &request(&token(0), &subscribe));
    assert!(desk.got(2).contains("TASK_STATE_WORKING"));
    desk.ready(NodeId(1));
    // A stream that has nothing to tell says so.
    for s in 1..=16 {
        desk.advance_to(s * 1_000);
        desk.pong(NodeId(1));
    }
    assert_eq!(desk.got(1), "4\r\n: \n\n\r\n");
    desk.turn(NodeId(1), 1, "three");
    for conn in [1, 2] {
        let rest = desk.got(conn);
        let (artifact, status) = (rest.find("artifactUpdate"), rest.find("TASK_STATE_COMPLETED"));
        assert!(artifact.is_some() && artifact < status && rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
    }
    let over = desk.called(2, &subscribe);
    assert_eq!(over["error"]["code"], -32_004, "{over}");
    let cancel = desk.called(1, &rpc("CancelTask", json!({ "id": tasks["tasks"][0]["id"] })));
    assert_eq!(cancel["error"]["code"], -32_002, "a finished task is finished (F36)");
}

#[test]
fn twenty_cancels_at_once_are_one_end_and_a_race_that_is_lost_is_told() {
    let mut desk = daemon();
    for conn in 1..=21 {
        desk.open(conn, Door::Control, own());
    }
    let ask = |desk: &mut Desk, id: &str| {
        let mut params = message(id, "count");
        params["configuration"] = json!({ "returnImmediately": true });
        desk.called(1, &rpc("SendMessage", params))["result"]["task"]["id"].clone()
    };
    let (working, waiting) = (ask(&mut desk, "m1"), ask(&mut desk, "m2"));
    desk.ready(NodeId(1));
    let cancel = |id: &Value| rpc("CancelTask", json!({ "id": id }));
    // One that waits for its turn is cancelled at once, and once.
    let task = desk.called(1, &cancel(&waiting))["result"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(desk.called(1, &cancel(&waiting))["error"]["code"], -32_002);
    // One in its turn when the turn has ended.
    for conn in 2..=21 {
        desk.bytes(conn, &request(&token(0), &cancel(&working)));
        assert_eq!(desk.got(conn), "");
    }
    let cancels = desk.child(NodeId(1)).heard.iter().filter(|down| matches!(down, Down::Cancel(_))).count();
    assert_eq!(cancels, 1);
    // The child had its answer already as the cancel came: the turn is completed and stays so.
    desk.turn(NodeId(1), 1, "three");
    for conn in 2..=21 {
        assert_eq!(desk.json(conn)["error"]["code"], -32_002);
    }
    let task = desk.called(1, &rpc("GetTask", json!({ "id": working })))["result"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn users_see_and_cancel_their_own_tasks_only() {
    let mut desk = daemon();
    for conn in 1..=2 {
        desk.open(conn, Door::Tcp, Peer::Remote { address: "127.0.0.1:1".into() });
    }
    let call = |desk: &mut Desk, conn: u64, body: Value| {
        desk.bytes(conn, &request(&token(conn as usize + 1), &body));
        desk.json(conn)
    };
    let mut params = message("m1", "count");
    params["configuration"] = json!({ "returnImmediately": true });
    let task = call(&mut desk, 1, rpc("SendMessage", params.clone()))["result"]["task"]["id"].clone();
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let foreign = call(&mut desk, 2, rpc(method, json!({ "id": task })));
        let unknown =
            call(&mut desk, 2, rpc(method, json!({ "id": "00000000-0000-0000-0000-000000000000" })));
        assert_eq!(foreign["error"]["code"], unknown["error"]["code"]);
        assert_eq!(foreign["error"]["code"], -32_001);
    }
    // The same message of somebody else is a message of its own.
    assert_ne!(call(&mut desk, 2, rpc("SendMessage", params))["result"]["task"]["id"], task);
    let list =
        |desk: &mut Desk, conn| call(desk, conn, rpc("ListTasks", json!({})))["result"]["totalSize"].clone();
    assert_eq!((list(&mut desk, 1), list(&mut desk, 2)), (json!(1), json!(1)));
}

#[test]
fn lists_are_paged_newest_first() {
    let mut desk = operator();
    let mut ids = Vec::new();
    for n in 0..5 {
        let mut params = message(&format!("m{n}"), "count");
        params["configuration"] = json!({ "returnImmediately": true });
        ids.push(desk.called(1, &rpc("SendMessage", params))["result"]["task"]["id"].clone());
    }
    ids.reverse();
    let (mut seen, mut token) = (Vec::new(), json!(""));
    for _ in 0..3 {
        let page =
            desk.called(1, &rpc("ListTasks", json!({ "pageSize": 2, "pageToken": token })))["result"].clone();
        assert_eq!(page["totalSize"], 5);
        seen.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
    }
    assert_eq!((seen, token), (ids, json!("")));
    let working =
        desk.called(1, &rpc("ListTasks", json!({ "status": "TASK_STATE_WORKING" })))["result"].clone();
    assert_eq!(working["totalSize"], 1);
}

#[test]
fn commands_are_the_tools_and_a_kill_can_wait_until_the_process_is_gone() {
    let mut desk = operator();
    let run = desk.commanded(1, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    assert_eq!(run["handle"], "sub-1");
    desk.ready(NodeId(1));
    let ps = desk.commanded(1, "ps", json!({}));
    assert_eq!(ps["runs"][0]["handle"], "sub-1");
    assert_eq!(ps["runs"][0]["waits"], "silent 0s, answering");
    assert_eq!(ps["runs"][0]["pid"], 1001);
    desk.bytes(1, &request(&token(0), &command("subagent.kill", json!({ "handle": "sub-1", "gone": true }))));
    assert_eq!(desk.statuses_of(1), Status::Cancelled);
    assert_eq!(desk.got(1), "", "its process is there");
    desk.exit(NodeId(1), Exit::Signal(9));
    let answer = desk.json(1);
    assert_eq!(op_value(&answer).1["status"], "cancelled");
    // A second kill changes nothing and is answered at once.
    let again = desk.commanded(1, "subagent.kill", json!({ "handle": "sub-1", "gone": true }));
    assert_eq!(again["status"], "cancelled");
    assert_eq!(desk.commanded(1, "ps", json!({}))["runs"], json!([]));
    assert_eq!(desk.commanded(1, "ps", json!({ "all": true }))["runs"][0]["status"], "cancelled");
    assert_eq!(desk.commanded(1, "show", json!({ "handle": "sub-1" }))["error"], "killed by the operator");
    let logs = desk.commanded(1, "logs", json!({ "handle": "sub-1" }));
    let events: Vec<&str> =
        logs["events"].as_array().unwrap().iter().filter_map(|e| e["event"].as_str()).collect();
    assert_eq!(events, ["subagent.spawn", "subagent.kill", "subagent.result"]);
    for (op, args) in [
        ("no.such", json!({})),
        ("ps", json!({ "al": true })),
        ("ps", json!({ "all": 1 })),
        ("show", json!({ "handle": "sub-9" })),
        ("show", json!({ "handle": "root" })),
        ("logs", json!({ "handle": "sub-1", "lines": 0 })),
        ("subagent.kill", json!({ "handle": "sub-1", "gone": 1 })),
    ] {
        let answer = desk.called(1, &command(op, args.clone()));
        let (error, value) = op_value(&answer);
        assert!(error && value["error"]["message"].is_string(), "{op} {args}: {answer}");
    }
}

#[test]
fn a_client_that_goes_away_takes_only_what_it_waited_for_synchronously() {
    let mut desk = operator();
    desk.bytes(1, &request(&token(0), &command("subagent.run", json!({ "instruction": "look" }))));
    desk.open(2, Door::Control, own());
    desk.bytes(2, &request(&token(0), &rpc("SendMessage", message("m1", "count"))));
    desk.event(Event::ConnEnded { conn: ConnId(1) });
    desk.event(Event::ConnClosed { conn: ConnId(2), error: Some("reset".into()) });
    assert_eq!(desk.statuses_of(1), Status::Cancelled);
    assert!(!desk.shut[&ConnId(1)], "what is queued leaves");
    desk.ready(NodeId(2));
    desk.turn(NodeId(2), 1, "three");
    assert_eq!(desk.prompts, [1], "the turn goes on");
    assert!(!desk.sent.contains_key(&ConnId(2)));
    assert!(desk.core.operator.is_empty());
}

#[test]
fn requests_of_one_connection_are_answered_in_their_order() {
    let mut desk = operator();
    let card = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a.example:8443\r\n\r\n".to_vec();
    let wait = request(&token(0), &rpc("SendMessage", message("m1", "count")));
    desk.bytes(1, &[wait, card.clone()].concat());
    assert_eq!(desk.got(1), "");
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "three");
    let got = desk.got(1);
    let (task, card_at) = (got.find("TASK_STATE_COMPLETED"), got.find("supportedInterfaces"));
    assert!(task.is_some() && task < card_at && got.contains("http://a.example:8443/"), "{got}");
    // Too far ahead: what stands is answered, then it is told and closed.
    let wait = request(&token(0), &rpc("SendMessage", message("m2", "count")));
    desk.bytes(1, &[wait, card.repeat(limits::REQUESTS_AHEAD + 5)].concat());
    desk.turn(NodeId(1), 2, "four");
    let got = desk.got(1);
    // The one in hand came with them.
    assert_eq!(got.matches("supportedInterfaces").count(), limits::REQUESTS_AHEAD - 1);
    assert!(got.contains("HTTP/1.1 429 ") && desk.shut.contains_key(&ConnId(1)), "{got}");
}

#[test]
fn a_fault_is_answered_with_its_reason_and_ends_the_connection() {
    for (bytes, wanted) in [
        (b"GET / HTTP/1.1\nHost: x\n\n".as_slice(), "400"),
        (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
        (b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        (b"POST / HTTP/3.0\r\nHost: x\r\n\r\n", "505"),
    ] {
        let mut desk = operator();
        desk.bytes(1, bytes);
        let got = desk.got(1);
        assert!(got.starts_with(&format!("HTTP/1.1 {wanted} ")), "{got}");
        assert_eq!(desk.shut.contains_key(&ConnId(1)), matches!(wanted, "400" | "505"));
    }
    let mut desk = operator();
    let version = |version: &str| {
        let text = String::from_utf8_lossy(&request(b"", &rpc("ListTasks", json!({})))).into_owned();
        let (head, body) = text.split_once("A2A-Version: 1.0\r\n").unwrap();
        let mut bytes = format!("{head}{version}Authorization: Bearer ").into_bytes();
        bytes.extend_from_slice(&token(0));
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.as_bytes());
        bytes
    };
    for wrong in ["", "A2A-Version: 0.3\r\n", "A2A-Version: \r\n", "A2A-Version: 1.0\r\nA2A-Version: 1.0\r\n"]
    {
        desk.bytes(1, &version(wrong));
        assert_eq!(desk.json(1)["error"]["code"], -32_009, "{wrong}");
    }
    desk.bytes(1, &version("A2A-Version: 1.0.1\r\n"));
    assert!(desk.json(1).get("result").is_some());
}

#[test]
fn slow_clients_lose_their_connection_and_nobody_elses() {
    // Half a request.
    let mut desk = operator();
    desk.bytes(1, b"POST / HTTP/1.1\r\n");
    desk.advance_to(limits::REQUEST_WAIT.as_millis() as u64 - 1);
    assert_eq!(desk.got(1), "");
    desk.bytes(1, b"Host: x\r\n");
    desk.advance_to(limits::REQUEST_WAIT.as_millis() as u64 + 1);
    assert!(desk.got(1).starts_with("HTTP/1.1 408 "), "a byte now and then puts nothing off");
    desk.advance_to(limits::REQUEST_WAIT.as_millis() as u64 + limits::CONN_LINGER.as_millis() as u64 + 1);
    assert!(desk.shut[&ConnId(1)]);
    // Nothing at all.
    let mut desk = operator();
    desk.advance_to(limits::CONN_IDLE.as_millis() as u64 + 1);
    assert_eq!((desk.got(1).as_str(), desk.shut.get(&ConnId(1))), ("", Some(&false)));
    // Reads nothing.
    let mut desk = operator();
    desk.stalled.insert(ConnId(1));
    desk.bytes(1, &request(&token(0), &command("ps", json!({}))));
    desk.advance_to(limits::CONN_STALL.as_millis() as u64 + 1);
    assert!(desk.shut[&ConnId(1)]);
    // Reads a stream too slowly, and everybody else is told all the same.
    let mut desk = operator();
    desk.open(2, Door::Control, own());
    desk.stalled.insert(ConnId(1));
    desk.bytes(
        1,
        &request(&token(0), &rpc("SendStreamingMessage", message("m1", &"x".repeat(limits::MESSAGE_BYTES)))),
    );
    desk.bytes(2, &request(&token(0), &rpc("SendMessage", message("m1", ""))));
    desk.got(2);
    let task = desk.called(2, &rpc("ListTasks", json!({})))["result"]["tasks"][0]["id"].clone();
    desk.bytes(2, &request(&token(0), &rpc("SubscribeToTask", json!({ "id": task }))));
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "three");
    assert!(desk.shut[&ConnId(1)]);
    assert!(desk.got(2).contains("TASK_STATE_COMPLETED"));
}

#[test]
fn connections_are_bounded_at_each_door() {
    let mut desk = daemon();
    let most = limits::CONNECTIONS as u64;
    for conn in 1..=most + 1 {
        desk.open(conn, Door::Tcp, Peer::Remote { address: "127.0.0.1:1".into() });
    }
    assert!(desk.got(most + 1).starts_with("HTTP/1.1 503 "));
    desk.open(most + 2, Door::Control, own());
    assert!(desk.called(most + 2, &command("ps", json!({}))).get("result").is_some(), "another door is open");
    desk.event(Event::ConnClosed { conn: ConnId(1), error: None });
    desk.open(most + 3, Door::Tcp, Peer::Remote { address: "127.0.0.1:1".into() });
    assert_eq!(desk.got(most + 3), "");
}

#[test]
fn metrics_and_health_are_told_without_a_token_and_nothing_else_is() {
    let mut desk = daemon();
    desk.open(1, Door::Metrics, Peer::Remote { address: "127.0.0.1:1".into() });
    let get = |desk: &mut Desk, path: &str| {
        desk.bytes(1, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        desk.got(1)
    };
    assert!(get(&mut desk, "/healthz").ends_with("\r\n\r\nok\n"));
    assert!(get(&mut desk, "/readyz").starts_with("HTTP/1.1 200 "));
    assert!(get(&mut desk, "/").starts_with("HTTP/1.1 404 "));
    assert!(get(&mut desk, "/.well-known/agent-card.json").starts_with("HTTP/1.1 404 "));
    desk.event(Event::PromptSubmitted { text: "go".into() });
    desk.ready(NodeId(1));
    let text = get(&mut desk, "/metrics");
    for line in
        ["agentd_children{role=\"worker\"} 1", "agentd_spawn_ready_seconds_count 1", "agentd_draining 0"]
    {
        assert!(text.contains(&format!("{line}\n")), "{line} is not in {text}");
    }
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    assert!(get(&mut desk, "/readyz").starts_with("HTTP/1.1 503 "));
    assert!(get(&mut desk, "/healthz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_drain_that_was_asked_for_answers_everybody_before_the_end() {
    let mut desk = operator();
    desk.open(2, Door::Control, own());
    desk.bytes(2, &request(&token(0), &rpc("SendMessage", message("m1", "count"))));
    desk.ready(NodeId(1));
    assert_eq!(desk.commanded(1, "drain", json!({}))["draining"], true);
    // Whoever asked waits for the daemon's end on the same connection, for as long as that takes.
    desk.advance_to(10_000);
    desk.pong(NodeId(1));
    desk.turn(NodeId(1), 1, "three");
    assert_eq!(desk.json(2)["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(!desk.shut.contains_key(&ConnId(1)));
    let late = desk.called(2, &rpc("SendMessage", message("m2", "more")))["result"]["task"].clone();
    assert_eq!(late["status"]["state"], "TASK_STATE_CANCELED");
    desk.finish(NodeId(1), "three");
    assert!(matches!(desk.exit, Some(Action::Exit { interrupted: None, .. })), "{:?}", desk.exit);
}

#[test]
fn the_surface_survives_a_checkpoint() {
    let mut desk = operator();
    desk.bytes(1, &request(&token(0), &rpc("SendMessage", message("m1", "count"))));
    desk.ready(NodeId(1));
    let bytes = desk.core.checkpoint().expect("written");
    let restored = Core::restore(&bytes).expect("read");
    assert_eq!(restored.checkpoint().expect("written"), bytes);
    desk.core = restored;
    desk.turn(NodeId(1), 1, "three");
    assert_eq!(desk.json(1)["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

/// A client that was told of a task hears of it from the next life too, and the same message makes no second turn.
#[test]
fn tasks_outlive_a_daemon_whose_store_does() {
    let mut config = daemon().core.config.clone();
    config.store.keeps = true;
    let mut desk = Desk::new(config);
    desk.event(Event::Seeded { seed: 7 });
    desk.open(1, Door::Control, own());
    let mut at_once = |id: &str| {
        let mut params = message(id, id);
        params["configuration"] = json!({ "returnImmediately": true });
        let answer = desk.called(1, &rpc("SendMessage", params));
        answer["result"]["task"]["id"].as_str().expect("a task").to_owned()
    };
    let (first, second, third) = (at_once("m-1"), at_once("m-2"), at_once("m-3"));
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "three");
    let context = desk.called(1, &rpc("GetTask", json!({ "id": first })))["result"]["contextId"].clone();

    let mut desk = desk.reborn();
    desk.open(1, Door::Control, own());
    let all = desk.called(1, &rpc("ListTasks", json!({ "includeArtifacts": true })));
    let tasks = all["result"]["tasks"].as_array().expect("tasks").clone();
    let told: Vec<(&str, &str)> = tasks
        .iter()
        .map(|task| (task["id"].as_str().expect("an id"), task["status"]["state"].as_str().expect("a state")))
        .collect();
    assert_eq!(
        told,
        [
            (third.as_str(), "TASK_STATE_SUBMITTED"),
            (second.as_str(), "TASK_STATE_WORKING"),
            (first.as_str(), "TASK_STATE_COMPLETED"),
        ]
    );
    assert_eq!(tasks[2]["artifacts"][0]["parts"][0]["text"], "three");
    assert!(tasks.iter().all(|task| task["contextId"] == context), "{tasks:?}");
    // Sent again it is the same task, and a cancel reaches the prompt that still waits.
    let mut params = message("m-2", "m-2");
    params["configuration"] = json!({ "returnImmediately": true });
    let again = desk.called(1, &rpc("SendMessage", params));
    assert_eq!(again["result"]["task"]["id"], second.as_str());
    let cancelled = desk.called(1, &rpc("CancelTask", json!({ "id": third })));
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    let desk = desk.reborn();
    assert_eq!(desk.core.conversation.last, 3, "no prompt was asked twice");
}

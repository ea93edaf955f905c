//! Any order of what clients do, of what children answer and of time: each request has one answer, in its order, a task ends
//! once, and the drain ends everything. Cancels race completions here, hang-ups race answers, kills race exits (F36).

use super::control::{command, daemon, own, request, rpc, token};
use super::*;
use crate::event::{Door, SupervisorSignal};
use crate::http::Response;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A client asks.
    Ask { client: u64, what: u8, which: u8 },
    /// A client goes away: it says so, or it is cut off.
    Leave { client: u64, says: bool },
    /// The worker's turn ends, by itself or as it was told.
    Turn { cancelled: bool },
    /// A subagent ends.
    Result { which: u8 },
    /// The process of one that has ended ends.
    Exit { which: u8 },
    /// Time passes.
    Wait { ms: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 1..5u64;
    prop_oneof![
        6 => (client.clone(), 0..12u8, any::<u8>()).prop_map(|(client, what, which)| Step::Ask { client, what, which }),
        1 => (client, any::<bool>()).prop_map(|(client, says)| Step::Leave { client, says }),
        3 => any::<bool>().prop_map(|cancelled| Step::Turn { cancelled }),
        2 => any::<u8>().prop_map(|which| Step::Result { which }),
        3 => any::<u8>().prop_map(|which| Step::Exit { which }),
        1 => (1..4_000u16).prop_map(|ms| Step::Wait { ms }),
    ]
}

/// A client as it sees itself.
#[derive(Default)]
struct Client {
    conn: u64,
    /// Requests sent, which are named from 1, and the last that was answered.
    asked: u64,
    answered: u64,
    /// The request whose answer is a stream that has not ended.
    stream: Option<u64>,
    /// Tasks of which it was told that they have ended.
    ended: BTreeSet<String>,
}

struct Plan {
    desk: Desk,
    clients: BTreeMap<u64, Client>,
    conns: u64,
    tasks: Vec<String>,
    /// What each task was seen to end as.
    ends: BTreeMap<String, String>,
    gone: BTreeSet<NodeId>,
}

impl Plan {
    fn new() -> Plan {
        let desk = daemon();
        let (clients, tasks, ends) = Default::default();
        Plan { desk, clients, conns: 0, tasks, ends, gone: BTreeSet::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask { client, what, which } => self.ask(client, what, which),
            Step::Leave { client, says } => {
                if let Some(left) = self.clients.remove(&client) {
                    let conn = ConnId(left.conn);
                    if says {
                        self.desk.event(Event::ConnEnded { conn });
                    }
                    self.desk.event(Event::ConnClosed { conn, error: None });
                }
            }
            Step::Turn { cancelled } => self.turn(cancelled),
            Step::Result { which } => {
                if let Some(node) =
                    self.pick(which, |run| run.record.handle.is_some() && !run.channel.terminal)
                {
                    self.desk.ready_if_new(node);
                    self.desk.result(node, "seen");
                }
            }
            Step::Exit { which } => {
                if let Some(node) = self.pick(which, |run| run.outcome.is_decided()) {
                    self.gone.insert(node);
                    self.desk.exit(node, Exit::Code(0));
                }
            }
            Step::Wait { ms } => {
                let until = self.desk.now_ms + u64::from(ms);
                self.desk.advance_to(until);
            }
        }
        self.read();
    }

    /// One of the processes for which `fits`.
    fn pick(&self, which: u8, fits: impl Fn(&crate::run::Run) -> bool) -> Option<NodeId> {
        let alive = |node: &NodeId| self.desk.children.contains_key(node) && !self.gone.contains(node);
        let fitting: Vec<NodeId> = self
            .desk
            .core
            .runs
            .iter()
            .filter(|(node, run)| alive(node) && fits(run))
            .map(|(node, _)| *node)
            .collect();
        fitting.get(usize::from(which) % fitting.len().max(1)).copied()
    }

    fn turn(&mut self, cancelled: bool) {
        let crate::supervisor::conversation::Phase::Turn(turn) = &self.desk.core.conversation.phase else {
            return;
        };
        let (worker, message) = (turn.worker, turn.message);
        if self.gone.contains(&worker) || self.desk.core.runs[&worker].outcome.is_decided() {
            return;
        }
        self.desk.ready_if_new(worker);
        if !cancelled {
            self.desk.turn(worker, message, "three");
        } else if self
            .desk
            .child(worker)
            .heard
            .iter()
            .any(|down| matches!(down, Down::Cancel(c) if c.turn == Some(message)))
        {
            let outcome = TurnOutcome::Result(RunResult {
                end: LoopEnd::Cancelled,
                text: None,
                partial: false,
                error: Some("cancelled".into()),
                evidence: LoopEvidence { model_calls: 1, tool_calls: 0, tool_errors: 0 },
            });
            self.desk.up(worker, &Up::Turn(Turn { id: message, outcome }));
        }
    }

    fn ask(&mut self, client: u64, what: u8, which: u8) {
        if !self.clients.contains_key(&client) {
            self.conns += 1;
            let conn = self.conns;
            self.desk.open(conn, Door::Control, own());
            self.clients.insert(client, Client { conn, ..Client::default() });
        }
        let asking = self.clients.get_mut(&client).expect("it is there");
        if asking.asked >= asking.answered + 5 || asking.stream.is_some() {
            return;
        }
        asking.asked += 1;
        let (conn, number) = (asking.conn, asking.asked);
        let task = self.tasks.get(usize::from(which) % self.tasks.len().max(1)).cloned().unwrap_or_default();
        let handle = format!("sub-{}", which % 4 + 1);
        let mut message = json!({ "message": {
            "messageId": format!("{conn}-{number}"), "role": "ROLE_USER", "parts": [{ "text": "count" }],
        } });
        let mut body = match what {
            0 => rpc("SendMessage", message),
            1 | 2 => {
                message["configuration"] = json!({ "returnImmediately": true });
                rpc("SendMessage", message)
            }
            3 => rpc("SendStreamingMessage", message),
            4 | 5 => rpc("CancelTask", json!({ "id": task })),
            6 => rpc("SubscribeToTask", json!({ "id": task })),
            7 => command(
                "subagent.run",
                json!({ "instruction": "look", "mode": if which.is_multiple_of(2) { "sync" } else { "async" } }),
            ),
            8 => command("subagent.kill", json!({ "handle": handle, "gone": true })),
            9 => command("subagent.await", json!({ "handle": handle, "timeout": "2s" })),
            10 => rpc("ListTasks", json!({ "pageSize": 1 })),
            _ => command("ps", json!({ "all": true })),
        };
        body["id"] = number.into();
        self.clients.get_mut(&client).expect("it is there").stream = matches!(what, 3 | 6).then_some(number);
        self.desk.bytes(conn, &request(&token(0), &body));
    }

    /// Reads what clients were sent.
    fn read(&mut self) {
        for client in self.clients.values_mut() {
            let Some(bytes) = self.desk.sent.remove(&ConnId(client.conn)) else { continue };
            let text = String::from_utf8(bytes).expect("text");
            // An answer ends without a line break, and the next begins behind it.
            let text = text.replace("HTTP/1.1 ", "\nHTTP/1.1 ");
            for line in text.lines() {
                let line = line.strip_prefix("data: ").unwrap_or(line);
                if line == "0" {
                    client.stream = None;
                }
                let Ok(Value::Object(answer)) = serde_json::from_str::<Value>(line) else { continue };
                let id = answer["id"].as_u64().expect("the request's");
                let again = client.stream == Some(id) && id == client.answered;
                assert!(id == client.answered + 1 || again, "answer {id} after {}: {line}", client.answered);
                client.answered = id;
                // Who asked for a stream and got an error has no stream.
                if client.stream == Some(id) && answer.get("error").is_some() {
                    client.stream = None;
                }
                let result = answer.get("result").unwrap_or(&Value::Null);
                for task in [result, &result["task"], &result["statusUpdate"], &result["tasks"][0]] {
                    let Some(state) = task["status"]["state"].as_str() else { continue };
                    let id = task["id"].as_str().or(task["taskId"].as_str()).expect("a name").to_owned();
                    // What one client hears is in order; what two hear need not be told in the order of the clients.
                    let is_over = !matches!(state, "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING");
                    assert!(is_over || !client.ended.contains(&id), "task {id} has ended and is {state}");
                    if is_over {
                        client.ended.insert(id.clone());
                        let end = self.ends.entry(id.clone()).or_insert_with(|| state.to_owned());
                        assert_eq!(end, state, "task {id} has two ends");
                    }
                    if !self.tasks.contains(&id) {
                        self.tasks.push(id);
                    }
                }
            }
        }
    }

    /// Everything ends.
    fn end(mut self) {
        self.desk.event(Event::Signalled { signal: SupervisorSignal::Term });
        self.desk.event(Event::Signalled { signal: SupervisorSignal::Term });
        for _ in 0..200 {
            if self.desk.exit.is_some() {
                break;
            }
            while let Some(node) = self.pick(0, |_| true) {
                self.gone.insert(node);
                if self.desk.exit.is_none() {
                    self.desk.exit(node, Exit::Signal(9));
                }
            }
            if self.desk.exit.is_none() {
                let until = self.desk.now_ms + 1_000;
                self.desk.advance_to(until);
            }
        }
        self.read();
        assert!(self.desk.exit.is_some(), "it does not end");
        for client in self.clients.values() {
            let shut = self.desk.shut.contains_key(&ConnId(client.conn));
            assert!(
                shut || client.answered == client.asked,
                "{} of {} are answered",
                client.answered,
                client.asked
            );
        }
        assert!(self.desk.core.operator.is_empty());
        assert_eq!(self.desk.core.permits_out(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn every_request_has_one_answer_and_every_task_one_end(steps in proptest::collection::vec(step(), 0..60)) {
        let mut plan = Plan::new();
        for step in steps {
            plan.step(step);
        }
        plan.end();
    }
}

#[test]
fn a_response_is_one_line_of_json() {
    // What the reading above rests on.
    let bytes = Response::of(200, "application/json", "{}").bytes(crate::http::Framing {
        keep_alive: true,
        chunks: true,
        head_only: false,
    });
    assert!(bytes.ends_with(b"\r\n\r\n{}"));
}

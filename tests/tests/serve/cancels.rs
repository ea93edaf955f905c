//! Tasks that are cancelled (F36), and what a cancelled turn takes along (F40): one end, never taken back, and it is real.

use crate::stage::{daemon, rows};
use agentd_tests::kit::{Rule, RunCommand, Running, alive, call, playbook};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const NOT_FOUND: i64 = -32_001;
const NOT_CANCELABLE: i64 = -32_002;
const UNSUPPORTED: i64 = -32_004;

/// A request over the control socket, on its way.
fn begin(running: &Running, method: &str, params: &Value) -> Child {
    let state = running.state();
    let token = std::fs::read_to_string(state.join("control.token")).expect("a token");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut curl = running.command("curl", &["-sS", "--unix-socket"]);
    curl.arg(state.join("control.sock")).args(["-H", &format!("Authorization: Bearer {}", token.trim())]);
    curl.args([
        "-H",
        "A2A-Version: 1.0",
        "-H",
        "Content-Type: application/json",
        "-d",
        &body,
        "http://agentd/",
    ]);
    curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("curl runs")
}

fn end(curl: Child) -> Value {
    let output = curl.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn rpc(running: &Running, method: &str, params: &Value) -> Value {
    end(begin(running, method, params))
}

/// A task that goes on.
fn ask(running: &Running, id: &str, text: &str) -> Value {
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    let params = json!({"message": message, "configuration": {"returnImmediately": true}});
    json!({"id": rpc(running, "SendMessage", &params)["result"]["task"]["id"]})
}

fn state(running: &Running, task: &Value) -> String {
    let told = rpc(running, "GetTask", task);
    told["result"]["status"]["state"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn f36_f40_a_cancelled_turn_ends_once_with_what_it_waited_for_and_nothing_else() {
    let start = |mode: &str| call("subagent.run", json!({"instruction": "stay", "mode": mode}));
    let rules = [
        Rule::worker().told("^delegate$").turn(1).calls([start("async"), start("async"), start("sync")]),
        Rule::worker().says("heard"),
        Rule::subagent().after("1h").says("late"),
    ];
    let running = RunCommand::new(crate::stage::AGENTD, &playbook(rules)).serve();
    let task = ask(&running, "m1", "delegate");
    let pids = ["sub-1", "sub-2", "sub-3"].map(|handle| running.child(handle));
    // Twenty at once: each has an answer, and there is one end.
    let cancels: Vec<Child> = (0..20).map(|_| begin(&running, "CancelTask", &task)).collect();
    let answers: Vec<Value> = cancels.into_iter().map(end).collect();
    for answer in &answers {
        let state = &answer["result"]["status"]["state"];
        assert!(state == "TASK_STATE_CANCELED" || answer["error"]["code"] == NOT_CANCELABLE, "{answer}");
    }
    assert!(answers.iter().any(|answer| answer.get("result").is_some()), "{answers:?}");
    assert_eq!(state(&running, &task), "TASK_STATE_CANCELED");
    let ended = running.wait_for_event("subagent.result", |e| e["handle"] == "sub-3");
    assert_eq!(ended["status"], "cancelled");
    running.wait_for_event("child.exit", |e| e["handle"] == "sub-3");
    assert!(!alive(pids[2]), "what it waited for is gone");
    assert!(alive(pids[0]) && alive(pids[1]), "and nothing else");
    let all = rows(&running.ask(&["ps", "--all"]));
    for (handle, status) in [("sub-1", "running"), ("sub-2", "running"), ("sub-3", "cancelled")] {
        assert!(all.contains(&(handle.to_owned(), status.to_owned())), "{handle} can still be had: {all:?}");
    }
    // It is over, for whoever asks in whatever way.
    assert_eq!(rpc(&running, "CancelTask", &task)["error"]["code"], NOT_CANCELABLE);
    assert_eq!(rpc(&running, "SubscribeToTask", &task)["error"]["code"], UNSUPPORTED);
    let unknown = json!({"id": "00000000-0000-7000-8000-000000000000"});
    assert_eq!(rpc(&running, "CancelTask", &unknown)["error"]["code"], NOT_FOUND);
    // The conversation goes on.
    assert!(running.agentd(&["send", "root", "hello"]).status.success());
    running.ask(&["kill", "sub-1"]);
    running.ask(&["kill", "sub-2"]);
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn f36_a_cancel_that_races_the_answer_has_one_winner() {
    let running = daemon().serve();
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for round in 0..12 {
        let task = ask(&running, &format!("m{round}"), "hello");
        let cancels: Vec<Child> = (0..3).map(|_| begin(&running, "CancelTask", &task)).collect();
        let answers: Vec<Value> = cancels.into_iter().map(end).collect();
        let last = state(&running, &task);
        for answer in &answers {
            match answer["result"]["status"]["state"].as_str() {
                Some(told) => assert_eq!(told, last, "what was told stands: {answer}"),
                None => assert_eq!(answer["error"]["code"], NOT_CANCELABLE, "{answer}"),
            }
        }
        let told = answers.iter().filter(|answer| answer.get("result").is_some()).count();
        assert_eq!(told > 0, last == "TASK_STATE_CANCELED", "{last}: {answers:?}");
        assert_eq!(state(&running, &task), last, "and stays so");
        *seen.entry(last).or_default() += 1;
    }
    let ends: u32 = seen
        .iter()
        .filter(|(state, _)| state.ends_with("CANCELED") || state.ends_with("COMPLETED"))
        .map(|(_, n)| n)
        .sum();
    assert_eq!(ends, 12, "{seen:?}");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

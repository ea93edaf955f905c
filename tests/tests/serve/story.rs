//! A daemon's life, told by the commands of its operator.

use crate::stage::{daemon, rows, text, told};
use agentd_tests::kit::alive;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::MetadataExt;

#[test]
fn an_operator_asks_watches_talks_stops_and_drains() {
    let running = daemon().serve();
    assert_eq!(running.ask(&["ps"])["runs"], json!([]));
    let asked = running.agentd(&["send", "root", "delegate"]);
    assert_eq!((asked.status.code(), text(&asked.stdout).as_str()), (Some(0), "heard\n"), "{asked:?}");
    // The worker stays warm, what it delegated has ended.
    assert_eq!(rows(&running.ask(&["ps"])), [("root".into(), "running".into())]);
    let all = running.ask(&["ps", "--all"]);
    assert_eq!(rows(&all), [("root".into(), "running".into()), ("sub-1".into(), "completed".into())]);
    assert_eq!(running.ask(&["show", "sub-1"])["result"], "seen");
    let tree = text(&running.agentd(&["tree", "--all"]).stdout);
    assert!(tree.starts_with("root running · ") && tree.contains("\n  sub-1 completed · look\n"), "{tree}");

    // A warm run: messages, one turn each, and what it waits on.
    let spawned = running.agentd(&["spawn", "--mode", "warm", "first"]);
    assert_eq!(text(&spawned.stdout), "sub-2\n", "{spawned:?}");
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-2");
    assert_eq!(running.ask(&["send", "sub-2", "second"])["message_id"], 2);
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-2" && e["message"] == 2);
    let waits = running.ask(&["ps"])["runs"][1]["waits"].as_str().unwrap_or_default().to_owned();
    assert!(waits.starts_with("message "), "{waits}");
    assert_eq!(running.ask(&["pause", "sub-2"])["status"], "running");
    assert_eq!(running.ask(&["resume", "sub-2"])["status"], "running");
    let finish = running.agentd(&["finish", "sub-2"]);
    assert!(told(&finish).0 == 1 && told(&finish).1.contains("between turns"), "{finish:?}");
    assert_eq!(running.ask(&["retire", "sub-2"])["status"], "retiring");
    let waited = running.ask(&["wait", "sub-2"]);
    assert_eq!(waited["results"][0]["status"], "completed");

    // A run that goes on until it is killed, with everything below it.
    running.ask(&["spawn", "stay"]);
    let pid = running.child("sub-3");
    let timed_out = running.agentd(&["wait", "sub-3", "--timeout", "1ms"]);
    assert_eq!(timed_out.status.code(), Some(75), "{timed_out:?}");
    running.wait_for_event("mcp.connect", |e| e["handle"] == "sub-3");
    let steered = running.ask(&["steer", "sub-3", "hurry"]);
    assert_eq!((&steered["handle"], &steered["status"]), (&json!("sub-3"), &json!("running")));
    let killed = running.ask(&["kill", "sub-3", "--reason", "enough"]);
    assert_eq!((&killed["status"], &killed["processes_left"]), (&json!("cancelled"), &json!(0)));
    assert!(
        killed["processes"].as_u64().is_some_and(|count| count >= 3),
        "itself, a keeper, a server: {killed}"
    );
    assert!(!alive(pid), "it is gone when the command says so");
    assert_eq!(running.agentd(&["wait", "sub-3"]).status.code(), Some(1));
    let logs = text(&running.agentd(&["logs", "sub-3", "--json"]).stdout);
    let names: Vec<String> = logs
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON")["event"]
                .as_str()
                .unwrap_or_default()
                .into()
        })
        .collect();
    assert!(
        names.first().is_some_and(|name| name == "subagent.spawn") && names.contains(&"subagent.kill".into()),
        "{names:?}"
    );

    for (args, code, says) in [
        (&["show", "sub-99"][..], 1, "unknown handle sub-99"),
        (&["kill", "nobody"], 1, "unknown handle nobody"),
        (&["send", "sub-1", "more"], 1, "it has ended as completed"),
        (&["spawn", "--mode", "lukewarm", "x"], 5, "accepted are sync, async, detached, warm"),
        (&["spawn", "--server", "nobody", "x"], 5, "nobody"),
        (&["logs", "sub-1", "--lines", "0"], 2, "lines: accepted is 1 to 1000"),
        (&["ps", "--socket", "nowhere.sock"], 6, "no agentd runs here: nowhere.sock"),
        (&["ps", "--token-file", "nowhere"], 6, "--token-file"),
        (&["ps", "-c", "nowhere.yaml"], 2, "cannot be read"),
    ] {
        let output = running.agentd(args);
        let (seen, said) = told(&output);
        assert!(seen == code && said.contains(says), "{args:?}: {output:?}");
    }

    // The drain waits for what runs, and the command for the drain.
    let (socket, token) = (running.state().join("control.sock"), running.state().join("control.token"));
    for path in [&socket, &token] {
        assert_eq!(std::fs::metadata(path).expect("there").mode() & 0o777, 0o600, "{path:?}");
    }
    assert_eq!(std::fs::metadata(running.state()).expect("there").mode() & 0o777, 0o700);
    let drained = running.agentd(&["drain"]);
    assert!(drained.status.success() && text(&drained.stdout).contains("has drained"), "{drained:?}");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert!(!socket.exists() && !token.exists());
    assert_eq!(ended.events.seen("daemon.end").len(), 1);
}

#[test]
fn a_signal_drains_and_a_client_that_waits_has_its_answer_before_the_end() {
    let running = daemon().config("lifecycle: {drain_timeout: 2s}").serve();
    let mut asking = running.command(crate::stage::AGENTD, &["send", "root", "stay", "--json"]);
    let asking = asking.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    running.wait_for_event("worker.spawn", |_| true);
    running.signal(Signal::TERM);
    let answer = asking.wait_with_output().expect("it ends");
    let task: serde_json::Value = serde_json::from_slice(&answer.stdout).expect("an answer before the end");
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED", "{task}");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}

#[test]
fn a_client_that_is_stopped_takes_its_synchronous_run_with_it() {
    let running = daemon().serve();
    let mut waiting = running.command(crate::stage::AGENTD, &["spawn", "--mode", "sync", "stay"]);
    let mut waiting = waiting.spawn().expect("it starts");
    running.child("sub-1");
    waiting.kill().expect("killed");
    waiting.wait().expect("reaped");
    running.wait_for_event("subagent.result", |e| e["handle"] == "sub-1" && e["status"] == "cancelled");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

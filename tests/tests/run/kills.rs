//! `subagent.kill` (S9.4): cancelled at once, told to end, made to end, gone within 8 s.

use crate::{run, server, servers, statuses};
use agentd_tests::kit::{Rule, Running, call, playbook};
use agentd_tests::mcp_server::Mode;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

fn start(text: &str, more: Value) -> Value {
    let mut args = json!({"instruction": text, "mode": "async"});
    args.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    call("subagent.run", args)
}

fn kill(handle: &str) -> Value {
    call("subagent.kill", json!({"handle": handle, "reason": "enough"}))
}

/// Milliseconds of a run's signals after its kill, by signal.
fn signals(running: &agentd_tests::kit::Events, handle: &str) -> Vec<(String, u64)> {
    running
        .seen("subagent.kill.escalated")
        .iter()
        .filter(|e| e["handle"] == handle)
        .map(|e| (e["signal"].as_str().unwrap_or("?").to_owned(), e["after_ms"].as_u64().unwrap_or(u64::MAX)))
        .collect()
}

/// Waits until all these processes have ended; the test fails when that takes as long as `patience`.
fn gone(running: &Running, pids: &[i32], patience: Duration) {
    let all = running.everything();
    let theirs = agentd_tests::kit::Subtree(all.0.into_iter().filter(|p| pids.contains(&p.pid)).collect());
    let left = theirs.wait_for_end(patience);
    assert!(left.is_empty(), "still there: {left:?}");
}

#[test]
fn a_child_in_a_model_call_leaves_by_itself() {
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([start("wait", json!({}))]),
        Rule::worker().turn(2).after("500ms").calls([kill("sub-1")]),
        // A second kill changes nothing, and everybody reads the same.
        Rule::worker().turn(3).calls([kill("sub-1"), call("subagent.await", json!({"handle": "sub-1"}))]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(statuses(&results), ["running", "cancelled", "cancelled", "cancelled"]);
    let error = results[1]["value"]["error"].as_str().expect("why");
    assert!(error.contains("killed by the conversation") && error.contains("enough"), "{error}");
    assert_eq!(results[1]["text"], results[3]["text"]);
    assert_eq!(signals(&ended.events, "sub-1"), [], "a child that leaves by itself is never signalled");
}

#[test]
fn a_child_that_does_not_listen_is_signalled_and_gone_within_8_s() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("wait", json!({}))]),
        Rule::worker().turn(2).after("2s").calls([kill("sub-1")]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .start("go");
    let child = running.child("sub-1");
    running.signal_child(child, Signal::STOP);
    running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-1");
    gone(&running, &[child], Duration::from_secs(8));
    let ended = running.wait();
    let signals = signals(&ended.events, "sub-1");
    assert_eq!(signals.first().map(|(s, _)| s.as_str()), Some("SIGTERM"), "{signals:?}");
    assert!((5_000..6_000).contains(&signals[0].1), "not before `term_after`: {signals:?}");
    // The answer did not wait for any of this.
    assert_eq!(statuses(&ended.json()), ["running", "cancelled"]);
}

/// F01: what left the group goes too, and so does what it was in the middle of.
#[test]
fn a_kill_in_a_tool_call_takes_the_servers_escapees() {
    let modes = [Mode::HangOnCall, Mode::IgnoreTerm, Mode::IgnoreEof, Mode::DoubleForkSleeper(300)];
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("call", json!({"servers": ["fake"]}))]),
        Rule::worker().turn(2).after("3s").calls([kill("sub-1")]),
        Rule::worker().turn(3).says("{{ results | tojson }}"),
        Rule::subagent().turn(1).calls([call("echo", json!({"text": "hello"}))]),
    ]))
    .config(&servers(&[server("fake", &modes)]))
    .start("go");
    running.child("sub-1");
    running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-1");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(statuses(&ended.json()), ["running", "cancelled"]);
    // The worker's own server and the subagent's: each noted itself and its sleeper.
    assert!(ended.file("pids").lines().count() >= 4, "{}", ended.file("pids"));
    ended.assert_escapees_gone();
}

#[test]
fn a_kill_takes_what_the_run_delegated() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("parent", json!({"delegate": true}))]),
        Rule::worker().turn(2).after("2s").calls([kill("sub-1")]),
        Rule::worker().turn(3).calls([call("subagent.list", json!({}))]),
        Rule::worker().says("{{ last.text }}"),
        Rule::subagent().told("^parent$").calls([
            call("subagent.run", json!({"instruction": "child", "mode": "sync"})),
            call("subagent.run", json!({"instruction": "child", "mode": "async"})),
        ]),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config("limits: {subagents: {depth: 2}}")
    .start("go");
    let pids = ["sub-1", "sub-2", "sub-3"].map(|handle| running.child(handle));
    running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-1");
    gone(&running, &pids, Duration::from_secs(8));
    let ended = running.wait();
    let runs = &ended.json()["runs"];
    let statuses: Vec<&Value> = runs.as_array().into_iter().flatten().map(|r| &r["status"]).collect();
    assert_eq!(statuses, ["cancelled"; 3], "{runs}");
    for handle in ["sub-1", "sub-2", "sub-3"] {
        assert_eq!(signals(&ended.events, handle), [], "{}", ended.log());
    }
}

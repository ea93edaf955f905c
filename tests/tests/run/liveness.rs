//! Who is stuck and who is only busy (S9.1).

use crate::run;
use agentd_tests::kit::{Rule, call, playbook};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

/// Short keys, so that a verdict takes seconds.
const QUICK: &str = "lifecycle: {liveness: {ping: 200ms, pong: 1s, progress: 2s}, kill: {kill_after: 500ms}}";

fn two(first: &str, second: &str) -> String {
    let one = |text: &str| call("subagent.run", json!({"instruction": text, "mode": "sync"}));
    playbook([
        Rule::worker().turn(1).calls([one("first"), one("second")]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("^first$").after(first).says("first is done"),
        Rule::subagent().told("^second$").after(second).says("second is done"),
    ])
}

#[test]
fn a_stopped_child_is_stuck_and_others_go_on() {
    let running = run(&two("1h", "6s")).config(QUICK).start("go");
    let first = running.child("sub-1");
    running.signal_child(first, Signal::STOP);
    let verdict = running.wait_for_event("child.unhealthy", |e| e["handle"] == "sub-1");
    assert!(verdict["verdict"].as_str().is_some_and(|v| v.contains("stuck")), "{verdict}");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(results[0]["value"]["status"], "failed", "{results}");
    assert!(results[0]["value"]["error"].as_str().is_some_and(|e| e.contains("stuck")), "{results}");
    assert_eq!(results[1]["value"]["result"], "second is done", "{results}");
    assert_eq!(ended.events.seen("child.unhealthy").len(), 1, "{}", ended.log());
}

#[test]
fn a_silent_long_model_call_is_left_alone() {
    let ended = run(&two("6s", "1ms")).config(QUICK).run("go");
    let results = ended.json();
    assert_eq!(results[0]["value"]["result"], "first is done", "{results}");
    assert!(ended.took >= Duration::from_secs(6), "it was silent three times as long as `progress`");
    assert_eq!(ended.events.seen("child.unhealthy").len(), 0, "{}", ended.log());
    assert_eq!(ended.events.seen("subagent.kill.escalated").len(), 0, "{}", ended.log());
}

/// The same with the keys as they ship: silent beyond the 120 s of `progress`.
#[test]
#[ignore = "takes two and a half minutes; .ci/run runs it with the slow tests"]
fn a_model_call_of_150_s_is_left_alone() {
    let ended = run(&two("150s", "1ms")).run("go");
    let results = ended.json();
    assert_eq!(results[0]["value"]["result"], "first is done", "{results}");
    assert_eq!(ended.events.seen("child.unhealthy").len(), 0, "{}", ended.log());
}

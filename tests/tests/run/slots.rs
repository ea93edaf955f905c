//! Ghost slots (F06): whatever ended a run, its place is free again once its process is gone.

use crate::{run, statuses};
use agentd_tests::kit::{Rule, call, playbook};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const TWO: &str = "limits: {subagents: {breadth: 2, rate: 50/1s}}";

fn start(text: &str, mode: &str) -> Value {
    call("subagent.run", json!({"instruction": text, "mode": mode}))
}

fn quick() -> [Value; 2] {
    [start("quick", "sync"), start("quick", "sync")]
}

fn slow() -> [Value; 2] {
    [start("slow", "async"), start("slow", "async")]
}

#[test]
fn a_slot_is_free_again_whatever_ended_its_run() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls(quick()),
        Rule::worker().turn(2).after("1s").calls(slow()),
        // Killed.
        Rule::worker().turn(3).calls(["sub-3", "sub-4"].map(|h| call("subagent.kill", json!({"handle": h})))),
        Rule::worker().turn(4).after("1s").calls(slow()),
        // Crashed: the test does that.
        Rule::worker().turn(5).calls([call("subagent.await", json!({"handles": ["sub-5", "sub-6"]}))]),
        Rule::worker().turn(6).after("1s").calls(quick()),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("quick").says("done"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config(TWO)
    .start("go");
    for handle in ["sub-5", "sub-6"] {
        let child = running.child(handle);
        running.signal_child(child, Signal::KILL);
    }
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(
        statuses(&results),
        [
            "completed",
            "completed",
            "running",
            "running",
            "cancelled",
            "cancelled",
            "running",
            "running",
            "?",
            "completed",
            "completed"
        ],
        "{}",
        ended.log()
    );
    let crashed = &results[8]["value"]["results"];
    assert_eq!((&crashed[0]["status"], &crashed[1]["status"]), (&json!("failed"), &json!("failed")));
}

/// F06 d, F30: a fork that fails is an answer, gives its slot and descriptors back, and later ones work.
#[test]
fn a_spawn_that_fails_gives_its_slot_back() {
    let command = run(&playbook([
        Rule::worker().turn(1).after("2s").calls(quick()),
        Rule::worker().turn(2).after("3s").calls(quick()),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("done"),
    ]))
    .config(TWO)
    .from_a_copy();
    let binary = command.path("agentd-copy");
    let running = command.start("go");
    running.wait_for_event("child.ready", |_| true);
    let fds = running.fds();
    fs::set_permissions(&binary, Permissions::from_mode(0o600)).expect("chmod");
    let failed = running.wait_for_event("child.spawn_failed", |e| e["handle"] == "sub-2");
    assert!(failed["error"].as_str().is_some_and(|e| !e.is_empty()), "{failed}");
    assert_eq!(running.fds(), fds, "no descriptor is lost");
    fs::set_permissions(&binary, Permissions::from_mode(0o700)).expect("chmod");
    let ended = running.wait();
    let results = ended.json();
    assert_eq!(statuses(&results), ["failed", "failed", "completed", "completed"], "{results}");
    let error = results[0]["value"]["error"].as_str().expect("why");
    assert!(error.contains("could not be started"), "{error}");
}

/// F30: a replaced or deleted binary does not matter.
#[test]
fn a_deleted_binary_does_not_matter() {
    let command = run(&playbook([
        Rule::worker().turn(1).after("1s").calls(quick()),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("done"),
    ]))
    .from_a_copy();
    let binary = command.path("agentd-copy");
    let running = command.start("go");
    running.wait_for_event("child.ready", |_| true);
    fs::remove_file(&binary).expect("it can be deleted while it runs");
    let ended = running.wait();
    assert_eq!(statuses(&ended.json()), ["completed", "completed"], "{}", ended.log());
}

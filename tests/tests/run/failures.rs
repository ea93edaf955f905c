//! The machine says no: no descriptors, no processes, many deaths at once, a child that does not read, PID 1.

use crate::{run, server, servers, statuses};
use agentd_tests::kit::{Rule, State, call, playbook, skip};
use agentd_tests::mcp_server::Mode;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

fn start(text: &str, mode: &str) -> Value {
    call("subagent.run", json!({"instruction": text, "mode": mode}))
}

/// F28: forty children die in one loop; each has its cause, no zombie stays.
#[test]
fn forty_deaths_at_once() {
    let all: Vec<String> = (1..=40).map(|n| format!("sub-{n}")).collect();
    let running = run(&playbook([
        Rule::worker().turn(1).calls((0..40).map(|_| start("wait", "async"))),
        Rule::worker().turn(2).calls([call("subagent.await", json!({"handles": all}))]),
        Rule::worker().says("{{ last.text }}"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config("limits: {subagents: {breadth: 40, rate: 40/1s}, run: {tool_result_bytes: 1MiB}}")
    .start("go");
    let pids: Vec<i32> = all.iter().map(|handle| running.child(handle)).collect();
    for pid in &pids {
        running.signal_child(*pid, Signal::KILL);
    }
    for handle in &all {
        running.wait_for_event("subagent.result", |e| e["handle"] == *handle);
    }
    let ended = running.wait();
    let results = &ended.json()["results"];
    let results = results.as_array().expect("a list");
    assert_eq!(results.len(), 40);
    for result in results {
        assert_eq!(result["status"], "failed", "{result}");
        assert!(result["error"].as_str().is_some_and(|e| e.contains("SIGKILL")), "{result}");
    }
}

/// F30: so few descriptors that some spawns fail. Each call has its answer, and what could be started was.
#[test]
fn too_few_descriptors() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls((0..16).map(|_| start("wait", "sync"))),
        Rule::worker().turn(2).after("1s").calls([start("wait", "sync")]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().after("3s").says("done"),
    ]))
    .config("limits: {subagents: {breadth: 16, rate: 50/1s}}")
    .wrapper(["sh", "-c", "ulimit -n 48; exec \"$0\" \"$@\""])
    .start("go");
    running.wait_for_event("child.spawn_failed", |_| true);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    let seen = statuses(&results);
    assert_eq!(seen.len(), 17);
    assert!(seen.iter().all(|s| s == "completed" || s == "failed"), "{seen:?}");
    assert!(seen[..16].iter().any(|s| s == "completed"), "{seen:?}");
    assert!(seen[..16].iter().any(|s| s == "failed"), "{seen:?}");
    assert_eq!(seen[16], "completed", "descriptors came back: {results}");
}

/// F30: the uid has no more processes. Skipped where this uid is not counted.
#[test]
fn no_more_processes() {
    let usable = Command::new("setpriv").args(["--reuid=65534", "--clear-groups", "true"]).output();
    if !usable.is_ok_and(|o| o.status.success()) {
        return skip("no_more_processes", "setpriv cannot change the uid here");
    }
    let command = run(&playbook([
        Rule::worker().turn(1).calls((0..12).map(|_| start("wait", "sync"))),
        Rule::worker().turn(2).after("1s").calls([start("wait", "sync")]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().after("3s").says("done"),
    ]))
    .config("limits: {subagents: {breadth: 12, rate: 50/1s}}")
    .from_a_copy();
    let folder = command.path("");
    let opened = Command::new("chmod").args(["-R", "a+rwX"]).arg(&folder).status().expect("chmod");
    assert!(opened.success());
    let running =
        command.wrapper(["prlimit", "--nproc=24", "setpriv", "--reuid=65534", "--clear-groups"]).start("go");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    // Some could not be forked, some could not start a thread; whichever, each call has its answer.
    let seen = statuses(&ended.json());
    assert!(seen.iter().all(|s| s == "completed" || s == "failed"), "{seen:?}");
    assert!(seen[..12].iter().any(|s| s == "failed"), "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("completed"), "{seen:?}");
}

/// F15: a big payload for a child that does not read blocks nobody, and is nowhere to be seen.
#[test]
fn a_big_payload_for_a_child_that_does_not_read() {
    let mark = "canary-7c1d";
    let running = run(&playbook([
        Rule::worker().turn(1).calls([
            call(
                "subagent.run",
                json!({"instruction": format!("{mark} {{{{ 'x' * 900000 }}}}"), "mode": "async"}),
            ),
            start("quick", "sync"),
        ]),
        Rule::worker().turn(2).calls([call("subagent.kill", json!({"handle": "sub-1"}))]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("^quick$").after("2s").says("done"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .start("go");
    let spawned = running.wait_for_event("subagent.spawn", |e| e["handle"] == "sub-1");
    let pid = spawned["pid"].as_i64().and_then(|p| i32::try_from(p).ok()).expect("a pid");
    running.signal_child(pid, Signal::STOP);
    for file in ["cmdline", "environ"] {
        let seen = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&seen).contains(mark), "{file}");
    }
    // The other one is served and the kill is taken while it stands there.
    running.wait_for_event("subagent.result", |e| e["handle"] == "sub-2" && e["status"] == "completed");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(statuses(&ended.json()), ["running", "completed", "cancelled"], "{}", ended.log());
}

/// F15: more than fits is a clean refusal.
#[test]
fn a_payload_that_does_not_fit_is_refused() {
    let big = json!({"instruction": "{{ 'x' * 1100000 }}", "mode": "sync"});
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([call("subagent.run", big)]),
        Rule::worker().says("{{ last.error }}: {{ last.text }}"),
        Rule::subagent().says("never"),
    ]))
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert!(ended.stdout.starts_with("True: "), "{}", ended.stdout);
    assert!(ended.stdout.len() < 2_000, "the error does not carry the payload");
    assert_eq!(ended.events.seen("subagent.spawn").len(), 0);
}

/// F39: as PID 1 of a namespace, with a server whose fifty orphans land there.
#[test]
fn as_pid_1_orphans_are_reaped_and_exits_are_right() {
    let usable = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    if !usable.is_ok_and(|o| o.status.success()) {
        return skip("as_pid_1_orphans_are_reaped_and_exits_are_right", "no pid namespace can be made here");
    }
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("wait", "async"), start("fine", "sync")]),
        Rule::worker().turn(2).after("4s").calls([call("subagent.await", json!({"handle": "sub-1"}))]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("fine").says("done"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config(&servers(&[server("fake", &[Mode::Orphans(50)])]))
    .wrapper(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    .start("go");
    running.wait_for_event("child.ready", |e| e["handle"] == "sub-1");
    // Its pid in here is not the one that it has in its namespace.
    let child = running.subtree().0.into_iter().find(|p| p.name == "agentd:sub-1").expect("the child");
    running.signal_child(child.pid, Signal::KILL);
    running.wait_for_event("subagent.result", |e| e["handle"] == "sub-1");
    running.wait_for_event("child.ready", |e| e["handle"] == "sub-2");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(statuses(&results), ["running", "completed", "failed"], "{results}");
    assert!(results[2]["value"]["error"].as_str().is_some_and(|e| e.contains("SIGKILL")), "{results}");
}

/// F39: PID 1 takes SIGTERM, and no zombie stays while it runs.
#[test]
fn pid_1_takes_sigterm() {
    let usable = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    if !usable.is_ok_and(|o| o.status.success()) {
        return skip("pid_1_takes_sigterm", "no pid namespace can be made here");
    }
    let running = run(&playbook([
        Rule::worker().turn(1).calls([call("echo", json!({"text": "x"}))]),
        Rule::worker().after("1h"),
    ]))
    .config(&servers(&[server("fake", &[Mode::Orphans(50)])]))
    .config("lifecycle: {drain_timeout: 4s}")
    .wrapper(["unshare", "--pid", "--fork", "--mount-proc"])
    .start("go");
    running.wait_for_event("tool.call", |_| true);
    let daemon = running.subtree().0.into_iter().find(|p| p.parent == running.pid()).expect("the daemon");
    running.signal_child(daemon.pid, Signal::TERM);
    let zombies = || -> BTreeSet<i32> {
        let all = running.subtree().0;
        all.iter().filter(|p| p.state == State::Zombie && p.name == "fake-mcp").map(|p| p.pid).collect()
    };
    running.wait_for_event("drain.start", |_| true);
    let at_first = zombies();
    running.wait_for_event("drain.forced", |_| true);
    // What the end of the drain has just killed may be one for a moment.
    let stay: Vec<i32> = zombies().intersection(&at_first).copied().collect();
    assert!(stay.is_empty(), "four seconds on, some of the fifty are left: {stay:?}");
    assert_eq!(running.wait().code(), 143);
}

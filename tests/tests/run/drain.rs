//! Drain (F31, S9.6): what can end in time does; the rest is stopped; the daemon is gone in time.

use crate::{run, statuses};
use agentd_tests::kit::{Ended, Rule, RunCommand, call, playbook};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn start(text: &str, mode: &str) -> Value {
    call("subagent.run", json!({"instruction": text, "mode": mode}))
}

/// One of each mode that ends in a second, and one of each that does not.
fn everybody(worker: Rule) -> RunCommand {
    let both = ["sync", "async", "detached"].iter().flat_map(|m| [start("soon", m), start("never", m)]);
    run(&playbook([
        Rule::worker().turn(1).calls(both),
        worker,
        Rule::subagent().told("soon").after("2s").says("done"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config("lifecycle: {drain_timeout: 5s}\nlimits: {subagents: {rate: 50/1s}}")
}

/// Statuses by handle, as the log tells them.
fn ends(ended: &Ended) -> Vec<String> {
    let mut all: Vec<(u64, String)> = ended
        .events
        .seen("subagent.result")
        .iter()
        .map(|e| {
            let handle =
                e["handle"].as_str().and_then(|h| h.strip_prefix("sub-")).and_then(|n| n.parse().ok());
            (handle.unwrap_or(0), e["status"].as_str().unwrap_or("?").to_owned())
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, status)| status).collect()
}

#[test]
fn what_ends_in_time_completes_and_the_rest_is_stopped() {
    let running = everybody(Rule::worker().says("{{ results | tojson }}")).start("go");
    running.child("sub-6");
    let began = Instant::now();
    running.signal(Signal::TERM);
    running.wait_for_event("drain.start", |_| true);
    let ended = running.wait();
    assert!(began.elapsed() < Duration::from_secs(5 + 3), "{:?}", began.elapsed());
    assert_eq!(ended.code(), 143, "{}", ended.log());
    // The sync one that a turn was waiting on is cancelled; the others are parked; nothing failed.
    assert_eq!(
        ends(&ended),
        ["completed", "cancelled", "completed", "parked", "completed", "parked"],
        "{}",
        ended.log()
    );
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let running = everybody(Rule::worker().says("never")).config("").start("go");
        running.child("sub-6");
        running.signal(signal);
        running.wait_for_event("drain.start", |_| true);
        let began = Instant::now();
        running.signal(signal);
        running.wait_for_event("drain.forced", |_| true);
        let ended = running.wait();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert_eq!(ended.code(), if signal == Signal::INT { 130 } else { 143 }, "{}", ended.log());
        assert!(!ends(&ended).contains(&"failed".to_owned()), "{}", ended.log());
    }
}

#[test]
fn a_drain_refuses_new_spawns_and_lets_the_turn_end() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls([start("soon", "async")]),
        Rule::worker().turn(2).after("2s").calls([start("soon", "sync"), start("soon", "detached")]),
        Rule::worker().turn(3).calls([call("subagent.await", json!({"handle": "sub-1"}))]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().after("3s").says("done"),
    ]))
    .start("go");
    running.child("sub-1");
    running.signal(Signal::TERM);
    let ended = running.wait();
    // It could end in time, so it did: the signal is no failure.
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(statuses(&ended.json()), ["running", "draining", "draining", "completed"], "{}", ended.log());
}

/// A terminal that closes ends what runs in it, as SIGTERM would: what can end in time does.
#[test]
fn a_hangup_is_a_drain() {
    let running = run(&playbook([Rule::worker().after("1h").says("never")]))
        .config("lifecycle: {drain_timeout: 1s}")
        // These tests may themselves run under nohup.
        .wrapper(["env", "--default-signal=HUP"])
        .start("go");
    running.wait_for_event("child.ready", |_| true);
    running.signal(Signal::HUP);
    running.wait_for_event("drain.start", |e| e["signal"] == "SIGHUP");
    assert_eq!(running.wait().code(), 129);
}

#[test]
fn under_nohup_a_hangup_is_nothing() {
    let nohup = ["sh", "-c", r#"trap "" HUP; exec "$0" "$@""#];
    let running = run(&playbook([Rule::worker().after("2s").says("fine")])).wrapper(nohup).start("go");
    running.wait_for_event("child.ready", |_| true);
    running.signal(Signal::HUP);
    let ended = running.wait();
    assert_eq!((ended.code(), ended.stdout.as_str()), (0, "fine\n"), "{}", ended.log());
}

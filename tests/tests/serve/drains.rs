//! A daemon's drain and the life after it (F31, F41, F44): what was told before stands after.

use crate::stage::{AGENTD, rows, text};
use agentd_tests::kit::{Ended, Rule, RunCommand, call, playbook};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

const DRAIN: Duration = Duration::from_secs(3);

/// S9.6.
const BEYOND: Duration = Duration::from_secs(3);

fn start(text: &str, mode: &str) -> Value {
    call("subagent.run", json!({"instruction": text, "mode": mode}))
}

/// A conversation that starts one run of each mode that ends in time, and one that does not.
fn daemon() -> RunCommand {
    let both =
        ["sync", "async", "detached"].iter().flat_map(|mode| [start("soon", mode), start("never", mode)]);
    let rules = [
        Rule::worker().told("^go$").turn(1).calls(both.chain([start("turn", "warm")])),
        Rule::worker().says("done"),
        Rule::subagent().told("soon").after("1s").uses(100, 10).says("seen"),
        Rule::subagent().told("never").after("1h").says("late"),
        Rule::subagent().uses(7, 1).says("turned"),
    ];
    RunCommand::new(AGENTD, &playbook(rules)).config(
        "lifecycle: {drain_timeout: 3s}\nlimits: {subagents: {breadth: 64, rate: 64/1s}}\nstore: {min_free: 1B}",
    )
}

/// The status that each run was told to have ended with.
fn ends(ended: &Ended) -> BTreeMap<String, String> {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    ended.events.seen("subagent.result").iter().map(|e| (word(&e["handle"]), word(&e["status"]))).collect()
}

#[test]
fn f31_what_can_end_does_the_rest_is_parked_and_taken_up_and_nothing_fails() {
    let running = daemon().serve();
    let mut asking = running.command(AGENTD, &["send", "root", "go"]);
    let asking = asking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-7");
    running.child("sub-6");
    let began = Instant::now();
    running.signal(Signal::TERM);
    running.wait_for_event("drain.start", |_| true);
    let late = running.agentd(&["spawn", "more"]);
    assert_eq!(late.status.code(), Some(5), "no new runs: {late:?}");
    let ended = running.wait();
    assert!(began.elapsed() < DRAIN + BEYOND, "{:?}", began.elapsed());
    asking.wait_with_output().expect("answered");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let told: Vec<(String, String)> = ends(&ended).into_iter().collect();
    let wanted = ["completed", "cancelled", "completed", "parked", "completed", "parked", "parked"];
    let wanted: Vec<(String, String)> =
        (1..).zip(wanted).map(|(n, status)| (format!("sub-{n}"), status.to_owned())).collect();
    assert_eq!(told, wanted, "{}", ended.log());

    let next = daemon().in_folder(ended.into_folder()).serve();
    let done = next.wait_for_event("restore.done", |_| true);
    assert_eq!((&done["lost"], &done["quarantined"]), (&json!(0), &json!(0)), "{done}");
    for handle in ["sub-4", "sub-6", "sub-7"] {
        let again = next.wait_for_event("subagent.spawn", |e| e["handle"] == handle);
        assert_eq!(again["attempt"], 2, "{again}");
    }
    next.signal(Signal::TERM);
    assert_eq!(next.wait().code(), 0);
}

#[test]
fn f31_signals_without_end_end_it_once_and_at_once() {
    let running = daemon().serve();
    for _ in 0..3 {
        running.ask(&["spawn", "never"]);
    }
    running.child("sub-3");
    let began = Instant::now();
    running.signal(Signal::TERM);
    running.wait_for_event("drain.start", |_| true);
    running.signal(Signal::TERM);
    running.wait_for_event("drain.forced", |_| true);
    // And while its children are taken down.
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    let ended = running.wait();
    assert!(began.elapsed() < BEYOND, "{:?}", began.elapsed());
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(ended.events.seen("drain.start").len(), 1);
    assert!(ends(&ended).values().all(|status| status == "parked"), "{}", ended.log());
}

#[test]
fn f31_a_spawn_in_the_gate_has_a_handle_that_lasts_or_none() {
    let running = daemon().serve();
    let spawning: Vec<_> = (0..24)
        .map(|_| {
            let mut spawn = running.command(AGENTD, &["spawn", "never"]);
            spawn.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    // Some have been taken by then, and some have not come.
    running.wait_for_event("subagent.spawn", |_| true);
    running.signal(Signal::TERM);
    let mut handles = Vec::new();
    for spawn in spawning {
        let output = spawn.wait_with_output().expect("it ends");
        match output.status.code() {
            Some(0) => handles.push(text(&output.stdout).trim().to_owned()),
            // Turned down, or nobody listens any more.
            Some(5 | 6) => {}
            other => panic!("{other:?}: {output:?}"),
        }
    }
    assert!(!handles.is_empty());
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let next = daemon().in_folder(ended.into_folder()).serve();
    next.wait_for_event("restore.done", |_| true);
    let known: BTreeMap<String, String> = rows(&next.ask(&["ps", "--all"])).into_iter().collect();
    for handle in &handles {
        let status = known.get(handle).unwrap_or_else(|| panic!("{handle} was told and is not in {known:?}"));
        assert!(["running", "spawned", "parked"].contains(&status.as_str()), "{handle} {status}");
    }
    assert_eq!(known.len(), handles.len(), "nobody else is there: {known:?}");
    next.signal(Signal::TERM);
    next.wait_for_event("drain.start", |_| true);
    next.signal(Signal::TERM);
    assert_eq!(next.wait().code(), 0);
}

/// F41, F44: a result is the same bytes each time and in each life, what was used is counted once, and nothing is run again
/// for it.
#[test]
fn f41_f44_results_and_what_they_cost_are_the_same_in_the_next_life() {
    let running = daemon().serve();
    running.ask(&["spawn", "soon"]);
    running.ask(&["spawn", "--mode", "warm", "turn"]);
    running.ask(&["spawn", "never"]);
    let first = running.ask(&["wait", "sub-1"]);
    assert_eq!(first["results"][0]["usage"]["own"]["input"], 100, "{first}");
    assert_eq!(running.ask(&["wait", "sub-1"]), first, "each time");
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-2");
    running.ask(&["send", "sub-2", "again"]);
    running.wait_for_event("subagent.turn", |e| e["handle"] == "sub-2" && e["message"] == 2);
    running.ask(&["kill", "sub-2"]);
    running.child("sub-3");
    let used = |value: &Value| value["usage"]["own"]["input"].clone();
    let killed = running.ask(&["show", "sub-2"]);
    assert_eq!((&killed["status"], used(&killed)), (&json!("cancelled"), json!(14)), "{killed}");
    let folder = running.give_up_folder();
    let next = daemon().in_folder(folder).serve();
    next.wait_for_event("restore.done", |_| true);
    assert_eq!(next.ask(&["wait", "sub-1"]), first, "in the next life too");
    assert_eq!(used(&next.ask(&["show", "sub-2"])), json!(14), "charged, and once");
    next.wait_for_event("subagent.spawn", |e| e["handle"] == "sub-3");
    let again = next.events.seen("subagent.spawn");
    assert!(again.iter().all(|e| e["handle"] == "sub-3"), "what had ended is not run again: {again:?}");
    next.ask(&["kill", "sub-3"]);
    next.agentd(&["drain"]);
    assert_eq!(next.wait().code(), 0);
}

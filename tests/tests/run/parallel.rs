//! Parallel calls: counted exactly, answered each once and in order, each with its own run's result.

use crate::{run, statuses};
use agentd_tests::kit::{Rule, call, playbook};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A worker that makes `calls` in one message and answers with all results; subagents say back what they were told.
fn fan_out(calls: impl IntoIterator<Item = Value>, delay: &str) -> String {
    playbook([
        Rule::worker().turn(1).calls(calls),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("^token (?P<token>.*)$").after(delay).says("token={{ match.token }}"),
    ])
}

fn token(n: usize, mode: &str) -> Value {
    call("subagent.run", json!({"instruction": format!("token {n}"), "mode": mode}))
}

#[test]
fn three_of_twelve_start_and_nine_are_refused_by_name() {
    let ended = run(&fan_out((0..12).map(|n| token(n, "sync")), "2s"))
        .config("limits: {subagents: {breadth: 3}}")
        .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    let list = results.as_array().expect("a list");
    assert_eq!(list.len(), 12, "each call has one result");
    for (n, result) in list.iter().enumerate() {
        assert_eq!(result["args"]["instruction"], format!("token {n}"), "results are in call order");
        if n < 3 {
            assert_eq!(result["value"]["status"], "completed", "{result}");
            assert_eq!(result["value"]["result"], format!("token={n}"), "to the caller that asked");
            assert_eq!(result["error"], false);
        } else {
            let error = &result["value"]["error"];
            assert_eq!(error["gate"], "breadth", "{result}");
            let message = error["message"].as_str().expect("a message");
            for named in ["3 of 3", "sub-1", "sub-3", "limits.subagents.breadth"] {
                assert!(message.contains(named), "{message}");
            }
            assert_eq!(result["error"], true);
        }
    }
    assert_eq!(ended.events.seen("subagent.spawn").len(), 3);
    assert_eq!(ended.events.seen("subagent.refused").len(), 9);
}

#[test]
fn fifty_at_once_when_the_limits_are_wide_open() {
    let ended = run(&fan_out((0..50).map(|n| token(n, "sync")), "500ms"))
        .config("limits: {subagents: {breadth: 50, total: 50, rate: 50/1s}}")
        .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(statuses(&results), vec!["completed"; 50]);
    for (n, result) in results.as_array().into_iter().flatten().enumerate() {
        assert_eq!(result["value"]["result"], format!("token={n}"));
    }
    let handles: BTreeSet<&str> =
        results.as_array().into_iter().flatten().filter_map(|r| r["value"]["handle"].as_str()).collect();
    assert_eq!(handles.len(), 50, "no handle is used twice");
}

/// F26: answers come in any order, and every token arrives only at its caller; two identical instructions do not
/// meet either.
#[test]
fn every_token_arrives_at_its_caller() {
    let rules = [
        Rule::worker().turn(1).calls((0..20).map(|n| {
            let wait = (n * 7) % 20 * 20;
            call("subagent.run", json!({"instruction": format!("after {wait}ms token {n}"), "mode": "sync"}))
        })),
        Rule::worker().turn(2).calls([token(77, "async"), token(77, "async")]),
        Rule::worker().turn(3).calls([call("subagent.await", json!({"handles": ["sub-22", "sub-21"]}))]),
        // The same bytes again.
        Rule::worker().turn(4).calls([
            call("subagent.await", json!({"handle": "sub-21"})),
            call("subagent.await", json!({"handle": "sub-21"})),
        ]),
        Rule::worker().says("{{ results | tojson }}"),
    ];
    let waits = (0..20).map(|n| {
        let wait = n * 20;
        Rule::subagent()
            .told(&format!("^after {wait}ms token (?P<token>.*)$"))
            .after(&format!("{}ms", wait + 1))
            .says("token={{ match.token }}")
    });
    let same = Rule::subagent().told("^token 77$").says("token=77");
    let ended = run(&playbook(rules.into_iter().chain(waits).chain([same])))
        .config("limits: {subagents: {breadth: 30, rate: 30/1s}}")
        .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    for n in 0..20 {
        assert_eq!(results[n]["value"]["result"], format!("token={n}"), "{}", results[n]);
    }
    let both = &results[22]["value"]["results"];
    assert_eq!((&both[0]["handle"], &both[1]["handle"]), (&json!("sub-22"), &json!("sub-21")));
    assert_ne!(both[0]["run_id"], both[1]["run_id"]);
    assert_eq!(results[23]["text"], results[24]["text"], "the same bytes each time");
    assert_eq!(results[23]["value"], both[1]);
}

/// F27: one bad sibling does not throw away the good ones.
#[test]
fn good_siblings_survive_bad_ones() {
    let one = |text: &str, more: Value| {
        let mut args = json!({"instruction": text, "mode": "sync"});
        args.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        call("subagent.run", args)
    };
    let running = run(&playbook([
        Rule::worker().turn(1).calls([
            one("good 1", json!({})),
            one("good 2", json!({"speed": 9})),
            one("crashes", json!({})),
            one("late", json!({"limits": {"deadline": "1s"}})),
            one("good 5", json!({})),
        ]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("^good (?P<n>.)$").says("fine {{ match.n }}"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .start("go");
    let crashing = running.child("sub-2");
    running.signal_child(crashing, rustix::process::Signal::KILL);
    let ended = running.wait();
    let results = ended.json();
    assert_eq!(statuses(&results), ["completed", "well_formed", "failed", "deadline", "completed"]);
    assert_eq!(results[0]["value"]["result"], "fine 1");
    assert_eq!(results[4]["value"]["result"], "fine 5");
    let crash = results[2]["value"]["error"].as_str().expect("why");
    assert!(crash.contains("SIGKILL"), "{crash}");
}

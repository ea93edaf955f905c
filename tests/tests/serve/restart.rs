//! A daemon that is killed with everything going on, and its next life (S10.3 to S10.6): each run ends as its mode says, and
//! what a transcript holds is not done again.

use crate::stage::{AGENTD, rows};
use agentd_tests::kit::{Rule, RunCommand, Running, call, playbook};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A daemon of this playbook.
fn daemon(rules: Vec<Rule>) -> RunCommand {
    RunCommand::new(AGENTD, &playbook(rules))
        .config("mcp: {servers: [{name: files, builtin: files, root: .}]}")
        .config("limits: {subagents: {depth: 2}}")
}

/// The first life: each run lists the files, and its second model call takes longer than the daemon lives.
fn first_life() -> RunCommand {
    daemon(vec![
        Rule::worker().turn(1).calls([call("subagent.run", json!({"instruction": "of the turn"}))]),
        Rule::subagent().told("quick").says("was quick"),
        Rule::subagent().turn(1).calls([call("list", json!({"path": "."}))]),
        Rule::subagent().says("too late").after("300s"),
    ])
}

/// The next one: a model call that was made already would be told from the one that was not.
fn next_life() -> RunCommand {
    daemon(vec![
        Rule::worker().turn(1).says("made again"),
        Rule::worker().says("the turn went on"),
        Rule::subagent().turn(1).says("made again"),
        Rule::subagent().says("went on"),
    ])
}

/// Waits until a run of this handle has written that its first call was answered.
fn until_listed(running: &Running, handle: &str) {
    running.wait_for_event("tool.call", |event| event["handle"] == handle);
}

/// Every transcript below a folder: its name, and its lines, each of which must be whole.
fn transcripts(folder: &Path, found: &mut BTreeMap<String, Vec<Value>>) {
    for entry in fs::read_dir(folder).expect("it lists").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            transcripts(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "jsonl") {
            let text = fs::read_to_string(&entry).expect("it reads");
            assert!(text.ends_with('\n'), "{} is torn", entry.display());
            let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            found.insert(name, text.lines().map(line).collect());
        }
    }
}

fn show(running: &Running, handle: &str) -> Value {
    running.ask(&["show", handle])
}

#[test]
fn a_killed_daemon_takes_each_run_up_as_its_mode_says() {
    let first = first_life().serve();
    let asked = first.command(AGENTD, &["send", "root", "begin", "--json"]).spawn();
    let mut asked = asked.expect("it starts");
    until_listed(&first, "sub-1");
    for (handle, args) in [
        ("sub-2", &["--mode", "async", "of an operator"][..]),
        ("sub-3", &["--mode", "detached", "for nobody"]),
        ("sub-4", &["--mode", "warm", "stays"]),
        ("sub-5", &["--mode", "async", "--no-durable", "for this life"]),
        ("sub-6", &["--mode", "async", "to be killed"]),
        ("sub-7", &["--mode", "async", "--no-resume", "begins anew"]),
    ] {
        let told = first.ask(&[&["spawn"], args].concat());
        assert_eq!(told["handle"], handle, "{told}");
        until_listed(&first, handle);
    }
    assert_eq!(first.ask(&["spawn", "--mode", "sync", "be quick"])["result"], "was quick");
    assert!(first.agentd(&["kill", "sub-6"]).status.success());
    let before: BTreeMap<String, Value> =
        (1..=8).map(|n| format!("sub-{n}")).map(|handle| (handle.clone(), show(&first, &handle))).collect();
    let state = first.state();
    let folder = first.give_up_folder();
    asked.wait().expect("its daemon is gone");
    let mut written = BTreeMap::new();
    transcripts(&state.join("sessions"), &mut written);
    assert_eq!(written.len(), 9, "a conversation and eight runs: {:?}", written.keys());

    let second = next_life().in_folder(folder).serve();
    let done = second.wait_for_event("restore.done", |_| true);
    let count = |key: &str| done[key].as_u64().expect("a count");
    // The worker and its run, the operator's, the warm one, and the one that begins anew; the detached and the one that was
    // not durable are lost.
    assert_eq!((count("restored"), count("resumed"), count("replayed")), (5, 4, 1), "{done}");
    assert_eq!((count("lost"), count("quarantined")), (2, 0), "{done}");
    let waited = second.agentd(&["wait", "sub-1", "sub-2", "sub-7"]);
    assert_eq!(waited.status.code(), Some(0), "{waited:?}");
    second.wait_for_event("subagent.turn", |event| event["handle"] == "sub-4");
    second.wait_for_event("worker.turn", |_| true);
    for (handle, status, result, attempt) in [
        ("sub-1", "completed", json!("went on"), 2),
        ("sub-2", "completed", json!("went on"), 2),
        ("sub-3", "crashed", Value::Null, 1),
        ("sub-4", "running", json!("went on"), 2),
        ("sub-6", "cancelled", Value::Null, 1),
        ("sub-7", "completed", json!("made again"), 2),
        ("sub-8", "completed", json!("was quick"), 1),
    ] {
        let now = show(&second, handle);
        assert_eq!(now["run_id"], before[handle]["run_id"], "{handle} is the same run");
        let told = (&now["status"], &now["result"], &now["attempt"]);
        assert_eq!(told, (&json!(status), &result, &json!(attempt)), "{handle}: {now}");
    }
    let gone = second.agentd(&["show", "sub-5"]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    // Each run that was taken up has one process, and nobody else has one.
    let respawned: Vec<Value> =
        second.events.seen("subagent.respawn").into_iter().map(|event| event["handle"].clone()).collect();
    let mut once = respawned.clone();
    once.sort_by_key(Value::to_string);
    once.dedup();
    assert_eq!(once.len(), respawned.len(), "{respawned:?}");
    let live = rows(&second.ask(&["ps"]));
    assert!(live.contains(&("sub-4".to_owned(), "running".to_owned())), "{live:?}");
    // A new run gets a handle that nobody had.
    assert_eq!(second.ask(&["spawn", "--mode", "async", "new"])["handle"], "sub-9");
    // What a run used is what its transcript says, in whichever life it was.
    let mut written = BTreeMap::new();
    transcripts(&state.join("sessions"), &mut written);
    for handle in ["sub-1", "sub-2", "sub-6", "sub-7", "sub-8"] {
        let now = show(&second, handle);
        let run = now["run_id"].as_str().expect("an id");
        let lines = written.iter().find(|(name, _)| name.contains(run)).expect("its transcript").1;
        let count = |of: &Value, key: &str| of[key].as_u64().expect("a count");
        let told: Vec<&Value> = lines.iter().map(|line| &line["payload"]).collect();
        // A child whose daemon is gone pays for the call that it gives up, and nobody is there to hear of that.
        let unheard = |at: usize| {
            let why = told[..at].last().and_then(|call| call["abandoned"].as_str());
            why.is_some_and(|why| why.contains("the supervisor is gone"))
        };
        let used = told.iter().enumerate().filter(|(at, told)| told["event"] == "usage" && !unheard(*at));
        let used =
            used.fold((0, 0), |sum, (_, told)| (sum.0 + count(told, "input"), sum.1 + count(told, "output")));
        let own = &now["usage"]["own"];
        assert_eq!((count(own, "input"), count(own, "output")), used, "{handle}: {now}");
    }
    assert_eq!(second.agentd(&["drain"]).status.code(), Some(0));
    assert_eq!(second.wait().code(), 0);
}

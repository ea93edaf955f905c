//! Drains, a second daemon, a store that is locked, and what is left of a run across all that.

use super::daemon::Home;
use agentd_tests::kit::{Rule, call, playbook};
use serde_json::{Value, json};
use std::process::Command;

/// S9.6, S10.3: a drain parks, the next start takes up, the start says so.
#[test]
fn a_drain_parks_and_the_next_start_takes_up() {
    let home = Home::new();
    let mut first = home.start();
    first.prompt("begin");
    for handle in ["sub-1", "sub-2", "sub-3"] {
        first.note("subagent.spawn", Some(handle)).expect("it is up");
    }
    first.note("subagent.result", Some("sub-4")).expect("it ends by itself");
    first.find(|line| line["deliver"] == 1).expect("answered");
    first.drain();
    let (code, _) = first.ended();
    assert_eq!(code, Some(0));
    let statuses: Vec<(String, Value)> =
        home.records().into_iter().map(|(handle, record)| (handle, record["status"].clone())).collect();
    let parked = |n: usize| statuses[n].1 == "parked";
    assert!(parked(0) && parked(1) && parked(2) && statuses[3].1 == "completed", "{statuses:?}");
    let mut second = home.start();
    let done = second.note("restore.done", None).expect("it starts");
    // One of the three was not to outlive its daemon.
    assert_eq!((&done["fields"]["restored"], &done["fields"]["lost"]), (&json!(2), &json!(1)), "{done}");
    for handle in ["sub-1", "sub-2"] {
        second.note("subagent.spawn", Some(handle)).expect("it is up again");
    }
    second.call(1, "subagent.await", &json!({"handle": "sub-4"}));
    let kept = second.answer(1).expect("answered");
    assert_eq!(
        (&kept["value"]["result"], &kept["value"]["usage"]["own"]["input"]),
        (&json!("seen"), &json!(100))
    );
    second.drain();
    assert_eq!(second.ended().0, Some(0));
}

/// F33: two daemons on one state directory.
#[test]
fn f33_a_second_daemon_is_told_who_holds_the_directory() {
    let home = Home::new();
    let mut first = home.start();
    first.note("restore.done", None).expect("it starts");
    let second = Command::new(env!("CARGO_BIN_EXE_kept-daemon"))
        .arg("agentd.yaml")
        .current_dir(home.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(6), "{said}");
    assert!(said.contains(&format!("in use by pid {} since", first.pid())), "{said}");
    first.drain();
    assert_eq!(first.ended().0, Some(0));
}

/// F34, S10.7: while the store is locked kills, calls and statuses are answered, a spawn is refused with the reason, and
/// what ended meanwhile is saved once it is free.
#[test]
fn f34_a_locked_store_refuses_spawns_and_holds_up_nothing_else() {
    let home = Home::with(&playbook([
        Rule::worker().turn(1).calls([call("subagent.run", json!({"instruction": "long", "mode": "async"}))]),
        Rule::worker().says("done"),
        Rule::subagent().after("1h").says("never"),
    ]));
    let mut daemon = home.start();
    daemon.prompt("begin");
    daemon.note("subagent.spawn", Some("sub-1")).expect("it is up");
    daemon.find(|line| line["deliver"] == 1).expect("answered");
    let other = rusqlite::Connection::open(home.database()).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    daemon.call(1, "subagent.run", &json!({"instruction": "more", "mode": "async"}));
    let refused = daemon.answer(1).expect("answered");
    assert_eq!(refused["value"]["error"]["gate"], "store", "{refused}");
    assert!(refused["value"]["error"]["message"].as_str().is_some_and(|m| m.contains("locked")), "{refused}");
    daemon.call(2, "subagent.list", &json!({}));
    assert_eq!(daemon.answer(2).expect("answered")["error"], false);
    // The kill acts at once; that it is durable is told later.
    daemon.call(3, "subagent.kill", &json!({"handle": "sub-1", "reason": "enough"}));
    daemon.note("subagent.result", Some("sub-1")).expect("it is ended");
    daemon.note("store.down", None).expect("it is told");
    assert!(!daemon.seen().iter().any(|line| line["answer"] == 3), "no kill is told before it is durable");
    other.execute_batch("ROLLBACK").expect("free");
    drop(other);
    let killed = daemon.answer(3).expect("answered");
    assert_eq!(killed["value"]["status"], "cancelled", "{killed}");
    daemon.note("store.healed", None).expect("it is told");
    daemon.kill();
    daemon.ended();
    assert_eq!(home.records()["sub-1"]["status"], "cancelled");
}

/// F25, S6.3: messages to a warm run outlive a crash, in order, and their turns' results too.
#[test]
fn f25_messages_to_a_warm_run_outlive_a_crash_in_order() {
    let home = Home::with(&playbook([
        Rule::subagent().told("^first$").says("one"),
        Rule::subagent().told("^hold$").after("1h").says("never"),
        Rule::subagent().says("{{ prompt }}"),
    ]));
    let mut first = home.start();
    first.call(1, "subagent.run", &json!({"instruction": "first", "mode": "warm"}));
    first.answer(1).expect("answered");
    first.note("subagent.turn", Some("sub-1")).expect("its first turn ends");
    for (call, text) in [(2, "hold"), (3, "third"), (4, "fourth")] {
        first.call(call, "subagent.send", &json!({"handle": "sub-1", "text": text}));
        first.answer(call).expect("answered");
    }
    first.call(5, "subagent.await", &json!({"handle": "sub-1", "message_id": 1}));
    let one = first.answer(5).expect("answered")["value"].clone();
    // A save of everything before it: what is answered after it stands behind it in the store.
    first.call(6, "subagent.run", &json!({"instruction": "first", "mode": "async"}));
    first.answer(6).expect("answered");
    first.kill();
    first.ended();
    let mut second = home.start();
    second.note("subagent.spawn", Some("sub-1")).expect("it is up again");
    second
        .find(|line| line["note"] == "subagent.message" && line["fields"]["message"] == 2)
        .expect("in order");
    second.call(1, "subagent.status", &json!({"handle": "sub-1"}));
    let status = second.answer(1).expect("answered");
    assert_eq!((&status["value"]["turn"], &status["value"]["queued"]), (&json!(2), &json!(2)), "{status}");
    second.call(2, "subagent.await", &json!({"handle": "sub-1", "message_id": 1}));
    let again = second.answer(2).expect("answered")["value"].clone();
    assert_eq!(again, one, "a turn's result is the same in every life");
    second.drain();
    assert_eq!(second.ended().0, Some(0));
}

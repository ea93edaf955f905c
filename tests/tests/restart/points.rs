//! `kill -9` at each named point of a run's way, from its call to its end.

use super::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// The points: each event before the core is told of it, and each decision before it is performed.
const POINTS: [&str; 24] = [
    "event:PromptSubmitted:1",
    "action:Persist:1",
    "event:Stored:1",
    "action:Spawn:1",
    "event:ChildSpawned:1",
    "action:SendSpawn:1",
    "event:ChildBytes:1",
    "event:ChildBytes:2",
    "action:Persist:2",
    "action:Persist:3",
    "event:Stored:2",
    "event:Stored:3",
    "action:Spawn:2",
    "event:ChildSpawned:2",
    "action:SendSpawn:2",
    "action:SendSpawn:5",
    "event:ChildBytes:6",
    "event:ExitObserved:1",
    "action:Sweep:1",
    "event:Swept:1",
    "action:Reap:1",
    "event:Reaped:1",
    "action:Deliver:1",
    "event:Stored:9",
];

/// Everything that was not to be lost is there after the restart, once, and what was not to come back is not.
#[test]
fn a_kill_at_each_point_loses_and_doubles_nothing() {
    for point in POINTS {
        let home = Home::new();
        let mut first = home.start_with(Some(point));
        first.prompt("begin");
        // It is killed, or the point never comes and everything is up.
        let _up = first.find(|line| line["deliver"] == 1);
        first.kill();
        let (_, seen) = first.ended();
        let before = home.records();
        let told: Vec<&str> = seen.iter().filter_map(|line| line["fields"]["handle"].as_str()).collect();
        assert!(told.iter().all(|handle| before.contains_key(*handle)), "{point}: {told:?} {before:?}");
        let mut second = home.start();
        let done = second.note("restore.done", None).expect("it starts");
        assert_eq!(done["fields"]["quarantined"], 0, "{point}");
        for (handle, record) in &before {
            after(&mut second, point, handle, record);
        }
        let once = second.noted("subagent.respawn");
        let mut unique = once.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(once.len(), unique.len(), "{point}: {once:?}");
        // A new run gets a handle that nobody had.
        second.call(9, "subagent.run", &json!({"instruction": "quick", "mode": "async"}));
        let new = second.answer(9).expect("answered");
        let new = new["value"]["handle"].as_str().expect("a handle").to_owned();
        assert!(!before.contains_key(&new), "{point}: {new} was given before");
        second.drain();
        let (code, _) = second.ended();
        assert_eq!(code, Some(0), "{point}");
    }
}

/// What S10.3 says of one record.
fn after(daemon: &mut Daemon, point: &str, handle: &str, record: &Value) {
    let status = record["status"].as_str().expect("a status");
    let fate = match (status, record["mode"].as_str()) {
        ("running" | "spawned" | "retiring", Some("detached")) => "crashed",
        ("running" | "spawned" | "retiring", _) if is_gone(daemon, handle) => "gone",
        ("running" | "spawned" | "retiring", _) => {
            let note = daemon.note("subagent.respawn", Some(handle)).expect("it is begun again");
            let attempt = record["attempt"].as_u64().expect("a number") + 1;
            assert_eq!(note["fields"]["attempt"], attempt, "{point}: {handle}");
            return;
        }
        (ended, _) => ended,
    };
    daemon.call(100 + number(handle), "subagent.status", &json!({"handle": handle}));
    let shown = daemon.answer(100 + number(handle)).expect("answered");
    if fate == "gone" {
        assert_eq!(shown["error"], true, "{point}: {shown}");
    } else {
        assert_eq!(shown["value"]["status"], fate, "{point}: {handle}");
    }
}

/// Whether it was not to outlive its daemon: nobody knows it any more.
fn is_gone(daemon: &mut Daemon, handle: &str) -> bool {
    let call = 200 + number(handle);
    daemon.call(call, "subagent.status", &json!({"handle": handle}));
    daemon.answer(call).expect("answered")["error"] == true
}

fn number(handle: &str) -> u64 {
    handle.trim_start_matches("sub-").parse().expect("a number")
}

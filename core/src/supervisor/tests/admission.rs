//! `subagent.run`: who is let in, what they are given, what a refusal says.

use super::*;

#[test]
fn twelve_parallel_calls_with_breadth_three() {
    let mut config = config();
    config.subagents.breadth = 3;
    let (mut desk, worker) = Desk::with_worker(config);
    let ids: Vec<u64> = (0..12)
        .map(|i| desk.call(worker, "subagent.run", json!({"instruction": format!("part {i}")})))
        .collect();
    assert_eq!(desk.children.len(), 4, "a worker and three runs");
    for id in &ids[3..] {
        let (error, value) = desk.answer(worker, *id).expect("refused at once");
        assert!(error);
        assert_eq!(
            value["error"]["message"],
            "breadth: 3 of 3 running (sub-1, sub-2, sub-3); await one or raise limits.subagents.breadth"
        );
    }
    for (i, id) in ids[..3].iter().enumerate() {
        assert_eq!(desk.answer(worker, *id), None);
        let node = NodeId(2 + i as u64);
        desk.ready(node);
        desk.finish(node, &format!("answer {i}"));
        let (error, value) = desk.answer(worker, *id).expect("answered");
        assert!(!error);
        assert_eq!(value["result"], format!("answer {i}"));
    }
    desk.call(worker, "subagent.run", json!({"instruction": "one more"}));
    assert_eq!(desk.children.len(), 5, "permits came back, handles did not: sub-4");
    assert_eq!(desk.child(NodeId(5)).spawn.as_ref().unwrap().handle, Some(Handle(4)));
}

#[test]
fn a_permit_is_held_until_the_process_is_gone() {
    let mut config = config();
    config.subagents.breadth = 1;
    let (mut desk, worker) = Desk::with_worker(config);
    desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.ready(NodeId(2));
    desk.result(NodeId(2), "done");
    let id = desk.call(worker, "subagent.run", json!({"instruction": "y"}));
    assert!(desk.answer(worker, id).expect("refused").0, "its process still lives");
    desk.exit(NodeId(2), Exit::Code(0));
    let id = desk.call(worker, "subagent.run", json!({"instruction": "y"}));
    assert_eq!(desk.answer(worker, id), None, "admitted");
}

#[test]
fn walls_are_those_of_the_call_and_a_priority_is_a_nice_value() {
    let (mut desk, worker) = Desk::with_worker(config());
    let limits = json!({"memory": "64MiB", "cpu": "90s"});
    for (node, priority, nice) in [(2, "low", 10), (3, "normal", 0), (4, "high", -5)] {
        let args = json!({"instruction": "x", "mode": "async", "priority": priority, "limits": limits});
        desk.call(worker, "subagent.run", args);
        let walls = desk.child(NodeId(node)).walls;
        assert_eq!((walls.memory, walls.cpu_seconds, walls.nice), (Some(64 << 20), Some(90), nice));
    }
}

#[test]
fn a_child_gets_what_was_passed_and_nothing_else() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(
        worker,
        "subagent.run",
        json!({"instruction": "look", "servers": ["files"], "tools": ["read", "li*"], "depth": 0}),
    );
    assert_eq!(desk.children.len(), 1, "a claimed depth is an unknown key");
    desk.call(
        worker,
        "subagent.run",
        json!({"instruction": "look", "servers": ["files"], "tools": ["read", "li*"]}),
    );
    let spawn = desk.child(NodeId(2)).spawn.clone().expect("spawned");
    assert_eq!((spawn.depth, spawn.system.as_str(), spawn.context.len()), (1, "", 0));
    assert_eq!(spawn.servers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["files"]);
    assert_eq!(spawn.tools, Some(vec!["read".to_owned(), "li*".to_owned()]));
    assert!(spawn.own_tools.is_empty());
    let root = desk.child(worker).spawn.clone().expect("spawned");
    assert_eq!(spawn.trace.trace_id, root.trace.trace_id);
    let call = crate::transcript::span::of_call(&root.trace.span_id, "call-2");
    assert_eq!(spawn.trace.parent_span_id, Some(call), "the span of the call that delegated");
}

#[test]
fn names_are_checked_once_a_worker_has_reported_them() {
    let (mut desk, worker) = Desk::with_worker(config());
    let early =
        desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "tools": ["nope"]}));
    assert!(!desk.answer(worker, early).expect("a handle").0, "before the report the child checks");
    for server in ["files", "repo"] {
        let tools = vec!["read".into(), server.to_owned()];
        desk.up(worker, &Up::Tools(Tools { server: server.into(), tools }));
    }
    let late =
        desk.call(worker, "subagent.run", json!({"instruction": "x", "tools": ["nope", "files.read"]}));
    let (error, value) = desk.answer(worker, late).expect("refused");
    let message = value["error"]["message"].as_str().expect("text");
    assert!(
        error && message.contains("nope") && message.contains("files.read, files, repo.read, repo"),
        "{message}"
    );
    let unknown = desk.call(worker, "subagent.run", json!({"instruction": "x", "servers": ["web"]}));
    let (_, value) = desk.answer(worker, unknown).expect("refused");
    assert_eq!(value["error"]["message"], "servers: unknown web; accepted are files, repo");
}

#[test]
fn only_what_was_offered_can_be_called() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    let sub = NodeId(2);
    desk.ready(sub);
    let a = desk.call(sub, "subagent.run", json!({"instruction": "deeper"}));
    let b = desk.call(sub, "subagent.fly", json!({}));
    let (a, b) = (desk.answer(sub, a).expect("answered").1, desk.answer(sub, b).expect("answered").1);
    assert_eq!(a["error"]["gate"], b["error"]["gate"]);
    assert_eq!(desk.children.len(), 2);
}

#[test]
fn onward_delegation_is_opt_in_and_bounded_by_depth() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(worker, "subagent.run", json!({"instruction": "x", "delegate": true, "servers": ["files"]}));
    let sub = NodeId(2);
    desk.ready(sub);
    let wide = desk.call(sub, "subagent.run", json!({"instruction": "y", "servers": ["repo"]}));
    let (_, value) = desk.answer(sub, wide).expect("refused");
    assert_eq!(value["error"]["message"], "servers: unknown repo; accepted are files");
    desk.call(sub, "subagent.run", json!({"instruction": "y", "delegate": true}));
    let spawn = desk.child(NodeId(3)).spawn.clone().expect("spawned");
    assert_eq!(
        (spawn.depth, spawn.own_tools.len(), spawn.servers.len()),
        (2, 0, 1),
        "the last level offers nothing"
    );
}

#[test]
fn a_payload_over_the_frame_is_a_clean_refusal() {
    let (mut desk, worker) = Desk::with_worker(config());
    // Arguments of one call are bounded, so only a context of many megabytes gets near; the gate measures it all.
    let id = desk.call(worker, "subagent.run", json!({"instruction": "x".repeat(2 * 1024 * 1024)}));
    let (error, value) = desk.answer(worker, id).expect("refused");
    assert!(error);
    assert_eq!(value["error"]["gate"], "arguments");
    assert_eq!(desk.children.len(), 1);
}

#[test]
fn an_intent_that_cannot_be_saved_starts_nothing() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.hold_stored = true;
    let id = desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    let Some(Event::Stored { seq }) = desk.held.pop() else { panic!("a save is out") };
    desk.hold_stored = false;
    desk.event(Event::StoreFailed { seq, error: "disk full".into(), retryable: true });
    let (error, value) = desk.answer(worker, id).expect("answered");
    assert!(error);
    assert_eq!(value["error"]["gate"], "store");
    assert_eq!((desk.core.permits_out(), desk.children.len()), (0, 1));
    let next = desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    assert_eq!(
        desk.answer(worker, next).expect("a handle").1["handle"],
        "sub-2",
        "a handle is never used again"
    );
}

#[test]
fn a_fork_that_fails_for_good_is_told_and_gives_everything_back() {
    for transient in [false, true] {
        let (mut desk, worker) = Desk::with_worker(config());
        desk.hold_spawns = true;
        let id = desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
        for _ in 0..if transient { 4 } else { 1 } {
            assert_eq!(desk.answer(worker, id), None);
            assert!(matches!(desk.held.pop(), Some(Event::ChildSpawned { .. })), "a fork is out");
            desk.event(Event::SpawnFailed { node: NodeId(2), error: "fork: EAGAIN".into(), transient });
            let at = desk.now_ms + 250;
            desk.advance_to(at);
        }
        let (_, value) = desk.answer(worker, id).expect("told");
        assert_eq!(value["status"], "failed");
        assert_eq!(value["error"], "could not be started: fork: EAGAIN");
        assert_eq!(desk.core.permits_out(), 0);
        assert!(desk.now_ms < 2_000, "F06: an answer within two seconds");
    }
}

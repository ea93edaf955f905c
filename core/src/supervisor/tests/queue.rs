//! The queue: order, refusals, and what becomes of those who wait (S4.8).

use super::*;
use crate::event::SupervisorSignal;

fn narrow(queue: u32) -> (Desk, NodeId) {
    let mut config = config();
    config.subagents.breadth = 1;
    config.subagents.queue = queue;
    Desk::with_worker(config)
}

fn spawn(desk: &mut Desk, worker: NodeId, args: Value) -> Value {
    desk.ask(worker, "subagent.run", args)
}

fn background(priority: &str) -> Value {
    json!({"instruction": "x", "mode": "async", "priority": priority})
}

#[test]
fn priority_then_arrival_and_the_handle_at_once() {
    let (mut desk, worker) = narrow(4);
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "running");
    for (priority, place) in [("low", 1), ("normal", 1), ("high", 1), ("normal", 3)] {
        let value = spawn(&mut desk, worker, background(priority));
        assert_eq!(value["status"], "held");
        let status = desk.ask(worker, "subagent.status", json!({"handle": value["handle"]}));
        assert_eq!(
            status["waits"].as_str().map(|w| w.split('/').next()),
            Some(Some(&*format!("queued {place}")))
        );
    }
    let no = desk.refused(worker, "subagent.run", background("normal"));
    assert!(no.starts_with("queue: 4 of 4 spawns wait already"), "{no}");
    // sub-1 runs; sub-4 is high, sub-3 and sub-5 normal, sub-2 low.
    for handle in [1, 4, 3, 5, 2] {
        let node = desk.core.by_handle[&Handle(handle)];
        assert_eq!(desk.core.runs[&node].record.status, Status::Running, "sub-{handle}'s turn");
        assert_eq!(desk.core.permits_out(), 1);
        desk.ready(node);
        desk.finish(node, "done");
    }
    assert!(
        desk.core
            .runs
            .values()
            .filter(|r| r.record.handle.is_some())
            .all(|r| r.record.status == Status::Completed)
    );
}

#[test]
fn without_a_queue_nothing_waits() {
    let (mut desk, worker) = narrow(0);
    spawn(&mut desk, worker, background("normal"));
    let no = desk.refused(worker, "subagent.run", background("high"));
    assert!(no.starts_with("breadth: 1 of 1 running (sub-1)"), "{no}");
}

#[test]
fn a_nested_spawn_is_refused_where_the_conversations_own_waits() {
    let mut config = config();
    config.subagents.breadth = 1;
    config.subagents.queue = 4;
    let (mut desk, worker) = Desk::with_worker(config);
    let mut args = background("normal");
    args["delegate"] = true.into();
    spawn(&mut desk, worker, args);
    desk.ready(NodeId(2));
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "held");
    let no = desk.refused(NodeId(2), "subagent.run", json!({"instruction": "below"}));
    assert!(no.starts_with("breadth:"), "{no}");
}

#[test]
fn the_rate_is_waited_for_too_and_the_core_asks_to_be_woken() {
    let mut config = config();
    config.subagents.rate = Rate { burst: 1, per: Duration::from_secs(2) };
    config.subagents.queue = 4;
    let (mut desk, worker) = Desk::with_worker(config);
    spawn(&mut desk, worker, background("normal"));
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "held");
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "held");
    desk.advance_to(1_999);
    assert_eq!(desk.core.permits_out(), 1);
    desk.advance_to(2_000);
    assert_eq!(desk.core.permits_out(), 2);
    desk.advance_to(4_000);
    assert_eq!(desk.core.permits_out(), 3);
}

#[test]
fn a_sync_caller_waits_for_the_end_and_held_time_is_nobodys_deadline() {
    let (mut desk, worker) = narrow(1);
    spawn(&mut desk, worker, background("normal"));
    desk.ready(NodeId(2));
    let id = desk.call(worker, "subagent.run", json!({"instruction": "y", "limits": {"deadline": "10s"}}));
    for s in 1..=200 {
        desk.advance_to(s * 1_000);
        desk.pong(worker);
        desk.pong(NodeId(2));
    }
    assert_eq!(desk.answer(worker, id), None);
    desk.finish(NodeId(2), "first");
    desk.ready(NodeId(3));
    desk.finish(NodeId(3), "second");
    assert_eq!(desk.answer(worker, id).expect("told").1["result"], "second");
}

#[test]
fn killing_one_that_waits_makes_no_process_and_frees_its_place() {
    let (mut desk, worker) = narrow(1);
    spawn(&mut desk, worker, background("normal"));
    spawn(&mut desk, worker, background("normal"));
    let value = desk.ask(worker, "subagent.kill", json!({"handle": "sub-2"}));
    assert_eq!(value["status"], "cancelled");
    assert!(!desk.children.contains_key(&NodeId(3)));
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "held", "the place is free");
    desk.ready(NodeId(2));
    desk.finish(NodeId(2), "x");
    assert_eq!(desk.core.runs[&NodeId(4)].record.status, Status::Running);
}

#[test]
fn a_drain_parks_those_who_wait() {
    let (mut desk, worker) = narrow(2);
    spawn(&mut desk, worker, background("normal"));
    spawn(&mut desk, worker, background("normal"));
    let id = desk.call(worker, "subagent.run", json!({"instruction": "sync"}));
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    assert_eq!(
        desk.core.statuses().iter().map(|(_, s)| *s).collect::<Vec<_>>(),
        [Status::Running, Status::Parked, Status::Cancelled]
    );
    assert_eq!(desk.answer(worker, id).expect("told").1["status"], "cancelled");
}

#[test]
fn a_place_that_cannot_be_recorded_is_a_refusal() {
    let (mut desk, worker) = narrow(2);
    spawn(&mut desk, worker, background("normal"));
    desk.hold_stored = true;
    let id = desk.call(worker, "subagent.run", background("normal"));
    assert_eq!(desk.answer(worker, id), None, "the handle is told when it is durable");
    let Some(Event::Stored { seq }) = desk.held.pop() else { panic!("a save is out") };
    desk.hold_stored = false;
    desk.event(Event::StoreFailed { seq, error: "disk full".into(), retryable: true });
    let (error, value) = desk.answer(worker, id).expect("told");
    assert!(error && value["error"]["message"].as_str().is_some_and(|m| m.contains("disk full")), "{value}");
    assert_eq!(spawn(&mut desk, worker, background("normal"))["status"], "held");
}

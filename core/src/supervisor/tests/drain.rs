//! The end of a daemon: S9.6 for each mode, in time and not.

use super::*;
use crate::event::SupervisorSignal;

fn one_of_each() -> (Desk, NodeId) {
    let (mut desk, worker) = Desk::with_worker(config());
    for mode in ["sync", "async", "detached"] {
        desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": mode}));
    }
    for node in 2..=4 {
        desk.ready(NodeId(node));
    }
    (desk, worker)
}

fn statuses(desk: &Desk) -> Vec<Status> {
    desk.core.statuses().into_iter().map(|(_, s)| s).collect()
}

#[test]
fn a_drain_lets_runs_finish_and_starts_none() {
    let (mut desk, worker) = one_of_each();
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    let id = desk.call(worker, "subagent.run", json!({"instruction": "late"}));
    assert_eq!(desk.answer(worker, id).expect("told").1["error"]["gate"], "draining");
    for node in [2, 3, 4, 1] {
        desk.finish(NodeId(node), "done");
    }
    assert_eq!(statuses(&desk), [Status::Completed; 3]);
    assert!(matches!(
        desk.exit,
        Some(Action::Exit { interrupted: Some(SupervisorSignal::Term), leaked: 0, .. })
    ));
}

#[test]
fn what_a_drain_stops_is_parked_but_not_what_a_turn_waits_on() {
    let (mut desk, worker) = one_of_each();
    desk.event(Event::Signalled { signal: SupervisorSignal::Int });
    desk.advance_to(24_999);
    assert_eq!(statuses(&desk), [Status::Running; 3]);
    desk.advance_to(25_000);
    assert_eq!(statuses(&desk), [Status::Cancelled, Status::Parked, Status::Parked]);
    assert_eq!(desk.delivered[0].status, Status::Cancelled);
    for node in 1..=4 {
        assert_eq!(desk.child(NodeId(node)).signals, [ChildSignal::Kill]);
        desk.exit(NodeId(node), Exit::Signal(9));
    }
    assert!(desk.exit.is_some());
    assert!(desk.records.iter().all(|r| r.status != Status::Failed), "nothing a drain stops is failed");
    assert_eq!(desk.core.runs[&worker].record.status, Status::Cancelled);
}

#[test]
fn a_second_signal_ends_it_at_once_also_while_a_fork_is_out() {
    let (mut desk, worker) = one_of_each();
    desk.hold_spawns = true;
    desk.call(worker, "subagent.run", json!({"instruction": "in the gate"}));
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    desk.release();
    for node in 1..=5 {
        assert_eq!(desk.child(NodeId(node)).signals, [ChildSignal::Kill]);
        desk.exit(NodeId(node), Exit::Signal(9));
    }
    assert!(desk.exit.is_some());
    assert_eq!(desk.noted("drain.forced"), 1);
}

#[test]
fn a_signal_before_anything_was_asked_is_an_end() {
    let mut desk = Desk::new(config());
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    assert!(desk.exit.is_some());
}

#[test]
fn a_turn_waits_for_async_runs_and_gives_detached_ones_the_drain_time() {
    let (mut desk, worker) = Desk::with_worker(config());
    for mode in ["async", "detached"] {
        desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": mode}));
    }
    desk.ready(NodeId(2));
    desk.ready(NodeId(3));
    desk.finish(worker, "the answer");
    assert_eq!(desk.delivered[0].result, "the answer");
    for s in 1..=25 {
        desk.advance_to(s * 1_000);
        desk.pong(NodeId(2));
        desk.pong(NodeId(3));
    }
    assert_eq!(statuses(&desk), [Status::Running, Status::Parked]);
    desk.exit(NodeId(3), Exit::Signal(9));
    assert!(desk.exit.is_none());
    desk.finish(NodeId(2), "late but whole");
    assert!(matches!(desk.exit, Some(Action::Exit { interrupted: None, leaked: 0, .. })));
}

#[test]
fn one_answer_a_conversation() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.event(Event::PromptSubmitted { text: "again".into() });
    assert_eq!(desk.noted("prompt.ignored"), 1);
    desk.result(worker, "one");
    desk.result(worker, "two");
    desk.exit(worker, Exit::Code(0));
    assert_eq!(desk.delivered.len(), 1);
    assert_eq!(desk.delivered[0].result, "one");
}

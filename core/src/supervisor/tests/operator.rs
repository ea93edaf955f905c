//! The operator as a caller: the same gates and answers as a model's calls, every handle, and calls that are hung up.

use super::*;
use crate::event::SupervisorSignal;
use crate::limits;

/// A daemon that nobody has asked anything, and what the operator's first run became.
fn daemon() -> Desk {
    let mut desk = Desk::new(Config { one_shot: false, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    desk
}

fn run(desk: &mut Desk, call: u64, mode: &str) -> Option<(bool, Value)> {
    desk.operator(call, "subagent.run", json!({"instruction": "look", "mode": mode}))
}

#[test]
fn a_run_of_the_operator_is_a_run_like_any_other() {
    let mut desk = daemon();
    let (error, value) = run(&mut desk, 1, "async").expect("told that it runs");
    assert_eq!((error, value["handle"].as_str()), (false, Some("sub-1")));
    let node = NodeId(1);
    let record = desk.records.last().expect("recorded").clone();
    assert_eq!((record.depth, record.principal.as_str(), record.parent), (1, "operator", None));
    assert_eq!(desk.operator(2, "subagent.await", json!({"handle": "sub-1"})), None, "it goes on");
    desk.ready(node);
    desk.finish(node, "seen");
    let (error, value) = desk.answers[&2].clone();
    assert_eq!((error, value["result"].as_str()), (false, Some("seen")));
    assert!(desk.core.operator.is_empty());
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn a_synchronous_run_answers_with_its_end_and_ends_with_its_caller() {
    let mut desk = daemon();
    assert_eq!(run(&mut desk, 1, "sync"), None);
    assert_eq!(run(&mut desk, 2, "sync"), None);
    desk.ready(NodeId(1));
    desk.finish(NodeId(1), "first");
    assert_eq!(desk.answers[&1].1["result"].as_str(), Some("first"));
    desk.event(Event::OperatorHungUp { call: 2 });
    assert!(!desk.answers.contains_key(&2), "nobody is there to be answered");
    let why = desk.core.runs[&NodeId(2)].record.error.clone();
    assert_eq!(why.as_deref(), Some("the operator who waited for it has gone"));
    assert_eq!(desk.statuses_of(2), Status::Cancelled);
    // What is not open cannot be hung up.
    desk.event(Event::OperatorHungUp { call: 2 });
    desk.event(Event::OperatorHungUp { call: 99 });
}

#[test]
fn an_await_that_is_hung_up_leaves_the_run_and_no_mark() {
    let mut desk = daemon();
    run(&mut desk, 1, "async");
    desk.operator(2, "subagent.await", json!({"handle": "sub-1", "timeout": "5s"}));
    assert!(desk.core.poll_timeout().is_some_and(|due| due.at <= Instant::from_millis(5_000)));
    desk.event(Event::OperatorHungUp { call: 2 });
    assert!(desk.core.operator.is_empty() && desk.core.runs[&NodeId(1)].waiters.is_empty());
    desk.ready(NodeId(1));
    desk.finish(NodeId(1), "done");
    assert!(!desk.answers.contains_key(&2));
}

#[test]
fn an_awaits_timeout_is_kept_when_nothing_else_is_due() {
    let mut desk = daemon();
    run(&mut desk, 1, "async");
    desk.operator(2, "subagent.await", json!({"handle": "sub-1", "timeout": "1s"}));
    desk.advance_to(999);
    assert!(!desk.answers.contains_key(&2));
    desk.advance_to(1_000);
    assert_eq!(desk.answers[&2].1["timed_out"].as_bool(), Some(true));
}

#[test]
fn the_operator_sees_what_the_conversation_started_and_acts_on_it() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    let (_, list) = desk.operator(1, "subagent.list", json!({})).expect("at once");
    assert_eq!(list["runs"][0]["handle"].as_str(), Some("sub-1"));
    desk.operator(2, "subagent.kill", json!({"handle": "sub-1", "reason": "enough"}));
    let (error, value) = desk.answers[&2].clone();
    assert_eq!((error, value["status"].as_str()), (false, Some("cancelled")));
    assert_eq!(value["error"].as_str(), Some("killed by the operator: enough"));
}

#[test]
fn what_is_no_operators_tool_and_what_is_no_object_is_refused() {
    let mut desk = daemon();
    for (call, tool, args, words) in [
        (1, "plan.create", json!({"goal": "x"}), "unknown tool plan.create; accepted are subagent.run,"),
        (2, "finish", json!({"result": 1}), "unknown tool finish"),
        (3, "subagent.run", json!([1]), "object"),
        (4, "subagent.kill", json!({"handle": "sub-1"}), "unknown handle sub-1"),
        (5, "subagent.run", json!({"instruction": " "}), "instruction"),
        (6, "subagent.run", json!({"instruction": "x", "servers": ["nope"]}), "unknown nope"),
    ] {
        let (error, value) = desk.operator(call, tool, args).expect("at once");
        let message = value["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(error && message.contains(words), "{tool}: {message}");
    }
    assert!(desk.core.runs.is_empty() && desk.children.is_empty());
}

#[test]
fn a_number_that_is_open_is_not_taken_twice_and_calls_are_bounded() {
    let mut desk = daemon();
    run(&mut desk, 1, "async");
    desk.operator(2, "subagent.await", json!({"handle": "sub-1"}));
    desk.operator(2, "subagent.list", json!({}));
    assert!(!desk.answers.contains_key(&2), "the list did not answer the await");
    assert_eq!(desk.noted("operator.repeated"), 1);
    for call in 3..limits::OPERATOR_CALLS as u64 + 2 {
        assert_eq!(desk.operator(call, "subagent.await", json!({"handle": "sub-1"})), None);
    }
    let (error, value) = desk.operator(9_999, "subagent.list", json!({})).expect("refused");
    assert!(error && value["error"]["gate"] == "calls", "{value}");
    desk.ready(NodeId(1));
    desk.finish(NodeId(1), "done");
    assert_eq!(desk.answers.len(), limits::OPERATOR_CALLS + 2);
}

#[test]
fn a_drain_answers_every_call_of_the_operator() {
    let mut desk = daemon();
    run(&mut desk, 1, "sync");
    run(&mut desk, 2, "warm");
    desk.operator(3, "subagent.await", json!({"handle": "sub-2"}));
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    let (error, value) = run(&mut desk, 4, "async").expect("refused");
    assert!(error && value["error"]["gate"] == "draining", "{value}");
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    assert_eq!(desk.answers[&1].1["status"].as_str(), Some("cancelled"), "a caller waited for it");
    assert_eq!(desk.answers[&3].1["status"].as_str(), Some("parked"));
    for node in [NodeId(1), NodeId(2)] {
        desk.exit(node, Exit::Signal(9));
    }
    assert!(desk.exit.is_some() && desk.core.operator.is_empty());
}

#[test]
fn a_paused_run_is_told_once_and_its_time_stands_still() {
    let mut desk = daemon();
    desk.operator(
        1,
        "subagent.run",
        json!({"instruction": "x", "mode": "async", "limits": {"deadline": "60s"}}),
    );
    let node = NodeId(1);
    // Told before there is anybody to hear it: the process is up, its `ready` is not.
    desk.ready(node);
    for call in 2..4 {
        assert_eq!(
            desk.operator(call, "subagent.pause", json!({"handle": "sub-1"})).map(|a| a.0),
            Some(false)
        );
    }
    // Far beyond its deadline, its grace and any silence: nobody judges it.
    desk.advance_to(1_000_000);
    assert_eq!(desk.statuses_of(1), Status::Running);
    desk.operator(4, "subagent.resume", json!({"handle": "sub-1"}));
    desk.operator(5, "subagent.resume", json!({"handle": "sub-1"}));
    let heard = &desk.child(node).heard;
    let told: Vec<bool> = heard
        .iter()
        .filter(|down| matches!(down, Down::Pause(_) | Down::Resume(_)))
        .map(|down| matches!(down, Down::Pause(_)))
        .collect();
    assert_eq!(told, [true, false]);
    // 60 s of its own and 60 s of grace are left from here.
    for s in 0..120 {
        desk.advance_to(1_000_000 + s * 1_000);
        desk.pong(node);
    }
    assert_eq!(desk.statuses_of(1), Status::Running);
    desk.advance_to(1_120_000);
    assert_eq!(desk.statuses_of(1), Status::Failed);
    let worker = desk.operator(6, "subagent.pause", json!({"handle": "sub-1"})).expect("refused");
    assert!(worker.0, "what has ended does not pause");
}

#[test]
fn only_the_operator_pauses() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    let id = desk.call(worker, "subagent.pause", json!({"handle": "sub-1"}));
    let (error, value) = desk.answer(worker, id).expect("refused");
    assert!(error && value["error"]["message"] == "unknown tool subagent.pause", "{value}");
}

#[test]
fn a_run_of_the_operator_wakes_no_conversation() {
    let mut desk = Desk::new(Config { one_shot: false, wake_on_results: true, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    run(&mut desk, 1, "async");
    desk.ready(NodeId(1));
    desk.finish(NodeId(1), "done");
    assert!(!desk.children.contains_key(&NodeId(2)), "no worker was made to be told of it");
}

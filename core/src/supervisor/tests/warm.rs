//! Warm runs: every message one turn, in order, or an explicit answer that it will have none (S6.3, F25).

use super::*;
use crate::limits;
use crate::wire::message::{Ack, FailKind, Failed};

/// A conversation with one warm run that is in its first turn, at node 2.
fn warm() -> (Desk, NodeId, NodeId) {
    let (mut desk, worker) = Desk::with_worker(config());
    let value = desk.ask(worker, "subagent.run", json!({"instruction": "first", "mode": "warm"}));
    assert_eq!((value["handle"].as_str(), value["status"].as_str()), (Some("sub-1"), Some("running")));
    let node = NodeId(2);
    desk.ready(node);
    (desk, worker, node)
}

fn send(desk: &mut Desk, worker: NodeId, text: &str) -> Value {
    desk.ask(worker, "subagent.send", json!({"handle": "sub-1", "text": text}))
}

#[test]
fn fifty_sends_during_one_turn_arrive_in_order_each_one_turn() {
    let (mut desk, worker, node) = warm();
    for i in 0..50 {
        let answer = send(&mut desk, worker, &format!("m{i}"));
        assert_eq!(answer, json!({"handle": "sub-1", "message_id": i + 2, "queued": i + 1}));
    }
    assert!(desk.messages(node).is_empty(), "the first turn is in hand");
    desk.turn(node, 1, "one");
    for i in 0..50 {
        assert_eq!(desk.messages(node).len(), i + 1, "one at a time");
        assert_eq!(desk.messages(node)[i], (i as u64 + 2, format!("m{i}")));
        desk.turn(node, i as u64 + 2, &format!("r{i}"));
    }
    let last = desk.ask(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 51}));
    assert_eq!((last["result"].as_str(), last["message_id"].as_u64()), (Some("r49"), Some(51)));
}

#[test]
fn a_full_queue_and_bad_messages_are_refused() {
    let (mut desk, worker, _) = warm();
    for i in 0..limits::WARM_QUEUE {
        send(&mut desk, worker, &format!("m{i}"));
    }
    let no = desk.refused(worker, "subagent.send", json!({"handle": "sub-1", "text": "one more"}));
    assert_eq!(no, "64 of 64 messages wait already");
    for (args, words) in [
        (json!({"handle": "sub-1", "text": " "}), "text: it is empty"),
        (json!({"handle": "sub-1"}), "text: accepted is a string"),
        (json!({"handle": "sub-1", "text": "x".repeat(limits::MESSAGE_BYTES + 1)}), "at most 1048576"),
        (json!({"handle": "sub-9", "text": "x"}), "unknown handle sub-9"),
        (json!({"handle": "sub-1", "text": "x", "to": 1}), "to: unknown"),
    ] {
        let no = desk.refused(worker, "subagent.send", args.clone());
        assert!(no.contains(words), "{args:.80}: {no}");
    }
}

#[test]
fn a_turn_is_awaited_by_its_message_and_times_out_alone() {
    let (mut desk, worker, node) = warm();
    send(&mut desk, worker, "second");
    let first = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 1}));
    let second =
        desk.call(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 2, "timeout": "5s"}));
    let whole = desk.call(worker, "subagent.await", json!({"handle": "sub-1"}));
    desk.turn(node, 1, "one");
    let told = desk.answer(worker, first).expect("told").1;
    assert_eq!((told["result"].as_str(), told["status"].as_str()), (Some("one"), Some("completed")));
    desk.advance_to(5_000);
    let late = desk.answer(worker, second).expect("timed out").1;
    assert_eq!((late["timed_out"].as_bool(), late["message_id"].as_u64()), (Some(true), Some(2)));
    assert_eq!(desk.answer(worker, whole), None, "the run goes on");
    assert!(
        desk.refused(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 7}))
            .contains("no result of message 7 of sub-1")
    );
}

#[test]
fn retiring_ends_with_the_turn_in_hand_and_names_what_it_drops() {
    let (mut desk, worker, node) = warm();
    send(&mut desk, worker, "second");
    let waits = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 2}));
    let whole = desk.call(worker, "subagent.await", json!({"handle": "sub-1"}));
    let answer = desk.ask(worker, "subagent.retire", json!({"handle": "sub-1"}));
    assert_eq!((&answer["status"], &answer["dropped"]), (&json!("retiring"), &json!([2])));
    assert!(desk.answer(worker, waits).expect("told").0, "a message without a turn is an explicit error");
    assert!(
        desk.refused(worker, "subagent.send", json!({"handle": "sub-1", "text": "x"})).contains("retiring")
    );
    assert_eq!(desk.core.runs[&node].record.status, Status::Retiring);
    desk.turn(node, 1, "the end");
    let object = desk.answer(worker, whole).expect("told").1;
    assert_eq!((object["status"].as_str(), object["result"].as_str()), (Some("completed"), Some("the end")));
    desk.exit(node, Exit::Code(0));
    assert!(desk.child(node).signals.is_empty(), "it leaves by the cancel");
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn retiring_an_idle_run_ends_it_at_once() {
    let (mut desk, worker, node) = warm();
    desk.turn(node, 1, "kept");
    desk.ask(worker, "subagent.retire", json!({"handle": "sub-1"}));
    let object = desk.ask(worker, "subagent.await", json!({"handle": "sub-1"}));
    assert_eq!((object["status"].as_str(), object["result"].as_str()), (Some("completed"), Some("kept")));
    assert!(desk.child(node).heard.iter().any(|d| matches!(d, Down::Cancel(c) if c.turn.is_none())));
    let again = desk.ask(worker, "subagent.retire", json!({"handle": "sub-1"}));
    assert_eq!(again, object, "what has ended answers with its result");
}

#[test]
fn the_hard_deadline_is_armed_anew_at_each_turn_and_off_between() {
    let (mut desk, worker) = Desk::with_worker(config());
    let limits = json!({"deadline": "10s"});
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "warm", "limits": limits}));
    let node = NodeId(2);
    desk.ready(node);
    desk.turn(node, 1, "one");
    for s in 1..=300 {
        desk.advance_to(s * 1_000);
        desk.pong(worker);
        desk.pong(node);
    }
    assert_eq!(desk.core.runs[&node].record.status, Status::Running, "an idle run has no deadline");
    desk.ask(worker, "subagent.send", json!({"handle": "sub-1", "text": "more"}));
    for s in 301..=370 {
        desk.advance_to(s * 1_000);
        desk.pong(worker);
        desk.pong(node);
    }
    let run = &desk.core.runs[&node];
    assert_eq!(run.record.status, Status::Failed);
    assert!(
        run.record.error.as_ref().is_some_and(|e| e.starts_with("hard deadline")),
        "{:?}",
        run.record.error
    );
}

#[test]
fn a_run_that_dies_answers_for_the_messages_that_waited() {
    let (mut desk, worker, node) = warm();
    send(&mut desk, worker, "never read");
    let waits = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 2}));
    desk.exit(node, Exit::Signal(9));
    let (error, value) = desk.answer(worker, waits).expect("never silence");
    assert!(
        error && value["error"]["message"].as_str().is_some_and(|m| m.contains("ended as failed")),
        "{value}"
    );
    let no = desk.refused(worker, "subagent.send", json!({"handle": "sub-1", "text": "x"}));
    assert!(no.contains("it has ended as failed"), "{no}");
    assert_eq!(desk.noted("subagent.messages_dropped"), 1);
}

#[test]
fn a_failed_turn_is_told_and_the_run_goes_on() {
    let (mut desk, worker, node) = warm();
    let failed = Failed {
        kind: FailKind::EmptyReply,
        error: "empty reply".into(),
        text: None,
        evidence: LoopEvidence::default(),
    };
    desk.up(node, &Up::Turn(Turn { id: 1, outcome: TurnOutcome::Failed(failed) }));
    let told = desk.ask(worker, "subagent.await", json!({"handle": "sub-1", "message_id": 1}));
    assert_eq!((told["status"].as_str(), told["error"].as_str()), (Some("failed"), Some("empty reply")));
    send(&mut desk, worker, "again");
    assert_eq!(desk.messages(node), [(2, "again".to_owned())]);
}

#[test]
fn turns_nobody_began_break_the_protocol() {
    for id in [0, 2, 99] {
        let (mut desk, _, node) = warm();
        desk.turn(node, id, "made up");
        assert_eq!(desk.core.runs[&node].record.status, Status::Failed, "turn {id}");
    }
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    desk.ready(NodeId(2));
    desk.turn(NodeId(2), 1, "not warm");
    assert!(desk.core.runs[&NodeId(2)].record.error.as_ref().is_some_and(|e| e.contains("not in hand")));
}

#[test]
fn a_turns_sync_runs_end_with_it() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "warm", "delegate": true}));
    let node = NodeId(2);
    desk.ready(node);
    desk.call(node, "subagent.run", json!({"instruction": "below"}));
    desk.ready(NodeId(3));
    desk.turn(node, 1, "did not wait");
    assert_eq!(desk.core.runs[&NodeId(3)].record.status, Status::Cancelled);
}

#[test]
fn steers_reach_any_live_run_also_one_that_is_still_being_made() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.hold_spawns = true;
    desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    let first = desk.ask(worker, "subagent.steer", json!({"handle": "sub-1", "text": "a"}));
    assert_eq!(first["steer_id"], 2);
    desk.release();
    desk.ready(NodeId(2));
    desk.ask(worker, "subagent.steer", json!({"handle": "sub-1", "text": "b"}));
    let steers: Vec<(u64, String)> = desk
        .child(NodeId(2))
        .heard
        .iter()
        .filter_map(|d| {
            let Down::Steer(text) = d else { return None };
            Some((text.id, text.text.clone()))
        })
        .collect();
    assert_eq!(steers, [(2, "a".to_owned()), (3, "b".to_owned())]);
    for i in 2..limits::STEERS {
        desk.ask(worker, "subagent.steer", json!({"handle": "sub-1", "text": i.to_string()}));
    }
    let no = desk.refused(worker, "subagent.steer", json!({"handle": "sub-1", "text": "x"}));
    assert!(no.contains("16 steers wait"), "{no}");
    desk.up(NodeId(2), &Up::Ack(Ack { id: 2 }));
    desk.ask(worker, "subagent.steer", json!({"handle": "sub-1", "text": "there is room again"}));
    desk.finish(NodeId(2), "done");
    let no = desk.refused(worker, "subagent.steer", json!({"handle": "sub-1", "text": "late"}));
    assert!(no.contains("it has ended as completed"), "{no}");
}

#[test]
fn finish_is_handed_on_and_makes_no_sense_between_turns() {
    let (mut desk, worker, node) = warm();
    let answer = desk.ask(worker, "subagent.finish", json!({"handle": "sub-1", "reason": "enough"}));
    assert_eq!(answer["status"], "running");
    assert!(desk.child(node).heard.iter().any(|d| matches!(d, Down::Finish(f) if f.reason == "enough")));
    desk.turn(node, 1, "what I have");
    let no = desk.refused(worker, "subagent.finish", json!({"handle": "sub-1"}));
    assert!(no.contains("between turns"), "{no}");
    let no = desk.refused(worker, "subagent.retire", json!({"handle": "sub-2"}));
    assert!(no.contains("unknown handle"), "{no}");
    desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    let no = desk.refused(worker, "subagent.send", json!({"handle": "sub-2", "text": "x"}));
    assert!(no.contains("it is async and takes no messages"), "{no}");
}

#[test]
fn retiring_changes_nothing_once_the_end_is_decided() {
    let (mut desk, worker, node) = warm();
    desk.hold_stored = true;
    desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
    let no = desk.refused(worker, "subagent.retire", json!({"handle": "sub-1"}));
    assert!(no.contains("it has ended as cancelled"), "{no}");
    assert_eq!(desk.core.runs[&node].record.status, Status::Cancelled);
    desk.release();
}

#[test]
fn a_run_that_is_being_made_retires_all_the_same() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.hold_spawns = true;
    desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "warm"}));
    desk.ask(worker, "subagent.retire", json!({"handle": "sub-1"}));
    desk.release();
    desk.ready(NodeId(2));
    assert_eq!(desk.core.runs[&NodeId(2)].record.status, Status::Retiring);
    desk.turn(NodeId(2), 1, "the only one");
    assert_eq!(desk.core.runs[&NodeId(2)].record.status, Status::Completed);
}

#[test]
fn no_warm_run_begins_once_a_one_shot_conversation_has_its_answer() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "delegate": true}));
    desk.ready(NodeId(2));
    desk.finish(worker, "answer");
    let no = desk.refused(NodeId(2), "subagent.run", json!({"instruction": "y", "mode": "warm"}));
    assert!(no.contains("the conversation has its answer"), "{no}");
    desk.finish(NodeId(2), "done");
    assert!(desk.exit.is_some());
}

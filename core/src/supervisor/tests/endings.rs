//! How runs end: the first outcome stands, the ladder climbs, the process goes, the caller is told once.

use super::*;

fn spawned(mode: &str) -> (Desk, NodeId, NodeId, u64) {
    let (mut desk, worker) = Desk::with_worker(config());
    let id = desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": mode}));
    desk.ready(NodeId(2));
    (desk, worker, NodeId(2), id)
}

#[test]
fn a_kill_is_told_at_once_and_a_late_result_changes_nothing() {
    let (mut desk, worker, sub, run) = spawned("sync");
    let kill = desk.call(worker, "subagent.kill", json!({"handle": "sub-1", "reason": "enough"}));
    for id in [run, kill] {
        let (_, value) = desk.answer(worker, id).expect("told");
        assert_eq!(
            (value["status"].as_str(), value["error"].as_str()),
            (Some("cancelled"), Some("killed by the conversation: enough"))
        );
    }
    assert!(matches!(desk.child(sub).heard.last(), Some(Down::Cancel(_))));
    desk.result(sub, "too late");
    let again = desk.call(worker, "subagent.status", json!({"handle": "sub-1"}));
    assert_eq!(desk.answer(worker, again).expect("told").1["status"], "cancelled");
    desk.exit(sub, Exit::Code(0));
    assert!(desk.child(sub).signals.is_empty(), "it left by itself and was never signalled");
    assert_eq!(desk.core.permits_out(), 0);
}

/// S6.4: the same bytes each time, whatever the child says while it obeys.
#[test]
fn what_a_killed_child_counts_later_changes_no_result() {
    let (mut desk, worker, sub, _) = spawned("async");
    desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
    let first = desk.call(worker, "subagent.await", json!({"handle": "sub-1"}));
    let counted = LoopEvidence { model_calls: 7, tool_calls: 3, tool_errors: 1 };
    let state = State { evidence: counted, ..State::of(WaitingOn::Closing, 7) };
    desk.up(sub, &Up::State(state));
    let result =
        RunResult { end: LoopEnd::Cancelled, text: None, partial: true, error: None, evidence: counted };
    desk.up(sub, &Up::Result(result));
    let second = desk.call(worker, "subagent.await", json!({"handle": "sub-1"}));
    assert_eq!(desk.answer(worker, first).expect("told"), desk.answer(worker, second).expect("told"));
}

#[test]
fn a_child_that_does_not_listen_is_signalled_at_five_and_seven_seconds() {
    let (mut desk, worker, sub, _) = spawned("async");
    desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
    desk.advance_to(4_999);
    assert!(desk.child(sub).signals.is_empty());
    desk.advance_to(5_000);
    assert_eq!(desk.child(sub).signals, [ChildSignal::TermCont]);
    desk.advance_to(7_000);
    assert_eq!(desk.child(sub).signals, [ChildSignal::TermCont, ChildSignal::Kill]);
    let escalated: Vec<u64> = desk
        .notes
        .iter()
        .filter(|n| n.event == "subagent.kill.escalated")
        .filter_map(|n| n.fields["after_ms"].as_u64())
        .collect();
    assert_eq!(escalated, [5_000, 7_000]);
}

#[test]
fn a_kill_takes_what_was_delegated_with_it_unless_only() {
    for only in [false, true] {
        let (mut desk, worker) = Desk::with_worker(config());
        desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "delegate": true}));
        desk.ready(NodeId(2));
        desk.call(NodeId(2), "subagent.run", json!({"instruction": "y", "mode": "async"}));
        desk.call(NodeId(2), "subagent.run", json!({"instruction": "z"}));
        desk.ready(NodeId(3));
        desk.ready(NodeId(4));
        desk.call(worker, "subagent.kill", json!({"handle": "sub-1", "only": only}));
        let statuses: Vec<Status> = desk.core.statuses().into_iter().map(|(_, s)| s).collect();
        let below = if only { Status::Running } else { Status::Cancelled };
        assert_eq!(statuses, [Status::Cancelled, below, below], "only: {only}");
    }
}

#[test]
fn a_caller_that_ends_takes_its_sync_runs_along_and_no_others() {
    let (mut desk, worker, _, _) = spawned("sync");
    desk.call(worker, "subagent.run", json!({"instruction": "y", "mode": "async"}));
    desk.call(worker, "subagent.run", json!({"instruction": "z", "mode": "detached"}));
    desk.ready(NodeId(3));
    desk.ready(NodeId(4));
    desk.exit(worker, Exit::Signal(9));
    let statuses: Vec<Status> = desk.core.statuses().into_iter().map(|(_, s)| s).collect();
    assert_eq!(statuses, [Status::Cancelled, Status::Running, Status::Running]);
    assert_eq!(desk.delivered[0].error.as_deref(), Some("exited without a result (SIGKILL)"));
}

#[test]
fn exit_zero_without_a_result_is_a_failure() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.exit(sub, Exit::Code(0));
    assert_eq!(desk.answer(worker, run).expect("told").1["error"], "exited without a result (exit code 0)");
}

#[test]
fn frames_written_before_death_count_also_when_death_is_seen_first() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.event(Event::ExitObserved { node: sub, exit: Exit::Code(1) });
    assert_eq!(desk.answer(worker, run), None, "its pipe is not read to the end");
    desk.result(sub, "in time");
    desk.event(Event::ChildEof { node: sub });
    let (_, value) = desk.answer(worker, run).expect("told");
    assert_eq!((value["status"].as_str(), value["result"].as_str()), (Some("completed"), Some("in time")));
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn nobody_waits_more_than_a_second_for_the_end_of_file() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.event(Event::ExitObserved { node: sub, exit: Exit::Signal(11) });
    desk.advance_to(999);
    assert_eq!(desk.answer(worker, run), None);
    desk.advance_to(1_000);
    assert_eq!(desk.answer(worker, run).expect("told").1["error"], "exited without a result (SIGSEGV)");
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn end_of_file_alone_is_not_death() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.event(Event::ChildEof { node: sub });
    desk.advance_to(60_000);
    assert_eq!(desk.answer(worker, run), None);
    assert_eq!(desk.core.permits_out(), 1);
}

#[test]
fn rubbish_ends_that_child_at_once_and_no_other() {
    let (mut desk, worker, sub, run) = spawned("sync");
    let other = desk.call(worker, "subagent.run", json!({"instruction": "y"}));
    desk.ready(NodeId(3));
    desk.event(Event::ChildBytes { node: sub, bytes: Bytes::from(vec![0xff; 64]) });
    let (_, value) = desk.answer(worker, run).expect("told");
    assert!(value["error"].as_str().expect("text").starts_with("protocol error: "), "{value}");
    assert_eq!(desk.child(sub).signals, [ChildSignal::Kill]);
    desk.finish(NodeId(3), "fine");
    assert_eq!(desk.answer(worker, other).expect("told").1["result"], "fine");
}

#[test]
fn silent_and_deaf_is_stuck_while_busy_is_left_alone() {
    let (mut desk, worker, sub, run) = spawned("sync");
    for s in 1..=400 {
        desk.advance_to(s * 1_000);
        desk.pong(sub);
        desk.pong(worker);
    }
    assert_eq!(desk.answer(worker, run), None, "silent for 400 s, but it answers");
    let mut s = 400;
    let (_, value) = loop {
        s += 1;
        assert!(s <= 412, "no pong for over ten seconds and nobody minds");
        desk.advance_to(s * 1_000);
        desk.pong(worker);
        if let Some(told) = desk.answer(worker, run) {
            break told;
        }
    };
    assert!(value["error"].as_str().expect("text").starts_with("stuck: no frame for "), "{value}");
    assert_eq!(desk.child(sub).signals, [ChildSignal::TermCont]);
    let at = desk.now_ms + 2_000;
    desk.advance_to(at);
    assert_eq!(desk.child(sub).signals, [ChildSignal::TermCont, ChildSignal::Kill]);
}

#[test]
fn nobody_is_judged_by_a_standstill_of_the_daemon() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.now_ms = 10_000_000;
    desk.event(Event::Tick);
    assert_eq!(desk.noted("daemon.stalled"), 1);
    assert_eq!(desk.answer(worker, run), None);
    desk.advance_to(10_003_000);
    desk.pong(sub);
    assert!(desk.child(sub).signals.is_empty());
}

#[test]
fn a_child_that_stays_after_its_result_gets_five_seconds() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.result(sub, "done");
    assert_eq!(desk.answer(worker, run).expect("told at once").1["result"], "done");
    desk.advance_to(4_999);
    assert!(desk.child(sub).signals.is_empty());
    desk.advance_to(7_000);
    assert_eq!(desk.child(sub).signals, [ChildSignal::TermCont, ChildSignal::Kill]);
}

#[test]
fn a_kill_while_it_is_forked_ends_it_before_it_reads_anything() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.hold_spawns = true;
    desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
    desk.release();
    let child = desk.child(NodeId(2));
    assert!(child.spawn.is_none());
    assert_eq!(child.signals, [ChildSignal::Kill]);
    desk.exit(NodeId(2), Exit::Signal(9));
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn a_kill_before_the_intent_is_durable_never_forks() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.hold_stored = true;
    let run = desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
    desk.release();
    assert_eq!(desk.children.len(), 1);
    assert_eq!(desk.core.permits_out(), 0);
    assert_eq!(desk.answer(worker, run).expect("told").1["status"], "cancelled");
}

#[test]
fn an_ending_that_cannot_be_saved_is_kept_and_tried_again() {
    let (mut desk, worker, sub, run) = spawned("sync");
    desk.hold_stored = true;
    desk.result(sub, "kept");
    let Some(Event::Stored { seq }) = desk.held.pop() else { panic!("a save is out") };
    desk.event(Event::StoreFailed { seq, error: "locked".into(), retryable: true });
    assert_eq!(desk.answer(worker, run), None);
    desk.hold_stored = false;
    desk.advance_to(500);
    assert_eq!(desk.answer(worker, run).expect("told").1["result"], "kept");
}

#[test]
fn usage_reaches_every_run_above_once() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(worker, "subagent.run", json!({"instruction": "x", "delegate": true}));
    desk.ready(NodeId(2));
    let below = desk.call(NodeId(2), "subagent.run", json!({"instruction": "y"}));
    desk.ready(NodeId(3));
    for (node, input) in [(worker, 1), (NodeId(2), 10), (NodeId(3), 100), (NodeId(3), 100)] {
        let usage = Usage { input, output: 1, cached: 0, estimated: false, model: "mock".into() };
        desk.up(node, &Up::Usage(usage));
    }
    desk.finish(NodeId(3), "z");
    let (_, object) = desk.answer(NodeId(2), below).expect("told");
    assert_eq!(object["usage"]["own"], object["usage"]["subtree"]);
    desk.finish(NodeId(2), "y");
    desk.finish(worker, "x");
    let Some(Action::Exit { usage, leaked: 0, interrupted: None, .. }) = desk.exit.take() else {
        panic!("ended")
    };
    assert_eq!((usage.own.input, usage.subtree.input, usage.subtree.output), (1, 211, 4));
}

fn thinking(desk: &mut Desk, node: NodeId, in_flight: u64) {
    let evidence = LoopEvidence { model_calls: 2, tool_calls: 3, tool_errors: 1 };
    desk.up(
        node,
        &Up::State(State { waiting_on: WaitingOn::Model, step: 2, evidence, in_flight: Some(in_flight) }),
    );
}

fn used(desk: &mut Desk, node: NodeId, input: u64) {
    let usage = Usage { input, output: 3, cached: 0, estimated: false, model: "mock".into() };
    desk.up(node, &Up::Usage(usage));
}

#[test]
fn a_call_that_a_signal_cuts_off_is_charged_and_counted() {
    let (mut desk, worker, sub, run) = spawned("sync");
    used(&mut desk, sub, 10);
    thinking(&mut desk, sub, 5_000);
    desk.exit(sub, Exit::Signal(9));
    let (_, object) = desk.answer(worker, run).expect("told");
    assert_eq!(
        (&object["usage"]["own"]["input"], &object["usage"]["own"]["estimated"]),
        (&json!(5_010), &json!(true))
    );
    let evidence = &object["evidence"];
    assert_eq!(
        (&evidence["model_calls"], &evidence["tool_calls"], &evidence["tool_errors"]),
        (&json!(2), &json!(3), &json!(1))
    );
    assert_eq!(desk.core.runs[&worker].subtree.input, 5_010);
}

#[test]
fn a_call_charged_at_a_kill_is_not_charged_again_when_it_is_reported() {
    for (reported, sum) in [(5_000, 5_010), (5_200, 5_210), (100, 5_010)] {
        let (mut desk, worker, sub, _) = spawned("async");
        used(&mut desk, sub, 10);
        thinking(&mut desk, sub, 5_000);
        desk.call(worker, "subagent.kill", json!({"handle": "sub-1"}));
        used(&mut desk, sub, reported);
        assert_eq!(desk.core.runs[&sub].record.usage.input, sum);
        used(&mut desk, sub, 1);
        assert_eq!(desk.core.runs[&worker].subtree.input, sum + 1, "only that one call was charged ahead");
    }
}

#[test]
fn a_call_that_was_answered_is_charged_once() {
    let (mut desk, worker, sub, run) = spawned("sync");
    thinking(&mut desk, sub, 5_000);
    used(&mut desk, sub, 7);
    desk.finish(sub, "x");
    assert_eq!(desk.answer(worker, run).expect("told").1["usage"]["own"]["input"], 7);
}

#[test]
fn a_persons_answer_is_whole_and_a_callers_is_distilled() {
    let (mut desk, worker, sub, run) = spawned("sync");
    let long = "x".repeat(100_000);
    desk.finish(sub, &long);
    let (_, object) = desk.answer(worker, run).expect("told");
    assert!(object["result"].as_str().expect("text").ends_with("… [truncated]"));
    desk.finish(worker, &long);
    assert_eq!(desk.delivered[0].result, long);
}

#[test]
fn what_this_version_does_not_know_is_ignored_counted_and_told_but_never_first() {
    let unknown = |n: u8| {
        // {"t": "dance", "n": n}
        let body = [&[0xa2, 0x61, b't', 0x65][..], b"dance", &[0x61, b'n', n]].concat();
        Bytes::from([&[0, 0, 0, u8::try_from(body.len()).expect("short")][..], &body].concat())
    };
    let (mut desk, _, sub, _) = spawned("sync");
    desk.event(Event::ChildBytes { node: sub, bytes: unknown(2) });
    assert!(desk.child(sub).signals.is_empty());
    desk.exit(sub, Exit::Code(0));
    assert_eq!(desk.noted("child.ignored"), 1);

    let (mut desk, worker) = Desk::with_worker(config());
    let run = desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    desk.event(Event::ChildBytes { node: NodeId(2), bytes: unknown(1) });
    let (_, object) = desk.answer(worker, run).expect("told");
    assert_eq!(object["error"], "protocol error: the first frame must be `ready` or `failed`");
}

//! Warm loops: one turn for each message, in order, each with budgets of its own (S6.3, F25).

use super::*;

#[test]
fn tools_that_change_are_seen_from_the_next_call_on_and_within_the_grant() {
    let mut spec = spec();
    spec.tools = Some(vec!["files.*".to_owned()]);
    let mut run = Run::of(&spec);
    let offered = |run: &Run| -> Vec<String> {
        run.last_request().tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(offered(&run), ["files_read", "subagent_run", "subagent_await"]);
    let mut changed = tools();
    changed[0].decl.name = "files.write".to_owned();
    run.input(Input::ToolsChanged { tools: changed });
    // The call was made by what the model saw.
    run.reply(calls(&[("a", "files_read", "{}"), ("b", "files_write", "{}")]));
    let made: Vec<_> = run.outputs.iter().filter(|o| matches!(o, Output::CallTool { .. })).collect();
    assert!(matches!(&made[..], [Output::CallTool { name, .. }] if name == "files.read"), "{made:?}");
    let Some(Output::CallTool { call, .. }) = made.first() else { panic!() };
    let outcome = ToolOutcome { error: false, value: ToolValue::Text("r".to_owned()) };
    run.input(Input::ToolDone { call: *call, outcome });
    assert_eq!(offered(&run), ["files_write", "subagent_run", "subagent_await"]);
    run.reply(calls(&[("c", "web_get", "{}")]));
    assert!(offered(&run).iter().all(|name| name != "web_get"), "a grant does not grow");
}
use crate::limits::MESSAGES_WAITING;
use crate::model::ModelError;

#[test]
fn each_message_is_a_turn_and_the_history_goes_on() {
    let mut run = Run::of(&warm());
    assert!(run.acks().is_empty(), "the instruction needs none");
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.done("a", "text of a");
    run.reply(answer("first"));
    assert_eq!(run.turn_result().0, 1);
    assert_eq!(run.turn_result().1.text.as_deref(), Some("first"));
    assert_eq!(run.waits(), Some(WaitingOn::Message));
    assert_eq!(run.machine.poll_timeout(), None, "idle is not judged");

    run.at(10_000_000).message(2, "and b?");
    assert_eq!(run.acks(), [2]);
    assert_eq!(run.waits(), Some(WaitingOn::Model));
    assert_eq!(
        run.told(),
        ["user: do it", "assistant: a", "results: text of a", "assistant: first", "user: and b?"]
    );
    let request = run.last_request();
    assert_eq!((request.step, request.turn, request.begins, request.context), (1, 2, 4, 0));
    assert_eq!(request.tokens_left, 1_000_000, "a fresh budget");
    assert_eq!(run.machine.poll_timeout(), Some(Instant::from_millis(10_060_000)), "from the message on");
    run.reply(answer("second"));
    let (id, result) = run.turn_result();
    assert_eq!((id, result.end, result.partial), (2, LoopEnd::Completed, false));
    assert_eq!((result.evidence.model_calls, result.evidence.tool_calls), (3, 1), "the sum over all turns");
    assert!(!run.is_over());
    assert_eq!(run.turns().len(), 2);
}

#[test]
fn a_message_that_comes_early_waits_and_each_is_one_turn() {
    let mut run = Run::of(&warm());
    for id in 2..=51 {
        run.message(id, &format!("message {id}"));
    }
    assert!(run.acks().is_empty(), "none is in the history yet");
    for id in 1..=51u64 {
        assert_eq!(run.turns().len() as u64, id - 1);
        run.reply(answer(&format!("answer {id}")));
        assert_eq!(run.turn_result().0, id);
        assert_eq!(run.turn_result().1.text, Some(format!("answer {id}")));
    }
    assert_eq!(run.acks(), (2..=51).collect::<Vec<_>>());
    assert_eq!(run.waits(), Some(WaitingOn::Message));
    assert_eq!(run.states().iter().filter(|s| s.waiting_on == WaitingOn::Message).count(), 1);
}

#[test]
fn what_came_before_is_not_taken_again() {
    let mut run = Run::of(&warm());
    run.message(1, "the instruction again");
    run.reply(answer("one"));
    assert_eq!(run.turns().len(), 1);
    run.message(5, "five");
    run.message(5, "five again");
    run.message(3, "three");
    run.steer(4, "four");
    run.reply(answer("two"));
    run.message(5, "five once more");
    assert_eq!((run.turns().len(), run.acks()), (2, vec![5]));
    assert_eq!(run.requests().len(), 2);
}

#[test]
fn a_loop_that_is_not_warm_has_no_further_turn() {
    let mut run = Run::start();
    run.message(2, "more");
    run.reply(answer("done"));
    assert_eq!(run.result().text.as_deref(), Some("done"));
    assert!(run.turns().is_empty() && run.acks().is_empty());
}

#[test]
fn a_limit_ends_only_its_turn_and_the_next_has_all_of_it() {
    let mut limited = warm();
    limited.limits.steps = 1;
    let mut run = Run::of(&limited);
    run.reply(said("so far", &[("a", "files_read", "{}")], Finish::ToolCalls));
    run.done("a", "1");
    let (id, result) = run.turn_result();
    assert_eq!((id, result.end, result.text.as_deref()), (1, LoopEnd::ExhaustedSteps, Some("so far")));
    run.message(2, "again");
    run.reply(answer("just in time"));
    assert_eq!(run.turn_result().1.end, LoopEnd::Completed);
    // A text of an earlier turn never stands for a later one.
    run.message(3, "again");
    run.reply(calls(&[("b", "files_read", "{}")]));
    run.done("b", "1");
    assert_eq!(run.turn_result().1.text, None);

    limited.limits = RunLimits { tokens: 20, steps: 9, ..limited.limits };
    let mut run = Run::of(&limited);
    for (turn, id) in [(1, "a"), (2, "c")] {
        run.reply(calls(&[(id, "files_read", "{}")]));
        run.done(id, "");
        let second = format!("{id}2");
        run.reply(calls(&[(&second, "web_get", "{}")]));
        run.done(&second, "");
        assert_eq!((run.turn_result().0, run.turn_result().1.end), (turn, LoopEnd::ExhaustedTokens));
        run.message(turn + 1, "on");
    }

    let mut run = Run::of(&warm());
    run.at(60_000).input(Input::Tick);
    assert_eq!(run.turn_result().1.end, LoopEnd::Deadline);
    run.at(100_000).message(2, "on");
    run.at(159_999).input(Input::Tick);
    assert_eq!(run.turns().len(), 1);
    run.at(160_000).input(Input::Tick);
    assert_eq!((run.turns().len(), run.turn_result().0), (2, 2));
    assert_valid(run.machine.history());
}

#[test]
fn spinning_is_counted_within_a_turn() {
    let mut run = Run::of(&warm());
    let spin = |run: &mut Run, times: u32| {
        for n in 0..times {
            let id = format!("t{}-{n}", run.requests().len());
            run.reply(calls(&[(&id, "files_read", "{}")]));
            run.done(&id, "same");
        }
    };
    spin(&mut run, 4);
    run.reply(answer("one"));
    run.message(2, "again");
    spin(&mut run, 4);
    assert_eq!(run.turns().len(), 1);
    spin(&mut run, 1);
    assert_eq!(run.turn_result().1.end, LoopEnd::LoopDetected);
}

#[test]
fn what_gives_out_for_one_turn_leaves_the_loop() {
    let mut run = Run::of(&warm());
    run.reply(said("", &[], Finish::Stop));
    run.reply(said("", &[], Finish::Stop));
    match run.turns().pop() {
        Some(Turn { id: 1, outcome: TurnOutcome::Failed(failed) }) => {
            assert_eq!(failed.kind, FailKind::EmptyReply)
        }
        other => panic!("{other:?}"),
    }
    run.message(2, "again");
    run.reply(said("", &[], Finish::Refusal));
    assert_eq!(run.turn_result().1.end, LoopEnd::Refused);
    assert!(!run.is_over());
    // A model connection that has given out ends the run.
    run.message(3, "again");
    let call = run.thinking().unwrap();
    let error = ModelError::new(ModelErrorKind::Credential, "no such key");
    run.input(Input::ModelReply { call, reply: Err(error) });
    assert_eq!((run.failure().kind, run.turns().len()), (FailKind::Model, 2));
    assert_eq!(run.failure().evidence.model_calls, 4);
}

#[test]
fn cancelling_a_turn_keeps_the_child() {
    let cancel = |turn| Input::CancelTurn { turn, reason: "not that".to_owned() };
    let mut run = Run::of(&warm());
    run.input(cancel(2));
    assert!(run.turns().is_empty(), "only the turn in hand");
    run.reply(said("t", &[("a", "files_read", "{}"), ("b", "web_get", "{}")], Finish::ToolCalls));
    run.done("b", "page");
    run.message(2, "instead");
    run.input(cancel(1));
    assert!(run.outputs.contains(&Output::AbandonTool { call: run.number("a") }));
    let (id, result) = run.turn_result();
    assert_eq!((id, result.end, result.text.as_deref()), (1, LoopEnd::Cancelled, Some("t")));
    assert_eq!(result.error.as_deref(), Some("cancelled: not that"));
    assert_eq!(run.acks(), [2], "the message that waited goes on at once");
    assert_valid(&run.last_request().messages);
    run.done("a", "late");
    run.input(cancel(1));
    assert_eq!(run.turns().len(), 1);
    // In a model call.
    let call = run.thinking().unwrap();
    run.input(cancel(2));
    assert!(run.outputs.contains(&Output::AbandonModel { call }));
    assert_eq!(run.turn_result().0, 2);
    assert_eq!(run.waits(), Some(WaitingOn::Message));
    run.input(cancel(2));
    assert_eq!(run.turns().len(), 2, "idle, there is nothing to cancel");
    run.message(3, "on");
    run.reply(answer("here"));
    assert_eq!(run.turn_result().1.text.as_deref(), Some("here"));
}

#[test]
fn a_turn_that_is_cancelled_before_the_start_makes_no_call() {
    let mut run = Run::of(&warm());
    run.machine = Loop::new(&warm(), tools(), Vec::new(), None, Instant::ZERO);
    run.outputs.clear();
    run.input(Input::CancelTurn { turn: 1, reason: "x".to_owned() });
    assert_eq!(run.turn_result().1.end, LoopEnd::Cancelled);
    assert_eq!(run.machine.poll_timeout(), None);
    run.at(99_999).input(Input::Tick);
    run.message(2, "now");
    assert!(run.requests().is_empty(), "the servers are not up");
    run.input(Input::Start);
    assert_eq!(run.events("mcp.tools").len(), 1);
    assert_eq!((run.acks(), run.requests().len(), run.turns().len()), (vec![2], 1, 1));
}

#[test]
fn the_only_turn_of_another_loop_is_its_run() {
    let mut run = Run::start();
    run.input(Input::CancelTurn { turn: 1, reason: "x".to_owned() });
    assert_eq!(run.result().end, LoopEnd::Cancelled);
}

#[test]
fn cancel_ends_an_idle_loop_at_once() {
    let mut run = Run::of(&warm());
    run.reply(answer("one"));
    run.input(Input::Cancel { reason: "retired".to_owned() });
    let result = run.result();
    assert_eq!((result.end, result.text), (LoopEnd::Cancelled, None));
    run.message(2, "too late");
    assert_eq!((run.requests().len(), run.acks().len()), (1, 0));
}

#[test]
fn a_supervisor_that_floods_ends_the_run_and_not_its_memory() {
    for steers in [false, true] {
        let mut run = Run::of(&warm());
        for id in 0..=MESSAGES_WAITING as u64 {
            assert!(!run.is_over());
            if steers { run.steer(id + 2, "x") } else { run.message(id + 2, "x") }
        }
        assert_eq!(run.failure().kind, FailKind::Internal);
        assert!(run.failure().error.contains("more than 1024"), "{}", run.failure().error);
        assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    }
}

#[test]
fn many_messages_that_end_at_once_take_no_stack() {
    let mut spent = warm();
    spent.limits.steps = 0;
    let mut run = Run::of(&spent);
    run.machine = Loop::new(&spent, tools(), Vec::new(), None, Instant::ZERO);
    run.outputs.clear();
    for id in 2..1_000 {
        run.message(id, "x");
    }
    run.input(Input::Start);
    assert_eq!(run.turns().len(), 999);
    assert!(run.requests().is_empty());
}

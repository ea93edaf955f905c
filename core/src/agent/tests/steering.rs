//! Steer, pause and resume (S6.9), and the order at a boundary (S7.1).

use super::*;

#[test]
fn a_steer_is_told_once_before_the_next_model_call_and_never_between_calls_and_results() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}"), ("b", "web_get", "{}")]));
    run.done("a", "one");
    run.steer(1, "look at c too");
    run.steer(2, "and d");
    assert!(run.acks().is_empty());
    run.done("b", "two");
    assert_eq!(run.acks(), [1, 2]);
    assert_eq!(
        run.told(),
        ["user: do it", "assistant: a b", "results: one two", "user: look at c too", "user: and d"]
    );
    run.reply(calls(&[("c", "files_read", "{}")]));
    run.done("c", "three");
    assert_eq!(run.told().iter().filter(|line| line.contains("and d")).count(), 1);
    assert_eq!(run.acks(), [1, 2]);
    assert!(run.last_request().system.is_empty());
}

#[test]
fn an_answer_that_does_not_know_of_a_steer_is_not_the_last() {
    let mut run = Run::start();
    run.steer(1, "in French");
    run.reply(answer("Hello"));
    assert!(!run.is_over());
    assert_eq!(run.told(), ["user: do it", "assistant: Hello", "user: in French"]);
    run.reply(answer("Bonjour"));
    assert_eq!(run.result().text.as_deref(), Some("Bonjour"));
    // Without a step for it, the answer stands, and the steer was never taken.
    let mut limited = spec();
    limited.limits.steps = 1;
    let mut run = Run::of(&limited);
    run.steer(1, "in French");
    run.reply(answer("Hello"));
    assert_eq!((run.result().end, run.result().partial), (LoopEnd::Completed, false));
    assert!(run.acks().is_empty());
}

#[test]
fn a_steer_between_turns_waits_for_the_next() {
    let mut run = Run::of(&warm());
    run.reply(answer("one"));
    run.steer(2, "be brief");
    assert_eq!((run.requests().len(), run.acks().len()), (1, 0));
    run.message(3, "go on");
    assert_eq!(run.acks(), [3, 2]);
    assert_eq!(run.told()[2..], ["user: go on", "user: be brief"]);
}

#[test]
fn a_steer_before_the_start_is_in_the_first_request() {
    let mut run = Run::start();
    run.machine = Loop::new(&spec(), tools(), Vec::new(), None, Instant::ZERO);
    run.outputs.clear();
    run.steer(1, "quickly");
    run.input(Input::Start);
    assert_eq!(run.told(), ["user: do it", "user: quickly"]);
}

#[test]
fn a_pause_lets_what_is_in_flight_run_on_and_makes_no_model_call() {
    let mut run = Run::start();
    run.input(Input::Pause);
    assert_eq!(run.waits(), Some(WaitingOn::Model), "a call is in flight");
    run.reply(calls(&[("a", "files_read", "{}")]));
    assert_eq!(run.made().len(), 1, "tools are no model call");
    run.at(5_000).done("a", "one");
    assert_eq!((run.requests().len(), run.waits()), (1, Some(WaitingOn::Paused)));
    assert_eq!(run.machine.poll_timeout(), None);
    run.at(500_000).input(Input::Tick);
    assert!(!run.is_over(), "time that is stood still does not count");
    run.steer(1, "while paused");
    run.input(Input::Resume);
    assert_eq!((run.requests().len(), run.acks()), (2, vec![1]));
    assert_eq!(run.machine.poll_timeout(), Some(Instant::from_millis(60_000 + 495_000)));
    run.at(554_999).input(Input::Tick);
    assert!(!run.is_over());
    run.at(555_000).input(Input::Tick);
    assert_eq!(run.result().end, LoopEnd::Deadline);
}

#[test]
fn a_pause_that_meets_no_boundary_changes_nothing() {
    let mut run = Run::start();
    run.input(Input::Pause);
    run.input(Input::Pause);
    run.at(1_000).input(Input::Resume);
    assert_eq!(run.machine.poll_timeout(), Some(Instant::from_millis(60_000)));
    run.input(Input::Resume);
    assert_eq!(run.requests().len(), 1);
    run.input(Input::Pause);
    run.reply(answer("done"));
    assert_eq!(run.result().end, LoopEnd::Completed, "an answer needs no boundary");
}

#[test]
fn what_is_in_flight_is_still_bounded_by_the_deadline() {
    let mut run = Run::start();
    run.input(Input::Pause);
    run.at(60_000).input(Input::Tick);
    assert_eq!(run.result().end, LoopEnd::Deadline);
}

#[test]
fn a_paused_child_takes_a_message_and_waits() {
    let mut run = Run::of(&warm());
    run.reply(answer("one"));
    run.input(Input::Pause);
    run.at(1_000).message(2, "next");
    assert_eq!((run.acks(), run.waits(), run.requests().len()), (vec![2], Some(WaitingOn::Paused), 1));
    run.at(90_000).input(Input::Resume);
    assert_eq!(run.requests().len(), 2);
    assert_eq!(run.machine.poll_timeout(), Some(Instant::from_millis(150_000)));
}

#[test]
fn a_paused_run_can_be_cancelled() {
    let mut run = Run::of(&warm());
    run.input(Input::Pause);
    run.reply(calls(&[("a", "nope", "{}")]));
    run.input(Input::CancelTurn { turn: 1, reason: "x".to_owned() });
    assert_eq!((run.turns().len(), run.waits()), (1, Some(WaitingOn::Message)));
    run.input(Input::Cancel { reason: "x".to_owned() });
    assert_eq!(run.result().end, LoopEnd::Cancelled);
}

/// Each of these stands against the next step at once; the first in the order decides.
#[test]
fn the_order_at_a_boundary() {
    let mut limited = spec();
    limited.limits = RunLimits { steps: 1, tokens: 15, deadline_ms: 1_000, ..limited.limits };
    let at_the_end = |spec: &Spawn, late: bool, finish: bool, pause: bool| {
        let mut run = Run::of(spec);
        run.reply(calls(&[("a", "files_read", "{}")]));
        if finish {
            run.input(Input::Finish { reason: String::new() });
        }
        if pause {
            run.input(Input::Pause);
        }
        run.at(if late { 1_000 } else { 10 }).done("a", "one");
        run
    };
    let end = |run: &Run| run.result().end;
    // Pause before the deadline, steps and tokens, whatever was asked besides.
    let mut run = at_the_end(&limited, true, true, true);
    assert_eq!((run.is_over(), run.waits()), (false, Some(WaitingOn::Paused)));
    run.input(Input::Resume);
    assert_eq!(end(&run), LoopEnd::Deadline);
    // A cancel before all.
    let mut run = at_the_end(&limited, true, true, true);
    run.input(Input::Cancel { reason: "x".to_owned() });
    assert_eq!(end(&run), LoopEnd::Cancelled);
    // The deadline before steps, steps before tokens, and all of them before a last call.
    assert_eq!(end(&at_the_end(&limited, true, true, false)), LoopEnd::Deadline);
    assert_eq!(end(&at_the_end(&limited, false, true, false)), LoopEnd::ExhaustedSteps);
    limited.limits.steps = 2;
    assert_eq!(end(&at_the_end(&limited, false, true, false)), LoopEnd::ExhaustedTokens);
    limited.limits.tokens = 16;
    assert_eq!(at_the_end(&limited, false, true, false).requests().len(), 2);
}

#[test]
fn a_wait_for_the_provider_is_told_and_costs_nothing() {
    let mut run = Run::start();
    run.input(Input::ModelWaiting { call: 1, until_ms: Some(1_700_000_000_000) });
    assert_eq!(run.waits(), Some(WaitingOn::Throttled(1_700_000_000_000)));
    assert_eq!(run.states().pop().unwrap().in_flight, None);
    run.input(Input::ModelWaiting { call: 1, until_ms: None });
    assert_eq!(run.waits(), Some(WaitingOn::Model));
    assert!(run.states().pop().unwrap().in_flight.is_some());
    run.input(Input::ModelWaiting { call: 9, until_ms: Some(7) });
    assert_eq!(run.waits(), Some(WaitingOn::Model), "nobody's");
    run.input(Input::ModelWaiting { call: 1, until_ms: Some(7) });
    run.at(60_000).input(Input::Tick);
    assert_eq!(run.result().end, LoopEnd::Deadline, "the wait ends with the deadline");
    assert!(run.usages().is_empty());
}

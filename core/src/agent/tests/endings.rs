//! How runs end: budgets, cancel, refusals, failures, spinning.

use super::*;
use crate::model::ModelError;

fn limited(change: impl FnOnce(&mut RunLimits)) -> Spawn {
    let mut spec = spec();
    change(&mut spec.limits);
    spec
}

#[test]
fn out_of_steps_is_partial_and_makes_no_further_call() {
    let mut run = Run::of(&limited(|l| l.steps = 2));
    run.reply(said("so far", &[("a", "files_read", "{}")], Finish::ToolCalls));
    run.done("a", "1");
    run.reply(calls(&[("b", "files_read", "{}")]));
    run.done("b", "2");
    let result = run.result();
    assert_eq!((result.end, result.partial), (LoopEnd::ExhaustedSteps, true));
    assert_eq!(result.text.as_deref(), Some("so far"));
    assert_eq!(result.error.as_deref(), Some("out of steps: 2 of 2 model calls made (limits.steps)"));
    assert_eq!(run.requests().len(), 2);
    assert_valid(run.machine.history());
}

#[test]
fn the_last_step_may_still_answer() {
    let mut run = Run::of(&limited(|l| l.steps = 1));
    run.reply(answer("just in time"));
    assert_eq!(run.result().end, LoopEnd::Completed);
}

#[test]
fn a_budget_of_nothing_is_nothing_and_never_unlimited() {
    for (spec, want) in [
        (limited(|l| l.steps = 0), LoopEnd::ExhaustedSteps),
        (limited(|l| l.tokens = 0), LoopEnd::ExhaustedTokens),
        (limited(|l| l.deadline_ms = 0), LoopEnd::Deadline),
    ] {
        let run = Run::of(&spec);
        assert_eq!(run.result().end, want);
        assert!(run.requests().is_empty());
    }
}

/// F05: usage that never arrives is estimated, flagged and charged.
#[test]
fn tokens_run_out_by_estimate() {
    let mut run = Run::of(&limited(|l| l.tokens = 2_000));
    let mut turns = 0;
    while !run.is_over() {
        turns += 1;
        assert!(turns < 5, "the budget never runs out");
        let id = format!("c{turns}");
        let mut reply = said(&"x".repeat(4_000), &[(&id, "files_read", "{}")], Finish::ToolCalls);
        reply.usage = ReplyUsage::default();
        run.reply(reply);
        run.done(&id, &id);
    }
    let result = run.result();
    assert_eq!((result.end, result.partial), (LoopEnd::ExhaustedTokens, true));
    assert!(run.usages().iter().all(|usage| usage.estimated && usage.output >= 1_000));
    assert_eq!(run.usages().len(), turns);
}

#[test]
fn an_answer_that_used_the_last_token_stands() {
    let mut run = Run::of(&limited(|l| l.tokens = 1));
    run.reply(answer("dear"));
    assert_eq!(run.result().end, LoopEnd::Completed);
}

#[test]
fn the_deadline_bounds_a_model_call() {
    let mut run = Run::start();
    assert_eq!(run.machine.poll_timeout(), Some(Instant::from_millis(60_000)));
    run.at(59_999).input(Input::Tick);
    assert!(!run.is_over());
    run.at(60_000).input(Input::Tick);
    let result = run.result();
    assert_eq!((result.end, result.partial, result.text), (LoopEnd::Deadline, true, None));
    assert_eq!(
        result.error.as_deref(),
        Some("out of time: the deadline of 60 s has passed (limits.deadline)")
    );
    assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    assert!(run.usages()[0].estimated, "what was sent is charged");
    assert_eq!(run.machine.poll_timeout(), None);
}

#[test]
fn the_deadline_bounds_tool_calls_and_every_call_is_answered() {
    let mut run = Run::start();
    run.reply(said("working", &[("a", "files_read", "{}"), ("b", "subagent_run", "{}")], Finish::ToolCalls));
    run.done("a", "one");
    run.at(60_000).input(Input::Tick);
    let number = run.number("b");
    assert!(run.outputs.contains(&Output::AbandonTool { call: number }));
    assert_eq!(run.result().text.as_deref(), Some("working"));
    let results = run.results();
    assert_eq!((results[0].1, results[1].1), (false, true));
    assert!(results[1].2.starts_with("out of time"), "{results:?}");
    assert_valid(run.machine.history());
    run.done("b", "late");
    assert_eq!(run.terminals().len(), 1);
}

#[test]
fn what_arrives_past_the_deadline_is_kept_but_never_completes() {
    let mut run = Run::start();
    run.at(60_001).reply(answer("too late"));
    let result = run.result();
    assert_eq!(
        (result.end, result.partial, result.text.as_deref()),
        (LoopEnd::Deadline, true, Some("too late"))
    );
    let mut run = Run::start();
    run.at(60_001).reply(said("calling", &[("a", "files_read", "{}")], Finish::ToolCalls));
    assert!(run.made().is_empty());
    assert_eq!(run.result().end, LoopEnd::Deadline);
    assert_valid(run.machine.history());
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.at(60_001).done("a", "late but here");
    assert_eq!(run.result().end, LoopEnd::Deadline);
    assert_eq!(run.results(), [("a".to_owned(), false, "late but here".to_owned())]);
    let mut run = Run::start();
    let call = run.thinking().unwrap();
    let error = ModelError::new(ModelErrorKind::Unreachable, "timed out");
    run.at(60_001).input(Input::ModelReply { call, reply: Err(error) });
    assert_eq!(run.result().end, LoopEnd::Deadline);
}

#[test]
fn cancel_ends_at_once_wherever_the_run_is() {
    let cancel = || Input::Cancel { reason: "killed by \u{1b}operator".to_owned() };
    // Before it begins.
    let mut run = Run::start();
    run.machine = Loop::new(&spec(), tools(), Vec::new(), None, Instant::ZERO);
    run.outputs.clear();
    run.input(cancel());
    assert_eq!(run.result().end, LoopEnd::Cancelled);
    // In a model call.
    let mut run = Run::start();
    run.input(cancel());
    assert_eq!(run.result().error.as_deref(), Some("cancelled: killed by \\u{1b}operator"));
    assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    // In tool calls, one of them answered.
    let mut run = Run::start();
    run.reply(said(
        "t",
        &[("a", "files_read", "{}"), ("b", "web_get", "{}"), ("c", "nope", "{}")],
        Finish::Stop,
    ));
    run.done("b", "page");
    run.input(cancel());
    assert!(run.outputs.contains(&Output::AbandonTool { call: run.number("a") }));
    assert!(!run.outputs.contains(&Output::AbandonTool { call: run.number("b") }));
    assert_valid(run.machine.history());
    let texts: Vec<String> = run.results().into_iter().map(|r| r.2).collect();
    assert!(
        texts[0].starts_with("cancelled") && texts[1] == "page" && texts[2].starts_with("there is no tool")
    );
    assert_eq!((run.result().text.as_deref(), run.result().partial), (Some("t"), true));
    // Ended: nothing more comes of anything.
    let before = run.outputs.len();
    run.input(cancel());
    run.input(Input::Start);
    run.at(99_999).input(Input::Tick);
    run.done("a", "late");
    assert_eq!(run.outputs.len(), before);
}

#[test]
fn cancel_comes_before_the_deadline() {
    let mut run = Run::start();
    run.at(60_000).input(Input::Cancel { reason: "x".to_owned() });
    assert_eq!(run.result().end, LoopEnd::Cancelled);
}

#[test]
fn a_cut_answer_is_partial() {
    let mut run = Run::start();
    run.reply(said("half an ans", &[], Finish::Length));
    let result = run.result();
    assert_eq!((result.end, result.partial, result.error), (LoopEnd::Completed, true, None));
}

#[test]
fn a_refusal_is_refused_and_its_calls_are_not_made() {
    let mut run = Run::start();
    run.reply(said("I cannot", &[("a", "files_read", "{}")], Finish::Refusal));
    let result = run.result();
    assert_eq!((result.end, result.text.as_deref()), (LoopEnd::Refused, Some("I cannot")));
    assert!(run.made().is_empty());
    let mut run = Run::start();
    run.reply(said("", &[], Finish::Refusal));
    assert_eq!(run.result().end, LoopEnd::Refused);
    assert_valid(run.machine.history());
}

#[test]
fn an_empty_reply_is_asked_for_once_more() {
    let blank = || said(" \n", &[], Finish::Stop);
    let mut run = Run::start();
    run.reply(said("first", &[("a", "files_read", "{}")], Finish::ToolCalls));
    run.done("a", "1");
    run.reply(blank());
    assert_eq!(run.last_request().messages.len(), 3, "the empty reply leaves no trace");
    run.reply(calls(&[("b", "files_read", "{}")]));
    run.done("b", "2");
    run.reply(blank());
    assert!(!run.is_over(), "only two in a row end it");
    run.reply(said("", &[], Finish::Length));
    let failed = run.failure();
    assert_eq!(failed.kind, FailKind::EmptyReply);
    assert_eq!(failed.text.as_deref(), Some("first"));
    assert!(failed.error.starts_with("empty reply"), "{}", failed.error);
    assert_eq!(failed.evidence.model_calls, 5);
    assert_valid(run.machine.history());
}

#[test]
fn the_retry_of_an_empty_reply_keeps_to_the_budget() {
    let mut run = Run::of(&limited(|l| l.steps = 1));
    run.reply(said("", &[], Finish::Stop));
    assert_eq!(run.result().end, LoopEnd::ExhaustedSteps);
}

#[test]
fn a_model_that_cannot_be_used_fails_the_run() {
    for kind in ModelErrorKind::ALL {
        let mut run = Run::start();
        let call = run.thinking().unwrap();
        let error = ModelError::new(kind, "no route to host");
        run.input(Input::ModelReply { call, reply: Err(error) });
        let failed = run.failure();
        let more = match kind {
            ModelErrorKind::TooLong => "; nothing in the history can be left out",
            _ => "",
        };
        let error = format!("model m: no route to host{more}");
        assert_eq!((failed.kind, failed.error), (kind.fails_as(), error));
        assert!(run.usages().is_empty());
        assert_eq!(run.machine.poll_timeout(), None);
    }
}

/// S7.6.
#[test]
fn spinning_is_detected_by_call_arguments_and_result() {
    let spin = |repeats: u32, results: &[&str]| {
        let mut run = Run::of(&limited(|l| l.repeats = repeats));
        for (index, result) in results.iter().enumerate() {
            if run.is_over() {
                return (index, run);
            }
            let id = format!("c{index}");
            run.reply(calls(&[(
                &id,
                "files_read",
                if index % 2 == 0 { "{\"a\":1}" } else { "{ \"a\": 1 }" },
            )]));
            run.done(&id, result);
        }
        (results.len(), run)
    };
    let (steps, run) = spin(5, &["same"; 9]);
    assert_eq!(steps, 5);
    assert_eq!(run.result().end, LoopEnd::LoopDetected);
    assert!(run.result().error.unwrap().contains("5 times in a row"));
    assert!(!spin(5, &["a", "a", "a", "a", "b", "a", "a", "a", "a"]).1.is_over());
    assert!(!spin(0, &["same"; 40]).1.is_over());
}

#[test]
fn the_same_call_many_times_in_one_message_is_no_spinning() {
    let mut run = Run::start();
    let ids: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
    let list: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "subagent_run", "{}")).collect();
    run.reply(calls(&list));
    ids.iter().for_each(|id| run.settle(id, true, "breadth: 8 of 8 running"));
    assert!(!run.is_over());
    for round in 0..4 {
        let id = format!("r{round}");
        run.reply(calls(&[(&id, "subagent_run", "{}")]));
        run.settle(&id, true, "breadth: 8 of 8 running");
    }
    assert_eq!(run.result().end, LoopEnd::LoopDetected, "but it counts as one");
}

#[test]
fn calls_that_are_cut_again_and_again_are_spinning_too() {
    let mut run = Run::start();
    for _ in 0..5 {
        run.reply(said("", &[("a", "files_read", "{\"text\": \"xxx")], Finish::Length));
    }
    assert_eq!(run.result().end, LoopEnd::LoopDetected);
}

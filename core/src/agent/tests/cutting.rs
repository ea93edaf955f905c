//! Calls that break off with a part of their reply are paid for, once, in every ending (S7.5, S8.5).

use super::*;
use crate::model::ModelError;
use crate::wire::message::{BudgetRequest, BudgetVerdict, CallBudget, Remote};

/// What a stream had brought: so many bytes, and what the provider had said.
fn part(bytes: usize, input: Option<u64>, output: Option<u64>) -> Partial {
    Partial { bytes, usage: ReplyUsage { input, output, cached: None } }
}

/// Tokens in and out of every usage so far; all of them are estimates.
fn paid(run: &Run) -> Vec<(u64, u64)> {
    let usages = run.usages();
    assert!(usages.iter().all(|usage| usage.estimated), "{usages:?}");
    usages.iter().map(|usage| (usage.input, usage.output)).collect()
}

/// What the request of the opening is estimated to be.
fn sent() -> u64 {
    Run::start().states().pop().and_then(|state| state.in_flight).expect("a call in flight")
}

fn cut(run: &mut Run, attempt: u64, came: Partial) {
    let call = run.thinking().expect("a call");
    run.input(Input::ModelCut { call, attempt, came });
}

fn came(run: &mut Run, attempt: u64, came: Partial) {
    let call = run.thinking().expect("a call");
    run.input(Input::ModelCame { call, attempt, came });
}

fn fail(run: &mut Run, kind: ModelErrorKind, came: Option<Partial>) {
    let call = run.thinking().expect("a call");
    let error = ModelError { came, ..ModelError::new(kind, "gone") };
    run.input(Input::ModelReply { call, reply: Err(error) });
}

#[test]
fn what_had_come_is_estimated_and_the_word_of_the_provider_counts_where_it_is_more() {
    for (came, want) in [
        (part(0, None, None), (sent(), 0)),
        (part(9, None, None), (sent(), 3)),
        (part(9, Some(70), None), (70, 3)),
        (part(9, Some(70), Some(1)), (70, 3)),
        (part(9, Some(70), Some(12)), (70, 12)),
        (part(0, Some(0), Some(0)), (sent(), 0)),
    ] {
        let mut run = Run::start();
        fail(&mut run, ModelErrorKind::Malformed, Some(came));
        assert_eq!(paid(&run), [want], "{came:?}");
    }
}

/// Every kind of failure, with a part of the reply and without one.
#[test]
fn a_failure_is_charged_what_had_come_and_nothing_where_nothing_had() {
    for kind in ModelErrorKind::ALL {
        let mut run = Run::start();
        fail(&mut run, kind, None);
        assert!(run.usages().is_empty(), "{kind:?}");
        let mut run = Run::start();
        fail(&mut run, kind, Some(part(40, None, None)));
        assert_eq!(paid(&run), [(sent(), 10)], "{kind:?}");
        assert!(run.is_over(), "{kind:?}");
    }
}

#[test]
fn each_attempt_that_broke_off_is_paid_once_however_the_call_ends() {
    let first = part(40, None, None);
    let begun = || {
        let mut run = Run::start();
        came(&mut run, 1, first);
        cut(&mut run, 1, first);
        // The main thread looks again before the next attempt begins, and the connection says it again.
        came(&mut run, 1, first);
        cut(&mut run, 1, first);
        assert!(matches!(run.outputs.last(), Some(Output::GoOnModel { call: 1 })));
        assert_eq!(run.states().pop().unwrap().in_flight, Some(sent()), "the next attempt is in flight");
        run
    };
    // Answered after all: the answer is charged as the provider says.
    let mut run = begun();
    run.reply(answer("done"));
    let usages = run.usages();
    assert_eq!(usages.iter().map(|u| (u.input, u.output)).collect::<Vec<_>>(), [(sent(), 10), (10, 5)]);
    assert_eq!((usages[0].estimated, usages[1].estimated), (true, false));
    assert_eq!(run.result().evidence.model_calls, 1, "one step, whatever its attempts");
    // Cut again, and given up.
    let mut run = begun();
    cut(&mut run, 2, part(4, None, None));
    fail(&mut run, ModelErrorKind::Malformed, Some(part(8, None, None)));
    assert_eq!(paid(&run), [(sent(), 10), (sent(), 1), (sent(), 2)]);
    // Refused by the next endpoint.
    let mut run = begun();
    fail(&mut run, ModelErrorKind::Overloaded, None);
    assert_eq!(paid(&run), [(sent(), 10)]);
    // Cancelled: in the middle of the next attempt, at its beginning, and while it waits to begin.
    let cancel = || Input::Cancel { reason: "x".to_owned() };
    let mut run = begun();
    came(&mut run, 2, part(20, None, None));
    run.input(cancel());
    assert_eq!(paid(&run), [(sent(), 10), (sent(), 5)]);
    let mut run = begun();
    run.input(cancel());
    assert_eq!(paid(&run), [(sent(), 10), (sent(), 0)]);
    let mut run = begun();
    run.input(Input::ModelWaiting { call: 1, until_ms: Some(7) });
    run.input(cancel());
    assert_eq!(paid(&run), [(sent(), 10)]);
    // The deadline, likewise.
    let mut run = begun();
    came(&mut run, 2, part(20, Some(33), None));
    run.at(60_000).input(Input::Tick);
    assert_eq!((run.result().end, paid(&run)), (LoopEnd::Deadline, vec![(sent(), 10), (33, 5)]));
    // What comes of a call that is over changes nothing.
    cut(&mut run, 2, part(20, None, None));
    assert_eq!(run.usages().len(), 2);
}

#[test]
fn no_attempt_is_made_past_the_tokens() {
    let mut limited = spec();
    limited.limits.tokens = sent() + 10;
    let mut run = Run::of(&limited);
    cut(&mut run, 1, part(36, None, None));
    assert!(matches!(run.outputs.last(), Some(Output::GoOnModel { .. })), "one token is left");
    cut(&mut run, 2, part(4, None, None));
    assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    assert_eq!(run.result().end, LoopEnd::ExhaustedTokens);
    assert_eq!(run.usages().len(), 2);
}

fn requests(run: &Run) -> Vec<BudgetRequest> {
    let asked = run.emitted().filter_map(|up| match up {
        Up::BudgetRequest(request) => Some(*request),
        _ => None,
    });
    asked.collect()
}

/// A run that asks for its calls, with the first granted.
fn asking() -> Run {
    let cheaper = Model { name: "small".to_owned(), dialect: Dialect::Mock(Bytes::default()) };
    let mut run = Run::of(&Spawn { budget: Some(CallBudget { degraded: Some(cheaper) }), ..spec() });
    run.input(Input::Granted { call: 1, verdict: BudgetVerdict::Own });
    run
}

#[test]
fn a_cheaper_model_that_may_write_more_sets_aside_no_more() {
    let model = |name: &str, max_output| {
        let remote = Remote {
            model: name.to_owned(),
            endpoints: Vec::new(),
            headers: std::collections::BTreeMap::new(),
            timeout_ms: 1,
            max_output,
        };
        Model { name: name.to_owned(), dialect: Dialect::Openai(remote) }
    };
    for (own, cheaper, asked) in
        [(Some(600), None, 600), (Some(600), Some(9_000), 600), (Some(600), Some(50), 600)]
    {
        let budget = Some(CallBudget { degraded: Some(model("small", cheaper)) });
        let mut run = Run::of(&Spawn { model: model("big", own), budget, ..spec() });
        assert_eq!(requests(&run)[0].output, asked);
        run.input(Input::Granted { call: 1, verdict: BudgetVerdict::Degraded });
        assert_eq!(run.last_request().max_output, Some(600));
    }
}

#[test]
fn the_attempt_after_one_that_is_paid_is_asked_for_like_a_call() {
    let granted = |run: &mut Run, verdict| {
        let call = requests(run).last().expect("a request").id;
        run.input(Input::Granted { call, verdict });
    };
    let begun = || {
        let mut run = asking();
        cut(&mut run, 1, part(40, None, None));
        let asked = requests(&run);
        assert_eq!(asked.len(), 2);
        assert!(asked[1].id > asked[0].id);
        assert_eq!((asked[1].input, asked[1].output), (asked[0].input, asked[0].output));
        assert!(!run.outputs.iter().any(|output| matches!(output, Output::GoOnModel { .. })));
        run
    };
    let mut run = begun();
    granted(&mut run, BudgetVerdict::Own);
    assert!(matches!(run.outputs.last(), Some(Output::GoOnModel { call: 1 })));
    run.reply(answer("done"));
    assert_eq!((run.result().end, run.usages().len()), (LoopEnd::Completed, 2));
    // Nothing is in flight while it is asked for.
    let mut run = begun();
    run.input(Input::Cancel { reason: "x".to_owned() });
    assert_eq!(paid(&run), [(sent(), 10)]);
    // No more room.
    let mut run = begun();
    granted(&mut run, BudgetVerdict::Refused("used up".to_owned()));
    assert_eq!(run.result().error.as_deref(), Some("used up"));
    assert_eq!((run.result().end, paid(&run)), (LoopEnd::ExhaustedTokens, vec![(sent(), 10)]));
    assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    let mut run = begun();
    granted(&mut run, BudgetVerdict::Failed("used up".to_owned()));
    assert_eq!((run.failure().kind, paid(&run)), (FailKind::Budget, vec![(sent(), 10)]));
    // Room for the cheaper model only: another call, and another step.
    let mut run = begun();
    granted(&mut run, BudgetVerdict::Degraded);
    assert!(run.outputs.contains(&Output::AbandonModel { call: 1 }));
    assert_eq!((run.last_request().model.as_str(), run.last_request().step), ("small", 2));
    run.reply(answer("done"));
    let models: Vec<String> = run.usages().into_iter().map(|usage| usage.model).collect();
    assert_eq!(models, ["m", "small"]);
}

#[test]
fn a_summary_that_breaks_off_is_paid_for_too() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.done("a", &"x".repeat(2_000));
    run.reply(calls(&[("b", "files_read", "{}")]));
    run.done("b", &"y".repeat(30_000));
    fail(&mut run, ModelErrorKind::TooLong, None);
    while run.last_request().tools.is_empty() {
        cut(&mut run, 1, part(40, None, None));
        fail(&mut run, ModelErrorKind::TooLong, Some(part(8, None, None)));
    }
    let cut: Vec<u64> = run.usages().iter().filter(|u| u.estimated).map(|u| u.output).collect();
    assert!(cut.is_empty() || cut == [10, 2], "{cut:?}");
}

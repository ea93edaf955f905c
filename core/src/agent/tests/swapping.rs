//! Another model for a run that goes on (S10.8): when it is taken, what is given up for it, and what is paid.

use super::*;
use crate::model::ModelError;
use crate::wire::message::{BudgetVerdict, CallBudget};

fn model(name: &str) -> Box<Model> {
    Box::new(Model { name: name.to_owned(), dialect: Dialect::Mock(Bytes::default()) })
}

fn swap(run: &mut Run, id: u64, name: &str, restart: bool) {
    run.input(Input::ModelChanged { id, model: model(name), budget: None, restart });
}

fn taken(run: &Run) -> Vec<u64> {
    let taken = run.outputs.iter().filter_map(|output| match output {
        Output::UseModel { swap } => Some(*swap),
        _ => None,
    });
    taken.collect()
}

fn abandoned(run: &Run) -> usize {
    run.outputs.iter().filter(|output| matches!(output, Output::AbandonModel { .. })).count()
}

fn models(run: &Run) -> Vec<&str> {
    run.requests().iter().map(|(_, request)| request.model.as_str()).collect()
}

#[test]
fn a_turn_ends_on_the_model_it_began_with_and_the_next_has_the_new_one() {
    let mut run = Run::of(&warm());
    swap(&mut run, 2, "n", false);
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.done("a", "text");
    assert!(taken(&run).is_empty());
    run.reply(answer("first"));
    assert_eq!((taken(&run), run.acks()), (vec![2], vec![2]), "as soon as the turn is over");
    run.message(3, "and now?");
    assert_eq!(models(&run), ["m", "m", "n"]);
    assert_eq!(run.told().len(), 5, "it knows all that was said");
    run.reply(answer("second"));
    let used: Vec<String> = run.usages().into_iter().map(|usage| usage.model).collect();
    assert_eq!(used, ["m", "m", "n"], "each call is paid as what it was");
}

#[test]
fn one_that_is_idle_takes_it_at_once_and_the_last_one_counts() {
    let mut run = Run::of(&warm());
    swap(&mut run, 2, "n", false);
    swap(&mut run, 3, "o", false);
    run.reply(answer("first"));
    assert_eq!((taken(&run), run.acks()), (vec![3], vec![3]));
    swap(&mut run, 4, "p", true);
    assert_eq!(taken(&run), [3, 4]);
    swap(&mut run, 4, "q", false);
    assert_eq!(taken(&run), [3, 4], "an id that does not rise was seen before");
    run.message(5, "go on");
    assert_eq!(run.last_request().model, "p");
}

#[test]
fn a_run_with_one_turn_never_takes_one_that_waits_for_the_next() {
    let mut run = Run::start();
    swap(&mut run, 1, "n", false);
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.done("a", "text");
    run.reply(answer("done"));
    assert_eq!((models(&run), taken(&run)), (vec!["m", "m"], vec![]));
    assert_eq!(run.result().text.as_deref(), Some("done"));
}

#[test]
fn a_call_in_flight_is_given_up_paid_for_and_made_again() {
    let mut run = Run::start();
    let call = run.thinking().expect("one");
    let came = Partial { bytes: 40, ..Partial::default() };
    run.input(Input::ModelCame { call, attempt: 1, came });
    swap(&mut run, 1, "n", true);
    assert_eq!((models(&run), abandoned(&run), taken(&run)), (vec!["m", "n"], 1, vec![1]));
    let usages = run.usages();
    assert_eq!((usages.len(), usages[0].model.as_str(), usages[0].output), (1, "m", 10));
    let before = run.emitted().position(|up| matches!(up, Up::Usage(_)));
    assert!(before < run.emitted().position(|up| matches!(up, Up::Ack(_))), "paid before the price changes");
    assert_eq!(run.last_request().step, 2, "steps count");
    run.input(Input::ModelReply { call, reply: Ok(answer("late")) });
    assert!(!run.is_over(), "nobody waits for the old one");
    run.reply(answer("done"));
    assert_eq!(run.result().text.as_deref(), Some("done"));
    assert_eq!(run.told(), ["user: do it"]);
}

#[test]
fn tool_calls_are_neither_given_up_nor_made_again() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}"), ("b", "files_read", "{}")]));
    run.done("a", "text of a");
    swap(&mut run, 1, "n", true);
    assert!(taken(&run).is_empty(), "nothing is to be called yet");
    run.done("b", "text of b");
    assert_eq!((taken(&run), run.made().len()), (vec![1], 2));
    assert!(!run.outputs.iter().any(|output| matches!(output, Output::AbandonTool { .. })));
    assert_eq!((run.last_request().model.as_str(), run.told().len()), ("n", 3));
}

#[test]
fn one_that_stands_still_takes_it_as_it_goes_on() {
    let mut run = Run::start();
    run.input(Input::Pause);
    swap(&mut run, 1, "n", true);
    assert_eq!((abandoned(&run), run.waits()), (1, Some(WaitingOn::Paused)));
    run.at(5_000).input(Input::Resume);
    assert_eq!((models(&run), taken(&run)), (vec!["m", "n"], vec![1]));
}

#[test]
fn the_last_call_of_a_turn_is_made_again_as_the_last() {
    let mut run = Run::start();
    run.input(Input::Finish { reason: "time is up".to_owned() });
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.done("a", "text");
    assert!(run.last_request().tools.is_empty());
    swap(&mut run, 1, "n", true);
    assert!(run.last_request().tools.is_empty() && run.last_request().model == "n");
    let finishes = run.told().iter().filter(|said| said.contains("time is up")).count();
    assert_eq!(finishes, 1, "it is told so once");
    run.reply(answer("so far"));
    assert!(run.result().partial);
}

#[test]
fn what_asks_asks_again_and_a_grant_for_the_old_call_is_not_used() {
    let budget = || Some(CallBudget { degraded: Some(*model("cheap")) });
    let mut run = Run::of(&Spawn { budget: budget(), ..spec() });
    let asked = |run: &Run| -> Vec<u64> {
        let asked = run.emitted().filter_map(|up| match up {
            Up::BudgetRequest(ask) => Some(ask.id),
            _ => None,
        });
        asked.collect()
    };
    let restart = true;
    run.input(Input::ModelChanged { id: 1, model: model("n"), budget: budget(), restart });
    let [first, second] = asked(&run)[..] else { panic!("{:?}", asked(&run)) };
    run.input(Input::Granted { call: first, verdict: BudgetVerdict::Own });
    assert!(run.requests().is_empty(), "the grant was for the old model");
    run.input(Input::Granted { call: second, verdict: BudgetVerdict::Degraded });
    assert_eq!(models(&run), ["cheap"]);
    // Without a budget nobody is asked any more.
    swap(&mut run, 2, "o", true);
    assert_eq!((models(&run), asked(&run).len()), (vec!["cheap", "o"], 2));
    assert_eq!(run.usages()[0].model, "cheap");
}

#[test]
fn a_summary_in_flight_is_made_by_the_new_model() {
    let mut run = Run::start();
    let long = "x".repeat(3_000);
    for id in ["a", "b", "c"] {
        run.reply(calls(&[(id, "files_read", "{}")]));
        run.done(id, "short");
        run.steer(id.len() as u64 + u64::from(id.as_bytes()[0]), &long);
    }
    let call = run.thinking().expect("one");
    let too_long = ModelError::new(ModelErrorKind::TooLong, "too long");
    run.input(Input::ModelReply { call, reply: Err(too_long) });
    let summary = run.last_request().system.clone();
    assert!(!summary.is_empty(), "a summary is asked for");
    swap(&mut run, 1_000, "n", true);
    assert_eq!((run.last_request().model.as_str(), &run.last_request().system), ("n", &summary));
    run.reply(answer("all in short"));
    assert!(run.told().iter().any(|said| said.contains("all in short")));
    assert_eq!(run.last_request().model, "n");
}

#[test]
fn steps_that_are_used_up_end_the_turn() {
    let mut spec = spec();
    spec.limits.steps = 1;
    let mut run = Run::of(&spec);
    swap(&mut run, 1, "n", true);
    assert_eq!(run.result().end, LoopEnd::ExhaustedSteps);
}

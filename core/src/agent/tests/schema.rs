//! Answers that must fit a schema (S7.8), and calls that differ only in what is wrong with them.

use super::*;
use crate::agent::machine::Loop;

fn with_schema() -> Spawn {
    let schema = br#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    Spawn { output_schema: Some(Json(Bytes::from(schema.as_slice()))), ..spec() }
}

#[test]
fn the_model_is_shown_the_schema() {
    let run = Run::of(&with_schema());
    let system = &run.last_request().system;
    assert!(
        system.contains("one JSON value that fits this JSON Schema")
            && system.ends_with("\"required\": [\"n\"]}")
    );
}

#[test]
fn an_answer_that_fits_is_the_result_without_what_stands_around_it() {
    for text in ["{\"n\": 1}", "Here you are:\n```json\n{\"n\": 1}\n```\n"] {
        let mut run = Run::of(&with_schema());
        run.reply(answer(text));
        let result = run.result();
        assert_eq!(
            (result.end, result.partial, result.text.as_deref()),
            (LoopEnd::Completed, false, Some("{\"n\": 1}"))
        );
        assert!(run.events("agent.answer.misfit").is_empty());
    }
}

#[test]
fn a_misfit_is_returned_once_and_a_second_fails_with_the_text_kept() {
    let mut run = Run::of(&with_schema());
    run.reply(answer("{\"n\": \"1\"}"));
    assert!(!run.is_over());
    assert_eq!(run.told()[1], "assistant: {\"n\": \"1\"}");
    assert!(run.told()[2].contains("\n- /n: a string where an integer is expected\n"), "{}", run.told()[2]);
    run.reply(calls(&[("a", "nope", "{}")]));
    assert!(!run.is_over(), "it may still work on it");
    run.reply(answer("n is one"));
    let failed = run.failure();
    assert_eq!((failed.kind, failed.text.as_deref()), (FailKind::Schema, Some("n is one")));
    assert!(failed.error.starts_with("schema: ") && failed.error.len() < 1_000, "{}", failed.error);
    assert_eq!(run.events("agent.answer.misfit").len(), 2);

    let mut run = Run::of(&with_schema());
    run.reply(answer("{}"));
    run.reply(answer("{\"n\": 2}"));
    assert_eq!(run.result().text.as_deref(), Some("{\"n\": 2}"));
}

#[test]
fn the_correction_keeps_to_the_budget() {
    let mut limited = with_schema();
    limited.limits.steps = 1;
    let mut run = Run::of(&limited);
    run.reply(answer("{}"));
    assert_eq!((run.result().end, run.result().text.as_deref()), (LoopEnd::ExhaustedSteps, Some("{}")));
}

#[test]
fn a_cut_answer_does_not_fit() {
    let mut run = Run::of(&with_schema());
    run.reply(said("{\"n\": 1, \"more\": \"te", &[], Finish::Length));
    assert!(!run.is_over());
}

#[test]
fn each_turn_has_a_correction_of_its_own() {
    let mut run = Run::of(&Spawn { mode: Mode::Warm, ..with_schema() });
    run.reply(answer("x"));
    run.reply(answer("x"));
    match run.turns().pop() {
        Some(Turn { outcome: TurnOutcome::Failed(failed), .. }) => assert_eq!(failed.kind, FailKind::Schema),
        other => panic!("{other:?}"),
    }
    run.message(2, "again");
    run.reply(answer("x"));
    run.reply(answer("{\"n\": 1}"));
    assert_eq!(run.turn_result().1.end, LoopEnd::Completed);
}

#[test]
fn work_that_is_finished_early_is_not_held_against_the_schema() {
    for (last, want) in [("only this far", "only this far"), ("```\n{\"n\": 1}\n```", "{\"n\": 1}")] {
        let mut run = Run::of(&with_schema());
        run.input(Input::Finish { reason: String::new() });
        run.reply(calls(&[("a", "nope", "{}")]));
        run.reply(answer(last));
        assert_eq!((run.result().end, run.result().partial), (LoopEnd::Completed, true));
        assert_eq!(run.result().text.as_deref(), Some(want));
    }
}

#[test]
fn the_finish_tool_is_under_the_same_rule() {
    let decl = ToolDecl {
        name: "finish".to_owned(),
        description: String::new(),
        schema: Json(Bytes::from(b"{}".as_slice())),
    };
    let root = Spawn { own_tools: vec![decl], ..with_schema() };
    let mut run = Run::of(&root);
    run.reply(calls(&[("a", "finish", "{\"result\": {}}")]));
    let results = run.results();
    assert!(results[0].1 && results[0].2.contains("the property \"n\" is missing"), "{results:?}");
    run.reply(calls(&[("b", "finish", "{\"result\": {\"n\": 3}}")]));
    assert_eq!(run.result().text.as_deref(), Some("{\"n\":3}"));
    let mut run = Run::of(&root);
    run.reply(answer("nothing"));
    run.reply(calls(&[("b", "finish", "{\"result\": 3}")]));
    assert_eq!((run.failure().kind, run.failure().text.as_deref()), (FailKind::Schema, Some("3")));
    assert_valid(run.machine.history());
}

/// S7.6: what the model sent tells calls apart, not what the history keeps of them.
#[test]
fn different_calls_that_cannot_be_made_are_no_spinning() {
    let spin = |name: &dyn Fn(usize) -> String, args: &dyn Fn(usize) -> String| {
        let mut run = Run::start();
        for n in 0..12 {
            if run.is_over() {
                return Some(n);
            }
            let id = format!("c{n}");
            run.reply(calls(&[(&id, &name(n), &args(n))]));
        }
        None
    };
    let far = "x".repeat(5_000);
    assert_eq!(spin(&|_| "nope".into(), &|n| format!("{{\"n\":{n}}}")), None, "an unknown tool");
    assert_eq!(
        spin(&|_| "files_read".into(), &|n| format!("{{\"{far}\": {n}")),
        None,
        "bad arguments, beyond any preview"
    );
    assert_eq!(spin(&|n| format!("no/pe{}", ["a", "b"][n % 2]), &|_| "{}".into()), None);
    assert_eq!(spin(&|_| "nope".into(), &|_| "{".into()), Some(5), "and the same ones are");
    assert_eq!(spin(&|_| "files_read".into(), &|_| far.clone()), Some(5));
}

/// S7.2: the next call is forbidden, the answer that took too much is paid for and stands.
#[test]
fn an_answer_past_the_tokens_stands() {
    let mut limited = spec();
    limited.limits.tokens = 1;
    let mut machine = Loop::new(&limited, tools(), Vec::new(), None, Instant::ZERO);
    let mut outputs = Vec::new();
    machine.handle(Instant::ZERO, Input::Start, &mut outputs);
    machine.handle(Instant::ZERO, Input::ModelReply { call: 1, reply: Ok(answer("dear")) }, &mut outputs);
    assert!(
        matches!(outputs.last(), Some(Output::Finish(Terminal::Result(result))) if result.end == LoopEnd::Completed)
    );
}

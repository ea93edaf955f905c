//! A history that no longer fits (S7.7, F35).

use super::*;
use crate::model::ModelError;

fn too_long(run: &mut Run) {
    let call = run.thinking().expect("a model call in flight");
    let error =
        ModelError::new(ModelErrorKind::TooLong, "prompt is too long: 210000 tokens > 200000 maximum");
    run.input(Input::ModelReply { call, reply: Err(error) });
}

/// A run after so many rounds, each with a text, one call and a result of so many bytes; its next call is in flight.
fn long(spec: &Spawn, rounds: usize, text: usize, result: usize) -> Run {
    let mut run = Run::of(spec);
    for n in 0..rounds {
        let id = format!("c{n}");
        run.reply(said(&"w".repeat(text), &[(&id, "files_read", "{}")], Finish::ToolCalls));
        run.done(&id, &format!("result {n} {}", "x".repeat(result)));
    }
    run
}

fn bytes(run: &Run) -> usize {
    run.told().iter().map(String::len).sum()
}

fn other(spec: Spawn) -> Spawn {
    // The same result over and over would be spinning.
    Spawn { limits: RunLimits { repeats: 0, ..spec.limits.clone() }, ..spec }
}

#[test]
fn the_oldest_results_go_first_and_the_call_is_made_again() {
    let mut run = long(&other(spec()), 6, 10, 4_000);
    let before = bytes(&run);
    too_long(&mut run);
    assert!(!run.is_over());
    let told = run.told();
    assert_eq!(run.requests().len(), 8, "one call more, and no summary");
    assert!(bytes(&run) <= before / 2 + 400, "{} of {before}", bytes(&run));
    assert!(told[2].contains("4009 bytes of this earlier result were left out"), "{}", told[2]);
    assert!(
        told.last().is_some_and(|last| last.contains("result 5 xxx") && last.len() > 4_000),
        "the last is whole"
    );
    assert_eq!(told[0], "user: do it");
    assert_valid(&run.last_request().messages);
    let compacted = run.events("agent.compacted");
    assert_eq!((compacted.len(), compacted[0].fields["summary"].as_str()), (1, "false"));
    run.reply(answer("done"));
    assert_eq!(run.result().text.as_deref(), Some("done"));
}

#[test]
fn what_results_alone_do_not_free_is_folded_into_a_summary_by_the_model() {
    let mut run = long(&other(spec()), 8, 3_000, 10);
    too_long(&mut run);
    let asked = run.last_request().clone();
    assert!(asked.tools.is_empty() && asked.declared.is_empty() && asked.messages.len() == 1);
    let record = run.told().remove(0);
    assert!(record.contains("## Called files_read") && record.contains("result 0 xxx"), "{record:.300}");
    assert!(!record.contains("result 7"), "the last round is not in it");
    let steps = run.states().last().expect("a state").step;
    run.reply(answer("It read seven files."));
    let told = run.told();
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[0], "user: do it");
    assert!(told[1].contains("condensed") && told[1].contains("It read seven files."), "{}", told[1]);
    assert!(told[2].starts_with("assistant: www") && told[3].contains("result 7"), "{told:?}");
    assert_valid(&run.last_request().messages);
    assert_eq!(run.last_request().step, steps + 1, "the summary was a step");
    assert_eq!(run.usages().len(), 9, "and is charged");
    assert_eq!(run.events("agent.compacted")[0].fields["summary"], "true");
    run.reply(answer("done"));
    assert_eq!(run.result().end, LoopEnd::Completed);
}

#[test]
fn a_summary_that_cannot_be_had_is_gone_without() {
    for how in ["too long", "empty"] {
        let mut run = long(&other(spec()), 8, 3_000, 10);
        too_long(&mut run);
        if how == "empty" {
            run.reply(answer(""));
        } else {
            too_long(&mut run);
        }
        assert!(run.told()[1].contains("14 earlier messages were left out"), "{how}: {:?}", run.told());
        assert_valid(&run.last_request().messages);
        run.reply(answer("done"));
        assert_eq!(run.result().end, LoopEnd::Completed, "{how}");
    }
}

#[test]
fn still_too_long_ends_with_the_providers_words() {
    let mut run = long(&other(spec()), 6, 10, 4_000);
    too_long(&mut run);
    too_long(&mut run);
    let failed = run.failure();
    assert_eq!(failed.kind, FailKind::Reply);
    for word in ["210000 tokens", "compacted", "still too long"] {
        assert!(failed.error.contains(word), "{}", failed.error);
    }
    let mut at_once = Run::start();
    too_long(&mut at_once);
    assert!(
        at_once.failure().error.contains("nothing in the history can be left out"),
        "{:?}",
        at_once.failure()
    );
}

#[test]
fn each_overflow_of_a_long_run_is_answered_by_a_compaction_of_its_own() {
    let mut run = long(&other(spec()), 6, 10, 4_000);
    for n in 0..3 {
        too_long(&mut run);
        assert!(!run.is_over(), "{n}");
        for round in 0..4 {
            let id = format!("d{n}{round}");
            run.reply(calls(&[(&id, "files_read", "{}")]));
            run.done(&id, &format!("{n} {round} {}", "y".repeat(4_000)));
        }
    }
    assert_valid(&run.last_request().messages);
    assert_eq!(run.events("agent.compacted").len(), 3);
}

#[test]
fn a_later_turn_keeps_what_it_is_about() {
    let mut run = Run::of(&Spawn { limits: other(spec()).limits, ..warm() });
    run.reply(answer(&"first ".repeat(2_000)));
    run.message(2, "and the second");
    for n in 0..6 {
        let id = format!("c{n}");
        run.reply(said(&"w".repeat(3_000), &[(&id, "files_read", "{}")], Finish::ToolCalls));
        run.done(&id, &format!("{n}"));
    }
    too_long(&mut run);
    run.reply(answer("what was done"));
    let told = run.told();
    assert_eq!((told[0].as_str(), told[2].as_str()), ("user: do it", "user: and the second"), "{told:?}");
    assert_eq!(run.last_request().begins, 2);
    assert_valid(&run.last_request().messages);
    run.reply(answer("done"));
    assert_eq!(run.turn_result().1.text.as_deref(), Some("done"));
}

#[test]
fn one_round_of_results_that_do_not_fit_is_cut_and_not_lost() {
    let mut run = Run::of(&other(spec()));
    let ids: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
    let asked: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "files_read", "{}")).collect();
    run.reply(calls(&asked));
    ids.iter().for_each(|id| run.done(id, &format!("begin {id} {} end", "x".repeat(60_000))));
    too_long(&mut run);
    let results = run.results();
    assert!(results[0].2.starts_with("begin c0") && results[0].2.len() <= 4_096, "{}", results[0].2.len());
    assert!(results[7].2.len() > 60_000, "no more than is needed");
    assert_valid(&run.last_request().messages);
    run.reply(answer("done"));
    assert_eq!(run.result().end, LoopEnd::Completed);
}

#[test]
fn a_cancel_a_deadline_and_a_budget_hold_while_it_is_compacted() {
    let mut run = long(&other(spec()), 8, 3_000, 10);
    too_long(&mut run);
    run.input(Input::Cancel { reason: "enough".into() });
    assert_eq!(run.result().end, LoopEnd::Cancelled);
    assert!(
        matches!(run.outputs.iter().rev().nth(3), Some(Output::AbandonModel { .. })),
        "{:?}",
        run.outputs.last()
    );

    let mut run = long(&other(spec()), 8, 3_000, 10);
    too_long(&mut run);
    run.at(60_000).input(Input::Tick);
    assert_eq!(run.result().end, LoopEnd::Deadline);

    // The call that was too long was the last there was.
    let limits = RunLimits { steps: 9, ..other(spec()).limits };
    let mut run = long(&Spawn { limits, ..spec() }, 8, 3_000, 10);
    too_long(&mut run);
    assert_eq!(run.result().end, LoopEnd::ExhaustedSteps);
}

proptest::proptest! {
    /// Whatever was said and called before: what is sent stays valid, and shorter.
    #[test]
    fn a_compacted_history_is_valid(
        rounds in proptest::collection::vec((0..3_000usize, 0..4usize, 0..9_000usize), 1..12),
        summed in proptest::bool::ANY,
    ) {
        let mut run = Run::of(&other(spec()));
        for (n, (text, count, size)) in rounds.iter().enumerate() {
            let ids: Vec<String> = (0..count + 1).map(|c| format!("{n}-{c}")).collect();
            let asked: Vec<(&str, &str, &str)> =
                ids.iter().map(|id| (id.as_str(), "files_read", "{}")).collect();
            run.reply(said(&"w".repeat(*text), &asked, Finish::ToolCalls));
            ids.iter().for_each(|id| run.done(id, &"r".repeat(*size)));
        }
        let before = bytes(&run);
        too_long(&mut run);
        if !run.is_over() && run.last_request().declared.is_empty() {
            run.reply(answer(if summed { "summary" } else { "" }));
        }
        if !run.is_over() {
            assert_valid(&run.last_request().messages);
            proptest::prop_assert!(bytes(&run) < before + 200);
            let told = run.told();
            proptest::prop_assert_eq!(told[0].as_str(), "user: do it");
        }
    }
}

//! What a process wrote down is taken up by the next (S11.6), wherever the first one was cut off.

use super::*;

const CALLS: &[(&str, &str, &str)] = &[("a", "files_read", "{}"), ("b", "web_get", "{\"x\":1}")];

/// A run of three model calls, one of which two tool calls follow, up to its end.
fn whole(spec: &Spawn) -> Run {
    let mut run = Run::of(spec);
    run.reply(said("I look", CALLS, Finish::ToolCalls));
    run.done("b", "of b");
    run.done("a", "of a");
    run.steer(7, "mind the gap");
    run.reply(calls(&[("c", "files_read", "{}")]));
    run.done("c", "of c");
    run.reply(answer("all of it"));
    run
}

/// Goes on as [`whole`] does, from wherever it is, and counts the model calls.
fn go_on(run: &mut Run) -> usize {
    while !run.is_over() {
        let answers = run.told().iter().filter(|told| told.starts_with("assistant")).count();
        let next = match answers {
            0 => said("I look", CALLS, Finish::ToolCalls),
            1 => calls(&[("c", "files_read", "{}")]),
            _ => answer("all of it"),
        };
        let made = run.made().len();
        run.reply(next);
        for (_, id, ..) in run.made().split_off(made) {
            run.done(&id, &format!("of {id}"));
        }
    }
    run.requests().len()
}

#[test]
fn wherever_it_was_cut_off_no_call_that_is_written_down_is_made_again() {
    let spec = recorded(spec(), Begins::Again);
    let items = whole(&spec).recorded();
    let answers = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Assistant { .. })).count();
    assert_eq!(answers(&items), 3);
    for cut in 0..=items.len() {
        let mut run = Run::with_past(&spec, &items[..cut]);
        let made = go_on(&mut run);
        assert_eq!(made, 3 - answers(&items[..cut]), "cut at {cut}");
        let result = run.result();
        assert_eq!(
            (result.end, result.text.as_deref()),
            (LoopEnd::Completed, Some("all of it")),
            "cut at {cut}"
        );
        // What both wrote is one transcript, which says that the run has ended.
        let both: Vec<Item> = items[..cut].iter().cloned().chain(run.recorded()).collect();
        let past = past_of(&both);
        assert!(!past.is_in_turn() && past.orphans.is_empty() && past.damaged == 0, "cut at {cut}");
        assert_eq!(past.messages, said_by(run.machine.history()), "cut at {cut}");
    }
}

#[test]
fn an_open_call_has_one_error_for_a_result_and_its_id_is_not_used_again() {
    let spec = recorded(spec(), Begins::Again);
    let items = whole(&spec).recorded();
    let both_made = items.iter().position(|item| matches!(item, Item::Assistant { .. })).expect("calls") + 1;
    let mut run = Run::with_past(&spec, &items[..=both_made]);
    assert_eq!(
        run.results(),
        [("a".into(), true, transcript::ORPHANED.into()), ("b".into(), false, "of b".into())]
    );
    assert!(run.made().is_empty(), "none is made again by itself");
    run.reply(calls(&[("a", "files_read", "{}")]));
    assert_eq!(run.made()[0].1, "call_1");
}

#[test]
fn steps_and_tokens_of_the_turn_count_on() {
    let limits = RunLimits { steps: 3, ..spec().limits };
    let spec = recorded(Spawn { limits, ..spec() }, Begins::Again);
    let mut first = Run::of(&spec);
    first.reply(calls(&[("a", "files_read", "{}")]));
    first.done("a", "x");
    let mut past = past_of(&first.recorded());
    (past.run, past.steps, past.tokens) = (Some(spec.run_id), 2, 999_990);
    let machine = Loop::new(&spec, tools(), Vec::new(), None, Instant::ZERO).taking_up(past, &spec);
    let mut run = Run { machine, now: Instant::ZERO, outputs: Vec::new() };
    run.input(Input::Start);
    assert_eq!((run.last_request().step, run.last_request().tokens_left), (3, 10));
    run.reply(calls(&[("b", "files_read", "{}")]));
    run.done("b", "y");
    assert_eq!(run.result().end, LoopEnd::ExhaustedSteps);
}

#[test]
fn turns_that_ended_are_told_again_and_the_one_in_hand_goes_on() {
    let spec = recorded(Spawn { role: Role::Subagent, ..warm() }, Begins::Again);
    let mut first = Run::of(&spec);
    first.reply(answer("one"));
    first.message(2, "and now");
    first.reply(answer("two"));
    first.message(3, "at last");
    first.reply(calls(&[("a", "files_read", "{}")]));
    first.done("a", "found");

    let mut run = Run::with_past(&spec, &first.recorded());
    assert_eq!(run.requests().len(), 0);
    assert_eq!((run.turn_result().0, run.turn_result().1.text.as_deref()), (1, Some("one")));
    // Who did not hear of the second one's end asks for it again.
    run.message(2, "and now");
    assert_eq!((run.turn_result().0, run.turn_result().1.text.as_deref()), (2, Some("two")));
    run.message(3, "at last");
    assert_eq!(run.requests().len(), 1);
    assert_eq!(
        run.told(),
        [
            "user: do it",
            "assistant: one",
            "user: and now",
            "assistant: two",
            "user: at last",
            "assistant: a",
            "results: found"
        ]
    );
    run.reply(answer("three"));
    assert_eq!((run.turn_result().0, run.turn_result().1.text.as_deref()), (3, Some("three")));
    assert_eq!(run.acks(), [2, 3]);
    run.message(4, "more");
    assert_eq!(run.told().len(), 9);
    assert_eq!(run.turns().len(), 3);
}

#[test]
fn a_worker_that_comes_after_another_knows_what_was_done() {
    let first = whole(&recorded(spec(), Begins::Anew));
    let next = recorded(Spawn { instruction: "and the rest?".into(), ..warm() }, Begins::After);
    let mut run = Run::with_past(&next, &first.recorded());
    let told = run.told();
    assert_eq!((told.len(), told.last().map(String::as_str)), (8, Some("user: and the rest?")));
    run.reply(answer("that too"));
    assert_eq!(run.turn_result().0, 1);
    let Item::Turn { turn: 1, text } = &run.recorded()[0] else { panic!("{:?}", run.recorded()) };
    assert_eq!(text, "and the rest?");
}

#[test]
fn a_worker_that_was_cut_off_before_it_wrote_anything_begins_its_turn() {
    // The turn that is asked for is the third of this worker; the file ends with another worker's third.
    let first = whole(&recorded(spec(), Begins::Anew)).recorded();
    let asked = |turn: u64, role: Role| {
        let mut spec = recorded(Spawn { role, instruction: "do it".into(), ..warm() }, Begins::Again);
        spec.transcript.as_mut().expect("a transcript").turn = turn;
        spec
    };
    let past = |run: RunId| Past { run: Some(run), ..past_of(&first) };
    let calls = |spec: &Spawn, past: Past| {
        let machine = Loop::new(spec, tools(), Vec::new(), None, Instant::ZERO).taking_up(past, spec);
        let mut run = Run { machine, now: Instant::ZERO, outputs: Vec::new() };
        run.input(Input::Start);
        run
    };
    let spec = asked(1, Role::Worker);
    let other = RunId::NIL;
    assert_eq!(calls(&spec, past(other)).told().len(), 8, "another worker's turn 1 is not this one's");
    assert_eq!(
        calls(&asked(3, Role::Worker), past(spec.run_id)).told().len(),
        8,
        "turn 3 is not in the file yet"
    );
    // Its own is: it is told as it ended.
    let told = calls(&spec, past(spec.run_id));
    assert_eq!((told.requests().len(), told.turn_result().1.text.as_deref()), (0, Some("all of it")));
    // What is written anew is written under the number that was asked for.
    let run = calls(&asked(3, Role::Worker), past(spec.run_id));
    assert!(matches!(run.recorded().last(), Some(Item::Turn { turn: 3, .. })));
}

#[test]
fn a_past_of_no_use_is_a_beginning() {
    for begins in [Begins::Anew, Begins::Again, Begins::After] {
        let spec = recorded(spec(), begins);
        let run = Run::with_past(&spec, &[]);
        assert_eq!(run.told(), ["user: do it"]);
        assert!(matches!(&run.recorded()[..], [Item::Turn { turn: 1, .. }]));
    }
    let items = whole(&recorded(spec(), Begins::Anew)).recorded();
    assert_eq!(Run::with_past(&recorded(spec(), Begins::Anew), &items).told(), ["user: do it"]);
}

#[test]
fn nothing_is_recorded_where_nothing_is_kept() {
    assert!(whole(&spec()).recorded().is_empty());
}

//! One last call without tools (S6.9), the root's own `finish` (S6.10), and last texts that say nothing (F41).

use super::*;
use crate::limits::CALLS_PER_MESSAGE;

fn finish() -> Input {
    Input::Finish { reason: "time is up".to_owned() }
}

/// A root, with the supervisor's `finish` among its tools.
fn root() -> Spawn {
    let schema = Json(Bytes::from(b"{}".as_slice()));
    let decl = ToolDecl { name: "finish".to_owned(), description: String::new(), schema };
    Spawn { own_tools: vec![decl], ..spec() }
}

#[test]
fn the_last_call_has_no_tools_and_its_text_is_a_partial_result() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.input(finish());
    run.input(finish());
    assert_eq!(run.requests().len(), 1, "work in hand is kept");
    run.done("a", "one");
    let request = run.last_request();
    assert!(request.tools.is_empty());
    assert_eq!(
        run.told()[3],
        "user: This work is to be finished now (time is up): answer with what you have. No tools can be called for this \
         answer."
    );
    run.reply(answer("so far: one"));
    let result = run.result();
    assert_eq!((result.end, result.partial), (LoopEnd::Completed, true));
    assert_eq!((result.text.as_deref(), result.error), (Some("so far: one"), None));
}

#[test]
fn calls_of_the_last_reply_are_answered_and_not_made() {
    let mut run = Run::start();
    run.input(finish());
    run.reply(calls(&[("a", "files_read", "{}")]));
    assert_eq!(run.made().len(), 1, "asked for before the model knew");
    run.done("a", "one");
    run.reply(said("this far", &[("b", "files_read", "{}"), ("c", "nope", "{")], Finish::Length));
    assert_eq!(run.made().len(), 1);
    assert_eq!((run.result().text.as_deref(), run.result().partial), (Some("this far"), true));
    let results = run.results();
    assert_eq!(results.len(), 3);
    assert!(
        results[1..].iter().all(|(_, error, text)| *error && text.contains("no more tools")),
        "{results:?}"
    );
    assert_valid(run.machine.history());
}

/// F41: without a last text the one before stands, flagged.
#[test]
fn an_empty_last_answer_falls_back_to_the_text_before() {
    for last in
        [said("", &[], Finish::Stop), said(" \n", &[], Finish::Stop), calls(&[("z", "files_read", "{}")])]
    {
        let mut run = Run::start();
        run.reply(said("half of it", &[("a", "files_read", "{}")], Finish::ToolCalls));
        run.input(finish());
        run.done("a", "one");
        run.reply(last);
        let result = run.result();
        assert_eq!((result.end, result.partial), (LoopEnd::Completed, true));
        assert_eq!(result.text.as_deref(), Some("half of it"));
        assert_valid(run.machine.history());
    }
    // Nothing was ever said: one more try, then it is a failure and no empty `completed`.
    let mut run = Run::start();
    run.input(finish());
    run.reply(calls(&[("a", "nope", "{}")]));
    run.reply(calls(&[("b", "files_read", "{}")]));
    assert!(!run.is_over() && run.last_request().tools.is_empty());
    assert_eq!(run.told().iter().filter(|line| line.contains("to be finished now")).count(), 1);
    run.reply(said("", &[], Finish::Stop));
    assert_eq!(run.failure().kind, FailKind::EmptyReply);
}

/// F41: an ordinary run whose last message is empty fails and keeps the text before, as S7.4 has it; one that points
/// elsewhere is an answer, which is why a subagent is told that nothing else reaches its caller.
#[test]
fn a_last_message_that_says_nothing() {
    let mut run = Run::start();
    run.reply(said("the whole answer", &[("a", "files_read", "{}")], Finish::ToolCalls));
    run.done("a", "ok");
    run.reply(said("", &[], Finish::Stop));
    run.reply(said("  \n", &[], Finish::Stop));
    assert_eq!(
        (run.failure().kind, run.failure().text.as_deref()),
        (FailKind::EmptyReply, Some("the whole answer"))
    );

    let mut run = Run::of(&Spawn { role: Role::Subagent, ..spec() });
    assert!(run.last_request().system.contains("Only your last message reaches"));
    run.reply(answer("see above"));
    assert_eq!((run.result().text.as_deref(), run.result().partial), (Some("see above"), false));
}

#[test]
fn an_answer_that_comes_before_the_boundary_is_a_whole_one() {
    let mut run = Run::start();
    run.input(finish());
    run.reply(answer("done anyway"));
    assert_eq!((run.result().text.as_deref(), run.result().partial), (Some("done anyway"), false));
}

#[test]
fn finishing_is_a_matter_of_one_turn() {
    let mut run = Run::of(&warm());
    run.reply(answer("one"));
    run.input(finish());
    run.message(2, "two");
    assert!(!run.last_request().tools.is_empty(), "idle, there is nothing to finish");
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.input(finish());
    run.done("a", "x");
    run.reply(answer("partly"));
    assert!(run.turn_result().1.partial);
    run.message(3, "three");
    assert!(!run.last_request().tools.is_empty());
    run.reply(answer("three"));
    assert!(!run.turn_result().1.partial);
}

#[test]
fn what_steers_say_comes_before_the_word_to_finish() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}")]));
    run.input(finish());
    run.steer(1, "in French");
    run.done("a", "x");
    assert!(run.told()[3].contains("in French") && run.told()[4].contains("to be finished"));
    run.steer(2, "too late");
    run.reply(answer("voilà"));
    assert_eq!((run.result().partial, run.acks()), (true, vec![1]));
}

#[test]
fn a_spinning_run_that_is_to_be_finished_is_finished() {
    let mut run = Run::start();
    for n in 0..5 {
        if n == 4 {
            run.input(finish());
        }
        let id = format!("c{n}");
        run.reply(calls(&[(&id, "files_read", "{}")]));
        run.done(&id, "same");
    }
    run.reply(answer("what I have"));
    assert_eq!((run.result().end, run.result().partial), (LoopEnd::Completed, true));
}

/// S6.10.
#[test]
fn the_finish_tool_ends_the_turn_with_its_value_after_the_other_calls() {
    for (args, want) in [
        ("{\"result\": \"all done\"}", "all done"),
        (
            "{\"result\": {\"n\": 1.50, \"big\": 123456789012345678901234567890}}",
            "{\"n\":1.50,\"big\":123456789012345678901234567890}",
        ),
        ("{\"result\": [1]}", "[1]"),
        ("{\"result\": false}", "false"),
    ] {
        let mut run = Run::of(&root());
        run.reply(said("bye", &[("f", "finish", args), ("a", "files_read", "{}")], Finish::ToolCalls));
        assert_eq!(run.made().len(), 1, "the supervisor is not asked");
        assert!(!run.is_over());
        run.done("a", "one");
        let result = run.result();
        assert_eq!(
            (result.end, result.partial, result.text.as_deref()),
            (LoopEnd::Completed, false, Some(want))
        );
        assert_eq!((result.evidence.tool_calls, result.evidence.tool_errors), (2, 0));
        assert_eq!(run.requests().len(), 1);
        assert_eq!(run.results().len(), 2);
        assert_valid(run.machine.history());
        assert_eq!(run.events("tool.call").len(), 2);
    }
}

#[test]
fn finish_with_other_arguments_is_an_observation() {
    for args in
        ["", "{}", "{\"result\": \" \"}", "{\"result\": 1, \"more\": 2}", "{\"answer\": 1}", "[]", "{"]
    {
        let mut run = Run::of(&root());
        run.reply(calls(&[("f", "finish", args)]));
        assert!(!run.is_over(), "{args}");
        let results = run.results();
        assert!(results[0].1 && results[0].2.len() < 1_000, "{args}: {results:?}");
        run.reply(answer("ok"));
        assert_eq!(run.result().evidence.tool_errors, 1);
    }
    // The first of two counts.
    let mut run = Run::of(&root());
    run.reply(calls(&[("f", "finish", "{\"result\": \"one\"}"), ("g", "finish", "{\"result\": \"two\"}")]));
    assert_eq!(run.result().text.as_deref(), Some("one"));
    assert_eq!(run.results().iter().map(|r| r.1).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn finish_is_nobody_elses() {
    let mut run = Run::start();
    run.reply(calls(&[("f", "finish", "{\"result\": \"x\"}")]));
    assert!(run.results()[0].2.starts_with("there is no tool"), "a run without it has none");
    // Cut, too many, late or cancelled: as with any call.
    let mut run = Run::of(&root());
    run.reply(said("", &[("f", "finish", "{\"result\": \"x\"}")], Finish::Length));
    assert!(!run.is_over());
    let ids: Vec<String> = (0..CALLS_PER_MESSAGE).map(|n| format!("c{n}")).collect();
    let mut list: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "nope", "{}")).collect();
    list.push(("g", "finish", "{\"result\": \"x\"}"));
    run.reply(calls(&list));
    assert!(!run.is_over());
    run.reply(calls(&[("h", "finish", "{\"result\": \"late\"}"), ("a", "files_read", "{}")]));
    run.at(60_000).done("a", "x");
    assert_eq!((run.result().end, run.result().text.as_deref()), (LoopEnd::Deadline, Some("late")));
    let mut run = Run::of(&root());
    run.reply(calls(&[("h", "finish", "{\"result\": \"x\"}"), ("a", "files_read", "{}")]));
    run.input(Input::Cancel { reason: "x".to_owned() });
    assert_eq!(run.result().end, LoopEnd::Cancelled);
    assert_valid(run.machine.history());
}

#[test]
fn a_steer_reaches_a_model_that_called_finish_without_knowing_of_it() {
    let mut run = Run::of(&root());
    run.reply(calls(&[("f", "finish", "{\"result\": \"one\"}"), ("a", "files_read", "{}")]));
    run.steer(1, "wait");
    run.done("a", "x");
    assert!(!run.is_over());
    assert!(run.results()[0].2.contains("call finish again"), "{:?}", run.results());
    assert_eq!(run.told().pop().as_deref(), Some("user: wait"));
    run.reply(calls(&[("g", "finish", "{\"result\": \"two\"}")]));
    assert_eq!(run.result().text.as_deref(), Some("two"));
}

/// F16: however a message's calls end, each has one result, in order, before anything else.
#[test]
fn every_call_has_one_result_however_the_run_goes_on() {
    let three =
        || calls(&[("ok", "files_read", "{}"), ("bad", "web_get", "{}"), ("hangs", "subagent_run", "{}")]);
    let begun = |spec: &Spawn| {
        let mut run = Run::of(spec);
        run.reply(three());
        run.settle("bad", true, "refused: breadth");
        run.done("ok", "fine");
        run
    };
    let order = |run: &Run| run.results().into_iter().map(|(id, error, _)| (id, error)).collect::<Vec<_>>();
    let want = |last| {
        [("ok", false), ("bad", true), ("hangs", last)].map(|(id, error)| (id.to_owned(), error)).to_vec()
    };
    let mut run = begun(&spec());
    run.input(finish());
    run.steer(1, "s");
    run.input(Input::Pause);
    run.done("hangs", "at last");
    assert_eq!(order(&run), want(false));
    run.input(Input::Resume);
    assert_valid(&run.last_request().messages);

    let mut run = begun(&spec());
    run.input(Input::Cancel { reason: "drain".to_owned() });
    assert_eq!(order(&run), want(true));

    let mut run = begun(&warm());
    run.input(Input::CancelTurn { turn: 1, reason: "x".to_owned() });
    run.message(2, "next");
    run.done("hangs", "late");
    assert_eq!(order(&run), want(true));
    assert_valid(&run.last_request().messages);
}

//! What becomes of tool calls: made or answered instead, in which order, and what the history keeps.

use super::*;
use crate::limits::{ARGUMENT_BYTES, CALLS_PER_MESSAGE};

#[test]
fn one_call_is_made_observed_and_answered() {
    let mut run = Run::start();
    run.reply(said("looking", &[("c1", "files_read", "{\"path\": \"a\"}")], Finish::ToolCalls));
    let source = ToolSource::Server { server: "files".to_owned(), tool: "read".to_owned() };
    assert!(run.outputs.contains(&Output::CallTool {
        call: 2,
        call_id: "c1".to_owned(),
        source,
        name: "files.read".to_owned(),
        args: Json(Bytes::from(b"{\"path\":\"a\"}".as_slice())),
    }));
    assert_eq!(run.requests().len(), 1);
    run.done("c1", "text of a");
    assert_eq!(run.last_request().messages.len(), 3);
    assert_eq!(run.last_request().step, 2);
    run.reply(answer("done"));
    let result = run.result();
    assert_eq!(
        (result.end, result.text.as_deref(), result.partial),
        (LoopEnd::Completed, Some("done"), false)
    );
    assert_eq!(
        (result.evidence.model_calls, result.evidence.tool_calls, result.evidence.tool_errors),
        (2, 1, 0)
    );
    assert_valid(run.machine.history());
}

/// F16, S6.6: results stand in call order whatever the order of the answers, and nothing is asked before all.
#[test]
fn parallel_calls_answer_in_call_order_before_the_next_request() {
    let mut run = Run::start();
    run.reply(calls(&[
        ("a", "files_read", "{}"),
        ("b", "no_such", "{}"),
        ("c", "web_get", "{}"),
        ("d", "subagent_run", "{"),
        ("e", "subagent_run", "{}"),
    ]));
    assert_eq!(run.made().iter().map(|c| c.1.as_str()).collect::<Vec<_>>(), ["a", "c", "e"]);
    run.settle("e", true, "{\"error\": {\"gate\": \"breadth\"}}");
    run.done("c", "page");
    assert_eq!(run.requests().len(), 1, "one call is still open");
    run.settle("a", true, "no such file");
    assert_eq!(run.requests().len(), 2);
    let results = run.results();
    let order: Vec<(&str, bool)> = results.iter().map(|(id, error, _)| (id.as_str(), *error)).collect();
    assert_eq!(order, [("a", true), ("b", true), ("c", false), ("d", true), ("e", true)]);
    assert_valid(&run.last_request().messages);
    run.reply(answer("done"));
    assert_eq!(run.result().evidence.tool_errors, 4);
}

/// F17, S7.3: everything that cannot be called is an observation with a bounded preview; the step counts.
#[test]
fn what_cannot_be_called_is_an_observation() {
    let long_name = "n".repeat(10_000);
    let long_args = format!("{{\"a\": \"{}\"}}", "x".repeat(ARGUMENT_BYTES));
    let deep_args = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let cases: &[(&str, &str, &str)] = &[
        ("", "{}", "there is no tool ``"),
        (
            "nope",
            "{}",
            "there is no tool `nope`; the tools are: files_read, web_get, subagent_run, subagent_await",
        ),
        ("files.read", "{}", "there is no tool `files.read`"),
        (&long_name, "{}", "there is no tool `nnn"),
        ("\u{1b}[2J\n", "{}", "there is no tool `\\u{1b}[2J\\n`"),
        ("files_read", "{", "the call was not made; its arguments: not valid JSON"),
        ("files_read", "{\"path\": \"a", "the text was cut or never finished"),
        ("files_read", "[]", "an array where an object is expected"),
        ("files_read", "\"x\"", "a string where an object is expected"),
        ("files_read", "null", "null where an object is expected"),
        ("files_read", &long_args, "bytes of JSON, at most 1048576 are accepted"),
        ("files_read", &deep_args, "nested deeper than 64 levels"),
        ("files_read", "{\"a\": 1, \"a\": 2}", "the key \"a\" is there twice"),
        ("files_read", "{\"a\": NaN}", "not valid JSON"),
    ];
    for (name, args, want) in cases {
        let mut run = Run::start();
        run.reply(calls(&[("x", name, args)]));
        let made: Vec<_> = run.made();
        assert!(made.is_empty(), "{made:?}");
        let results = run.results();
        let [(id, true, text)] = results.as_slice() else { panic!("{results:?}") };
        assert_eq!(id, "x");
        assert!(text.contains(want), "wanted {want:?} in {text:?}");
        assert!(text.len() < 1000 && !text.contains(char::is_control), "{text:?}");
        assert_eq!(run.last_request().step, 2);
        assert_valid(&run.last_request().messages);
        run.reply(answer("ok"));
        assert_eq!(run.result().evidence.tool_errors, 1);
    }
}

#[test]
fn no_arguments_are_an_empty_object() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", ""), ("b", "files_read", " \n")]));
    assert!(run.made().iter().all(|c| c.3 == "{}"));
    assert_eq!(run.made().len(), 2);
}

/// S3.6, F17, F20, F22: a tool that is excluded, not granted or nobody's reads the same, and is never called.
#[test]
fn an_excluded_tool_answers_exactly_as_an_unknown_one() {
    let mut granted = spec();
    granted.tools = Some(vec!["files.*".to_owned(), "gone".to_owned()]);
    let say = |name: &str| {
        let mut run = Run::of(&granted);
        run.reply(calls(&[("x", name, "{\"depth\": 0}")]));
        assert!(run.made().is_empty());
        run.results().remove(0).2.replace(name, "NAME")
    };
    assert_eq!(say("web_get"), say("never_heard_of"));
    let run = Run::of(&granted);
    let offered: Vec<&str> = run.last_request().tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(offered, ["files_read", "subagent_run", "subagent_await"]);
    assert_eq!(run.events("agent.grant.unmatched")[0].fields["pattern"], "gone");
}

#[test]
fn a_grant_that_cannot_be_read_grants_nothing() {
    let mut broken = spec();
    broken.tools = Some(vec!["files.*".to_owned(), "a b".to_owned()]);
    let run = Run::of(&broken);
    let offered: Vec<&str> = run.last_request().tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(offered, ["subagent_run", "subagent_await"]);
    assert_eq!(run.events("agent.grant.unreadable").len(), 1);
}

/// F22: a child without the supervisor's tools cannot reach them by name.
#[test]
fn supervisor_tools_exist_only_where_they_were_given() {
    let only_files = vec![tools().remove(0)];
    let mut run = Run::start();
    run.machine = Loop::new(&spec(), only_files, Vec::new(), None, Instant::ZERO);
    run.outputs.clear();
    run.input(Input::Start);
    run.reply(calls(&[("a", "subagent_run", "{\"instruction\": \"x\"}"), ("b", "subagent.run", "{}")]));
    assert!(run.made().is_empty());
    assert!(run.results().iter().all(|(_, error, text)| *error && text.starts_with("there is no tool")));
}

/// F02: nothing of a reply that was cut at its length is executed.
#[test]
fn calls_of_a_cut_reply_are_answered_and_not_made() {
    for args in ["{\"path\": \"a", "{}", "{\"valid\": 1}"] {
        let mut run = Run::start();
        run.reply(said("t", &[("a", "files_read", args), ("b", "files_read", "{}")], Finish::Length));
        assert!(run.made().is_empty());
        assert!(
            run.results().iter().all(|(_, error, text)| *error && text.contains("cut at its length limit"))
        );
        assert_eq!(run.results().len(), 2);
        assert_valid(&run.last_request().messages);
        assert_eq!(run.last_request().step, 2);
    }
}

/// F03, S7.4: every finish reason with every content.
#[test]
fn the_finish_reason_does_not_decide() {
    let one = [("a", "files_read", "{}")];
    let two = [("a", "files_read", "{}"), ("b", "web_get", "{}")];
    let other = |text: &str| Finish::Other(text.to_owned());
    for finish in [
        Finish::Stop,
        Finish::ToolCalls,
        Finish::Length,
        other("function_call"),
        other("weird"),
        other(""),
        Finish::Missing,
    ] {
        let cut = finish == Finish::Length;
        let begun = |text: &str, calls: &[(&str, &str, &str)]| {
            let mut run = Run::start();
            run.reply(said(text, calls, finish.clone()));
            run
        };
        for text in ["", "text"] {
            for calls in [one.as_slice(), &two] {
                let run = begun(text, calls);
                assert_eq!(run.made().len(), if cut { 0 } else { calls.len() }, "{finish:?} {text:?}");
                assert!(!run.is_over());
                let answered = run.results().iter().filter(|result| result.1).count();
                assert_eq!((answered, run.requests().len()), if cut { (calls.len(), 2) } else { (0, 1) });
            }
        }
        let run = begun("text", &[]);
        assert_eq!((run.result().end, run.result().partial), (LoopEnd::Completed, cut), "{finish:?}");
        for text in ["", " \n"] {
            let mut run = begun(text, &[]);
            assert!(!run.is_over() && run.requests().len() == 2, "{finish:?}");
            run.reply(said("", &[], finish.clone()));
            assert_eq!(run.failure().kind, FailKind::EmptyReply, "never an empty `completed`");
        }
    }
}

#[test]
fn call_ids_are_made_unique() {
    let mut run = Run::start();
    run.reply(calls(&[("x", "files_read", "{}"), ("x", "files_read", "{}"), ("", "files_read", "{}")]));
    let ids: Vec<String> = run.made().into_iter().map(|c| c.1).collect();
    assert_eq!(ids, ["x", "call_1", "call_2"]);
    for id in ["x", "call_1", "call_2"] {
        run.done(id, id);
    }
    run.reply(calls(&[("x", "files_read", "{}"), ("call_1", "files_read", "{}")]));
    assert_eq!(run.made()[3].1, "call_3");
    run.done("call_3", "");
    run.done("call_4", "");
    assert_valid(&run.last_request().messages);
}

#[test]
fn calls_past_the_limit_are_answered_and_not_made() {
    let ids: Vec<String> = (0..=CALLS_PER_MESSAGE).map(|n| format!("c{n}")).collect();
    let list: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "files_read", "{}")).collect();
    let mut run = Run::start();
    run.reply(calls(&list));
    assert_eq!(run.made().len(), CALLS_PER_MESSAGE);
    for id in ids.iter().take(CALLS_PER_MESSAGE).rev() {
        run.done(id, id);
    }
    let (id, error, text) = run.results().pop().unwrap();
    assert_eq!((id.as_str(), error), ("c128", true));
    assert!(text.contains("at most 128 calls"), "{text}");
    assert_valid(&run.last_request().messages);
}

/// F13: an answer that comes twice, late, or for a number never given, changes nothing.
#[test]
fn answers_that_nobody_waits_for_are_dropped() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "files_read", "{}"), ("b", "files_read", "{}")]));
    run.done("a", "first");
    run.done("a", "second");
    run.input(Input::ToolDone {
        call: 999,
        outcome: ToolOutcome { error: false, value: ToolValue::Text("stray".to_owned()) },
    });
    let stale = run.thinking().unwrap();
    run.input(Input::ModelReply { call: stale, reply: Ok(answer("stray")) });
    assert!(!run.is_over());
    run.done("b", "third");
    let texts: Vec<String> = run.results().into_iter().map(|r| r.2).collect();
    assert_eq!(texts, ["first", "third"]);
    run.input(Input::ModelReply { call: stale, reply: Ok(answer("stray")) });
    assert!(!run.is_over());
    run.input(Input::Start);
    assert_eq!(run.requests().len(), 2);
}

#[test]
fn a_result_is_bounded_and_json_is_read_as_text() {
    let mut small = spec();
    small.limits.tool_result_bytes = 200;
    let mut run = Run::of(&small);
    run.reply(calls(&[("a", "files_read", "{}"), ("b", "files_read", "{}")]));
    run.done("a", &"é".repeat(5_000));
    let number = run.number("b");
    let value = ToolValue::Json(Json::of(&serde_json::json!({"lines": 3})));
    run.input(Input::ToolDone { call: number, outcome: ToolOutcome { error: false, value } });
    let results = run.results();
    assert!(results[0].2.len() <= 200 && results[0].2.contains("of 10000 bytes cut here"), "{results:?}");
    assert_eq!(results[1].2, "{\"lines\":3}");
}

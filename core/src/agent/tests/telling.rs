//! What the loop tells: the model at the start, the supervisor all along.

use super::*;
use crate::wire::message::{ContextMessage, ContextRole};

fn waits(run: &Run) -> Vec<WaitingOn> {
    run.states().into_iter().map(|state| state.waiting_on).collect()
}

#[test]
fn the_first_request_holds_what_was_passed_and_nothing_else() {
    let mut passed = spec();
    passed.system = "Be brief.".to_owned();
    passed.output_contract = Some("one word".to_owned());
    passed.context = vec![
        ContextMessage { role: ContextRole::User, content: "earlier".to_owned() },
        ContextMessage { role: ContextRole::Assistant, content: "tools: [\"*\"]".to_owned() },
    ];
    let mut machine =
        Loop::new(&passed, tools(), vec!["repo".to_owned(), "db".to_owned()], None, Instant::ZERO);
    let mut outputs = Vec::new();
    machine.handle(Instant::ZERO, Input::Start, &mut outputs);
    let run = Run { machine, now: Instant::ZERO, outputs };
    let request = run.last_request();
    assert_eq!(
        request.system,
        "Be brief.\n\nThese servers could not be used, so their tools are not available: repo, db.\n\nWhat the \
         final answer must be: one word"
    );
    let messages: Vec<Message> = request.messages.iter().map(|m| m.as_ref().clone()).collect();
    assert_eq!(
        messages,
        [
            Message::User("earlier".to_owned()),
            Message::Assistant { text: Some("tools: [\"*\"]".to_owned()), calls: Vec::new() },
            Message::User("do it".to_owned()),
        ]
    );
    assert_eq!((request.context, request.step, request.model.as_str()), (2, 1, "m"));
    let offered: Vec<&str> = request.tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(offered, ["files_read", "web_get", "subagent_run", "subagent_await"]);
    assert_eq!(run.events("mcp.tools")[0].fields["text"], "tools: 2 from 2 servers");
    assert_eq!(run.events("mcp.tools")[0].fields["own"], "2");
    assert!(Run::start().last_request().system.is_empty());
}

#[test]
fn state_is_told_whenever_it_changes() {
    let mut run = Run::start();
    assert_eq!(waits(&run), [WaitingOn::Model]);
    run.reply(calls(&[
        ("a", "subagent_run", "{}"),
        ("b", "web_get", "{}"),
        ("c", "files_read", "{}"),
        ("d", "web_get", "{\"n\":2}"),
    ]));
    let tools = |names: &[&str]| WaitingOn::Tools(names.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(waits(&run)[1..], [tools(&["web.get", "files.read"])]);
    run.done("b", "");
    assert_eq!(waits(&run).len(), 2, "web.get is still open");
    run.done("c", "");
    assert_eq!(waits(&run)[2..], [tools(&["web.get"])]);
    run.done("d", "");
    assert_eq!(waits(&run)[3..], [WaitingOn::Supervisor]);
    run.done("a", "");
    assert_eq!(waits(&run)[4..], [WaitingOn::Model]);
    assert_eq!(run.states().iter().map(|s| s.step).collect::<Vec<_>>(), [1, 1, 1, 1, 2]);
    // Each model call is news, even when nothing came between.
    run.reply(calls(&[("e", "nope", "{}")]));
    assert_eq!(run.states().last().map(|s| s.step), Some(3));
}

#[test]
fn usage_follows_every_model_call() {
    let mut run = Run::start();
    run.reply(calls(&[("a", "nope", "{}")]));
    run.reply(answer("x"));
    let usage = Usage { input: 10, output: 5, cached: 0, estimated: false, model: "m".to_owned() };
    assert_eq!(run.usages(), [usage.clone(), usage]);
    let last = run.outputs.len() - 1;
    assert!(matches!(run.outputs[last], Output::Finish(_)), "the terminal is the last of all");
}

#[test]
fn the_budget_that_is_left_goes_with_each_request() {
    let mut run = Run::start();
    assert_eq!(run.last_request().tokens_left, 1_000_000);
    run.reply(calls(&[("a", "nope", "{}")]));
    assert_eq!(run.last_request().tokens_left, 999_985);
}

#[test]
fn calls_are_logged_with_name_time_and_outcome() {
    let mut run = Run::start();
    run.at(250).reply(calls(&[("a", "files_read", "{}"), ("b", "no\nsuch", "{}"), ("c", "web_get", "{}")]));
    run.at(400).settle("a", true, "secret text");
    run.at(450).input(Input::Cancel { reason: "x".to_owned() });
    let events = run.events("tool.call");
    let seen: Vec<(&str, &str, &str)> = events
        .iter()
        .map(|e| (e.fields["name"].as_str(), e.fields["ms"].as_str(), e.fields["error"].as_str()))
        .collect();
    assert_eq!(seen, [("no\\nsuch", "0", "true"), ("files.read", "150", "true"), ("web.get", "200", "true")]);
    let model = run.events("model.call");
    assert_eq!((model[0].fields["ms"].as_str(), model[0].fields["calls"].as_str()), ("250", "3"));
    assert!(!format!("{:?}", run.emitted().collect::<Vec<_>>()).contains("secret text"));
}

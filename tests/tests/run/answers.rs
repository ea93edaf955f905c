//! A message's calls and their results (F16): every id once, in order, whatever became of each.

use crate::{run, server, servers};
use agentd_tests::kit::{Rule, call, call_as, playbook};
use agentd_tests::mcp_server::Mode;
use serde_json::{Value, json};

#[test]
fn ok_error_hanging_refused_and_broken_calls_answer_in_order() {
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([
            call_as("id-0", "ok.echo", r#"{"text": "fine"}"#),
            call_as("id-1", "ok.fail", r#"{"text": "broken"}"#),
            call_as("id-2", "hangs.echo", r#"{"text": "never"}"#),
            call_as("id-3", "subagent.run", r#"{"instruction": ""}"#),
            call_as("id-4", "ok.echo", "{"),
            call_as("id-5", "ok.echo", r#"["no object"]"#),
            call_as("id-6", "", "{}"),
            call_as("id-7", "subagent.run", r#"{"instruction": "quick"}"#),
            // The same id twice is the provider's mistake; both are answered.
            call_as("id-7", "ok.echo", r#"{"text": "again"}"#),
        ]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("done"),
    ]))
    .config(&servers(&[named("ok", &[]), named("hangs", &[Mode::HangOnCall])]))
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    let errors: Vec<bool> =
        results.as_array().into_iter().flatten().map(|r| r["error"] == Value::Bool(true)).collect();
    assert_eq!(errors, [false, true, true, true, true, true, true, false, false], "{results}");
    assert!(results[2]["text"].as_str().is_some_and(|t| t.contains("within 2s")), "{}", results[2]);
    assert_eq!(results[3]["value"]["error"]["gate"], "instruction", "{}", results[3]);
    assert_eq!(results[7]["value"]["result"], "done", "{}", results[7]);
}

/// A server whose names begin with its own, and whose calls may take 2 s.
fn named(name: &str, modes: &[Mode]) -> String {
    let mut server: Value = serde_json::from_str(&server(name, modes)).expect("JSON");
    server["ns"] = json!(name);
    server["timeout"] = json!("2s");
    server.to_string()
}

/// A kill between a call and its result: the parent's history stays valid, and it goes on.
#[test]
fn a_kill_among_parallel_calls_answers_each() {
    let one = |text: &str| call("subagent.run", json!({"instruction": text, "mode": "sync"}));
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([
            one("wait"),
            one("quick"),
            call("subagent.kill", json!({"handle": "sub-1"})),
            call("subagent.await", json!({"handle": "sub-1"})),
            call("subagent.await", json!({"handle": "sub-9"})),
            call("subagent.status", json!({"handle": "sub-2"})),
        ]),
        Rule::worker().turn(2).calls([call("subagent.list", json!({}))]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().told("quick").after("300ms").says("done"),
        Rule::subagent().after("1h").says("never"),
    ]))
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(results.as_array().map(Vec::len), Some(7));
    assert_eq!(results[0]["value"]["status"], "cancelled", "{}", results[0]);
    assert_eq!(results[1]["value"]["result"], "done");
    assert_eq!(results[2]["text"], results[0]["text"], "everybody reads the same bytes");
    assert_eq!(results[3]["text"], results[0]["text"]);
    assert!(
        results[4]["value"]["error"]["message"].as_str().is_some_and(|m| m.contains("sub-9")),
        "{}",
        results[4]
    );
    assert_eq!(results[5]["value"]["handle"], "sub-2");
}

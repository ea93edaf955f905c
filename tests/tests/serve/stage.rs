//! What the tests of a daemon share.

use agentd_tests::kit::{Rule, RunCommand, call, playbook};
use serde_json::{Value, json};
use std::process::Output;

pub(crate) const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");

/// A daemon whose worker answers what it was asked, as its subagents do; who is told `stay` waits for the model.
pub(crate) fn daemon() -> RunCommand {
    let rules = vec![
        Rule::worker().told("delegate").turn(1).calls([call("subagent.run", json!({"instruction": "look"}))]),
        Rule::worker().told("stay").says("late").after("300s"),
        Rule::worker().says("heard"),
        Rule::subagent().told("stay").says("late").after("300s"),
        Rule::subagent().says("seen"),
    ];
    RunCommand::new(AGENTD, &playbook(rules))
        .config("mcp: {servers: [{name: files, builtin: files, root: .}]}")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command's exit code, and what it said on stderr.
pub(crate) fn told(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

/// Handle and status of each run.
pub(crate) fn rows(value: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or("root").to_owned();
    value["runs"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|run| (word(&run["handle"]), word(&run["status"])))
        .collect()
}

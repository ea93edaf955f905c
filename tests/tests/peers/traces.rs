//! What `agentd export` writes of a tree of runs, read by a decoder that nobody here wrote.

use super::{AGENTD, below, python};
use agentd_tests::kit::{Rule, RunCommand, call, playbook};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The conversation delegates to one, who delegates to another, who lists the files.
fn rules() -> Vec<Rule> {
    let delegate = |to: &str| call("subagent.run", json!({"instruction": to, "delegate": true}));
    vec![
        Rule::worker().turn(1).calls([delegate("first")]),
        Rule::worker().says("done"),
        Rule::subagent().told("first").turn(1).calls([delegate("second")]),
        Rule::subagent().told("second").turn(1).calls([call("list", json!({"path": "."}))]),
        Rule::subagent().says("seen"),
    ]
}

fn decoded(args: &[&str], file: &Path) -> Vec<Value> {
    let decoder = Command::new(python("python")).arg(below("python/otlp.py")).args(args).arg(file).output();
    let output = decoder.expect("it starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_tree_of_depth_two_is_one_connected_trace_to_the_decoder_of_opentelemetry() {
    let running = RunCommand::new(AGENTD, &playbook(rules()))
        .config("mcp: {servers: [{name: files, builtin: files, root: .}]}")
        .config("limits: {subagents: {depth: 2}}")
        .serve();
    let asked = running.agentd(&["send", "root", "begin"]);
    assert!(asked.status.success(), "{asked:?}");
    let file = running.path("traces");
    let name = file.to_str().expect("text");
    // By the configuration that the daemon has, while it lives, and twice the same.
    let export = |more: &[&str]| {
        let output = running.agentd(&[&["export", "-c", "agentd.yaml", "--out", name], more].concat());
        assert!(output.status.success(), "{output:?}");
        std::fs::read(&file).expect("it was written")
    };
    let json = export(&["--json"]);
    let of_json = decoded(&["--json"], &file);
    assert_eq!(export(&["--json"]), json, "the same each time");
    export(&[]);
    let spans = decoded(&[], &file);
    assert_eq!(of_json, spans, "both forms say the same");

    let text = |span: &Value, key: &str| span[key].as_str().expect("text").to_owned();
    let traces: BTreeSet<String> = spans.iter().map(|span| text(span, "trace")).collect();
    assert_eq!(traces.len(), 1, "{spans:?}");
    let by_id: BTreeMap<String, &Value> = spans.iter().map(|span| (text(span, "id"), span)).collect();
    assert_eq!(by_id.len(), spans.len(), "no id twice");
    let roots: Vec<&Value> = spans.iter().filter(|span| text(span, "parent").is_empty()).collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    for span in &spans {
        assert_eq!((text(span, "trace").len(), text(span, "id").len()), (32, 16), "{span}");
        assert!(span["begin"].as_u64() > Some(0) && span["begin"].as_u64() <= span["end"].as_u64(), "{span}");
        let parent = text(span, "parent");
        assert!(parent.is_empty() || by_id.contains_key(&parent), "{span} hangs nowhere");
    }
    // Each run hangs on the call that delegated to it, and so down from the conversation.
    let operation = |span: &Value| text(span, "operation");
    let agents: Vec<&&Value> = by_id.values().filter(|span| operation(span) == "invoke_agent").collect();
    assert_eq!(agents.len(), 3, "{spans:?}");
    let mut depths: Vec<usize> = agents.iter().map(|agent| depth(agent, &by_id)).collect();
    depths.sort_unstable();
    assert_eq!(depths, [0, 2, 4], "run, call, run, call, run");
    for agent in agents.iter().filter(|agent| !text(agent, "parent").is_empty()) {
        assert_eq!(operation(by_id[&text(agent, "parent")]), "execute_tool", "{agent}");
    }
    let count = |wanted: &str| spans.iter().filter(|span| operation(span) == wanted).count();
    assert_eq!((count("chat"), count("execute_tool")), (6, 3), "{spans:?}");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

fn depth(span: &Value, all: &BTreeMap<String, &Value>) -> usize {
    match all.get(span["parent"].as_str().expect("text")) {
        Some(parent) => 1 + depth(parent, all),
        None => 0,
    }
}

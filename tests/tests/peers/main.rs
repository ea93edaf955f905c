//! Servers that nobody here wrote, started as their users start them: MCP servers through npx, under a keeper, in a
//! subagent; and a server of models (`models`).
//!
//! Needs Node and `npm ci` in `tests/peers/npm`; `.ci/run` does both. Without them these tests fail, they do not skip:
//! build them with `--features peers` only where they can run.

mod models;

use agentd_tests::kit::{Rule, RunCommand, call, playbook};
use serde_json::{Value, json};
use std::path::Path;

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");

/// The folder in which npx finds the servers.
fn peers() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/npm");
    assert!(folder.join("node_modules").is_dir(), "run `npm ci` in tests/peers/npm first");
    folder.to_str().expect("UTF-8").to_owned()
}

fn server(name: &str, program: &str, more: &[&str]) -> Value {
    let mut args = vec!["--no-install", program];
    args.extend(more);
    json!({"name": name, "ns": name, "command": "npx", "args": args, "cwd": peers(), "tags": {"*": ["trusted"]}})
}

/// A subagent with one server makes calls, one a message, and answers with all their results.
fn delegated(run: RunCommand, server: &Value, calls: &[Value]) -> Value {
    let mut rules =
        vec![Rule::worker().turn(1).calls([call("subagent.run", json!({"instruction": "look"}))])];
    rules.push(Rule::worker().says("{{ results[0].text }}"));
    for (turn, made) in (1..).zip(calls) {
        rules.push(Rule::subagent().turn(turn).calls([made.clone()]));
    }
    rules.push(Rule::subagent().says("{{ results | tojson }}"));
    let run = run.write("playbook.yaml", &playbook(rules));
    let ended = run.config(&format!("mcp: {{servers: [{server}]}}")).run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let object = ended.json();
    assert_eq!(object["status"], "completed", "{object}");
    assert!(object["result"].is_array(), "{object}");
    object["result"].clone()
}

/// A folder of its own; the playbook is written when the paths in it are known.
fn run() -> RunCommand {
    RunCommand::new(AGENTD, "")
}

#[test]
fn the_filesystem_server_reads_real_files() {
    let run = run().write("root/a.txt", "first line\nsecond line\n").write("root/below/b.txt", "here too\n");
    let root = run.path("root").to_str().expect("UTF-8").to_owned();
    let read = |path: &str| call("files.read_text_file", json!({ "path": path }));
    let calls = [
        read(&format!("{root}/a.txt")),
        call("files.search_files", json!({"path": root, "pattern": "**/*.txt"})),
        read("/etc/passwd"),
    ];
    let results = delegated(run, &server("files", "mcp-server-filesystem", &[&root]), &calls);
    let text = |i: usize| results[i]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("first line") && text(0).contains("second line"), "{results}");
    assert!(text(1).contains("a.txt") && text(1).contains("b.txt"), "{results}");
    assert_eq!((&results[0]["error"], &results[2]["error"]), (&json!(false), &json!(true)), "{results}");
    assert!(!text(2).contains("root:"), "outside its root: {results}");
}

#[test]
fn the_everything_server_adds_and_echoes() {
    let calls = [
        call("all.echo", json!({"message": "hello from a subagent"})),
        call("all.get-sum", json!({"a": 40, "b": 2})),
        call("all.no-such-tool", json!({})),
    ];
    let results = delegated(run(), &server("all", "mcp-server-everything", &[]), &calls);
    let text = |i: usize| results[i]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("hello from a subagent"), "{results}");
    assert!(text(1).contains("42"), "{results}");
    assert_eq!(results[2]["error"], true, "{results}");
}

//! The client against the built-in file server, over pipes, in this process.

use crate::drive::{Driver, text};
use agentd_core::mcp::{Outcome, Value as Answer};
use serde_json::{Value, json};
use std::io::pipe;
use std::path::Path;
use std::thread;
use std::time::Duration;

fn connect(root: &Path, write: bool, piece: usize) -> (Driver, thread::JoinHandle<std::io::Result<()>>) {
    let (from_client, to_server) = pipe().unwrap();
    let (from_server, to_client) = pipe().unwrap();
    let root = root.to_owned();
    let server = thread::spawn(move || agentd::files::serve(&root, write, from_client, to_client));
    (Driver::new(to_server, from_server, piece, Duration::from_secs(60)), server)
}

fn value(outcome: &Outcome) -> Value {
    match outcome {
        Outcome { error: false, value: Answer::Json(json), .. } => json.parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_tool_is_reached_and_structured_results_come_back_as_values() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/a.rs"), "fn main() {}\n// unsafe\n").unwrap();
    for piece in [1, 7, 65_536] {
        let (mut driver, server) = connect(dir.path(), false, piece);
        let names: Vec<String> = driver.ready().into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["list", "read", "grep", "glob", "stat"]);
        assert_eq!(driver.events(), [] as [&str; 0], "nothing is odd about our own server");
        let grep = value(&driver.call(1, "grep", &json!({"pattern": "unsafe"})));
        let counts = ["files_searched", "lines_searched", "matching_files", "matching_lines"]
            .map(|k| grep[k].as_u64());
        assert_eq!(counts, [Some(1), Some(2), Some(1), Some(1)]);
        assert_eq!(grep["matches"], json!([{"file": "src/a.rs", "line": 2, "text": "// unsafe"}]));
        assert_eq!(value(&driver.call(2, "list", &json!({})))["entries"][0]["name"], "src");
        assert_eq!(value(&driver.call(3, "read", &json!({"path": "src/a.rs"})))["total_lines"], 2);
        assert_eq!(value(&driver.call(4, "glob", &json!({"pattern": "*.rs"})))["paths"], json!(["src/a.rs"]));
        assert_eq!(value(&driver.call(5, "stat", &json!({"path": "src"})))["kind"], "dir");
        driver.close();
        server.join().unwrap().unwrap();
    }
}

#[test]
fn mistakes_come_back_as_errors_that_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (mut driver, _server) = connect(dir.path(), false, 4_096);
    driver.ready();
    for (tool, args, says) in [
        ("read", json!({"path": "../x"}), "leads out of the served folder"),
        ("read", json!({"paht": "x"}), "\"paht\" is not a parameter"),
        ("write", json!({"path": "x", "text": ""}), "error -32602: unknown tool"),
        ("nope", json!({}), "the tools are list, read, grep, glob, stat"),
    ] {
        let outcome = driver.call(1, tool, &args);
        driver.outputs.clear();
        assert!(outcome.error && text(&outcome).contains(says), "{outcome:?}");
    }
}

#[test]
fn calls_in_flight_are_answered_each_by_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..50 {
        std::fs::write(dir.path().join(format!("f{n}")), format!("content {n}\n")).unwrap();
    }
    let (mut driver, _server) = connect(dir.path(), false, 100);
    driver.ready();
    for n in 0..50 {
        driver.begin(n, "read", &json!({"path": format!("f{n}")}), Duration::from_secs(60));
    }
    for n in (0..50).rev() {
        assert_eq!(value(&driver.answer(n))["text"], format!("content {n}\n"));
    }
}

#[test]
fn writing_over_the_wire() {
    let dir = tempfile::tempdir().unwrap();
    let (mut driver, server) = connect(dir.path(), true, 4_096);
    assert_eq!(driver.ready().len(), 7);
    let body = "line\n\"quoted\" \u{1F980}\n".repeat(1_000);
    value(&driver.call(1, "write", &json!({"path": "a/b.txt", "text": body})));
    assert_eq!(std::fs::read_to_string(dir.path().join("a/b.txt")).unwrap(), body);
    value(&driver.call(2, "edit", &json!({"path": "a/b.txt", "old": "line", "new": "LINE", "all": true})));
    assert_eq!(std::fs::read_to_string(dir.path().join("a/b.txt")).unwrap(), body.replace("line", "LINE"));
    driver.close();
    server.join().unwrap().unwrap();
}

//! What is printed, and where.

use crate::place::{Place, said};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

#[test]
fn check_says_all_and_exits_2() {
    let place = Place::new();
    place.write(
        "a.yaml",
        "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\nlimits: {run: {stesp: 1}}\nstreams: {}\n",
    );
    let text = place.agentd(&["check", "-c", "a.yaml"]);
    assert_eq!((text.code, text.err.as_str()), (Some(2), ""));
    assert!(text.out.contains("a.yaml:2:16: limits.run.stesp: there is no such key\n"), "{}", text.out);
    assert!(text.out.contains("a.yaml:3:1: streams: is not built yet\n"), "{}", text.out);
    let json = place.agentd(&["check", "-c", "a.yaml", "--json"]);
    assert_eq!(json.code, Some(2));
    let value: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(value.as_array().map(Vec::len), Some(2));
    for key in ["file", "line", "column", "path", "code", "message", "accepted", "hint", "severity"] {
        assert!(value[0].get(key).is_some() && value[1].get(key).is_some(), "{key}: {value}");
    }
    assert_eq!((&value[0]["line"], &value[0]["severity"]), (&2.into(), &"error".into()));

    place.write("agentd.yaml", "intelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\n");
    let fine = place.agentd(&["check"]);
    assert_eq!((fine.code, fine.err.as_str()), (Some(0), ""));
    assert!(fine.out.starts_with("ok: agentd.yaml: agent agentd, model mock"), "{}", fine.out);
    assert_eq!(place.agentd(&["check", "--json"]).out, "[]\n");
}

#[test]
fn a_configuration_can_come_from_a_pipe_and_a_pipe_without_a_writer_is_told() {
    let place = Place::new();
    let text = "intelligence: {dialect: mock, endpoints: [mock:builtin]}";
    let agentd = env!("CARGO_BIN_EXE_agentd-under-test");
    for script in [
        format!("exec '{agentd}' check -c <(echo '{text}')"),
        format!("exec '{agentd}' check -c <(sleep 0.3; echo '{text}')"),
        format!("echo '{text}' | '{agentd}' check -c /dev/stdin"),
        format!("'{agentd}' check -c /dev/stdin <<< '{text}'"),
    ] {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]).current_dir(place.path(".")).stdin(Stdio::null());
        let ran = said(command.output().expect("bash starts"));
        assert_eq!(ran.code, Some(0), "{script}: {} {}", ran.out, ran.err);
    }
    let made = std::process::Command::new("mkfifo").arg(place.path("pipe")).status().expect("mkfifo starts");
    assert!(made.success());
    let ran = place.agentd(&["check", "-c", "pipe"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(
        ran.out.contains("pipe: the file cannot be read: it is not a regular file, and nobody"),
        "{}",
        ran.out
    );
}

#[test]
fn the_stand_in_for_a_provider_says_how_it_is_used() {
    let fake_model = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fake-model"));
        said(command.args(args).output().expect("it starts"))
    };
    for flag in ["--help", "-h"] {
        let ran = fake_model(&[flag]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert!(
            ran.out.starts_with("usage: fake-model SCRIPT.json [PORT]\n") && ran.out.contains("0 for ever")
        );
    }
    let ran = fake_model(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("usage: fake-model") && ran.err.contains("--help"), "{}", ran.err);
}

#[test]
fn run_without_a_configuration_says_where_it_looked_and_offers_the_demo() {
    let place = Place::new();
    let ran = place.agentd(&["run", "hello"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "what is missing is a model");
    for word in ["agentd.yaml", "/etc/agentd/agentd.yaml", "agentd demo"] {
        assert!(ran.err.contains(word), "{}", ran.err);
    }
}

#[test]
fn what_is_asked_wrongly_exits_2_and_leaves_stdout_empty() {
    let place = Place::with("rules: [{reply: {text: hi}}]\n", "");
    for args in [
        &["run"][..],
        &["run", ""],
        &["run", "a", "b"],
        &["fly"],
        &["run", "hi", "--mcp", "web=http://far.example/mcp"],
        &["run", "hi", "-c", "nowhere.yaml"],
        &["run", "hi", "--journal", "playbook.yaml"],
        &["demo", "nowhere"],
        &["mcp", "serve-files", "--root", "/nowhere"],
        &["mcp", "serve-files", "--root", "playbook.yaml"],
        &["demo", "--pattern", ""],
    ] {
        let ran = place.agentd(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{args:?}");
    }
}

#[test]
fn the_answer_is_all_that_stdout_gets_and_each_line_of_stderr_is_json() {
    let place = Place::with("rules: [{reply: {text: \"You said: {{ prompt }}\"}}]\n", "");
    let mut agentd = place.command(&["run", "-"]);
    let mut child = agentd.stdin(Stdio::piped()).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all("größe\n".as_bytes()).expect("read");
    let ran = said(child.wait_with_output().expect("ends"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "You said: größe\n"), "{}", ran.err);
    for line in ran.err.lines() {
        let line: Value = serde_json::from_str(line).expect("a JSON object a line");
        assert!(line["ts"].is_string() && line["level"].is_string() && line["event"].is_string(), "{line}");
    }
    let quiet = place.agentd(&["run", "x", "--log-format", "text", "--log-level", "error"]);
    assert!(quiet.err.starts_with("completed after ") && quiet.err.lines().count() == 1, "{}", quiet.err);
}

#[test]
fn the_result_object_has_everything() {
    let place = Place::with("rules: [{reply: {text: \"{\\\"found\\\": [1, 2]}\"}}]\n", "");
    let ran = place.agentd(&["run", "--json", "x"]);
    let value: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (&value["status"], &value["result"]["found"][1], &value["partial"]),
        (&"completed".into(), &2.into(), &false.into())
    );
    for key in ["run_id", "error", "usage", "evidence", "attempt"] {
        assert!(value.get(key).is_some(), "{key}: {value}");
    }
    assert_eq!(place.agentd(&["run", "x"]).out, "{\"found\":[1,2]}\n");
}

/// Lines of text files below a folder that hold `word`: what `grep -rIF` counts.
fn lines_with(word: &str, path: &Path) -> u64 {
    let found = fs::symlink_metadata(path).expect("there");
    if found.is_dir() {
        let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry"));
        return entries.filter(|e| e.file_name() != ".git").map(|e| lines_with(word, &e.path())).sum();
    }
    let bytes = if found.is_file() { fs::read(path).expect("a file") } else { Vec::new() };
    if bytes.contains(&0) {
        return 0;
    }
    let text = String::from_utf8_lossy(&bytes);
    text.lines().filter(|line| line.contains(word)).count() as u64
}

#[test]
fn the_demo_tells_the_truth_and_leaves_no_process() {
    let place = Place::new();
    place.write("a b/one.txt", "TODO\nx TODO TODO\nnothing\n");
    place.write("a b/deep/er.txt", "no\nTODO");
    place.write("two\".rs", "// TODO\n");
    place.write("binary", "TODO\0TODO\n");
    place.write(".git/config", "TODO\n");
    place.write("größe/x", "TODO\n");
    std::os::unix::fs::symlink(place.path("a b"), place.path("link")).expect("a link");
    let ran = place.agentd(&["demo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let wanted = lines_with("TODO", &place.path(""));
    assert_eq!(wanted, 5);
    assert!(
        ran.out.starts_with(&format!("TODO: mentioned on {wanted} of 7 lines, in 4 text files; ")),
        "{}",
        ran.out
    );
    assert_eq!(ran.out.lines().last(), Some("0 processes left"));
    assert!(
        ran.err.contains("sub-1 started (process ") && ran.err.contains("sub-1 completed"),
        "{}",
        ran.err
    );

    let json = place.agentd(&["demo", "a b", "--pattern", "x TODO", "--json"]);
    let value: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!((&value["status"], &value["processes_left"]), (&"completed".into(), &0.into()));
    assert!(
        value["result"].as_str().is_some_and(|text| text.starts_with("'x TODO': mentioned on 1 of 5 lines")),
        "{value}"
    );
}

#[test]
fn the_demo_over_these_sources_equals_a_count_by_hand() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core");
    let place = Place::new();
    let ran = place.agentd(&["demo", sources.to_str().expect("UTF-8"), "--pattern", "unwrap"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let wanted = lines_with("unwrap", &sources);
    assert!(ran.out.starts_with(&format!("unwrap: mentioned on {wanted} of ")), "{wanted}: {}", ran.out);
    assert_eq!(ran.out.lines().last(), Some("0 processes left"));
}

#[test]
fn a_reader_of_stderr_that_stops_delays_nobody() {
    let playbook = "rules:\n  - when: turn < 400\n    reply: {tool_calls: [{name: nothing, args: {n: \"{{ turn }}\"}}], usage: {input: 1, output: 1}}\n  - reply: {text: done}\n";
    let place = Place::with(playbook, "limits: {run: {repeats: 0}}\n");
    let mut child = place.start(&["run", "--log-level", "debug", "x"]);
    // Nobody reads stderr until stdout has ended.
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
    assert_eq!(out, "done\n");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_and_a_reader_that_left_is_not() {
    let place = Place::with("rules: [{reply: {text: hi}}]\n", "");
    if Path::new("/dev/full").exists() {
        let full = File::options().write(true).open("/dev/full").expect("opens");
        let ran = said(place.command(&["run", "x"]).stdout(full).output().expect("starts"));
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.contains("the answer cannot be written to stdout: No space left"), "{}", ran.err);
    } else {
        println!("SKIP: an_answer_that_cannot_be_written: there is no /dev/full");
    }
    let mut child = place.start(&["run", "x"]);
    drop(child.stdout.take());
    assert_eq!(child.wait_with_output().expect("ends").status.code(), Some(0));
}

//! How a one-shot run can end, and the exit code of each ending.

use crate::place::Place;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

const CALL: &str = "tool_calls: [{name: nothing, args: {n: \"{{ turn }}\"}}]";

#[test]
fn every_ending_has_its_exit_code() {
    for (name, reply, more, code, out) in [
        ("completed", "text: fine", "", 0, "fine\n"),
        ("partial", "text: half, finish: length", "", 3, "half\n"),
        ("failed", "text: \"\"", "", 1, ""),
        ("model", "error: {kind: unreachable, message: gone}", "", 4, ""),
        ("credential", "error: {kind: credential, message: no}", "", 4, ""),
        ("overloaded", "error: {kind: overloaded, message: busy}", "", 4, ""),
        ("rejected", "error: {kind: rejected, message: no such field}", "", 1, ""),
        ("malformed", "error: {kind: malformed, message: cut}", "", 1, ""),
        ("too long", "error: {kind: too_long, message: too long}", "", 1, ""),
        ("refused", "text: I will not, finish: refusal", "", 5, "I will not\n"),
        ("server", "text: fine", "mcp: {servers: [{name: s, command: ./nowhere}]}\n", 6, ""),
        ("steps", CALL, "limits: {run: {steps: 3}}\n", 7, ""),
        ("tokens", CALL, "limits: {run: {tokens: 400}}\n", 7, ""),
        ("circles", "tool_calls: [{name: nothing}]", "", 7, ""),
        ("deadline", "text: late, delay: 1h", "limits: {run: {deadline: 300ms}}\n", 124, ""),
    ] {
        let place = Place::with(&format!("rules: [{{reply: {{{reply}}}}}]\n"), more);
        let ran = place.agentd(&["run", "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), out), "{name}: {}", ran.err);
    }
}

#[test]
fn a_server_that_is_not_required_fails_nobody() {
    let servers = "mcp: {servers: [{name: s, command: ./nowhere, required: false}]}\n";
    let place = Place::with("rules: [{reply: {text: fine}}]\n", servers);
    let ran = place.agentd(&["run", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "fine\n"), "{}", ran.err);
}

#[test]
fn a_signal_ends_a_run_with_its_code() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let place =
            Place::with("rules: [{reply: {text: late, delay: 1h}}]\n", "lifecycle: {drain_timeout: 100ms}\n");
        let mut child = place.start(&["run", "--log-level", "debug", "x"]);
        wait_for(&mut child, "child.ready");
        send(signal, &child);
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(ended.status.code(), Some(code), "{signal}");
        assert!(ended.stdout.is_empty(), "{signal}");
    }
}

#[test]
fn a_run_that_can_end_during_a_drain_completes() {
    // The signal comes while the worker waits; the wait is shorter than the drain.
    let place = Place::with("rules: [{reply: {text: done, delay: 500ms}}]\n", "");
    let mut child = place.start(&["run", "--log-level", "debug", "x"]);
    wait_for(&mut child, "child.ready");
    send("-TERM", &child);
    let ended = child.wait_with_output().expect("ends");
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b"done\n"[..]));
}

/// Reads stderr up to the line of an event, and gives the rest back.
fn wait_for(child: &mut Child, event: &str) {
    let mut err = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains(event) {
        line.clear();
        assert!(err.read_line(&mut line).expect("UTF-8") > 0, "stderr ended before {event}");
    }
    // What comes later is nobody's to wait for: the log gives it up by itself.
    child.stderr = Some(err.into_inner());
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

#[test]
fn an_answer_is_printed_before_runs_that_nobody_waits_for_end() {
    let playbook = "rules:
  - {role: subagent, reply: {text: late, delay: 1h}}
  - turn: 1
    reply: {tool_calls: [{name: subagent.run, args: {instruction: wait, mode: MODE}}]}
  - reply: {text: early}
";
    for mode in ["async", "detached"] {
        let place = Place::with(&playbook.replace("MODE", mode), "lifecycle: {drain_timeout: 100ms}\n");
        let mut child = place.start(&["run", "x"]);
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("UTF-8");
        assert_eq!(line, "early\n", "{mode}");
        if mode == "async" {
            assert!(child.try_wait().expect("a child").is_none(), "an async run is waited for");
            send("-TERM", &child);
        }
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(ended.status.code(), Some(0), "{mode}");
        line.clear();
        assert_eq!(out.read_line(&mut line).expect("UTF-8"), 0, "{mode}: {line}");
    }
}

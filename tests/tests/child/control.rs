//! The control channel of a child: what it says, what it answers, and how it ends (S2, S7.9, S9.1).

use crate::rig::{PATIENCE, Rig, Run, readable};
use agentd_core::bytes::Json;
use agentd_core::wire::message::{FailKind, LoopEnd, RunResult, ToolDecl, ToolResult, VERSION};
use agentd_core::wire::{Down, Up};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// A model that answers long after anybody waits.
fn asleep() -> Value {
    json!([{"reply": {"text": "too late", "delay": "10m"}}])
}

/// S7.9: noticed within a second, wherever the run stands.
const NOTICED: Duration = Duration::from_secs(1);

fn cancelled(up: Up) -> RunResult {
    match up {
        Up::Result(result) if result.end == LoopEnd::Cancelled => result,
        other => panic!("not cancelled: {other:#?}"),
    }
}

fn supervisors_tool(name: &str) -> ToolDecl {
    ToolDecl { name: name.into(), description: String::new(), schema: Json::of(&json!({"type": "object"})) }
}

#[test]
fn ready_is_first_and_the_terminal_frame_last() {
    let mut rig = Rig::start(Run::new(json!([{"reply": {"text": "forty-two"}}])));
    let first = rig.next().expect("a frame");
    assert!(matches!(first, Up::Ready(ready) if ready.v == VERSION), "ready first");
    assert_eq!(rig.completed(), "forty-two");
    assert_eq!(rig.next(), None, "nothing follows");
    assert!(rig.events("mcp.tools").iter().any(|e| e.fields["text"] == "tools: 0 from 0 servers"));
    let (status, said) = rig.end();
    assert!(status.success(), "{status}");
    assert_eq!(said, "");
}

#[test]
fn the_payload_is_neither_in_the_environment_nor_in_the_arguments() {
    let canary = "canary-of-the-payload";
    let mut rig = Rig::start(Run::new(asleep()).change(|spawn| spawn.instruction = canary.into()));
    rig.until_model_call();
    for file in ["environ", "cmdline"] {
        let seen = std::fs::read(format!("/proc/{}/{file}", rig.pid())).expect("readable");
        assert!(!String::from_utf8_lossy(&seen).contains(canary), "{file}");
    }
    let name = std::fs::read_to_string(format!("/proc/{}/comm", rig.pid())).expect("readable");
    assert_eq!(name, "agentd:sub-7\n");
    rig.cancel();
    cancelled(rig.terminal());
    assert!(rig.end().0.success());
}

#[test]
fn pings_are_answered_in_a_long_model_call_and_a_cancel_ends_it() {
    let mut rig = Rig::start(Run::new(asleep()));
    rig.until_model_call();
    for seq in [1, 2, u64::MAX] {
        rig.ping(seq);
        rig.until(|up| matches!(up, Up::Pong(pong) if pong.seq == seq).then_some(()));
    }
    let asked = Instant::now();
    rig.cancel();
    let result = cancelled(rig.terminal());
    assert!(asked.elapsed() < NOTICED, "{:?}", asked.elapsed());
    assert_eq!(result.evidence.model_calls, 1);
    assert!(rig.end().0.success());
}

#[test]
fn a_cancel_ends_a_call_that_the_supervisor_does_not_answer() {
    let rules = json!([{"turn": 1, "reply": {"tool_calls": [{"name": "subagent_run"}]}}]);
    let run = Run::new(rules).change(|spawn| spawn.own_tools.push(supervisors_tool("subagent.run")));
    let mut rig = Rig::start(run);
    let id = rig.until(|up| if let Up::ToolRequest(request) = up { Some(request.id) } else { None });
    let asked = Instant::now();
    rig.cancel();
    cancelled(rig.terminal());
    assert!(asked.elapsed() < NOTICED, "{:?}", asked.elapsed());
    // An answer that comes too late is nobody's; the child may or may not still read it.
    let late = ToolResult { id, error: false, value: Json::of(&json!("late")) };
    let frame = rig.encoder.encode_down(&Down::ToolResult(late)).expect("it fits");
    let _late = rig.stdin.as_mut().expect("open").write_all(&frame);
    assert!(rig.end().0.success());
}

#[test]
fn answers_of_the_supervisor_reach_the_call_they_belong_to() {
    let calls = json!([{"name": "ask", "args": {"n": 1}}, {"name": "ask", "args": {"n": 2}}]);
    let rules = json!([{"turn": 1, "reply": {"tool_calls": calls}}, {"reply": {"text": "{{ last.text }}"}}]);
    let mut rig = Rig::start(Run::new(rules).change(|spawn| spawn.own_tools.push(supervisors_tool("ask"))));
    let request = |up: &Up| if let Up::ToolRequest(request) = up { Some(request.clone()) } else { None };
    let (first, second) = (rig.until(request), rig.until(request));
    let answer = |id, value| Down::ToolResult(ToolResult { id, error: false, value: Json::of(&value) });
    rig.send(&answer(second.id, json!("two")));
    rig.send(&answer(second.id, json!("two again")));
    rig.send(&answer(9_999, json!("nobody's")));
    rig.send(&answer(first.id, json!("one")));
    assert!(rig.completed().contains("two"));
    assert!(rig.end().0.success());
}

#[test]
fn an_unread_stdout_stops_neither_the_reading_of_pings_nor_a_cancel() {
    // A frame that no pipe holds, and then nobody reads.
    let args = json!({"text": "x".repeat(900_000)});
    let rules = json!([{"turn": 1, "reply": {"tool_calls": [{"name": "ask", "args": args}]}}]);
    let mut rig = Rig::start(Run::new(rules).change(|spawn| spawn.own_tools.push(supervisors_tool("ask"))));
    rig.until_tool_request_is_on_its_way();
    // More than any pipe holds: these writes end only if the child goes on reading.
    for seq in 1..=20_000 {
        rig.ping(seq);
    }
    rig.cancel();
    let mut last = 0;
    let result = loop {
        match rig.next().expect("the terminal frame comes first") {
            Up::Pong(pong) => {
                assert!(pong.seq > last, "pongs keep their order");
                last = pong.seq;
            }
            Up::Result(result) => break result,
            Up::Ready(_) | Up::State(_) | Up::Usage(_) | Up::Event(_) | Up::ToolRequest(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(result.end, LoopEnd::Cancelled);
    assert!(last >= 4_000, "pongs that were kept arrive; last was {last}");
    assert!(rig.end().0.success());
}

#[test]
fn a_run_goes_on_where_it_stood_once_its_stdout_is_read_again() {
    // More than the child lets wait: the answers come, and the next model call is held until there is room.
    let args = json!({"text": "x".repeat(900_000)});
    let calls: Vec<Value> = (0..3).map(|_| json!({"name": "ask", "args": args})).collect();
    let rules = json!([{"turn": 1, "reply": {"tool_calls": calls}}, {"reply": {"text": "through"}}]);
    let mut rig = Rig::start(Run::new(rules).change(|spawn| spawn.own_tools.push(supervisors_tool("ask"))));
    rig.until_tool_request_is_on_its_way();
    // Calls are numbered from 1 over models and tools.
    for id in 2..=4 {
        rig.send(&Down::ToolResult(ToolResult { id, error: false, value: Json::of(&json!("ok")) }));
    }
    rig.ping(1);
    assert_eq!(rig.completed(), "through");
    let requests: Vec<_> = rig
        .seen
        .iter()
        .filter_map(|up| if let Up::ToolRequest(r) = up { Some(r.id) } else { None })
        .collect();
    assert_eq!(requests, [2, 3, 4], "the answers above were for these");
    assert!(rig.end().0.success());
}

/// S9.3: a supervisor that stands still has not read the result yet, and will.
#[test]
fn a_result_that_no_pipe_holds_is_kept_until_it_is_read() {
    let long = "x".repeat(900_000);
    let rules = json!([{"reply": {"text": long}}]);
    let mut rig = Rig::start(Run::new(rules));
    rig.until_tool_request_is_on_its_way();
    // Longer than the child takes for anything else at its end.
    let stands_still = Instant::now() + Duration::from_secs(6);
    assert!(!readable(&[&crate::rig::pidfd(rig.pid())], stands_still), "it ended with its result unread");
    assert_eq!(rig.completed(), long);
    assert!(rig.end().0.success());
}

#[test]
fn a_spawn_frame_as_large_as_a_frame_can_be_is_taken() {
    let rules = json!([{"text": "needle", "reply": {"text": "found"}}]);
    let run =
        Run::new(rules).change(|spawn| spawn.instruction = format!("{} needle", "hay ".repeat(2_000_000)));
    let mut rig = Rig::start(run.change(|spawn| spawn.limits.tokens = 100_000_000));
    assert_eq!(rig.completed(), "found");
    assert!(rig.end().0.success());
}

#[test]
fn the_end_of_stdin_ends_the_child() {
    let mut rig = Rig::start(Run::new(asleep()));
    rig.until_model_call();
    rig.stdin = None;
    rig.end_within(Duration::from_secs(2));
}

#[test]
fn the_end_of_stdin_ends_a_child_whose_stdout_is_full_and_unread() {
    let args = json!({"text": "x".repeat(900_000)});
    let rules = json!([{"turn": 1, "reply": {"tool_calls": [{"name": "ask", "args": args}]}}]);
    let mut rig = Rig::start(Run::new(rules).change(|spawn| spawn.own_tools.push(supervisors_tool("ask"))));
    rig.until_tool_request_is_on_its_way();
    rig.stdin = None;
    let (status, _) = rig.end_within(Duration::from_secs(2));
    assert_eq!(status.code(), Some(1), "the terminal frame could not be sent");
}

#[test]
fn a_supervisor_that_closes_stdout_is_gone_too() {
    let mut rig = Rig::start(Run::new(asleep()));
    rig.until_model_call();
    let (_, other) = std::io::pipe().expect("a pipe");
    drop(std::mem::replace(
        &mut rig.stdout,
        std::process::ChildStdout::from(std::os::fd::OwnedFd::from(other)),
    ));
    rig.ping(1);
    let (status, said) = rig.end_within(Duration::from_secs(2));
    assert_eq!(status.code(), Some(1), "no SIGPIPE: {status}; {said}");
}

#[test]
fn another_major_version_is_a_failed_frame() {
    let mut rig = Rig::start(Run::new(asleep()).change(|spawn| spawn.v = [VERSION[0] + 1, 0]));
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Spawn);
    assert!(failed.error.contains("version"), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_broken_playbook_is_told_with_its_place() {
    let mut rig = Rig::start(Run::new(json!([{"reply": {"text": "{{"}}])));
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Spawn);
    assert!(failed.error.contains("rules[0]"), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_second_spawn_frame_ends_the_run() {
    let run = Run::new(asleep());
    let again = Down::Spawn(Box::new(run.spawn.clone()));
    let mut rig = Rig::start(run);
    rig.until_model_call();
    rig.send(&again);
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Internal);
    assert!(failed.error.contains("second spawn"), "{}", failed.error);
    assert!(rig.end().0.success());
}

impl Rig {
    /// Reads up to the usage of the first model call and then no more: what follows is a frame that no pipe holds.
    fn until_tool_request_is_on_its_way(&mut self) {
        self.until(|up| matches!(up, Up::Usage(_)).then_some(()));
        assert!(readable(&[&self.stdout], Instant::now() + PATIENCE));
    }
}

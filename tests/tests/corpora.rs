//! The committed corpora of the fuzz targets (`fuzz/corpus`), replayed: every body holds for every input, and the inputs
//! together reach the states that matter. A corpus that no longer reaches one is stale, and a target that nothing here
//! replays would rot between fuzzing runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most that is committed of one corpus.
const FILES: usize = 300;
const BYTES: usize = 1024 * 1024;

/// Runs a target's body over its corpus and looks for what has to be reached.
fn replay(target: &str, body: fn(&[u8]) -> BTreeSet<&'static str>, reaches: &[&str]) {
    let mut reached = BTreeSet::new();
    let (mut files, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(fuzz().join("corpus").join(target)).expect("the corpus is committed") {
        let path = entry.expect("an entry").path();
        let input = std::fs::read(&path).expect("readable");
        println!("{}", path.display());
        reached.extend(body(&input));
        (files, bytes) = (files + 1, bytes + input.len());
    }
    println!("{target}: {files} inputs of {bytes} bytes reach {reached:?}");
    assert!(files <= FILES && bytes <= BYTES, "{files} files of {bytes} bytes: minimise the corpus");
    let missing: Vec<_> = reaches.iter().filter(|state| !reached.contains(**state)).collect();
    assert!(missing.is_empty(), "no input of {target} reaches {missing:?}");
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The types that a frame can have, and how a stream can end.
const FRAMES: [&str; 24] = [
    "spawn",
    "ping",
    "cancel",
    "tool_result",
    "message",
    "steer",
    "finish",
    "pause",
    "resume",
    "throttle",
    "ready",
    "pong",
    "event",
    "state",
    "usage",
    "tools",
    "tool_request",
    "ack",
    "model_health",
    "turn",
    "result",
    "failed",
    "a protocol error",
    "an unknown key",
];

#[test]
fn frame_decode() {
    replay("frame_decode", agentd_core::wire::fuzzing::frame_decode, &FRAMES);
    let ends = ["an unknown type", "a stream that is cut"];
    replay("frame_decode", agentd_core::wire::fuzzing::frame_decode, &ends);
}

#[test]
fn message_decode() {
    replay("message_decode", agentd_core::wire::fuzzing::message_decode, &FRAMES);
}

#[test]
fn model_stream() {
    let ends = ["calls", "stop", "length", "refusal", "another finish", "no finish"];
    let fails = ["unreachable", "overloaded", "rejected", "credential", "malformed", "too_long"];
    replay("model_stream", agentd_core::model::fuzzing::model_stream, &[ends, fails].concat());
}

#[test]
fn playbook() {
    let ends = ["text", "calls", "mistakes", "no answer", "a failure that is asked for"];
    replay("playbook", agentd_core::model::fuzzing::playbook, &ends);
}

#[test]
fn mcp_client() {
    let ends = [
        "ready",
        "ready without tools",
        "failed",
        "a call answered",
        "a call failed",
        "closed by us",
        "progress",
        "mcp.junk",
        "mcp.stray",
        "mcp.request.refused",
    ];
    replay("mcp_client", agentd_core::mcp::fuzzing::mcp_client, &ends);
}

#[test]
fn mcp_http() {
    let ends = [
        "ready",
        "failed",
        "a call answered",
        "a call failed",
        "opened",
        "shut",
        "asked",
        "changed",
        "mcp.session.expired",
        "mcp.call.repeated",
        "mcp.listen.none",
    ];
    replay("mcp_http", agentd_core::mcp::fuzzing::mcp_http, &ends);
}

#[test]
fn http_server() {
    let ends = [
        "a request",
        "a request with content",
        "another request",
        "chunks",
        "an expectation",
        "400",
        "413",
        "414",
        "417",
        "431",
        "501",
        "505",
    ];
    replay("http_server", agentd_core::http::fuzzing::http_server, &ends);
}

#[test]
fn distill() {
    let ends = ["an object", "a list", "text", "text that is cut"];
    replay("distill", agentd_core::distill::fuzzing::distilled, &ends);
}

#[test]
fn json_schema() {
    let ends = [
        "fits",
        "does not fit",
        "too costly",
        "no schema",
        "a value",
        "no JSON",
        "a repeated key",
        "too deep",
    ];
    replay("json_schema", agentd_core::json::fuzzing::json_schema, &ends);
}

#[test]
fn journal() {
    let ends = [
        "a header",
        "an event and its answer",
        "an event without its answer",
        "a state",
        "a state that is none",
        "an answer that cannot be read",
        "no journal",
        "another version",
        "cut",
        "damaged",
    ];
    replay("journal", agentd::journal::fuzzing::journal, &ends);
}

#[test]
fn config() {
    let ends = [
        "loads",
        "loads with warnings",
        "a playbook",
        "no_configuration",
        "syntax",
        "too_large",
        "unknown_key",
        "duplicate",
        "wrong_type",
        "invalid_value",
        "missing",
        "not_built",
        "unknown_variable",
        "playbook",
        "no_credential",
        "secret",
        "no_program",
        "unreadable",
    ];
    replay("config", agentd::config::fuzzing::config, &ends);
}

#[test]
fn core_plan() {
    // What an input means changes with the drawing of plans, so only what many inputs reach is asked for.
    let ends = [
        "held",
        "running",
        "completed",
        "failed",
        "cancelled",
        "parked",
        "exhausted_steps",
        "child.protocol_error",
        "child.unhealthy",
        "subagent.refused",
        "subagent.turn",
        "subagent.kill.escalated",
        "drain.forced",
        "daemon.stalled",
    ];
    replay("core_plan", agentd_tests::sim::fuzzing::core_plan, &ends);
}

#[test]
fn core_child() {
    let ends = [
        "held",
        "running",
        "completed",
        "failed",
        "cancelled",
        "parked",
        "exhausted_steps",
        "child.protocol_error",
        "child.late_result",
        "child.after_terminal",
        "subagent.refused",
        "subagent.turn",
        "subagent.steer",
        "subagent.kill.escalated",
        "drain.forced",
    ];
    replay("core_child", agentd_core::supervisor::fuzzing::core_child, &ends);
}

#[test]
fn every_target_is_replayed_here() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("fuzz/Cargo.toml");
    let (source, mut targets) = (include_str!("corpora.rs"), 0);
    for name in manifest.split("[[bin]]\nname = \"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(source.contains(&format!("replay(\"{name}\",")), "{name} is not replayed");
        targets += 1;
    }
    assert!(targets >= 9, "{targets} targets");
}

//! `agentd mcp probe`: what it says of servers of both eras, over pipes and over HTTP, and how it ends.

use agentd_tests::kit::alive;
use agentd_tests::mcp_http::{Era, HttpMcp};
use agentd_tests::mcp_server::{Mode, Options};
use serde_json::{Value, json};
use std::process::{Command, Output};

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-mcp");

fn probe(args: &[&str]) -> Output {
    let mut command = Command::new(AGENTD);
    command.args(["mcp", "probe"]).args(args).env("TOKEN", "canary-of-a-token");
    command.output().expect("it runs")
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn both_eras_over_http() {
    for (era, name, version) in
        [(Era::Session, "initialize", "2025-11-25"), (Era::Stateless, "stateless", "2026-07-28")]
    {
        let server = HttpMcp::start(era);
        let output = probe(&[
            "--json",
            "--header",
            "Authorization: Bearer {{secret:TOKEN}}",
            "--elicit",
            r#"{"name": "X"}"#,
            "--call",
            "echo",
            r#"{"text": "hi"}"#,
            "--call",
            "ask",
            "{}",
            "--read",
            "note://1",
            &server.url(),
        ]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let seen = object(&output);
        assert_eq!(
            (&seen["era"], &seen["protocol"], &seen["transport"]),
            (&json!(name), &json!(version), &json!("http"))
        );
        assert_eq!(seen["server"], json!({"name": "fake", "version": "1"}));
        assert_eq!(seen["resources"][0]["uri"], "note://1");
        assert!(
            seen["tools"].as_array().is_some_and(|tools| tools.iter().any(|t| t["name"] == "resource.read"))
        );
        let texts: Vec<&str> =
            seen["calls"].as_array().into_iter().flatten().filter_map(|c| c["text"].as_str()).collect();
        assert_eq!(texts, ["hi", "hello \"Dr\" \"X\"", "what the note says"]);
        assert!(server.seen().iter().all(|s| s.header("authorization") == Some("Bearer canary-of-a-token")));
        assert!(!String::from_utf8_lossy(&output.stdout).contains("canary"));
    }
}

#[test]
fn what_a_server_says_of_its_own_credentials_is_not_printed() {
    let server = HttpMcp::start(Era::Session);
    let url = server.url();
    let said = r#"{"text": "you sent canary-of-a-token"}"#;
    let args = ["--header", "Authorization: Bearer {{secret:TOKEN}}", "--call", "echo", said, &url];
    for args in [[&["--json"][..], &args].concat(), args.to_vec()] {
        let output = probe(&args);
        let printed = [output.stdout.as_slice(), &output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(printed.contains("you sent [secret]") && !printed.contains("canary"), "{printed}");
    }
}

#[test]
fn a_program_is_probed_as_a_run_would_start_it_and_is_gone_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let pids = folder.path().join("pids");
    let options =
        Options { modes: vec![Mode::Orphans(3)], log: None, pids: Some(pids.clone()), ready_file: None };
    let mut args: Vec<String> = ["--call", "echo", r#"{"text": "hi"}"#, FAKE].map(str::to_owned).to_vec();
    args.extend(options.args());
    let output = probe(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in ["(initialize era), over pipes", "tools         3", "  echo(text", "call echo: ok\nhi\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let pids = std::fs::read_to_string(pids).expect("pids");
    let left: Vec<i32> = pids.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| alive(*pid)).collect();
    assert_eq!(left, [] as [i32; 0]);
}

#[test]
fn how_it_ends_says_what_was_wrong() {
    let server = HttpMcp::start(Era::Stateless);
    let (url, old) = (server.url(), HttpMcp::start(Era::Old).url());
    let plain = "http://192.0.2.1/mcp";
    for (args, code, says) in [
        (vec!["--call", "cut", "{}", url.as_str()], 1, "outcome is unknown"),
        (vec!["--era", "initialize", url.as_str()], 6, "headers do not match"),
        (vec![old.as_str()], 6, "2024-11-05"),
        (vec!["http://127.0.0.1:1/mcp"], 6, "nothing listens there"),
        (vec!["/no/such/program"], 6, "/no/such/program"),
        (vec!["sh", "-c", "echo gone >&2; exit 3"], 6, "gone"),
        (vec![plain], 2, "unencrypted"),
        (vec!["--timeout", "soon", url.as_str()], 2, "--timeout"),
        (vec!["--call", "echo", "[]", url.as_str()], 2, "a JSON object"),
        (vec!["--header", "nothing", url.as_str()], 2, "NAME: VALUE"),
        (vec!["--header", "A: {{secret:NOT_THERE}}", url.as_str()], 2, "NOT_THERE"),
        (vec!["--header", "A: b", "cat"], 2, "for a server at an address"),
        (vec![url.as_str(), "--json"], 2, "options go before it"),
        (vec![], 2, "required"),
    ] {
        let output = probe(&args);
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

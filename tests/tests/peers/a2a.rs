//! A daemon and the programs that nobody here wrote: the official A2A client, and Prometheus' own reader of metrics.

use super::{AGENTD, below, python};
use agentd_tests::kit::{Rule, RunCommand, Running, playbook};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

const TOKEN: &str = "ops-0123456789-abcdef";

fn daemon() -> Running {
    let rules = [Rule::worker().told("wait").says("late").after("300s"), Rule::worker().says("hello")];
    RunCommand::new(AGENTD, &playbook(rules))
        .config(
            "a2a: {listen: [unix, \"http://127.0.0.1:0\"], principals: [{id: ops, match: {token: \"{{secret:OPS}}\"}, role: operator}]}\n\
             observability: {metrics_addr: \"127.0.0.1:0\"}",
        )
        .env("OPS", TOKEN)
        .serve()
}

#[test]
fn the_official_client_sends_streams_lists_and_cancels() {
    let running = daemon();
    let script = below("python/a2a_client.py");
    let output = Command::new(python("python"))
        .arg(script)
        .args([&format!("{}/", running.address("http://")), TOKEN])
        .output();
    let output = output.expect("it starts");
    let seen: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(seen["card"]["supportedInterfaces"][0]["protocolVersion"], "1.0", "{seen}");
    let sent = &seen["sent"][0]["task"];
    assert_eq!(
        (&sent["status"]["state"], &sent["artifacts"][0]["parts"][0]["text"]),
        (&"TASK_STATE_COMPLETED".into(), &"hello".into())
    );
    let streamed = seen["streamed"].as_array().expect("events");
    assert!(streamed[0].get("task").is_some() && streamed[1].get("artifactUpdate").is_some(), "{seen}");
    assert_eq!(streamed.last().expect("an end")["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(seen["got"]["id"], sent["id"]);
    assert_eq!(seen["subscribed"]["task"]["status"]["state"], "TASK_STATE_WORKING", "{seen}");
    assert_eq!(seen["cancelled"]["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(seen["cancelled_again"], "TaskNotCancelableError");
    assert_eq!(seen["unknown"], "TaskNotFoundError");
    let listed = &seen["listed"];
    assert_eq!(
        (listed["tasks"].as_array().map(Vec::len), &listed["totalSize"]),
        (Some(2), &3.into()),
        "{listed}"
    );
    let events = &seen["command"][0]["message"]["parts"][0]["data"]["agentd"]["value"]["events"];
    assert_eq!(events.as_array().map(Vec::len), Some(3), "{seen}");
    assert_ne!(seen["without_token"], "no error");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

#[test]
fn promtool_finds_nothing_to_say_about_the_metrics() {
    let running = daemon();
    running.agentd(&["send", "root", "hello"]);
    let started = running.wait_for_event("daemon.start", |_| true);
    let listens = started["listen"].as_str().expect("addresses");
    let address = listens.split(' ').find(|one| one.ends_with("/metrics")).expect("metrics");
    let scraped = running.command("curl", &["-sSf", address]).output().expect("curl runs");
    assert!(scraped.status.success(), "{scraped:?}");
    let mut promtool = Command::new("promtool");
    let promtool = promtool
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = promtool.spawn().expect("promtool of the Debian package prometheus");
    promtool.stdin.take().expect("a pipe").write_all(&scraped.stdout).expect("written");
    let said = promtool.wait_with_output().expect("it ends");
    assert!(said.status.success() && said.stdout.is_empty() && said.stderr.is_empty(), "{said:?}");
    running.agentd(&["drain"]);
    assert_eq!(running.wait().code(), 0);
}

//! `agentd run` with real processes, from a configuration file to the exit code. Every test ends with the no-leak
//! assertion of the kit: nothing that came of the daemon is alive.

mod acts;
mod answers;
mod budget;
mod drain;
mod failures;
mod grants;
mod http;
mod kills;
mod liveness;
mod parallel;
mod providers;
mod recorded;
mod secrets;
mod slots;
mod stage;
mod supervisor_dies;
mod throttles;

use agentd_tests::kit::RunCommand;
use agentd_tests::mcp_server::{Mode, Options};
use serde_json::{Value, json};

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-mcp");

/// A run with this playbook.
fn run(playbook: &str) -> RunCommand {
    RunCommand::new(AGENTD, playbook)
}

/// The configuration of a server that misbehaves so; what it hears is in `<name>.log`, whom it left in `pids`.
fn server(name: &str, modes: &[Mode]) -> String {
    let options = Options {
        modes: modes.to_vec(),
        log: Some(format!("{name}.log").into()),
        pids: Some("pids".into()),
        ready_file: None,
    };
    json!({"name": name, "command": FAKE, "args": options.args(), "cwd": "."}).to_string()
}

/// The `mcp` section with these servers.
fn servers(all: &[String]) -> String {
    format!("mcp: {{servers: [{}]}}", all.join(", "))
}

/// Calls that a fake server was asked to make, by name, in order.
fn calls(log: &str) -> Vec<String> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["method"] == "tools/call")
        .map(|message| message["params"]["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The statuses of a list of tool results, in order; a refusal is its gate.
fn statuses(results: &Value) -> Vec<String> {
    let of = |r: &Value| match &r["value"]["error"]["gate"] {
        Value::String(gate) => gate.clone(),
        _ => r["value"]["status"].as_str().unwrap_or("?").to_owned(),
    };
    results.as_array().into_iter().flatten().map(of).collect()
}

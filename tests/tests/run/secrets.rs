//! Secrets go where they belong and nowhere else (S3.1, S16.3, F21).

use crate::{FAKE, run, servers};
use agentd_tests::kit::{Rule, Running, call, playbook};
use agentd_tests::mcp_server::{Mode, Options};
use serde_json::json;
use std::fs;

/// Values that must not be seen.
pub(crate) const OF_A_VARIABLE: &str = "canary-of-a-variable-4711";
pub(crate) const OF_A_FILE: &str = "canary-of-a-file-4712";
pub(crate) const OF_A_MODEL: &str = "canary-of-a-model-4713";

pub(crate) fn holds_a_canary(bytes: &[u8]) -> bool {
    [OF_A_VARIABLE, OF_A_FILE, OF_A_MODEL]
        .iter()
        .any(|canary| bytes.windows(canary.len()).any(|window| window == canary.as_bytes()))
}

/// A fake server whose variables are secrets.
pub(crate) fn server_with_secrets() -> String {
    let options =
        Options { modes: vec![Mode::Ok], log: Some("fake.log".into()), pids: None, ready_file: None };
    let env = json!({"A": format!("x-{{{{secret:OF_A_VARIABLE}}}}"), "B": "{{secret-file:key}}"});
    json!({"name": "fake", "command": FAKE, "args": options.args(), "cwd": ".", "env": env}).to_string()
}

/// Every process of the run but the daemon: what it was called with, and its variables.
pub(crate) fn assert_clean(running: &Running) {
    let mut servers = 0;
    let below = running.everything();
    for process in &below.0 {
        let read = |name: &str| fs::read(format!("/proc/{}/{name}", process.pid)).unwrap_or_default();
        let (line, variables) = (read("cmdline"), read("environ"));
        assert!(!holds_a_canary(&line), "{}", String::from_utf8_lossy(&line));
        if line.starts_with(FAKE.as_bytes()) {
            servers += 1;
            let text = String::from_utf8_lossy(&variables).into_owned();
            assert!(text.contains(&format!("A=x-{OF_A_VARIABLE}\0")), "{text}");
            assert!(text.contains(&format!("B={OF_A_FILE}\0")), "{text}");
            assert!(!text.contains(OF_A_MODEL), "{text}");
        } else if process.pid != running.pid() {
            assert!(!holds_a_canary(&variables), "{}", process.name);
        }
    }
    assert!(servers >= 1, "a server runs: {below:?}");
}

#[test]
fn a_secret_is_seen_by_its_server_and_by_nobody_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let running = run(&playbook([
        Rule::worker()
            .turn(1)
            .calls([call("echo", json!({"text": "{% raw %}{{secret:OF_A_VARIABLE}}{% endraw %}"}))]),
        Rule::worker().turn(2).calls([call("sleep", json!({"ms": 60_000}))]),
    ]))
    .config(&servers(&[server_with_secrets()]))
    .config("lifecycle: {drain_timeout: 100ms}")
    .env("AGENTD_LIFECYCLE_JOURNAL", &journal)
    .write("key", &format!("{OF_A_FILE}\n"))
    .env("OF_A_VARIABLE", OF_A_VARIABLE)
    .env("AGENTD_INTELLIGENCE_TOKEN", OF_A_MODEL)
    .start("What is {{secret:OF_A_VARIABLE}}?");
    running.wait_for_event("tool.call", |event| event["name"] == "echo");
    assert_clean(&running);
    running.signal(rustix::process::Signal::TERM);
    let ended = running.wait();
    assert!(
        !holds_a_canary(ended.log().as_bytes()) && !holds_a_canary(ended.stdout.as_bytes()),
        "{}",
        ended.log()
    );
    let heard = ended.file("fake.log");
    assert!(heard.contains("{{secret:OF_A_VARIABLE}}") && !holds_a_canary(heard.as_bytes()), "{heard}");
    let journal = fs::read(&journal).expect("a journal");
    assert!(!holds_a_canary(&journal), "the journal holds a secret");
    assert!(journal.windows(8).any(|window| window == b"fake.log"), "it is the journal of this run");
    crate::recorded::decides_the_same(&folder.path().join("journal"));
}

#[test]
fn a_secret_that_is_gone_fails_the_spawn_that_needs_it() {
    let running = run(&playbook([
        Rule::worker().turn(1).calls([call("sleep", json!({"ms": 500}))]),
        Rule::worker().turn(2).calls([call("subagent.run", json!({"instruction": "work"}))]),
        Rule::worker().says("{{ last.text }}"),
        Rule::subagent().says("worked"),
    ]))
    .config(&servers(&[server_with_secrets()]))
    .write("key", OF_A_FILE)
    .env("OF_A_VARIABLE", OF_A_VARIABLE)
    .start("go");
    running.wait_for_event("worker.spawn", |_| true);
    running.wait_for_event("mcp.connect", |_| true);
    fs::remove_file(running.path("key")).expect("it is there");
    let ended = running.wait();
    let result = ended.json();
    assert_eq!(result["status"], "failed", "{result}");
    let error = result["error"].as_str().expect("an error");
    for words in ["the variable B of the server fake", "/key cannot be read", "No such file"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(!holds_a_canary(ended.log().as_bytes()), "{}", ended.log());
}

#[test]
fn a_model_without_its_key_is_refused_to_those_who_want_it() {
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([
            call("subagent.run", json!({"instruction": "work", "model": "far"})),
            call("subagent.run", json!({"instruction": "work"})),
        ]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("worked"),
    ]))
    .env("AGENTD_INTELLIGENCE_MODELS", "{far: {dialect: openai, endpoints: [\"https://far.example\"], model: m, token: \"{{secret:NONE}}\"}}")
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    let refused = results[0]["value"]["error"]["message"].as_str().expect("a refusal");
    assert!(refused.contains("far") && refused.contains("the secret NONE is not there"), "{refused}");
    assert_eq!(results[1]["value"]["result"], "worked", "{results}");
    assert!(ended.log().contains("config.model_unusable"), "{}", ended.log());
}

//! Another configuration while the daemon lives: what counts from when, and what a mistake leaves as it is.

use crate::stage::{AGENTD, daemon, text, told};
use agentd_tests::kit::{Rule, RunCommand, Running, playbook};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// Writes its configuration anew.
fn configure(running: &Running, sections: &str) {
    let base = "intelligence: {dialect: mock, endpoints: [playbook.yaml]}\n";
    fs::write(running.path("agentd.yaml"), format!("{base}{sections}\n")).expect("written");
}

fn ended(running: Running) {
    running.agentd(&["drain", "--no-wait"]);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}

/// These tests may themselves run under nohup, which makes a daemon deaf to SIGHUP.
const HEARS: [&str; 2] = ["env", "--default-signal=HUP"];

const FILES: &str = "mcp: {servers: [{name: files, builtin: files, root: .}]}\n";

#[test]
fn limits_count_for_the_next_spawn_and_a_mistake_changes_nothing() {
    let running = daemon()
        .config("limits: {subagents: {breadth: 1}}")
        .arg("--journal")
        .arg("journal")
        .wrapper(HEARS)
        .serve();
    let spawn = || told(&running.agentd(&["spawn", "stay"]));
    assert_eq!(spawn().0, 0);
    let (code, said) = spawn();
    assert!(code == 5 && said.contains("1 of 1"), "{said}");

    configure(&running, &format!("{FILES}limits: {{subagents: {{breadth: 2}}}}"));
    let reloaded = running.agentd(&["reload"]);
    assert_eq!(
        (reloaded.status.code(), text(&reloaded.stdout).as_str()),
        (Some(0), "in use from now on: limits.subagents.breadth\n"),
        "{reloaded:?}"
    );
    assert_eq!(spawn().0, 0);

    configure(
        &running,
        &format!("{FILES}limits: {{subagents: {{breadth: many}}}}\nagent: {{worker_idle: 5s}}"),
    );
    let refused = running.agentd(&["reload"]);
    let (code, said) = told(&refused);
    assert!(code == 2 && refused.stdout.is_empty(), "{refused:?}");
    assert!(said.starts_with("agentd.yaml:3:") && said.contains("limits.subagents.breadth"), "{said}");
    assert!(said.contains("stays in use"), "{said}");
    running.wait_for_event("config.reload.failed", |e| e["problems"] == 1);
    let (code, said) = spawn();
    assert!(code == 5 && said.contains("2 of 2"), "{said}");

    // By the signal: what is in use, and what waits for a restart.
    configure(
        &running,
        &format!(
            "{FILES}limits: {{subagents: {{breadth: 3}}}}\nstore: {{min_free: 1MiB}}\nlifecycle: {{drain_timeout: 1s}}"
        ),
    );
    running.signal(Signal::HUP);
    let event = running.wait_for_event("config.reload", |e| e["restart_needed"] == "store.min_free");
    assert_eq!(event["applied"], "lifecycle.drain_timeout, limits.subagents.breadth");
    running.wait_for_event("config.restart_needed", |e| e["keys"] == "store.min_free");
    assert_eq!(spawn().0, 0);
    let again = running.ask(&["reload"]);
    assert_eq!((&again["applied"], &again["restart_needed"]), (&json!([]), &json!(["store.min_free"])));

    // The drain has the time that the reload gave it, and a journal with reloads in it says the same again.
    running.agentd(&["drain", "--no-wait"]);
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(ended.events.seen("drain.start")[0]["timeout_ms"], 1_000);
    let journal = ended.path("journal");
    let replayed = std::process::Command::new(AGENTD).arg("replay").arg(&journal).output().expect("it runs");
    assert!(replayed.status.success(), "{}{}", text(&replayed.stdout), text(&replayed.stderr));
}

#[test]
fn the_conversation_takes_a_model_with_its_next_turn_and_servers_with_a_new_worker() {
    let running = daemon().serve();
    let ask = || text(&running.agentd(&["send", "root", "hello"]).stdout);
    assert_eq!(ask(), "heard\n");
    fs::write(running.path("playbook.yaml"), playbook([Rule::worker().says("heard anew")])).expect("written");
    let told = running.ask(&["reload"]);
    assert_eq!((&told["applied"], &told["models"]), (&json!([]), &json!(["mock"])), "{told}");
    assert_eq!(ask(), "heard anew\n");
    running.wait_for_event("model.swap", |e| e["model"] == "mock");
    assert_eq!(running.events.seen("worker.spawn").len(), 1, "it is the same worker");

    configure(
        &running,
        "mcp: {servers: [{name: files, builtin: files, root: .}, {name: more, builtin: files, root: ., ns: more}]}",
    );
    let told = running.ask(&["reload"]);
    assert_eq!((&told["applied"], &told["servers"]), (&json!(["mcp.servers"]), &json!(["more"])), "{told}");
    assert_eq!(ask(), "heard anew\n");
    assert_eq!(running.events.seen("worker.spawn").len(), 2);
    running.wait_for_event("mcp.connect", |e| e["server"] == "more" && e["outcome"] == "connected");
    let spoken = running.ask(&["show", "root"]);
    assert_eq!(spoken["servers"], json!(["files", "more"]));
    ended(running);
}

#[test]
fn a_policy_of_restarting_reaches_a_call_that_is_in_flight() {
    let running = daemon().serve();
    running.ask(&["spawn", "stay"]);
    running.child("sub-1");
    fs::write(running.path("playbook.yaml"), playbook([Rule::subagent().says("at last")])).expect("written");
    configure(&running, FILES);
    let sections = "intelligence: {dialect: mock, endpoints: [playbook.yaml], swap_policy: restart-turn}\n";
    fs::write(running.path("agentd.yaml"), format!("{sections}{FILES}")).expect("written");
    running.agentd(&["reload"]);
    let waited = running.ask(&["wait", "sub-1"]);
    assert_eq!(waited["results"][0]["result"], "at last", "{waited}");
    ended(running);
}

#[test]
fn a_key_that_was_rotated_is_that_of_the_next_run() {
    let server = "mcp: {servers: [{name: s, command: sh, required: false, env: {K: '{{secret-file:key}}'}, \
                  args: [-c, 'echo \"$K\" >> seen; exit 1']}]}";
    let running = RunCommand::new(AGENTD, &playbook([Rule::subagent().says("seen")]))
        .config(server)
        .write("key", "one\n")
        .serve();
    let seen = || fs::read_to_string(running.path("seen")).expect("written");
    running.ask(&["spawn", "--mode", "sync", "look"]);
    assert!(seen().ends_with("one\n"), "{}", seen());
    assert_eq!(running.ask(&["reload"])["servers"], json!([]), "nothing was rotated");
    fs::write(running.path("key"), "two\n").expect("written");
    let told = running.ask(&["reload"]);
    assert_eq!((&told["applied"], &told["servers"]), (&json!([]), &json!(["s"])), "{told}");
    running.ask(&["spawn", "--mode", "sync", "look"]);
    assert!(seen().ends_with("two\n"), "{}", seen());
    ended(running);
}

#[test]
fn a_drain_refuses_a_reload() {
    let running = daemon().config("lifecycle: {drain_timeout: 2s}").wrapper(HEARS).serve();
    running.ask(&["spawn", "stay"]);
    running.agentd(&["drain", "--no-wait"]);
    let (code, said) = told(&running.agentd(&["reload"]));
    assert!(code == 5 && said.contains("stopping"), "{said}");
    running.signal(Signal::HUP);
    running.wait_for_event("config.reload.refused", |e| e["by"] == "SIGHUP");
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
}

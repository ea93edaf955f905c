//! SIGKILL of the daemon at any moment leaves nothing alive after 2 s (S9.7): children, keepers, servers behind
//! shells, what ignores everything, what left for a session of its own.

use crate::{FAKE, run, servers};
use agentd_tests::kit::{Rule, Subtree, call, playbook};
use agentd_tests::mcp_server::{Mode, Options};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

/// A server behind a shell that stays its parent, as npx and `sh -c` wrappers do.
fn wrapped(name: &str, modes: &[Mode]) -> String {
    let options = Options { modes: modes.to_vec(), pids: Some("pids".into()), ..Options::default() };
    let words: Vec<String> = options.args().iter().map(|a| format!("'{a}'")).collect();
    let script = format!("'{FAKE}' {}; exit $?", words.join(" "));
    json!({"name": name, "command": "sh", "args": ["-c", script], "cwd": "."}).to_string()
}

#[test]
fn a_killed_daemon_leaves_nothing() {
    let all = [
        wrapped("plain", &[Mode::HangOnCall]),
        wrapped("deaf", &[Mode::HangOnCall, Mode::IgnoreTerm, Mode::IgnoreEof]),
        wrapped("escaped", &[Mode::HangOnCall, Mode::IgnoreTerm, Mode::DoubleForkSleeper(300)]),
        wrapped("session", &[Mode::HangOnCall, Mode::IgnoreEof, Mode::Setsid]),
    ];
    let one = |text: &str, server: &str| {
        call("subagent.run", json!({"instruction": text, "mode": "async", "servers": [server]}))
    };
    let running = run(&playbook([
        Rule::worker().turn(1).calls([
            one("call", "plain"),
            one("call", "deaf"),
            one("call", "escaped"),
            one("call", "session"),
            one("think", "deaf"),
        ]),
        Rule::worker().turn(2).after("1h"),
        Rule::subagent().told("call").calls([call("{{ tools[0] }}", json!({"text": "hello"}))]),
        Rule::subagent().after("1h").says("never"),
    ]))
    .config(&servers(&all))
    .start("go");
    // The worker has connected to four servers, and each subagent to its one.
    for handle in 1..=5 {
        running.wait_for_event("mcp.tools", |e| e["handle"] == format!("sub-{handle}"));
    }
    let before = running.everything();
    assert!(before.0.len() > 5 * 4, "daemon, children, keepers, shells, servers: {before:?}");
    running.signal(Signal::KILL);
    let left = before.wait_for_end(Duration::from_secs(2));
    assert!(left.is_empty(), "alive after 2 s: {left:?}");
    let home = running.path("").to_string_lossy().trim_end_matches('/').to_owned();
    assert_eq!(Subtree::marked("HOME", &home).zombies().len(), 0);
    let ended = running.wait();
    assert_eq!(ended.code(), 128 + 9);
    ended.assert_escapees_gone();
}

/// The instant does not matter: while children are being made, too.
#[test]
fn a_daemon_killed_while_it_spawns_leaves_nothing() {
    for wait in [0, 1, 4, 9, 20, 45] {
        let running =
            run(&playbook([
                Rule::worker().turn(1).calls((0..20).map(|n| {
                    call("subagent.run", json!({"instruction": format!("wait {n}"), "mode": "async"}))
                })),
                Rule::worker().after("1h"),
                Rule::subagent().after("1h").says("never"),
            ]))
            .config("limits: {subagents: {breadth: 20, rate: 20/1s}}")
            .start("go");
        running.wait_for_event("worker.spawn", |_| true);
        if wait > 0 {
            // Not a wait for something: another instant in every round.
            running.wait_for_event("subagent.spawn", |e| e["handle"] == format!("sub-{}", wait.min(20)));
        }
        running.signal(Signal::KILL);
        assert_eq!(running.wait().code(), 128 + 9);
    }
}

//! A daemon whose disk is full (F34, S10.7): what needs no disk goes on, what cannot be recorded is not begun, and what ended
//! meanwhile is saved once there is room. The state directory is a small file system of the daemon's own.

use crate::stage::{AGENTD, told};
use agentd_tests::kit::{Rule, RunCommand, Running, playbook, skip};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The state directory as the daemon sees it, which nobody else does.
fn state(running: &Running) -> PathBuf {
    let inside = running.path("state");
    PathBuf::from(format!("/proc/{}/root{}", running.pid(), inside.display()))
}

/// A command of an operator, on its way.
fn command(running: &Running, args: &[&str]) -> Command {
    let mut command = running.command(AGENTD, args);
    command.arg("--socket").arg(running.path("run/control.sock"));
    command.arg("--token-file").arg(state(running).join("control.token"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(running: &Running, args: &[&str]) -> Output {
    command(running, args).output().expect("it starts")
}

/// Writes until nothing fits any more.
fn fill(path: &PathBuf) {
    let mut file = File::create(path).expect("made");
    for size in [64 * 1024, 4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

#[test]
fn f34_a_full_disk_refuses_spawns_and_holds_up_nothing_else() {
    let test = "f34_a_full_disk_refuses_spawns_and_holds_up_nothing_else";
    let mounts = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs none /tmp"]).output();
    if !mounts.is_ok_and(|output| output.status.success()) {
        return skip(test, "a file system cannot be mounted in a namespace of one's own here");
    }
    let command_line = "mkdir state && mount -t tmpfs -o size=4m,mode=0700 none state && exec \"$0\" \"$@\"";
    let daemon = RunCommand::new(AGENTD, &playbook([Rule::subagent().after("1h").says("late")]));
    let listen = format!("a2a: {{listen: [\"unix://{}\"]}}", daemon.path("run/control.sock").display());
    let daemon = daemon.config("store: {path: state, min_free: 1B}").config(&listen);
    let running = daemon.wrapper(["unshare", "-rm", "sh", "-c", command_line]).serve();
    for _ in 0..2 {
        let spawned = run(&running, &["spawn", "stay"]);
        assert!(spawned.status.success(), "{spawned:?}");
    }
    running.child("sub-1");
    running.child("sub-2");
    let filler = state(&running).join("filler");
    fill(&filler);

    let (code, said) = told(&run(&running, &["spawn", "more"]));
    assert!(code == 5 && said.contains("store"), "{code}: {said}");
    let killing = command(&running, &["kill", "sub-1"]).spawn().expect("it starts");
    running.wait_for_event("subagent.kill", |e| e["handle"] == "sub-1");
    running.wait_for_event("child.exit", |e| e["handle"] == "sub-1");
    let down = running.wait_for_event("store.down", |_| true);
    assert!(down["error"].as_str().is_some_and(|error| error.contains("disk")), "{down}");
    let listed = run(&running, &["ps", "--json"]);
    let listed: Value =
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"));
    assert!(
        listed["runs"].as_array().is_some_and(|runs| runs.iter().any(|run| run["handle"] == "sub-2")),
        "{listed}"
    );
    // The run is gone, and whoever killed it is not kept waiting for a disk: it is told that this is not recorded.
    let killed = killing.wait_with_output().expect("it ends");
    let (code, said) = told(&killed);
    assert!(code == 0 && said.contains("not recorded yet"), "{code}: {said}");

    fs::remove_file(&filler).expect("removed");
    running.wait_for_event("store.healed", |_| true);
    assert!(run(&running, &["spawn", "more"]).status.success(), "and spawns go on");
    assert!(running.events.seen("child.unhealthy").is_empty());
    running.signal(rustix::process::Signal::TERM);
    running.wait_for_event("drain.start", |_| true);
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait().code(), 0);
}

//! Every way a run can end, against every kind of server: nothing is left (S5.5, S9.7, S14.2, F01).

use crate::rig::{FAKE, PATIENCE, Rig, Run, readable, try_pidfd};
use agentd_core::wire::Up;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The kinds of servers that survive their parents when nobody looks after them.
const KINDS: [&[&str]; 7] = [
    &["ok"],
    &["ignore-eof"],
    &["ignore-eof", "ignore-term"],
    &["setsid", "ignore-eof"],
    &["double-fork-sleeper=300"],
    &["double-fork-sleeper=300", "setsid", "ignore-eof", "ignore-term"],
    &["orphans=20"],
];

fn hanging() -> Value {
    json!([{"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "x"}}]}}])
}

/// A run with a server of this kind, by itself and behind a shell that does not exec it, both in a call that hangs.
fn run(kind: &[&str]) -> Run {
    let mut modes = kind.to_vec();
    modes.push("hang-on-call");
    let args: String = modes.iter().map(|mode| format!(" --mode {mode}")).collect();
    let wrapped = format!("\"$0\"{args}; true");
    Run::new(hanging()).fake("s", &modes).program("wrapped", &["sh", "-c", &wrapped, FAKE])
}

fn hanging_rig(kind: &[&str]) -> Rig {
    let mut rig = Rig::start(run(kind));
    rig.until_tool_call();
    rig
}

#[test]
fn nothing_outlives_a_killed_child() {
    for kind in KINDS {
        let rig = hanging_rig(kind);
        rig.kill_and_expect_nothing_left(Duration::from_secs(2));
    }
}

#[test]
fn nothing_outlives_a_child_that_was_told_to_end() {
    for kind in KINDS {
        let mut rig = hanging_rig(kind);
        rig.cancel();
        rig.terminal();
        let (status, said) = rig.end_within(Duration::from_secs(5));
        assert!(status.success(), "{kind:?}: {status} {said}");
    }
}

#[test]
fn nothing_outlives_a_child_whose_supervisor_is_gone() {
    for kind in KINDS {
        let mut rig = hanging_rig(kind);
        rig.stdin = None;
        rig.end_within(Duration::from_secs(2));
    }
}

#[test]
fn nothing_outlives_a_child_that_is_terminated_with_its_group() {
    for kind in KINDS {
        let mut rig = hanging_rig(kind);
        let pid = Pid::from_raw(rig.pid()).expect("a pid");
        // The child leads no group here, since a supervisor makes it one; the signal is what counts.
        kill_process(pid, Signal::TERM).expect("signalled");
        rig.end_within(Duration::from_secs(2));
    }
}

#[test]
fn a_killed_keeper_is_told_and_what_it_kept_is_taken_down() {
    for kind in KINDS {
        let rules = json!([
            {"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "x"}}]}},
            {"reply": {"text": "{{ last.text }}"}}
        ]);
        let mut modes = kind.to_vec();
        modes.push("hang-on-call");
        let mut rig = Rig::start(Run::new(rules).fake("s", &modes));
        rig.until_tool_call();
        let (keeper, _) =
            rig.left().into_iter().find(|(_, command)| command.trim() == "agentd").expect("a keeper");
        kill_process(Pid::from_raw(keeper).expect("a pid"), Signal::KILL).expect("killed");
        let text = rig.completed();
        assert!(text.contains("its keeper ended"), "{kind:?}: {text}");
        let (status, _) = rig.end_within(Duration::from_secs(5));
        assert!(status.success(), "{kind:?}");
    }
}

#[test]
fn what_a_dead_server_leaves_is_taken_down_while_the_run_goes_on() {
    let pids = tempfile::NamedTempFile::new().expect("a file");
    let path = pids.path().to_str().expect("text");
    let rules = json!([
        {"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "x"}}]}},
        {"reply": {"text": "too late", "delay": "10m"}}
    ]);
    let run = Run::new(rules)
        .program("s", &[FAKE, "--mode", "die-on-call", "--mode", "double-fork-sleeper=300", "--pids", path]);
    let mut rig = Rig::start(run);
    rig.until_tool_call();
    let until = Instant::now() + PATIENCE;
    for pid in std::fs::read_to_string(path).expect("pids").lines() {
        // Gone already is as good.
        let Some(fd) = try_pidfd(pid.parse().expect("a pid")) else { continue };
        assert!(readable(&[&fd], until), "{pid} is left");
    }
    rig.until_model_call();
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn orphans_that_end_by_themselves_are_reaped_while_the_server_runs() {
    let mut rig = hanging_rig(&["orphans=50"]);
    let keepers: Vec<i32> = rig
        .left()
        .into_iter()
        .filter(|(_, command)| command.trim() == "agentd")
        .map(|(pid, _)| pid)
        .collect();
    assert_eq!(keepers.len(), 2);
    // Each look is a round trip through the child, which gives the keepers time and needs no clock.
    let until = Instant::now() + PATIENCE;
    for seq in 0.. {
        rig.ping(seq);
        rig.until(|up| matches!(up, Up::Pong(pong) if pong.seq == seq).then_some(()));
        let zombies: usize = keepers.iter().map(|pid| zombies_of(*pid)).sum();
        if zombies == 0 {
            break;
        }
        assert!(Instant::now() < until, "{zombies} zombies are not reaped");
    }
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

fn zombies_of(pid: i32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let stats =
        children.split_whitespace().map(|child| std::fs::read_to_string(format!("/proc/{child}/stat")));
    stats.filter(|stat| stat.as_ref().is_ok_and(|stat| stat.contains(") Z "))).count()
}

#[test]
fn a_group_kill_of_a_child_leaves_its_keepers_to_clean_up() {
    let mut command = std::process::Command::new(crate::rig::AGENTD);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let run = run(&["setsid", "ignore-eof", "ignore-term"]);
    let mut rig = Rig::bare(command, run.tag.clone());
    rig.send(&agentd_core::wire::Down::Spawn(Box::new(run.spawn)));
    rig.until_tool_call();
    kill_process_group(Pid::from_raw(rig.pid()).expect("a pid"), Signal::KILL).expect("killed");
    rig.end_within(Duration::from_secs(2));
}

#[test]
fn nothing_outlives_a_child_that_is_killed_while_its_servers_start() {
    let slow = |modes: &[&str]| {
        let mut modes = modes.to_vec();
        modes.push("slow-init=600000");
        modes.iter().map(|mode| (*mode).to_owned()).collect::<Vec<_>>()
    };
    for kind in KINDS {
        let modes = slow(kind);
        let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
        let pids = tempfile::NamedTempFile::new().expect("a file");
        let path = pids.path().to_str().expect("text").to_owned();
        let ready = tempfile::tempdir().expect("a folder");
        let ready_file = ready.path().join("ready");
        let mut command = vec![FAKE, "--pids", &path, "--ready-file", ready_file.to_str().expect("text")];
        command.extend(modes.iter().flat_map(|mode| ["--mode", *mode]));
        let mut rig = Rig::start(Run::new(hanging()).program("s", &command));
        // It has done to itself what it does, and left behind what it leaves. Each look is a round trip.
        let until = Instant::now() + PATIENCE;
        for seq in 0.. {
            rig.ping(seq);
            rig.until(|up| matches!(up, Up::Pong(pong) if pong.seq == seq).then_some(()));
            if ready_file.exists() {
                break;
            }
            assert!(Instant::now() < until, "the server does not start");
        }
        rig.kill_and_expect_nothing_left(Duration::from_secs(2));
    }
}

#[test]
fn a_keeper_that_is_told_to_end_cleans_up_first() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let rules = json!([
            {"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "x"}}]}},
            {"reply": {"text": "{{ last.text }}"}}
        ]);
        let modes = ["hang-on-call", "double-fork-sleeper=300", "ignore-term", "ignore-eof"];
        let mut rig = Rig::start(Run::new(rules).fake("s", &modes));
        rig.until_tool_call();
        let (keeper, _) =
            rig.left().into_iter().find(|(_, command)| command.trim() == "agentd").expect("a keeper");
        kill_process(Pid::from_raw(keeper).expect("a pid"), signal).expect("signalled");
        let text = rig.completed();
        assert!(text.contains("signal 9 (SIGKILL)"), "{signal:?}: {text}");
        assert!(rig.end_within(Duration::from_secs(2)).0.success(), "{signal:?}");
    }
}

//! The supervisor's own signals and what a wrapper leaves behind (F29).

use crate::harness::{Part, Scenario, skip};
use agentd_core::event::SupervisorSignal;
use agentd_host::signals::{Signals, hangup_is_ignored, reset_inherited};
use std::process::{Command, ExitCode};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("what_a_wrapper_ignored_and_blocked_is_undone", wrapped),
    ("signals_are_read_one_by_one_and_repeats_are_one", read),
];

pub(crate) const PARTS: &[Part] = &[("wrapped", wrapped_part)];

fn wrapped() {
    let me = std::env::current_exe().expect("this program has a path");
    let mut env = Command::new("env");
    env.args(["--ignore-signal=CHLD,PIPE,TERM,HUP,INT,QUIT,USR1,ALRM,XCPU", "--block-signal"]);
    match env.arg(me).args(["--play", "wrapped"]).status() {
        Ok(status) if status.code() != Some(125) => assert!(status.success(), "{status}"),
        Ok(_) | Err(_) => skip("env(1) cannot ignore and block signals here"),
    }
}

/// Bits of one line of `/proc/self/status`.
fn signals_that_are(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("the own status");
    let line = status.lines().find_map(|l| l.strip_prefix(what)).expect("the line is there");
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).expect("a mask in hex")
}

fn wrapped_part(_: &[String]) -> ExitCode {
    let bit = |signal: i32| 1 << (signal - 1);
    assert_ne!(signals_that_are("SigIgn") & bit(nix::libc::SIGCHLD), 0, "the wrapper works");
    assert_ne!(signals_that_are("SigBlk"), 0, "the wrapper works");
    assert!(hangup_is_ignored().expect("it can be asked"), "before it is forgotten");
    reset_inherited().expect("the mask is set");
    assert!(!hangup_is_ignored().expect("it can be asked"));
    assert_eq!(signals_that_are("SigIgn"), bit(nix::libc::SIGPIPE), "only what Rust ignores is ignored");
    assert_ne!(signals_that_are("SigCgt") & bit(nix::libc::SIGSEGV), 0, "Rust's own handlers stay");
    assert_eq!(signals_that_are("SigBlk"), 0);
    let _signals = Signals::take().expect("signalfd works");
    let taken = bit(nix::libc::SIGTERM) | bit(nix::libc::SIGINT) | bit(nix::libc::SIGHUP);
    assert_eq!(signals_that_are("SigBlk"), taken);
    let status = Command::new("/bin/sh").args(["-c", "exit 9"]).status().expect("sh starts");
    assert_eq!(status.code(), Some(9), "a status is not lost to an ignored SIGCHLD");
    ExitCode::SUCCESS
}

fn read() {
    let mut signals = Signals::take().expect("signalfd works");
    assert_eq!(signals.read().expect("read works"), None);
    let send = |signal| {
        rustix::process::kill_process(rustix::process::getpid(), signal).expect("signals to oneself");
    };
    send(rustix::process::Signal::TERM);
    send(rustix::process::Signal::TERM);
    assert_eq!(signals.read().expect("read works"), Some(SupervisorSignal::Term));
    assert_eq!(signals.read().expect("read works"), None, "two that nobody read between are one");
    send(rustix::process::Signal::HUP);
    assert_eq!(signals.read().expect("read works"), Some(SupervisorSignal::Hup));
    send(rustix::process::Signal::INT);
    assert_eq!(signals.read().expect("read works"), Some(SupervisorSignal::Int));
    assert_eq!(signals.read().expect("read works"), None);
    let mut deaf = signals.without_hangup();
    send(rustix::process::Signal::HUP);
    send(rustix::process::Signal::TERM);
    assert_eq!(deaf.read().expect("read works"), Some(SupervisorSignal::Term));
    assert_eq!(deaf.read().expect("read works"), None);
}

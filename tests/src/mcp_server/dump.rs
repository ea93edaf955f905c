//! What the server sees of itself: the answer of the tool `dump`.

use super::escape::open_fds;
use serde_json::{Map, Value, json};
use std::fs;

/// Environment, descriptors, signals, folder, limits, ids.
///
/// Rust's own start-up ignores SIGPIPE and catches SIGSEGV and SIGBUS before `main`: these three say nothing
/// about what was inherited.
pub(super) fn dump() -> Value {
    let env: Map<String, Value> = std::env::vars_os()
        .map(|(key, value)| (key.to_string_lossy().into_owned(), json!(value.to_string_lossy())))
        .collect();
    let fds: Map<String, Value> = open_fds()
        .into_iter()
        .map(|fd| {
            let target = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
            (fd.to_string(), json!(target.to_string_lossy()))
        })
        .collect();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
            .unwrap_or_default()
    };
    json!({
        "env": env,
        "args": std::env::args().collect::<Vec<_>>(),
        "fds": fds,
        "sig_blocked": field("SigBlk"),
        "sig_ignored": field("SigIgn"),
        "sig_caught": field("SigCgt"),
        "no_new_privs": field("NoNewPrivs"),
        "uid": field("Uid"),
        "cwd": std::env::current_dir().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default(),
        "pid": std::process::id(),
        "ppid": nix::unistd::getppid().as_raw(),
        "pgid": nix::unistd::getpgrp().as_raw(),
        "sid": nix::unistd::getsid(None).map_or(-1, |pid| pid.as_raw()),
        "nice": nice(),
        "rlimits": rlimits(),
    })
}

/// Soft and hard limits by the kernel's names, as it prints them.
fn rlimits() -> Map<String, Value> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let row = |line: &str| {
        let (name, rest) = line.split_at_checked(25)?;
        let mut values = rest.split_whitespace();
        Some((name.trim().to_owned(), json!({"soft": values.next()?, "hard": values.next()?})))
    };
    limits.lines().skip(1).filter_map(row).collect()
}

/// Field 19 of `stat`; what is before the last `)` may hold anything.
fn nice() -> Option<i64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
}

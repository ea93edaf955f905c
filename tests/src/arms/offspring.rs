//! Processes of the scripted child: in its group or escaped, holding its stdout or not, deaf to SIGTERM or not.

use super::child::GATES;
use crate::sim::plan::Offspring;
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{Timespec, poll};
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};

/// What the process is to be, as JSON.
pub(super) const OFFSPRING: &str = "AGENTD_ARMS_OFFSPRING";

/// Starts one and waits until it is what it is to be.
pub(super) fn start(what: &Offspring) -> Result<(), String> {
    let of = |e: &dyn std::fmt::Display| format!("a process of its own: {e}");
    let text = serde_json::to_string(what).map_err(|e| of(&e))?;
    let stdout = if what.holds { Stdio::inherit() } else { Stdio::null() };
    let mut command = Command::new("/proc/self/exe");
    // The folder of the gates is also the mark by which a test finds all that came of a scenario.
    let mark = std::env::var_os(GATES).unwrap_or_default();
    command
        .env_clear()
        .env(OFFSPRING, text)
        .env(GATES, mark)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| of(&e))?;
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // It closes its stderr when it has changed what it is to change.
        stderr.read_to_string(&mut said).map_err(|e| of(&e))?;
    }
    if said.is_empty() { Ok(()) } else { Err(of(&said)) }
}

/// The main of one.
pub(super) fn main(text: &str) -> ExitCode {
    match become_it(text) {
        Ok(what) => live(&what),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn become_it(text: &str) -> Result<Offspring, String> {
    let what: Offspring = serde_json::from_str(text).map_err(|e| e.to_string())?;
    // Its parent blocks what it reads from a descriptor; this one takes signals as they come.
    let mut blocked = SigSet::empty();
    if what.ignores_term {
        blocked.add(Signal::SIGTERM);
    }
    blocked.thread_set_mask().map_err(|e| e.to_string())?;
    if what.escapes {
        rustix::process::setsid().map_err(|e| e.to_string())?;
    }
    let nowhere = std::fs::File::options().write(true).open("/dev/null").map_err(|e| e.to_string())?;
    rustix::stdio::dup2_stderr(nowhere).map_err(|e| e.to_string())?;
    Ok(what)
}

fn live(what: &Offspring) -> ExitCode {
    let limit = what.exits_ms.map(|ms| Timespec {
        tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1_000 * 1_000_000).unwrap_or(0),
    });
    loop {
        if poll(&mut [], limit.as_ref()) == Ok(0) {
            return ExitCode::SUCCESS;
        }
    }
}

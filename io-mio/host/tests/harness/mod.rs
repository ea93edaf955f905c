//! Runs scenarios that change or judge a whole process (its signals, its children, its being a subreaper), each
//! in a process of its own, and checks from outside that none left a process behind.
//!
//! The same program plays the parts that a scenario needs: started with `--play PART`, it is that part. It obeys
//! the flags of `cargo test` that matter: filters, `--exact` and `--list`.
#![allow(dead_code, unreachable_pub)]

use agentd_host::Pid;
use agentd_host::tree;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A name and what to run; it fails by panicking.
pub type Scenario = (&'static str, fn());

/// A name and what the part does with its remaining arguments.
pub type Part = (&'static str, fn(&[String]) -> ExitCode);

/// No scenario takes a tenth of this; what does, hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The exit code by which a scenario says that this machine cannot run it.
const SKIPPED: i32 = 77;

/// The program's main.
pub fn main(scenarios: &[Scenario], parts: &[Part]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--play") => {
            let part = arguments.get(1).and_then(|name| parts.iter().find(|(part, _)| part == name));
            part.map_or(ExitCode::from(64), |(_, play)| play(&arguments[2..]))
        }
        Some("--scenario") => {
            let named = arguments.get(1).and_then(|name| scenarios.iter().find(|(n, _)| n == name));
            let Some((_, run)) = named else { return ExitCode::from(64) };
            run();
            ExitCode::SUCCESS
        }
        _ => run_all(scenarios, &arguments),
    }
}

/// Ends a scenario that this machine cannot run.
pub fn skip(reason: &str) -> ! {
    println!("skipped: {reason}");
    std::process::exit(SKIPPED)
}

fn run_all(scenarios: &[Scenario], arguments: &[String]) -> ExitCode {
    let exact = arguments.iter().any(|a| a == "--exact");
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| {
        filters.is_empty()
            || filters.iter().any(|f| if exact { *f == name } else { name.contains(f.as_str()) })
    };
    let chosen: Vec<&Scenario> = scenarios.iter().filter(|(name, _)| wanted(name)).collect();
    if arguments.iter().any(|a| a == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    // Orphans of a scenario land here, where they are seen.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .expect("this process is a subreaper");
    println!("\nrunning {} scenarios", chosen.len());
    let failed = chosen.iter().filter(|(name, _)| !run_one(name)).count();
    println!("\n{} scenarios, {failed} failed", chosen.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one(name: &str) -> bool {
    let mut child = Command::new("/proc/self/exe")
        .args(["--scenario", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the scenario starts");
    let output = lines(child.stdout.take().expect("stdout is piped"));
    let mut said = Vec::new();
    // Its last process closes the pipe, so a scenario's leak that holds it is found by the limit.
    let ended = loop {
        match output.recv_timeout(LIMIT) {
            Ok(line) => said.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(mpsc::RecvTimeoutError::Timeout) => break false,
        }
    };
    if !ended {
        let group = rustix::process::Pid::from_child(&child);
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let status = child.wait().expect("the scenario is ours to wait for");
    let left = left_alive();
    let verdict = match status.code() {
        _ if !ended => "HANGS",
        Some(0 | SKIPPED) if !left.is_empty() => "LEAKS",
        Some(0) => "ok",
        Some(SKIPPED) => "skipped",
        _ => "FAILED",
    };
    println!("test {name} ... {verdict}");
    if verdict != "ok" {
        said.iter().for_each(|line| println!("    {line}"));
    }
    for process in &left {
        println!("    left: {} {:?}", process.pid, String::from_utf8_lossy(&process.comm));
        let pid = rustix::process::Pid::from_raw(process.pid.raw()).expect("a pid is positive");
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _foreign = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    }
    std::io::stdout().flush().expect("stdout is open");
    matches!(verdict, "ok" | "skipped")
}

/// What a scenario left running. What it left dead is reaped: a scenario judges its own zombies itself.
fn left_alive() -> Vec<tree::Stat> {
    let (dead, alive): (Vec<_>, Vec<_>) =
        tree::descendants(Pid::own()).expect("the walk works").into_iter().partition(tree::Stat::is_dead);
    for process in dead {
        let pid = rustix::process::Pid::from_raw(process.pid.raw());
        let _other = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG);
    }
    alive
}

/// The lines of a pipe, read by a thread of its own.
pub fn lines(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if tx.send(line).is_err() {
                break;
            }
        }
    });
    rx
}

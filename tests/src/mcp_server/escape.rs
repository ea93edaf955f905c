//! Processes that get away: a session of their own, or orphans whom no group, pipe or parent holds. Forking is
//! done by starting this program again, so that nothing here is unsafe.

use nix::sys::signal::{SigSet, Signal};
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// First argument of this program's own helpers.
const ROLE: &str = "--escape-role";

/// Runs as a helper if that is what this process was started as.
pub(super) fn helper() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != ROLE {
        return None;
    }
    let (role, number) = (args.next()?, args.next()?.parse().ok()?);
    match role.as_str() {
        "sleeper-parent" => {
            // Starts the sleeper and is gone at once; the sleeper has our stdout.
            start("sleeper", number, Stdio::null(), Stdio::inherit()).ok()?;
        }
        "sleeper" => sleep_alone(number),
        "orphans-parent" => {
            // The pipes close when we exit: that is how the children know that they are orphans.
            let children: io::Result<Vec<Child>> =
                (0..number).map(|_| start("orphan", 0, Stdio::piped(), Stdio::null())).collect();
            let held = children.ok()?;
            for child in &held {
                println!("{}", child.id());
            }
        }
        "orphan" => drop(io::stdin().read_to_end(&mut Vec::new())),
        _ => return Some(ExitCode::from(2)),
    }
    Some(ExitCode::SUCCESS)
}

/// A process that sleeps so many seconds, in no group or session of ours, without a descriptor, deaf to HUP and
/// TERM. When this returns it is all of that. Its id.
pub(super) fn sleeper(seconds: u64) -> io::Result<Vec<u32>> {
    through_a_middle("sleeper-parent", seconds)
}

/// So many processes that exit as soon as their parent has. Their ids.
pub(super) fn orphans(count: u64) -> io::Result<Vec<u32>> {
    through_a_middle("orphans-parent", count)
}

/// SIGTERM and SIGHUP do nothing to this process from now on.
pub(super) fn deaf() -> io::Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGHUP);
    Ok(set.thread_block()?)
}

/// Leads a session of its own. Whoever leads a group already cannot, and starts itself again below; then this
/// process only hands on how the other one ended.
pub(super) fn new_session() -> io::Result<Option<ExitCode>> {
    if nix::unistd::setsid().is_ok() {
        return Ok(None);
    }
    let status = Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).status()?;
    Ok(Some(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))))
}

/// Starts a helper that starts others and exits; the ids that come out of its stdout until all have let go of it.
fn through_a_middle(role: &str, number: u64) -> io::Result<Vec<u32>> {
    let mut middle = start(role, number, Stdio::null(), Stdio::piped())?;
    let mut said = String::new();
    if let Some(mut stdout) = middle.stdout.take() {
        stdout.read_to_string(&mut said)?;
    }
    middle.wait()?;
    Ok(said.lines().filter_map(|line| line.parse().ok()).collect())
}

fn start(role: &str, number: u64, stdin: Stdio, stdout: Stdio) -> io::Result<Child> {
    Command::new("/proc/self/exe").args([ROLE, role, &number.to_string()]).stdin(stdin).stdout(stdout).spawn()
}

fn sleep_alone(seconds: u64) {
    let ready = deaf().is_ok() && nix::unistd::setsid().is_ok();
    if !ready {
        return;
    }
    println!("{}", std::process::id());
    drop(io::stdout().flush());
    for fd in open_fds() {
        let_go(fd);
    }
    std::thread::sleep(Duration::from_secs(seconds));
}

/// Closes a descriptor; one that is closed already is as good.
pub(super) fn let_go(fd: i32) {
    let _ = nix::unistd::close(fd);
}

/// Descriptors that are open now; the one that reads the list is closed again by then.
pub(super) fn open_fds() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let all: Vec<i32> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    all.into_iter().filter(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok()).collect()
}

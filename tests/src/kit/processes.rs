//! Processes as /proc tells: who is below whom, who belongs to a test, who is a zombie; and their deaths, by pidfd.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs or waits.
    Alive,
    /// SIGSTOP.
    Stopped,
    /// Ended and not reaped.
    Zombie,
}

/// A process as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub parent: i32,
    /// Its name, `agentd:sub-1`.
    pub name: String,
    /// What it was doing.
    pub state: State,
}

/// Processes below one, as they were when they were looked at.
#[derive(Debug, Clone)]
pub struct Subtree(pub Vec<Process>);

impl Subtree {
    /// Everything below `pid`, `pid` itself left out.
    pub fn of(pid: i32) -> Subtree {
        let all = everything();
        let mut below = BTreeSet::from([pid]);
        loop {
            let more: Vec<i32> = all
                .iter()
                .filter(|p| below.contains(&p.parent) && !below.contains(&p.pid))
                .map(|p| p.pid)
                .collect();
            if more.is_empty() {
                break;
            }
            below.extend(more);
        }
        below.remove(&pid);
        Subtree(all.into_iter().filter(|p| below.contains(&p.pid)).collect())
    }

    /// Every process whose environment holds `NAME=value`, wherever it has moved to.
    pub fn marked(name: &str, value: &str) -> Subtree {
        let mark = format!("{name}={value}");
        let holds = |p: &Process| {
            fs::read(format!("/proc/{}/environ", p.pid))
                .is_ok_and(|env| env.split(|b| *b == 0).any(|line| line == mark.as_bytes()))
        };
        Subtree(everything().into_iter().filter(holds).collect())
    }

    /// Those that are zombies.
    pub fn zombies(&self) -> Vec<&Process> {
        self.0.iter().filter(|p| p.state == State::Zombie).collect()
    }

    /// Their numbers.
    pub fn pids(&self) -> Vec<i32> {
        self.0.iter().map(|p| p.pid).collect()
    }

    /// Waits until all of them have ended; those that have not in time are returned.
    pub fn wait_for_end(&self, patience: Duration) -> Vec<Process> {
        let held: Vec<(&Process, OwnedFd)> = self.0.iter().filter_map(|p| Some((p, open(p.pid)?))).collect();
        let until = Instant::now() + patience;
        held.iter().filter(|(_, fd)| !ended(fd, until)).map(|(p, _)| (*p).clone()).collect()
    }
}

/// Whether a process exists and is no zombie.
pub fn alive(pid: i32) -> bool {
    look(pid).is_some_and(|p| p.state != State::Zombie)
}

/// Holds a process, if there is one.
pub(super) fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Waits for the end of a process that is held; whether it came.
pub(super) fn ended(fd: &OwnedFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Sends a signal to a process that is held. One that has ended takes none, which is no mistake here.
pub(super) fn send(fd: &OwnedFd, signal: Signal) {
    match pidfd_send_signal(fd, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("pidfd_send_signal: {error}"),
    }
}

fn everything() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(look).collect()
}

/// One process, by `/proc/<pid>/stat`: `pid (name) state parent …`, and the name may hold anything.
pub(super) fn look(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once(" (")?.1.to_owned();
    let mut fields = rest.split(' ');
    let state = match fields.next()? {
        "Z" | "X" | "x" => State::Zombie,
        "T" | "t" => State::Stopped,
        _ => State::Alive,
    };
    Some(Process { pid, parent: fields.next()?.parse().ok()?, name, state })
}

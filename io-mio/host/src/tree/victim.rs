//! One process that is not our known child: signal it without ever hitting another holder of its number.
//!
//! Owns the check of pidfd against start time. Called by [`crate::tree`] only.

use super::procfs::{self, Stat};
use crate::process::Pid;
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions};

/// A process and not a number: the number and when its holder started, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its number.
    pub pid: Pid,
    /// Its `starttime`.
    pub start: u64,
}

impl Identity {
    /// Whether the process still exists, be it as a zombie.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some()
    }

    /// What `/proc` says of exactly this process; `None` when it is gone or cannot be read.
    pub(super) fn stat(&self) -> Option<Stat> {
        procfs::stat(self.pid).ok().flatten().filter(|stat| stat.start == self.start)
    }

    pub(super) fn stop(&self) -> bool {
        self.send(Signal::STOP)
    }

    pub(super) fn kill(&self) -> bool {
        self.send(Signal::KILL)
    }

    /// Sends SIGTERM. Whether it reached exactly this process.
    pub fn terminate(&self) -> bool {
        self.send(Signal::TERM)
    }

    /// Whether the signal reached exactly this process. The pidfd is opened before the start time is compared:
    /// if the number had passed to another process by then, the comparison fails; if it passes on later, the
    /// pidfd still means the old one.
    fn send(&self, signal: Signal) -> bool {
        let Ok(fd) = rustix::process::pidfd_open(self.pid.rustix(), PidfdFlags::empty()) else {
            return false;
        };
        self.is_alive() && rustix::process::pidfd_send_signal(&fd, signal).is_ok()
    }
}

/// Reaps the child `pid` if it has ended. Never waits.
pub(super) fn reap(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    matches!(rustix::process::waitid(WaitId::Pid(pid.rustix()), options), Ok(Some(_)))
}

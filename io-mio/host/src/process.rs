//! One process held by its pidfd: signal its group, see its exit without reaping it, reap it.
//!
//! Owns the rule that a reaped pid is never signalled (S5.4): exit is observed with `WNOWAIT`, so the zombie
//! pins the number until [`Process::reap`]. Refuses to touch a process it was not given. Called by the spawner
//! and by the hands.

use agentd_core::action::ChildSignal;
use agentd_core::event::Exit;
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use std::fmt;
use std::io;
use std::num::NonZeroI32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A process id: a positive number, so that it can never name a group or "everybody" in a `kill`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(NonZeroI32);

impl Pid {
    /// The pid `raw`; `None` when it is not positive.
    pub fn new(raw: i32) -> Option<Pid> {
        NonZeroI32::new(raw).filter(|n| n.get() > 0).map(Pid)
    }

    /// This process.
    pub fn own() -> Pid {
        Pid(rustix::process::getpid().as_raw_nonzero())
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0.get()
    }

    /// As rustix names it.
    pub(crate) fn rustix(self) -> rustix::process::Pid {
        // A `Pid` is never zero, so the fallback is never taken; it names the caller, whom no `kill` here means.
        rustix::process::Pid::from_raw(self.raw()).unwrap_or_else(rustix::process::getpid)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A child of this process, from its start until it is reaped.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    fd: OwnedFd,
    /// The process or its zombie still holds the number.
    pinned: bool,
}

impl Process {
    /// Opens the pidfd of `pid`, which must be an unreaped child of this process.
    ///
    /// # Errors
    /// `pidfd_open(2)`: `EMFILE`, `ENFILE`, `ENOMEM`, `ESRCH` when somebody else reaped it already.
    pub fn open(pid: Pid) -> io::Result<Process> {
        let fd = rustix::process::pidfd_open(pid.rustix(), PidfdFlags::empty())?;
        Ok(Process { pid, fd, pinned: true })
    }

    /// Its number; for people and for `/proc`.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Signals the process group that this process leads. `TermCont` is SIGTERM and then SIGCONT, so that a
    /// stopped process can act on it.
    ///
    /// # Errors
    /// `pidfd_send_signal(2)`; `ESRCH` when the group is gone.
    pub fn signal_group(&self, signal: ChildSignal) -> io::Result<()> {
        match signal {
            ChildSignal::TermCont => {
                self.send_to_group(Signal::TERM)?;
                self.send_to_group(Signal::CONT)
            }
            ChildSignal::Kill => self.send_to_group(Signal::KILL),
        }
    }

    /// How the process ended, without reaping it; `None` while it runs.
    ///
    /// # Errors
    /// `waitid(2)` failed in a way that says nothing of the process.
    pub fn exit(&mut self) -> io::Result<Option<Exit>> {
        match wait(&self.fd, WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)? {
            Waited::Running => Ok(None),
            Waited::Ended(exit) => Ok(Some(exit)),
            Waited::NotOurs => {
                self.pinned = false;
                Ok(Some(Exit::Unknown))
            }
        }
    }

    /// Frees the pid. `false`: the process still runs and was not reaped.
    ///
    /// # Errors
    /// `waitid(2)` failed in a way that says nothing of the process.
    pub fn reap(&mut self) -> io::Result<bool> {
        match wait(&self.fd, WaitIdOptions::NOHANG)? {
            Waited::Running => Ok(false),
            Waited::Ended(_) | Waited::NotOurs => {
                self.pinned = false;
                Ok(true)
            }
        }
    }

    /// Kills the group and waits until the process itself is reaped. Blocks for as long as the kernel needs to
    /// end a killed process, so it is for threads that may wait.
    ///
    /// # Errors
    /// `waitid(2)` failed in a way that says nothing of the process.
    pub fn kill_and_reap(mut self) -> io::Result<()> {
        // Both may be gone already; then there is nothing to kill and the wait returns at once. The second is for
        // a process that does not lead a group of its own.
        let _gone = self.signal_group(ChildSignal::Kill);
        let _gone = rustix::process::pidfd_send_signal(&self.fd, Signal::KILL);
        wait(&self.fd, WaitIdOptions::empty())?;
        self.pinned = false;
        Ok(())
    }

    /// Linux 6.9 and later signal a group through the pidfd, without any number. Before, the group is named by
    /// its leader's number, which is safe exactly while the leader is unreaped.
    fn send_to_group(&self, signal: Signal) -> io::Result<()> {
        match pidfd_signal_group(self.fd.as_fd(), signal) {
            Err(e) if e.raw_os_error() == Some(nix::libc::EINVAL) && self.pinned => {
                Ok(rustix::process::kill_process_group(self.pid.rustix(), signal)?)
            }
            other => other,
        }
    }
}

impl AsFd for Process {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What a wait said.
enum Waited {
    /// Nothing yet.
    Running,
    /// It ended like this.
    Ended(Exit),
    /// Somebody else reaped it: SIGCHLD ignored, or a foreign wait.
    NotOurs,
}

fn wait(fd: &OwnedFd, options: WaitIdOptions) -> io::Result<Waited> {
    loop {
        match rustix::process::waitid(WaitId::PidFd(fd.as_fd()), WaitIdOptions::EXITED | options) {
            Ok(Some(status)) => return Ok(Waited::Ended(exit_of(&status))),
            Ok(None) => return Ok(Waited::Running),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(Waited::NotOurs),
            Err(e) => return Err(e.into()),
        }
    }
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// `PIDFD_SIGNAL_PROCESS_GROUP`, Linux 6.9.
const SIGNAL_PROCESS_GROUP: nix::libc::c_uint = 4;

#[allow(unsafe_code)]
fn pidfd_signal_group(fd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    // SAFETY: the fd is open for the whole call, the third argument is a null siginfo, which the kernel takes
    // as "fill it in", and nothing is written to this process's memory.
    let done = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            signal.as_raw(),
            std::ptr::null::<nix::libc::siginfo_t>(),
            SIGNAL_PROCESS_GROUP,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;

//! Making a keeper: the one thing a child starts, before its threads (S5.2).
//!
//! Owns the descriptors between child, keeper and server. Refuses to hand a keeper anything else of the child's:
//! not its descriptors, not its environment beyond the baseline. Called by the main thread, once a server.

use crate::{environment, fork};
use agentd_host::process::Pid;
use rustix::io::FdFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A keeper that waits for its spec. All descriptors are this side's and do not block.
pub(in crate::child) struct Launched {
    /// The keeper's process.
    pub(super) keeper: Child,
    /// Specs down, reports up.
    pub(super) lifeline: UnixStream,
    /// The server's input.
    pub(super) stdin: File,
    /// Its output.
    pub(super) stdout: File,
    /// Its complaints.
    pub(super) stderr: File,
}

impl Launched {
    /// The keeper's number.
    pub(in crate::child) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.keeper.id()).ok().and_then(Pid::new)
    }
}

/// Starts a keeper in a process group of its own.
///
/// Only while this process has a single thread: between the two calls that concern its flag, the lifeline would
/// leak into a process that another thread starts.
pub(in crate::child) fn launch() -> io::Result<Launched> {
    let (lifeline, theirs) = UnixStream::pair()?;
    rustix::io::fcntl_setfd(&theirs, FdFlags::empty())?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("agentd")
        .env_clear()
        .envs(environment::baseline())
        .env(environment::KEEPER, theirs.as_raw_fd().to_string())
        .env(environment::PARENT_PID, std::process::id().to_string())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut keeper = fork::start(&mut command)?;
    drop(theirs);
    lifeline.set_nonblocking(true)?;
    let stdin = ours(keeper.stdin.take().map(OwnedFd::from))?;
    let stdout = ours(keeper.stdout.take().map(OwnedFd::from))?;
    let stderr = ours(keeper.stderr.take().map(OwnedFd::from))?;
    Ok(Launched { keeper, lifeline, stdin, stdout, stderr })
}

/// The flag belongs to this end of the pipe; the server's end blocks as programs expect.
fn ours(end: Option<OwnedFd>) -> io::Result<File> {
    let end = end.ok_or_else(|| io::Error::other("a pipe that was asked for is not there"))?;
    rustix::io::ioctl_fionbio(&end, true)?;
    Ok(File::from(end))
}

//! Starting a process from a process that may wait: a child for its keepers, a keeper for its server.

use agentd_core::limits;
use rustix::io::Errno;
use std::io;
use std::process::{Child, Command};

/// Starts `command`. A fork that fails for want of a process or of memory is tried again for a moment (S5.10).
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let mut waits = limits::FORK_RETRIES.iter();
    loop {
        match command.spawn() {
            Err(e) if e.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => match waits.next() {
                Some(wait) => std::thread::sleep(*wait),
                None => return Err(e),
            },
            done => return done,
        }
    }
}

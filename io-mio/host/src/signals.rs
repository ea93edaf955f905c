//! The signals that a supervisor takes, as something to poll, and the state that a wrapper left behind.
//!
//! Owns TERM, INT and HUP through a signalfd; SIGCHLD stays at its default, exits come by pidfd. Refuses to
//! touch any other signal except in [`reset_inherited`], which a program that owns its process calls first
//! thing in main and an embedder never calls. Called by the binary's start and by drivers.

use agentd_core::event::SupervisorSignal;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Signals of the supervisor, waiting to be read.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks TERM, INT and HUP in the calling thread and opens a descriptor that reads them. Call it before the
    /// first thread is started: a thread that does not block them would be ended by them.
    ///
    /// # Errors
    /// `pthread_sigmask(3)` or `signalfd(2)`.
    pub fn take() -> io::Result<Signals> {
        let taken = taken();
        taken.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// The next one, if one waits. Several of a kind that arrive before they are read are one.
    ///
    /// # Errors
    /// `read(2)` on the signalfd.
    pub fn read(&mut self) -> io::Result<Option<SupervisorSignal>> {
        loop {
            match self.0.read_signal() {
                Ok(Some(info)) => match i32::try_from(info.ssi_signo).map(Signal::try_from) {
                    Ok(Ok(Signal::SIGTERM)) => return Ok(Some(SupervisorSignal::Term)),
                    Ok(Ok(Signal::SIGINT)) => return Ok(Some(SupervisorSignal::Int)),
                    Ok(Ok(Signal::SIGHUP)) => return Ok(Some(SupervisorSignal::Hup)),
                    // The descriptor reads only the three above.
                    Ok(_) | Err(_) => {}
                },
                Ok(None) => return Ok(None),
                Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl AsFd for Signals {
    /// Readable while a signal waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Undoes what a wrapper left ignored or blocked (F29): every signal at its default, none blocked, except
/// SIGPIPE, which Rust's start ignores so that a write to a closed pipe is an error and not an end. Std makes
/// SIGPIPE the default again in what it starts.
///
/// Process-wide, so only for a program that owns its process, before its first thread.
///
/// # Errors
/// `pthread_sigmask(3)`.
pub fn reset_inherited() -> io::Result<()> {
    for signal in 1..=nix::libc::SIGRTMAX() {
        if signal != nix::libc::SIGPIPE {
            default_disposition(signal);
        }
    }
    nix::sys::signal::pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

fn taken() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// SIGKILL and SIGSTOP cannot be changed and the C library keeps two for itself; they are refused, harmlessly.
#[allow(unsafe_code)]
fn default_disposition(signal: nix::libc::c_int) {
    // SAFETY: SIG_DFL is no handler, so no code of this process is made to run in signal context, and a number
    // that cannot be changed is refused with EINVAL.
    let _refused = unsafe { nix::libc::signal(signal, nix::libc::SIG_DFL) };
}

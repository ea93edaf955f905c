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
pub struct Signals {
    fd: SignalFd,
    /// Whether HUP is told of.
    hangup: bool,
}

impl Signals {
    /// Blocks TERM, INT and HUP in the calling thread and opens a descriptor that reads them. Call it before the
    /// first thread is started: a thread that does not block them would be ended by them.
    ///
    /// # Errors
    /// `pthread_sigmask(3)` or `signalfd(2)`.
    pub fn take() -> io::Result<Signals> {
        let taken = taken();
        taken.thread_block()?;
        let fd = SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { fd, hangup: true })
    }

    /// The same, deaf to HUP: for a process that was started to outlive its terminal. HUP stays blocked and is read
    /// away, so that nothing is ignored that a child would inherit.
    #[must_use]
    pub fn without_hangup(self) -> Signals {
        Signals { hangup: false, ..self }
    }

    /// The next one, if one waits. Several of a kind that arrive before they are read are one.
    ///
    /// # Errors
    /// `read(2)` on the signalfd.
    pub fn read(&mut self) -> io::Result<Option<SupervisorSignal>> {
        loop {
            match self.fd.read_signal() {
                Ok(Some(info)) => match i32::try_from(info.ssi_signo).map(Signal::try_from) {
                    Ok(Ok(Signal::SIGTERM)) => return Ok(Some(SupervisorSignal::Term)),
                    Ok(Ok(Signal::SIGINT)) => return Ok(Some(SupervisorSignal::Int)),
                    Ok(Ok(Signal::SIGHUP)) if self.hangup => return Ok(Some(SupervisorSignal::Hup)),
                    // The descriptor reads only the three above, and nobody may want to hear of the last.
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
        self.fd.as_fd()
    }
}

/// Undoes what a wrapper left ignored or blocked (F29): every ignored signal back at its default, none blocked.
/// SIGPIPE stays ignored, as Rust's start has made it, so that a write to a closed pipe is an error and not an
/// end; std makes it the default again in what it starts. Handlers, such as Rust's own for a stack overflow,
/// stay.
///
/// Process-wide, so only for a program that owns its process, before its first thread.
///
/// # Errors
/// `rt_sigaction(2)` or `pthread_sigmask(3)`.
pub fn reset_inherited() -> io::Result<()> {
    let unchangeable = [nix::libc::SIGKILL, nix::libc::SIGSTOP, nix::libc::SIGPIPE];
    for signal in (1..=LAST_SIGNAL).filter(|signal| !unchangeable.contains(signal)) {
        if is_ignored(signal)? {
            set(signal, nix::libc::SIG_DFL)?;
        }
    }
    nix::sys::signal::pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

/// Whether HUP is ignored, as `nohup` leaves it. Ask before [`reset_inherited`], which forgets it.
///
/// # Errors
/// `rt_sigaction(2)`.
pub fn hangup_is_ignored() -> io::Result<bool> {
    is_ignored(nix::libc::SIGHUP)
}

/// Makes a write over the limit on file sizes an error (EFBIG) and not an end by SIGXFSZ: a journal that cannot grow
/// is told, the program goes on. Inherited over exec; children and servers of ours begin with their own slate.
///
/// Process-wide, so only for a program that owns its process.
///
/// # Errors
/// `rt_sigaction(2)`.
pub fn survive_file_size_limit() -> io::Result<()> {
    set(nix::libc::SIGXFSZ, nix::libc::SIG_IGN)
}

fn taken() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// The kernel's last signal; the C library hides two of them, 32 and 33, which a wrapper may have left ignored
/// none the less. Hence the bare system call.
const LAST_SIGNAL: i32 = 64;

/// The kernel's `struct sigaction`: the handler first, then flags, restorer and a mask of 64 bits. Room to spare.
type KernelAction = [usize; 16];

#[allow(unsafe_code)]
fn is_ignored(signal: i32) -> io::Result<bool> {
    let mut now: KernelAction = [0; 16];
    // SAFETY: a null new action only asks; the kernel writes its struct, at most 40 bytes, into the 16 words.
    let done = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_rt_sigaction,
            signal,
            std::ptr::null::<KernelAction>(),
            &raw mut now,
            size_of::<u64>(),
        )
    };
    if done == 0 { Ok(now[0] == nix::libc::SIG_IGN) } else { Err(io::Error::last_os_error()) }
}

#[allow(unsafe_code)]
fn set(signal: i32, disposition: nix::libc::sighandler_t) -> io::Result<()> {
    debug_assert!(
        [nix::libc::SIG_DFL, nix::libc::SIG_IGN].contains(&disposition),
        "no handler is ever set here"
    );
    let mut action: KernelAction = [0; 16];
    action[0] = disposition;
    // SAFETY: the first word is SIG_DFL or SIG_IGN, the rest is no flags and an empty mask, so no code of this
    // process is made to run in signal context; the kernel reads its struct from the 16 words.
    let done = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_rt_sigaction,
            signal,
            &raw const action,
            std::ptr::null_mut::<KernelAction>(),
            size_of::<u64>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

//! What a child and a keeper establish about themselves before anything else (S3.4, S5.1, S5.2), and the
//! clean slate a server starts from.
//!
//! Owns the order: signals → parent-death signal → parent's pid → subreaper → no new privileges → descriptors →
//! name. Refuses to go on when the parent is not the one named: a process whose parent has died answers to
//! nobody. Called first thing in the main of a child and of a keeper, before any thread exists; [`clean_slate`]
//! by the keeper for its server.

use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getppid;
use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Longest process name the kernel keeps, without its end mark.
pub const NAME_BYTES: usize = 15;

/// Signals the kernel knows, real-time ones included.
const SIGNALS: libc::c_int = 64;

/// Bytes of the kernel's signal set.
const KERNEL_SIGSET_BYTES: usize = 8;

/// Why a process could not begin.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The process that was to answer for this one is gone, or this was started by hand.
    #[error(
        "the parent is process {seen}, not process {expected} as the starter said: it has ended, or the variable is stale"
    )]
    Orphaned {
        /// The pid the starter gave.
        expected: u32,
        /// The parent's pid as the kernel tells it.
        seen: u32,
    },
    /// The number given as lifeline is not a descriptor that could be one.
    #[error("descriptor {0} is no open lifeline; a keeper is started by a child, never by hand")]
    NoLifeline(RawFd),
    /// The kernel said no.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
}

/// Begins a child: dies with `parent` (its spawning thread), keeps its orphans, holds only descriptors 0, 1, 2, and
/// is called `agentd:child` where `who` is empty.
pub fn child(parent: u32, who: &str) -> Result<(), EntryError> {
    reset_signals()?;
    bind_to_parent(parent, Signal::SIGKILL)?;
    close_from(3, libc::c_uint::MAX, 0)?;
    name(if who.is_empty() { "agentd:child" } else { who })
}

/// Begins a keeper: told by SIGTERM when its child dies (it has a subtree to take down, so SIGKILL would be too
/// much), keeps its orphans, holds only descriptors 0, 1, 2 and the lifeline, which it returns.
pub fn keeper(parent: u32, lifeline: RawFd) -> Result<UnixStream, EntryError> {
    reset_signals()?;
    bind_to_parent(parent, Signal::SIGTERM)?;
    let lifeline = adopt(lifeline)?;
    name("agentd:keeper")?;
    Ok(lifeline)
}

/// Names the calling thread; on a process's first thread that is what ps and the kernel's log show. Cut to
/// [`NAME_BYTES`] at a character boundary, for which a leading `agentd:` goes first: `agentd:sub-1234` would be
/// another run than `agentd:sub-12345`. Bytes after a NUL are dropped.
pub fn name(text: &str) -> Result<(), EntryError> {
    let text = text.split('\0').next().unwrap_or_default();
    let text = if text.len() > NAME_BYTES { text.strip_prefix("agentd:").unwrap_or(text) } else { text };
    let cut = &text[..text.floor_char_boundary(NAME_BYTES)];
    let name = CString::new(cut).unwrap_or_default();
    prctl::set_name(&name).map_err(system("name the process"))
}

/// Makes `command` start with an empty signal mask, every disposition at its default, only descriptors 0, 1 and 2
/// (S3.4), and dead as soon as the calling thread is: the last line of defence when a keeper itself is killed.
///
/// Costs a fork instead of a vfork, which a keeper is small enough not to notice.
#[allow(unsafe_code)]
pub fn clean_slate(command: &mut Command) {
    let keeper = nix::unistd::getpid();
    let prepare = move || -> io::Result<()> {
        SigSet::empty().thread_set_mask()?;
        default_every_disposition();
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != keeper {
            return Err(io::Error::from(Errno::ESRCH));
        }
        close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int)
    };
    // SAFETY: `prepare` runs between fork and exec and only makes system calls (rt_sigprocmask, rt_sigaction,
    // prctl, getppid, close_range): it allocates nothing, takes no lock and touches no memory but its own.
    unsafe { command.pre_exec(prepare) };
}

/// An empty mask (std hands a spawner's mask on) and nothing ignored but SIGPIPE: a peer that goes away is an
/// error of the write, not the end of the process.
fn reset_signals() -> Result<(), EntryError> {
    SigSet::empty().thread_set_mask().map_err(system("reset the signal mask"))?;
    let failed = |source| EntryError::System { what: "reset a signal's disposition", source };
    // The C library keeps 32 and 33 for itself.
    for signal in (1..=SIGNALS).filter(|s| ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(s)) {
        if is_ignored(signal) {
            set_disposition(signal, libc::SIG_DFL).map_err(failed)?;
        }
    }
    set_disposition(libc::SIGPIPE, libc::SIG_IGN).map_err(failed)
}

fn bind_to_parent(parent: u32, death: Signal) -> Result<(), EntryError> {
    prctl::set_pdeathsig(death).map_err(system("ask for the parent-death signal"))?;
    // Only now: a parent that ended before the call above sends nothing any more. Compared with the pid the
    // starter gave and not with 1, since a subreaper or a container's first process adopts orphans too.
    let seen = u32::try_from(getppid().as_raw()).unwrap_or(0);
    if seen != parent {
        return Err(EntryError::Orphaned { expected: parent, seen });
    }
    prctl::set_child_subreaper(true).map_err(system("become a subreaper"))?;
    prctl::set_no_new_privs().map_err(system("set no_new_privs"))
}

/// Takes the lifeline over and closes every other descriptor above 2.
#[allow(unsafe_code)]
fn adopt(lifeline: RawFd) -> Result<UnixStream, EntryError> {
    let number = libc::c_uint::try_from(lifeline).map_err(|_| EntryError::NoLifeline(lifeline))?;
    if number < 3 {
        return Err(EntryError::NoLifeline(lifeline));
    }
    // SAFETY: F_SETFD reads no memory, and an unopened number is answered with EBADF.
    if unsafe { libc::fcntl(lifeline, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(EntryError::NoLifeline(lifeline));
    }
    if number > 3 {
        close_from(3, number - 1, 0)?;
    }
    close_from(number + 1, libc::c_uint::MAX, 0)?;
    // SAFETY: the descriptor is open (F_SETFD above succeeded), above std's own three, and inherited: nothing in
    // this process, which has just begun, owns it.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(lifeline) }))
}

fn close_from(first: libc::c_uint, last: libc::c_uint, flags: libc::c_int) -> Result<(), EntryError> {
    close_range(first, last, flags)
        .map_err(|source| EntryError::System { what: "close inherited descriptors", source })
}

#[allow(unsafe_code)]
fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes three numbers. Called where a process begins (nothing owns a descriptor above 2
    // yet) or with CLOSE_RANGE_CLOEXEC between fork and exec, where it closes nothing.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Handlers are left alone: exec resets them, and std's tell a stack overflow from other faults.
#[allow(unsafe_code)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: sigaction is a plain C struct for which all zeroes is a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only reads, and `now` outlives the call.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    read == 0 && now.sa_sigaction == libc::SIG_IGN
}

#[allow(unsafe_code)]
fn set_disposition(signal: libc::c_int, to: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: sigaction is a plain C struct for which all zeroes (no flags, empty mask) is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = to;
    // SAFETY: `to` is SIG_DFL or SIG_IGN, so no code of ours ever runs in a handler; `action` outlives the call.
    let set = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Past the C library, which keeps 32 and 33 to itself and whose posix_spawn leaves 32 ignored.
#[allow(unsafe_code)]
fn default_every_disposition() {
    // The kernel's own struct differs between machines, but all zeroes is SIG_DFL, no flags, an empty mask in
    // each, and none is longer than this.
    let default = [0u64; 16];
    for signal in 1..=SIGNALS {
        // SAFETY: the kernel reads one sigaction from `default`, which outlives the call, and writes nothing. It
        // refuses SIGKILL and SIGSTOP, which are always at their default.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                KERNEL_SIGSET_BYTES,
            )
        };
    }
}

fn system(what: &'static str) -> impl Fn(Errno) -> EntryError {
    move |errno| EntryError::System { what, source: errno.into() }
}

#[cfg(test)]
mod tests;

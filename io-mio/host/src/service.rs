//! What a service manager (systemd, or whoever speaks its protocol) hands a process: where it wants to be told how things
//! stand, how often it wants a sign of life, and sockets that listen already.
//!
//! Owns the variables and the one moment at which the descriptors become somebody's. Refuses to guess: a variable that cannot
//! be read is an error that quotes it, and what was meant for another process is left alone. Called first thing in the main of
//! a program that serves, before there is a thread.

use rustix::io::FdFlags;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NOTIFY: &str = "NOTIFY_SOCKET";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
const LISTEN_FDS: &str = "LISTEN_FDS";
const LISTEN_PID: &str = "LISTEN_PID";
const LISTEN_NAMES: &str = "LISTEN_FDNAMES";
const LISTEN_PIDFD: &str = "LISTEN_PIDFDID";

/// What is between this process and its manager, and nobody else's: no child and no server gets it, whatever passes.
const OWN: [&str; 7] =
    [NOTIFY, WATCHDOG_USEC, WATCHDOG_PID, LISTEN_FDS, LISTEN_PID, LISTEN_NAMES, LISTEN_PIDFD];

/// The first descriptor that is passed on.
const FIRST: RawFd = 3;

/// More than anybody passes on; a number beyond is a mistake.
const MOST: u32 = 1_024;

/// What was handed over.
#[derive(Debug, Default)]
pub struct Handed {
    /// `NOTIFY_SOCKET`: a path, or `@` and an abstract name.
    pub notify: Option<OsString>,
    /// `WATCHDOG_USEC`: without a sign of life for this long, this process is ended.
    pub watchdog: Option<Duration>,
    /// `LISTEN_FDS` with `LISTEN_FDNAMES`, closed on exec.
    pub sockets: Vec<Passed>,
}

/// A descriptor that was passed on.
#[derive(Debug)]
pub struct Passed {
    /// Its name; empty when there is none.
    pub name: String,
    /// The descriptor.
    pub socket: OwnedFd,
}

/// Why it cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum HandedError {
    /// A variable does not hold what it should.
    #[error("{variable} is {seen:?}, and {accepted} is accepted; a service manager sets it, or nobody does")]
    Variable {
        /// Which.
        variable: &'static str,
        /// Its value.
        seen: OsString,
        /// What it may be.
        accepted: &'static str,
    },
    /// A descriptor is not there.
    #[error(
        "LISTEN_FDS promises {count} sockets from descriptor 3 on, and descriptor {fd} is not open: {error}"
    )]
    Closed {
        /// How many there should be.
        count: u32,
        /// The first that is not.
        fd: RawFd,
        /// The system's answer.
        error: io::Error,
    },
}

/// Whether a variable is between a process and its manager.
pub fn is_own(name: &OsStr) -> bool {
    OWN.iter().any(|own| name == *own)
}

/// Takes what was handed to this process, once: a second call finds nothing. The variables are gone afterwards, so that nothing
/// that is started here takes itself for the service.
///
/// # Errors
/// A variable that cannot be read, or a descriptor that is not open.
pub fn take() -> Result<Handed, HandedError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Handed::default());
    }
    let read = Read::of_process();
    forget();
    let sockets = match read.sockets(std::process::id())? {
        None => Vec::new(),
        Some(names) => adopt(names)?,
    };
    let watchdog = read.watchdog(std::process::id())?;
    Ok(Handed { notify: read.notify.filter(|place| !place.is_empty()), watchdog, sockets })
}

/// The variables as they were.
#[derive(Debug, Default)]
struct Read {
    notify: Option<OsString>,
    watchdog_usec: Option<OsString>,
    watchdog_pid: Option<OsString>,
    listen_fds: Option<OsString>,
    listen_pid: Option<OsString>,
    names: Option<OsString>,
}

impl Read {
    fn of_process() -> Read {
        let read = |name: &str| std::env::var_os(name);
        Read {
            notify: read(NOTIFY),
            watchdog_usec: read(WATCHDOG_USEC),
            watchdog_pid: read(WATCHDOG_PID),
            listen_fds: read(LISTEN_FDS),
            listen_pid: read(LISTEN_PID),
            names: read(LISTEN_NAMES),
        }
    }

    /// Nothing where another process is meant, or no time is set.
    fn watchdog(&self, own: u32) -> Result<Option<Duration>, HandedError> {
        let Some(micros) = &self.watchdog_usec else { return Ok(None) };
        if let Some(pid) = &self.watchdog_pid
            && number(WATCHDOG_PID, pid, "a pid")? != u64::from(own)
        {
            return Ok(None);
        }
        let micros = number(WATCHDOG_USEC, micros, "a number of microseconds")?;
        Ok((micros > 0).then(|| Duration::from_micros(micros)))
    }

    /// The name of each descriptor that is meant for this process; `None` where none is.
    fn sockets(&self, own: u32) -> Result<Option<Vec<String>>, HandedError> {
        let (Some(count), Some(pid)) = (&self.listen_fds, &self.listen_pid) else { return Ok(None) };
        if number(LISTEN_PID, pid, "a pid")? != u64::from(own) {
            return Ok(None);
        }
        let wrong = |variable, seen: &OsString, accepted| HandedError::Variable {
            variable,
            seen: seen.clone(),
            accepted,
        };
        let few = number(LISTEN_FDS, count, "a number up to 1024")?;
        let few = u32::try_from(few).ok().filter(|few| *few <= MOST);
        let few = few.ok_or_else(|| wrong(LISTEN_FDS, count, "a number up to 1024"))? as usize;
        let Some(names) = &self.names else { return Ok(Some(vec![String::new(); few])) };
        let accepted = "as many names as LISTEN_FDS says, with colons between them,";
        let split: Option<Vec<String>> = names.to_str().map(|names| match few {
            0 => Vec::new(),
            _ => names.split(':').map(str::to_owned).collect(),
        });
        match split {
            Some(split) if split.len() == few => Ok(Some(split)),
            Some(_) | None => Err(wrong(LISTEN_NAMES, names, accepted)),
        }
    }
}

fn number(variable: &'static str, value: &OsStr, accepted: &'static str) -> Result<u64, HandedError> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| HandedError::Variable { variable, seen: value.to_owned(), accepted })
}

/// Makes the descriptors from 3 on this process's own, one for each name.
#[allow(unsafe_code)]
fn adopt(names: Vec<String>) -> Result<Vec<Passed>, HandedError> {
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    for fd in (FIRST..).take(names.len()) {
        // SAFETY: only flags are asked for and set, and a number that is not open is answered with EBADF before there is an
        // owner of it.
        let there = unsafe { BorrowedFd::borrow_raw(fd) };
        let flags = rustix::io::fcntl_getfd(there);
        let set = flags.and_then(|flags| rustix::io::fcntl_setfd(there, flags | FdFlags::CLOEXEC));
        set.map_err(|error| HandedError::Closed { count, fd, error: error.into() })?;
    }
    let adopted = (FIRST..).zip(names).map(|(fd, name)| {
        // SAFETY: the descriptor is open, as was seen above, and was put there before exec for whoever has this pid. `take`
        // comes here once in the life of the process, before anything of the program opens a descriptor, so nothing else owns
        // it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        Passed { name, socket }
    });
    Ok(adopted.collect())
}

/// Takes the variables out of the environment, where that can be done: in a process that has one thread.
#[allow(unsafe_code)]
fn forget() {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        // Whoever starts a process here leaves them out by name (`is_own`).
        return;
    }
    for name in OWN {
        // SAFETY: nobody reads or writes the environment at the same time, for there is no other thread.
        unsafe { std::env::remove_var(name) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(count: &str, pid: &str, names: Option<&str>) -> Result<Option<Vec<String>>, String> {
        let read = Read {
            listen_fds: Some(count.into()),
            listen_pid: Some(pid.into()),
            names: names.map(Into::into),
            ..Read::default()
        };
        read.sockets(7).map_err(|error| error.to_string())
    }

    #[test]
    fn sockets_are_taken_by_whom_they_are_for() {
        let names = |names: &[&str]| Ok(Some(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(sockets("2", "7", Some("control:http")), names(&["control", "http"]));
        assert_eq!(sockets("2", "7", Some(":x")), names(&["", "x"]));
        assert_eq!(sockets("2", "7", None), names(&["", ""]));
        assert_eq!(sockets("0", "7", Some("")), names(&[]));
        assert_eq!(sockets("2", "8", Some("nonsense")), Ok(None), "another's");
        assert_eq!(Read::default().sockets(7).ok(), Some(None));
    }

    #[test]
    fn what_cannot_be_read_is_quoted() {
        for (count, pid, names, says) in [
            ("x", "7", None, "LISTEN_FDS is \"x\""),
            ("4000000000", "7", None, "a number up to 1024"),
            ("2", "7", Some("one"), "LISTEN_FDNAMES is \"one\""),
            ("2", "seven", None, "LISTEN_PID is \"seven\""),
        ] {
            let said = sockets(count, pid, names).expect_err("unreadable");
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_watchdog_is_for_one_process() {
        let watchdog = |usec: &str, pid: Option<&str>| {
            let read = Read {
                watchdog_usec: Some(usec.into()),
                watchdog_pid: pid.map(Into::into),
                ..Read::default()
            };
            read.watchdog(7).map_err(|error| error.to_string())
        };
        assert_eq!(watchdog("30000000", Some("7")), Ok(Some(Duration::from_secs(30))));
        assert_eq!(watchdog("1", None), Ok(Some(Duration::from_micros(1))));
        assert_eq!(watchdog("30000000", Some("8")), Ok(None));
        assert_eq!(watchdog("0", Some("7")), Ok(None));
        assert!(watchdog("soon", None).is_err_and(|said| said.contains("WATCHDOG_USEC is \"soon\"")));
    }

    #[test]
    fn what_is_the_managers_is_known_by_name() {
        for name in ["NOTIFY_SOCKET", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            assert!(is_own(OsStr::new(name)), "{name}");
        }
        assert!(!is_own(OsStr::new("LISTEN")) && !is_own(OsStr::new("PATH")));
    }
}

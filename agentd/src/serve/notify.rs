//! What is said to a service manager: datagrams of `KEY=value` lines to `NOTIFY_SOCKET`, as sd_notify(3) lays them down.
//!
//! Owns the socket and the words. Refuses to wait: the manager may be busy, and the reactor's turn is what says so. That, and
//! abstract names, are why no crate is used, which would leave a few constants. Called by [`super::manager`].

use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Bytes of a status; the manager shows one line.
const STATUS_BYTES: usize = 200;

/// Where a service manager listens.
#[derive(Debug)]
pub(super) struct Notify {
    socket: UnixDatagram,
    to: SocketAddr,
}

impl Notify {
    /// For a value of `NOTIFY_SOCKET`: a path, or `@` and an abstract name.
    ///
    /// # Errors
    /// It is neither, or the system gives no socket. Whether anybody listens there shows when something is said.
    pub(super) fn to(place: &OsStr) -> io::Result<Notify> {
        let to = match place.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(place)?,
            _ => {
                let fault = format!("{place:?} is neither an absolute path nor @ and an abstract name");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Notify { socket, to })
    }

    /// Says something, at once or not at all.
    pub(super) fn say(&self, what: &Word) -> io::Result<()> {
        self.socket.send_to_addr(what.text().as_bytes(), &self.to).map(drop)
    }
}

/// What can be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// It serves, or serves again.
    Ready,
    /// It reads its configuration anew, since this time of `CLOCK_MONOTONIC`.
    Reloading {
        /// Since the machine was started.
        since: Duration,
    },
    /// It ends, and may take this long from now, whatever the manager has set.
    Stopping {
        /// At most.
        within: Duration,
    },
    /// It is alive.
    Alive,
    /// How things stand, for people.
    Status(String),
}

impl Word {
    /// A reload that begins now.
    pub(super) fn reloading() -> Word {
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Word::Reloading { since: Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), nanos) }
    }

    fn text(&self) -> String {
        match self {
            Word::Ready => "READY=1".to_owned(),
            Word::Reloading { since } => format!("RELOADING=1\nMONOTONIC_USEC={}", since.as_micros()),
            // The manager reads its keys in an order of its own: that it ends, then for how long.
            Word::Stopping { within } => format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.as_micros()),
            Word::Alive => "WATCHDOG=1".to_owned(),
            Word::Status(text) => format!("STATUS={}", one_line(text)),
        }
    }
}

/// A line break would begin another key.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text[..text.floor_char_boundary(STATUS_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(by: &UnixDatagram) -> String {
        let mut room = [0; 512];
        let read = by.recv(&mut room).expect("something was said");
        String::from_utf8(room[..read].to_vec()).expect("text")
    }

    #[test]
    fn a_path_and_an_abstract_name_are_reached() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).expect("bound");
        let name = format!("agentd-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).expect("a name");
        let by_name = UnixDatagram::bind_addr(&abstract_name).expect("bound");
        Notify::to(path.as_os_str()).expect("a path").say(&Word::Ready).expect("said");
        assert_eq!(heard(&by_path), "READY=1");
        let notify = Notify::to(OsStr::new(&format!("@{name}"))).expect("a name");
        notify.say(&Word::Stopping { within: Duration::from_secs(2) }).expect("said");
        assert_eq!(heard(&by_name), "STOPPING=1\nEXTEND_TIMEOUT_USEC=2000000");
        let said = Notify::to(OsStr::new("vsock:1:2")).expect_err("neither").to_string();
        assert!(said.contains("\"vsock:1:2\" is neither"), "{said}");
        drop(by_path);
        assert!(Notify::to(path.as_os_str()).expect("a path").say(&Word::Alive).is_err(), "nobody listens");
    }

    #[test]
    fn a_manager_that_does_not_read_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let deaf = UnixDatagram::bind(&path).expect("bound");
        let notify = Notify::to(path.as_os_str()).expect("a path");
        let full = (0..100_000).find_map(|_| notify.say(&Word::Alive).err()).expect("its queue is full");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(heard(&deaf), "WATCHDOG=1");
        notify.say(&Word::Ready).expect("there is room again");
    }

    #[test]
    fn a_status_is_one_key_whatever_is_in_it() {
        let status = |text: &str| Word::Status(text.to_owned()).text();
        assert_eq!(status("3 live\nMAINPID=1\r"), "STATUS=3 live MAINPID=1 ");
        assert!(status(&"ü".repeat(300)).len() <= STATUS_BYTES + "STATUS=".len());
        let Word::Reloading { since } = Word::reloading() else { panic!("a reload") };
        assert!(Word::Reloading { since }.text().starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert!(since > Duration::ZERO);
    }
}

//! Sockets that a service manager has opened already: which of the configured addresses each is for.
//!
//! Owns the match, by address and by name. Refuses a socket that nothing asks for, that does not listen, or that is open to
//! more people than one of agentd's own would be. Called as the doors are opened.

use super::{OpenError, place, system};
use crate::serve::place::Shared;
use agentd_host::service::Passed;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fmt;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// What comes in on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Control,
    Http,
    Https,
    Metrics,
}

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// An address of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) kind: Kind,
    pub(super) address: Address,
}

/// A socket that was passed on and can be used.
#[derive(Debug)]
pub(super) struct Socket {
    name: String,
    pub(super) address: Address,
    pub(super) fd: OwnedFd,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Control, Kind::Http, Kind::Https, Kind::Metrics];

    fn name(self) -> &'static str {
        match self {
            Kind::Control => "control",
            Kind::Http => "http",
            Kind::Https => "https",
            Kind::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl Socket {
    /// Looks at what was passed on.
    pub(super) fn of(passed: Passed) -> Result<Socket, OpenError> {
        let Passed { name, socket: fd } = passed;
        let asked = |error: rustix::io::Errno| {
            system(format!("the socket {name:?} that was passed on cannot be used"))(error.into())
        };
        let is_stream = socket_type(&fd).map_err(asked)? == SocketType::STREAM;
        if !is_stream || !socket_acceptconn(&fd).map_err(asked)? {
            let fault = format!(
                "the socket {name:?} that was passed on is no stream socket that listens; the .socket unit needs ListenStream= and \
                 Accept=no"
            );
            return Err(OpenError::Passed(fault));
        }
        rustix::io::ioctl_fionbio(&fd, true).map_err(asked)?;
        let (fd, address) = match sockopt::socket_domain(&fd).map_err(asked)? {
            AddressFamily::UNIX => {
                let listener = UnixListener::from(fd);
                let path = listener.local_addr().ok().and_then(|at| Some(at.as_pathname()?.to_owned()));
                let Some(path) = path.filter(|path| path.is_absolute()) else {
                    let fault = format!(
                        "the socket {name:?} that was passed on is at no path, so anybody could connect; name a path in a folder of mode \
                         0700 (ListenStream=)"
                    );
                    return Err(OpenError::Passed(fault));
                };
                (OwnedFd::from(listener), Address::Unix(path))
            }
            AddressFamily::INET | AddressFamily::INET6 => {
                let listener = TcpListener::from(fd);
                let address = listener.local_addr();
                let address = address.map_err(system(format!("the socket {name:?} has no address")))?;
                (OwnedFd::from(listener), Address::Tcp(address))
            }
            other => {
                let fault = format!(
                    "the socket {name:?} that was passed on has family {}; unix and TCP are accepted",
                    other.as_raw()
                );
                return Err(OpenError::Passed(fault));
            }
        };
        Ok(Socket { name, address, fd })
    }

    fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.name == kind.name())
    }

    /// By its address, unless its name says another thing.
    fn is_at(&self, wanted: &Wanted) -> bool {
        let named = self.kind().is_none_or(|kind| kind == wanted.kind);
        named && same(&self.address, &wanted.address)
    }

    /// By its name, wherever it listens.
    fn is_named(&self, wanted: &Wanted) -> bool {
        let unix = |address: &Address| matches!(address, Address::Unix(_));
        self.kind() == Some(wanted.kind) && unix(&self.address) == unix(&wanted.address)
    }

    /// Whether it is as closed as one of agentd's own.
    pub(super) fn check(&self, kind: Kind) -> Result<(), OpenError> {
        match &self.address {
            Address::Unix(path) => check_path(path),
            Address::Tcp(address) if kind == Kind::Http && !address.ip().is_loopback() => {
                let fault = format!(
                    "the socket {:?} that was passed on listens on {address}, and without TLS only loopback is listened on, for a token \
                     would go over an open wire",
                    self.name
                );
                Err(OpenError::Passed(fault))
            }
            Address::Tcp(_) => Ok(()),
        }
    }
}

/// The file of a socket: this user's or root's, and nobody else opens it.
fn check_path(path: &Path) -> Result<(), OpenError> {
    let shown = path.display();
    if let Some(folder) = path.parent() {
        place::private_folder(folder, Shared::Refuse)?;
    }
    let found =
        fs::symlink_metadata(path).map_err(system(format!("{shown} was passed on and is not there")))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        let fault = format!(
            "{shown} was passed on and belongs to uid {}, not to {own}; SocketUser= names it",
            found.uid()
        );
        return Err(OpenError::Passed(fault));
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let fault =
            format!("{shown} was passed on and is open to others (mode {mode:o}); SocketMode=0600 is needed");
        return Err(OpenError::Passed(fault));
    }
    Ok(())
}

fn same(seen: &Address, wanted: &Address) -> bool {
    match (seen, wanted) {
        // `/var/run` and `/run` are one place.
        (Address::Unix(seen), Address::Unix(wanted)) => {
            let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            seen == wanted || whole(seen) == whole(wanted)
        }
        (Address::Tcp(seen), Address::Tcp(wanted)) => seen == wanted,
        _ => false,
    }
}

/// For each address that is wanted the socket that was passed on for it, if one was.
pub(super) fn assign(wanted: &[Wanted], mut sockets: Vec<Socket>) -> Result<Vec<Option<Socket>>, OpenError> {
    let mut places: Vec<Option<Socket>> = wanted.iter().map(|_| None).collect();
    for fits in [Socket::is_at, Socket::is_named] {
        for (place, wanted) in places.iter_mut().zip(wanted).filter(|(place, _)| place.is_none()) {
            if let Some(index) = sockets.iter().position(|socket| fits(socket, wanted)) {
                *place = Some(sockets.remove(index));
            }
        }
    }
    match sockets.first() {
        None => Ok(places),
        Some(left) => {
            let at: Vec<String> =
                wanted.iter().map(|one| format!("{} {}", one.kind.name(), one.address)).collect();
            let fault = format!(
                "the socket {:?} on {} was passed on, and nothing in the configuration is for it ({}); add its address to a2a.listen or \
                 observability.metrics_addr, or call it control, http, https or metrics (FileDescriptorName=) after what it is for",
                left.name,
                left.address,
                at.join(", ")
            );
            Err(OpenError::Passed(fault))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(name: &str, at: &str) -> Socket {
        let fd = TcpListener::bind("127.0.0.1:0").expect("bound").into();
        Socket { name: name.to_owned(), address: Address::Tcp(at.parse().expect("an address")), fd }
    }

    fn unix(name: &str, at: &str) -> Socket {
        Socket { address: Address::Unix(at.into()), ..tcp(name, "1.1.1.1:1") }
    }

    fn wanted() -> Vec<Wanted> {
        let tcp = |at: &str| Address::Tcp(at.parse().expect("an address"));
        vec![
            Wanted { kind: Kind::Control, address: Address::Unix("/run/agentd/control.sock".into()) },
            Wanted { kind: Kind::Http, address: tcp("127.0.0.1:80") },
            Wanted { kind: Kind::Http, address: tcp("127.0.0.1:81") },
            Wanted { kind: Kind::Metrics, address: tcp("127.0.0.1:82") },
        ]
    }

    /// The name of the socket in each place.
    fn assigned(sockets: Vec<Socket>) -> Result<Vec<Option<String>>, String> {
        let assigned = assign(&wanted(), sockets).map_err(|error| error.to_string())?;
        Ok(assigned.into_iter().map(|one| Some(one?.name)).collect())
    }

    #[test]
    fn an_address_goes_before_a_name_and_a_name_before_nothing() {
        let names = |names: [&str; 4]| {
            Ok(names.map(|name| Some(name).filter(|name| !name.is_empty()).map(str::to_owned)).to_vec())
        };
        let all = vec![
            tcp("http", "127.0.0.1:99"),
            tcp("http", "127.0.0.1:80"),
            tcp("agentd.socket", "127.0.0.1:82"),
            unix("", "/run/agentd/control.sock"),
        ];
        assert_eq!(
            assigned(all).map(|all| all[0].clone().map(|name| name.len())),
            Ok(Some(0)),
            "a socket without a name is found by its address"
        );
        let two = vec![tcp("http", "127.0.0.1:99"), tcp("agentd.socket", "127.0.0.1:80")];
        assert_eq!(assigned(two), names(["", "agentd.socket", "http", ""]));
        let named = vec![tcp("metrics", "10.0.0.1:9"), unix("control", "/elsewhere")];
        assert_eq!(assigned(named), names(["control", "", "", "metrics"]));
        assert_eq!(assigned(Vec::new()), names(["", "", "", ""]));
    }

    #[test]
    fn what_nothing_asks_for_is_named_with_what_is_asked_for() {
        for (socket, says) in [
            (tcp("agentd.socket", "127.0.0.1:83"), "\"agentd.socket\" on 127.0.0.1:83"),
            (tcp("https", "127.0.0.1:80"), "\"https\" on 127.0.0.1:80"),
            (tcp("control", "127.0.0.1:84"), "\"control\" on 127.0.0.1:84"),
            (unix("http", "/run/x"), "\"http\" on /run/x"),
        ] {
            let said = assigned(vec![socket]).expect_err("nothing asks for it");
            assert!(
                said.contains(says) && said.contains("control /run/agentd/control.sock, http 127.0.0.1:80"),
                "{said}"
            );
        }
        let twice = vec![tcp("", "127.0.0.1:82"), tcp("", "127.0.0.1:82")];
        assert!(assigned(twice).is_err(), "one address has room for one");
    }

    fn passed(name: &str, socket: impl Into<OwnedFd>) -> Result<Socket, String> {
        Socket::of(Passed { name: name.to_owned(), socket: socket.into() }).map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_listen_on_a_stream_is_refused() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        assert!(passed("x", udp).is_err_and(|said| said.contains("\"x\"") && said.contains("ListenStream=")));
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let connected =
            std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        assert!(passed("x", connected).is_err_and(|said| said.contains("Accept=no")));
        let address = listener.local_addr().expect("bound");
        assert_eq!(passed("x", listener).expect("it listens").address, Address::Tcp(address));
        let file = fs::File::open("/dev/null").expect("there");
        assert!(passed("x", file).is_err_and(|said| said.contains("cannot be used")));
    }

    #[test]
    fn a_socket_is_as_closed_as_one_of_agentds_own() {
        use std::os::unix::fs::DirBuilderExt;
        let folder = tempfile::tempdir().expect("a folder");
        let private = folder.path().join("private");
        fs::DirBuilder::new().mode(0o700).create(&private).expect("made");
        let path = private.join("control.sock");
        let socket = passed("control", UnixListener::bind(&path).expect("bound")).expect("it listens");
        let chmod =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        chmod(&path, 0o660);
        let said = socket.check(Kind::Control).expect_err("open to a group").to_string();
        assert!(said.contains("mode 660") && said.contains("SocketMode=0600"), "{said}");
        chmod(&path, 0o600);
        socket.check(Kind::Control).expect("closed");
        chmod(&private, 0o755);
        assert!(socket.check(Kind::Control).is_err_and(|error| error.to_string().contains("mode 755")));
        let open = tcp("http", "0.0.0.0:80");
        assert!(open.check(Kind::Http).is_err_and(|error| error.to_string().contains("only loopback")));
        open.check(Kind::Https).expect("TLS is for everybody");
    }
}

//! The doors of a daemon: each address of the configuration becomes a socket that listens, one that was passed on or one of its
//! own. Owns the order and what has to be removed at the end: the files of own sockets only. Called by [`super::open`].

use super::activation::{self, Address, Kind, Socket, Wanted};
use super::place::{self, Places, Shared};
use super::{OpenError, lock, sockets};
use crate::config::{Doors, Listen};
use crate::lock::Lock;
use agentd_core::event::Door;
use agentd_host::doors::Listener;
use agentd_host::service::Passed;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What was opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) listeners: Vec<Listener>,
    /// Where the daemon can be reached, for the log.
    pub(super) addresses: Vec<String>,
    /// Files that are this daemon's to remove.
    pub(super) own: Vec<PathBuf>,
    pub(super) locks: Vec<Lock>,
}

/// Opens every door of the configuration.
pub(super) fn open(doors: &Doors, places: &Places, passed: Vec<Passed>) -> Result<Opened, OpenError> {
    let tls = doors.tls.as_ref().map(|(cert, key)| sockets::tls(cert, key)).transpose()?;
    let wanted = wanted(doors, places);
    let passed = passed.into_iter().map(Socket::of).collect::<Result<Vec<_>, _>>()?;
    let given = activation::assign(&wanted, passed)?;
    let mut opened = Opened::default();
    for (wanted, given) in wanted.iter().zip(given) {
        if let Some(given) = &given {
            given.check(wanted.kind)?;
        }
        let (socket, address) = match given {
            Some(Socket { address, fd, .. }) => {
                if let Address::Unix(path) = &address {
                    opened.locks.push(lock(&place::beside(path, "lock"))?);
                }
                (fd, address)
            }
            None => match &wanted.address {
                Address::Unix(path) => {
                    (opened.own_socket(path, is_named(doors, path))?, wanted.address.clone())
                }
                Address::Tcp(address) => {
                    let (socket, address) = sockets::tcp(*address)?;
                    (socket, Address::Tcp(address))
                }
            },
        };
        let (door, shown, tls) = match wanted.kind {
            Kind::Control => (Door::Control, format!("unix://{address}"), None),
            Kind::Http => (Door::Tcp, format!("http://{address}"), None),
            Kind::Https => (Door::Tcp, format!("https://{address}"), tls.clone()),
            Kind::Metrics => (Door::Metrics, format!("http://{address}/metrics"), None),
        };
        opened.listeners.push(Listener { door, socket, tls });
        opened.addresses.push(shown);
    }
    Ok(opened)
}

/// What the configuration asks for, in its order.
fn wanted(doors: &Doors, places: &Places) -> Vec<Wanted> {
    let tcp = |kind, address: &SocketAddr| Wanted { kind, address: Address::Tcp(*address) };
    let listens = doors.listen.iter().map(|listen| match listen {
        Listen::Unix(path) => {
            let path = path.as_ref().unwrap_or(&places.socket);
            Wanted { kind: Kind::Control, address: Address::Unix(path.clone()) }
        }
        Listen::Plain(address) => tcp(Kind::Http, address),
        Listen::Tls(address) => tcp(Kind::Https, address),
    });
    listens.chain(doors.metrics.as_ref().map(|address| tcp(Kind::Metrics, address))).collect()
}

/// Whether somebody has named this path: its folder may then be others' too.
fn is_named(doors: &Doors, path: &Path) -> Shared {
    let named = doors.listen.iter().any(|one| matches!(one, Listen::Unix(Some(named)) if named == path));
    if named { Shared::Refuse } else { Shared::Mend }
}

impl Opened {
    /// A control socket of this daemon's own.
    fn own_socket(&mut self, path: &Path, shared: Shared) -> Result<OwnedFd, OpenError> {
        if let Some(folder) = path.parent() {
            place::private_folder(folder, shared)?;
        }
        self.locks.push(lock(&place::beside(path, "lock"))?);
        let socket = sockets::unix(path)?;
        self.own.push(path.to_owned());
        Ok(socket)
    }
}

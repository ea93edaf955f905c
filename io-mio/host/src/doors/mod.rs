//! Listening sockets and connections: the hands of the control surface, which every driver shares.
//!
//! Owns connections between `ConnOpened` and `ConnClosed`, and performs the core's actions on them. TLS is taken off here:
//! the core sees plain bytes. Refuses policy: whom to let in and when to close is the core's. Called by the reactor.

mod conn;
mod peer;

use crate::ears::{Ears, Key};
use crate::outside::Outside;
use agentd_core::bytes::Bytes;
use agentd_core::event::{Door, Event};
use agentd_core::id::ConnId;
use conn::Conn;
use rustix::net::{SocketFlags, accept_with};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Connections taken from one listener in one turn.
const ACCEPTED: usize = 16;

/// Bytes read from all clients in one turn; the rest is left for the next, beginning where this one ended.
const TURN: usize = 1024 * 1024;

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    /// Where connections on it come in.
    pub door: Door,
    /// Bound, listening and never waiting.
    pub socket: OwnedFd,
    /// Connections on it begin with TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

/// The listeners and their connections.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    /// Whether each may have somebody waiting.
    listeners: Vec<(Listener, bool)>,
    conns: BTreeMap<ConnId, Conn>,
    last: u64,
    /// Connections with something to read.
    ready: BTreeSet<ConnId>,
    /// Connections with something to write.
    dirty: BTreeSet<ConnId>,
    /// The connection that is served first in the next turn.
    first: u64,
    scratch: Vec<u8>,
}

impl Doors {
    /// Begins to hear the listeners.
    pub(crate) fn open(listeners: Vec<Listener>, ears: &mut impl Ears) -> std::io::Result<Doors> {
        for (index, listener) in listeners.iter().enumerate() {
            ears.watch(Key::Listener(index), listener.socket.as_fd())?;
        }
        let listeners = listeners.into_iter().map(|listener| (listener, true)).collect();
        Ok(Doors { listeners, scratch: vec![0; crate::pipes::READ], ..Doors::default() })
    }

    /// An edge on a listener.
    pub(crate) fn knocked(&mut self, index: usize) {
        if let Some((_, ready)) = self.listeners.get_mut(index) {
            *ready = true;
        }
    }

    /// An edge on a connection, in either direction.
    pub(crate) fn ready(&mut self, conn: ConnId) {
        if self.conns.contains_key(&conn) {
            self.ready.insert(conn);
            self.dirty.insert(conn);
        }
    }

    /// Takes who waits and reads what came, both within bounds. Returns whether more can be had without waiting.
    pub(crate) fn serve<O: Outside>(
        &mut self,
        ears: &mut impl Ears,
        outside: &mut O,
        learned: &mut VecDeque<Event>,
    ) -> bool {
        let mut more = false;
        for index in 0..self.listeners.len() {
            more |= self.accept(index, ears, learned);
        }
        let from = ConnId(self.first);
        let order: Vec<ConnId> = self.ready.range(from..).chain(self.ready.range(..from)).copied().collect();
        let mut bytes = 0;
        for id in order {
            self.first = id.0;
            if bytes >= TURN {
                break;
            }
            self.first += 1;
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            let served = conn.read(&mut self.scratch);
            if !served.more {
                self.ready.remove(&id);
            }
            if conn.wants_flush() {
                self.dirty.insert(id);
            }
            bytes += served.plain.len();
            let plain = outside.hear(id, served.plain);
            if !plain.is_empty() {
                learned.push_back(Event::ConnBytes { conn: id, bytes: Bytes::from(plain) });
            }
            match served.end {
                conn::End::Open => {}
                conn::End::Ended => learned.push_back(Event::ConnEnded { conn: id }),
                conn::End::Closed(error) => self.close(id, error, ears, learned),
            }
        }
        more || !self.ready.is_empty()
    }

    /// Takes connections; returns whether more may wait. One that cannot be taken for want of descriptors waits for the
    /// next turn, which something else brings about.
    fn accept(&mut self, index: usize, ears: &mut impl Ears, learned: &mut VecDeque<Event>) -> bool {
        for _ in 0..ACCEPTED {
            let Some((listener, ready @ true)) = self.listeners.get_mut(index) else { return false };
            let taken = accept_with(&listener.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
            let socket = match taken {
                Ok(socket) => socket,
                Err(rustix::io::Errno::AGAIN) => {
                    *ready = false;
                    return false;
                }
                Err(
                    rustix::io::Errno::MFILE
                    | rustix::io::Errno::NFILE
                    | rustix::io::Errno::NOMEM
                    | rustix::io::Errno::NOBUFS,
                ) => return false,
                // Its client has gone again.
                Err(_) => continue,
            };
            self.last += 1;
            let (id, door) = (ConnId(self.last), listener.door);
            let peer = peer::of(&socket);
            if door == Door::Tcp {
                // A client whose machine is gone is noticed; what cannot be set is another family's.
                let _unset = rustix::net::sockopt::set_socket_keepalive(&socket, true);
            }
            let Ok(conn) = Conn::new(socket, listener.tls.as_ref()) else { continue };
            if ears.watch(Key::Conn(id), conn.as_fd()).is_err() {
                continue;
            }
            self.conns.insert(id, conn);
            self.ready.insert(id);
            learned.push_back(Event::ConnOpened { conn: id, door, peer });
        }
        true
    }

    /// Performs `ConnSend`: queues, and writes at the end of the turn.
    pub(crate) fn send(&mut self, id: ConnId, bytes: Bytes) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.send(bytes);
            self.dirty.insert(id);
        }
    }

    /// Performs `ConnShut`.
    pub(crate) fn shut(
        &mut self,
        id: ConnId,
        at_once: bool,
        ears: &mut impl Ears,
        learned: &mut VecDeque<Event>,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.shut();
        self.dirty.insert(id);
        if at_once {
            // What the socket takes now is not lost.
            let _flushed = conn.flush();
            self.close(id, None, ears, learned);
        }
    }

    /// Writes what is queued, as far as each client takes it. Returns whether to write again soon.
    pub(crate) fn flush(&mut self, ears: &mut impl Ears, learned: &mut VecDeque<Event>) -> bool {
        let (mut again, mut closed) = (BTreeSet::new(), Vec::new());
        for id in std::mem::take(&mut self.dirty) {
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            let flushed = conn.flush();
            if flushed.wrote > 0 {
                learned.push_back(Event::ConnWrote { conn: id, bytes: flushed.wrote });
            }
            match flushed.end {
                conn::End::Closed(error) => closed.push((id, error)),
                conn::End::Open | conn::End::Ended if flushed.again => {
                    again.insert(id);
                }
                conn::End::Open | conn::End::Ended => {}
            }
        }
        self.dirty = again;
        for (id, error) in closed {
            self.close(id, error, ears, learned);
        }
        !self.dirty.is_empty()
    }

    /// The loop ends: what clients' sockets take without waiting is not lost.
    pub(crate) fn farewell(&mut self) {
        for conn in self.conns.values_mut() {
            conn.shut();
            while conn.flush().again {}
        }
    }

    fn close(
        &mut self,
        id: ConnId,
        error: Option<String>,
        ears: &mut impl Ears,
        learned: &mut VecDeque<Event>,
    ) {
        if let Some(conn) = self.conns.remove(&id) {
            ears.unwatch(Key::Conn(id), conn.as_fd());
            self.ready.remove(&id);
            self.dirty.remove(&id);
            learned.push_back(Event::ConnClosed { conn: id, error });
        }
    }
}

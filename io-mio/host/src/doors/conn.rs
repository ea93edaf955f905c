//! One connection: a socket, what is queued for it, and TLS where its listener has it.

use crate::pipes::{self, Left, Then, WriteQueue};
use agentd_core::bytes::Bytes;
use rustix::net::Shutdown;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    queue: WriteQueue,
    tls: Option<Box<rustls::ServerConnection>>,
    /// Plain bytes that the core has queued and was not told of: with TLS more leave than these.
    unsent: u64,
    /// To be closed once everything has left and the client has closed too.
    shutting: bool,
    /// Our side is closed.
    shut: bool,
    /// The client's is.
    ended: bool,
}

/// How a connection was left.
#[derive(Debug)]
pub(super) enum End {
    Open,
    /// The client sends no more.
    Ended,
    /// Nothing more will come of it; why, if it broke.
    Closed(Option<String>),
}

/// What a read came to.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) plain: Vec<u8>,
    pub(super) more: bool,
    pub(super) end: End,
}

/// What a flush came to.
#[derive(Debug)]
pub(super) struct Flushed {
    /// Of what the core queued.
    pub(super) wrote: u64,
    pub(super) again: bool,
    pub(super) end: End,
}

impl Conn {
    pub(super) fn new(
        socket: OwnedFd,
        tls: Option<&Arc<rustls::ServerConfig>>,
    ) -> Result<Conn, rustls::Error> {
        let tls = match tls {
            None => None,
            Some(config) => {
                let mut tls = rustls::ServerConnection::new(Arc::clone(config))?;
                // The core bounds what it queues.
                tls.set_buffer_limit(None);
                Some(Box::new(tls))
            }
        };
        let queue = WriteQueue::new(socket);
        Ok(Conn { queue, tls, unsent: 0, shutting: false, shut: false, ended: false })
    }

    /// One bounded read.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> Served {
        let closed = |error: String| Served { plain: Vec::new(), more: false, end: End::Closed(Some(error)) };
        let pipes::Read { bytes, left } = match pipes::read(&self.queue, scratch) {
            Ok(read) => read,
            Err(error) => return closed(format!("recv(2): {error}")),
        };
        let mut plain = match self.take_off(&bytes) {
            Ok(plain) => plain,
            Err(error) => {
                // What TLS has to say about it leaves if it can.
                let _flushed = self.queue.flush();
                return closed(format!("TLS: {error}"));
            }
        };
        if self.shutting {
            plain.clear();
        }
        let end = match left {
            Left::More | Left::Empty => End::Open,
            Left::Ended if self.shut => End::Closed(None),
            Left::Ended if std::mem::replace(&mut self.ended, true) => End::Open,
            Left::Ended => End::Ended,
        };
        Served { plain, more: left == Left::More, end }
    }

    /// The plain bytes of what came.
    fn take_off(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let Some(tls) = &mut self.tls else { return Ok(bytes.to_vec()) };
        let (mut rest, mut plain) = (bytes, Vec::new());
        while !rest.is_empty() {
            tls.read_tls(&mut rest).map_err(|error| error.to_string())?;
            let state = tls.process_new_packets();
            if let Err(error) = state {
                Self::put_on(tls, &mut self.queue);
                return Err(error.to_string());
            }
            match tls.reader().read_to_end(&mut plain) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Self::put_on(tls, &mut self.queue);
        Ok(plain)
    }

    /// Queues what TLS wants to send.
    fn put_on(tls: &mut rustls::ServerConnection, queue: &mut WriteQueue) {
        let mut sealed = Vec::new();
        while tls.wants_write() {
            // A vector takes everything.
            if tls.write_tls(&mut sealed).is_err() {
                break;
            }
        }
        queue.push(Bytes::from(sealed));
    }

    /// Whether reading has made something to write.
    pub(super) fn wants_flush(&self) -> bool {
        self.tls.is_some() || self.shutting
    }

    /// Queues bytes.
    pub(super) fn send(&mut self, bytes: Bytes) {
        if self.shutting {
            return;
        }
        self.unsent += bytes.len() as u64;
        match &mut self.tls {
            None => self.queue.push(bytes),
            Some(tls) => {
                // Without a limit its buffer takes everything.
                let _taken = tls.writer().write_all(&bytes);
                Self::put_on(tls, &mut self.queue);
            }
        }
    }

    /// To be closed once what is queued has left.
    pub(super) fn shut(&mut self) {
        if std::mem::replace(&mut self.shutting, true) {
            return;
        }
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            Self::put_on(tls, &mut self.queue);
        }
        self.queue.close_when_empty();
    }

    /// Writes what the socket takes, within one turn's share.
    pub(super) fn flush(&mut self) -> Flushed {
        let flushed = match self.queue.flush() {
            Ok(flushed) => flushed,
            Err(error) => {
                let end = End::Closed(Some(format!("send(2): {error}")));
                return Flushed { wrote: 0, again: false, end };
            }
        };
        let empty = matches!(flushed.then, Then::Idle | Then::Close);
        let wrote = if empty { self.unsent } else { flushed.wrote.min(self.unsent) };
        self.unsent -= wrote;
        let mut end = End::Open;
        if flushed.then == Then::Close && !std::mem::replace(&mut self.shut, true) {
            // Closing at once could reset the connection, and what was just sent would be lost with it.
            let gone = rustix::net::shutdown(&self.queue, Shutdown::Write).is_err();
            if gone || self.ended {
                end = End::Closed(None);
            }
        }
        Flushed { wrote, again: flushed.then == Then::Again, end }
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

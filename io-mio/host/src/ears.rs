//! What a driver does for the hands: hear when a descriptor becomes ready.
//!
//! Owns the names of descriptors. Called by the hands and the reactor; implemented once per driver.

use agentd_core::id::{ConnId, NodeId};
use std::io;
use std::os::fd::BorrowedFd;

/// What a watched descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Of a child.
    Child(NodeId, End),
    /// The supervisor's own signals.
    Signals,
    /// Events of other threads.
    Mailbox,
    /// A socket that listens, by its place.
    Listener(usize),
    /// A connection: wanted when it is readable and when it is writable.
    Conn(ConnId),
}

/// Which descriptor of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Its pidfd: readable once it has ended.
    Exit,
    /// Our end of its stdin: wanted when it is writable.
    Stdin,
    /// Our end of its stdout.
    Stdout,
    /// Our end of its stderr.
    Stderr,
}

/// Hears edges: each time a descriptor becomes ready anew, and when it is ready as the watch begins, the driver
/// calls `ready` with its key once. It need not tell again what was not yet dealt with.
pub trait Ears {
    /// Begins to watch `fd`, for writing when the key is a child's stdin, for both when it is a connection, and for
    /// reading otherwise.
    ///
    /// # Errors
    /// The system refused; the descriptor is then not watched.
    fn watch(&mut self, key: Key, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Ends the watch. Always called before `fd` is closed: a copy of it, in a child that is just being made,
    /// would keep the watch alive.
    fn unwatch(&mut self, key: Key, fd: BorrowedFd<'_>);
}

/// What the numbers of connections and listeners begin with; those of children are below.
const CONN: u64 = 1 << 63;
const LISTENER: u64 = CONN | 1 << 62;

impl Key {
    /// The key as a number, for pollers that carry one.
    pub fn token(self) -> usize {
        let number = match self {
            Key::Child(node, end) => (node.0 << 2) | end as u64,
            Key::Signals => u64::MAX - 1,
            // The largest number is mio's own.
            Key::Mailbox => u64::MAX - 2,
            Key::Listener(index) => LISTENER | index as u64,
            Key::Conn(conn) => CONN | conn.0,
        };
        number as usize
    }

    /// The key behind a number that [`Key::token`] gave.
    pub fn of_token(token: usize) -> Key {
        const SIGNALS: u64 = u64::MAX - 1;
        const MAILBOX: u64 = u64::MAX - 2;
        match token as u64 {
            SIGNALS => Key::Signals,
            MAILBOX => Key::Mailbox,
            number if number & LISTENER == LISTENER => Key::Listener((number & !LISTENER) as usize),
            number if number & CONN == CONN => Key::Conn(ConnId(number & !CONN)),
            number => {
                let end = match number & 3 {
                    0 => End::Exit,
                    1 => End::Stdin,
                    2 => End::Stdout,
                    _ => End::Stderr,
                };
                Key::Child(NodeId(number >> 2), end)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_number_of_its_own() {
        let mut all = vec![Key::Signals, Key::Mailbox, Key::Listener(0), Key::Listener(9)];
        all.extend([0, 1, (1 << 62) - 1].map(|conn| Key::Conn(ConnId(conn))));
        // Nodes are minted upwards from 0, so the largest that matters is far below 2⁶².
        for node in [0, 1, 2, 1 << 40, (1 << 61) - 1] {
            all.extend(
                [End::Exit, End::Stdin, End::Stdout, End::Stderr].map(|e| Key::Child(NodeId(node), e)),
            );
        }
        for key in &all {
            assert_eq!(Key::of_token(key.token()), *key);
        }
        let tokens: std::collections::BTreeSet<usize> = all.iter().map(|k| k.token()).collect();
        assert_eq!(tokens.len(), all.len());
    }
}

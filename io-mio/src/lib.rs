//! The readiness loop of the core on mio: ears, and nothing else. What is heard is told to `agentd-host`'s
//! reactor, whose hands do what the core says.
//!
//! Owns the poll and its wake-ups: an idle loop sleeps until an edge or the core's deadline. Refuses policy.
//! Called by the binary and by embedders that have a thread to give.
#![forbid(unsafe_code)]

use agentd_core::machine::Machine;
use agentd_host::ears::{Ears, End, Key};
use agentd_host::error::OsError;
use agentd_host::reactor::{Next, Reactor};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub use agentd_host::error::DriverError;
pub use agentd_host::mailbox::{PostError, Poster};
pub use agentd_host::outside::{Outside, StoreAnswer};
pub use agentd_host::reactor::{Ended, Options};

/// Edges taken from the system at once; more wait for the next turn.
const EDGES: usize = 1_024;

/// Drives `core` on this thread until it says `Exit`.
///
/// # Errors
/// The operating system refused what the loop cannot be without.
pub fn run<M, O>(core: &mut M, outside: &mut O, options: Options) -> Result<Ended, DriverError>
where
    M: Machine + ?Sized,
    O: Outside,
{
    let mut poll =
        Poll::new().map_err(OsError::of("epoll_create1(2)", "the loop")).map_err(DriverError::Start)?;
    let registry = poll.registry().try_clone();
    let registry = registry.map_err(OsError::of("dup(2)", "the loop")).map_err(DriverError::Start)?;
    let mut ears = MioEars(registry);
    let mut reactor = Reactor::new(core, outside, options, &mut ears).map_err(DriverError::Start)?;
    let mut edges = Events::with_capacity(EDGES);
    loop {
        match reactor.turn(&mut ears).map_err(DriverError::Run)? {
            Next::End(ended) => return Ok(ended),
            Next::Wait(limit) => match poll.poll(&mut edges, limit) {
                Ok(()) => edges.iter().for_each(|edge| reactor.ready(Key::of_token(edge.token().0))),
                // A signal that is none of ours; the turn is empty.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => edges.clear(),
                Err(e) => return Err(DriverError::Run(OsError::of("epoll_wait(2)", "the loop")(e))),
            },
        }
    }
}

/// mio's registrations are edges, as the hands want them.
struct MioEars(Registry);

impl Ears for MioEars {
    fn watch(&mut self, key: Key, fd: BorrowedFd<'_>) -> io::Result<()> {
        let interest = match key {
            Key::Child(_, End::Stdin) => Interest::WRITABLE,
            Key::Conn(_) => Interest::READABLE.add(Interest::WRITABLE),
            Key::Child(_, End::Exit | End::Stdout | End::Stderr)
            | Key::Signals
            | Key::Mailbox
            | Key::Listener(_) => Interest::READABLE,
        };
        self.0.register(&mut SourceFd(&fd.as_raw_fd()), Token(key.token()), interest)
    }

    fn unwatch(&mut self, _key: Key, fd: BorrowedFd<'_>) {
        // A descriptor that was not watched is none the less not watched now.
        let _unwatched = self.0.deregister(&mut SourceFd(&fd.as_raw_fd()));
    }
}

//! The readiness loop of the core on tokio: ears, and nothing else, for programs that already run there. What is
//! heard is told to `agentd-host`'s reactor, whose hands do what the core says, the same as under mio.
//!
//! Owns the registrations with tokio's own epoll and the waiting. Refuses policy, tasks of its own and anything
//! process-wide: children are made by the host's thread and held by pidfd, never by `tokio::process`. The future
//! must be polled inside a runtime with IO and time enabled.
#![forbid(unsafe_code)]

use agentd_core::machine::Machine;
use agentd_core::time::Duration;
use agentd_host::ears::{Ears, End, Key};
use agentd_host::error::OsError;
use agentd_host::reactor::{Next, Reactor};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use agentd_host::error::DriverError;
pub use agentd_host::mailbox::{PostError, Poster};
pub use agentd_host::outside::{Outside, StoreAnswer};
pub use agentd_host::reactor::{Ended, Options};

/// Drives `core` until it says `Exit`. Dropping the future before that kills and reaps the children it has.
///
/// # Errors
/// The operating system refused what the loop cannot be without.
pub async fn run<M, O>(core: &mut M, outside: &mut O, options: Options) -> Result<Ended, DriverError>
where
    M: Machine + ?Sized,
    O: Outside,
{
    let mut ears = TokioEars::default();
    let mut reactor = Reactor::new(core, outside, options, &mut ears).map_err(DriverError::Start)?;
    loop {
        match reactor.turn(&mut ears).map_err(DriverError::Run)? {
            Next::End(ended) => return Ok(ended),
            Next::Wait(limit) => {
                for key in ears.hear(limit).await {
                    reactor.ready(key);
                }
            }
        }
    }
}

/// Drives `core` on this thread until it says `Exit`, in a runtime of its own that has no other thread.
///
/// # Errors
/// The operating system refused what the loop cannot be without.
///
/// # Panics
/// When this thread is inside a runtime already; there, await [`run`].
pub fn run_blocking<M, O>(core: &mut M, outside: &mut O, options: Options) -> Result<Ended, DriverError>
where
    M: Machine + ?Sized,
    O: Outside,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(OsError::of("epoll_create1(2)", "the loop")).map_err(DriverError::Start)?;
    runtime.block_on(run(core, outside, options))
}

/// A copy of each watched descriptor, registered with the runtime. A copy, because a registration must not
/// outlive its descriptor: the number could by then be somebody else's.
#[derive(Debug, Default)]
struct TokioEars(BTreeMap<Key, AsyncFd<OwnedFd>>);

impl TokioEars {
    /// Waits for edges, at most `limit`; every key that is ready by then, once.
    async fn hear(&self, limit: Option<Duration>) -> Vec<Key> {
        let edges = poll_fn(|context| {
            let ready = self.ready(context);
            if ready.is_empty() { Poll::Pending } else { Poll::Ready(ready) }
        });
        match limit {
            None => edges.await,
            // Others on this thread get their turn also while the loop is busy.
            Some(Duration::ZERO) => {
                tokio::task::yield_now().await;
                poll_fn(|context| Poll::Ready(self.ready(context))).await
            }
            Some(limit) => tokio::time::timeout(limit, edges).await.unwrap_or_default(),
        }
    }

    /// Takes the edges that are there and asks to be woken by the next.
    fn ready(&self, context: &mut Context<'_>) -> Vec<Key> {
        let mut ready = Vec::new();
        for (key, watched) in &self.0 {
            let polled = match key {
                Key::Child(_, End::Stdin) => watched.poll_write_ready(context),
                Key::Child(_, End::Exit | End::Stdout | End::Stderr) | Key::Signals | Key::Mailbox => {
                    watched.poll_read_ready(context)
                }
            };
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(mut guard)) => {
                    // An edge was heard; the next one is news again, whatever is made of this one.
                    guard.clear_ready();
                    ready.push(*key);
                }
                // The runtime is shutting down: what can be read is found by trying.
                Poll::Ready(Err(_)) => ready.push(*key),
            }
        }
        ready
    }
}

impl Ears for TokioEars {
    fn watch(&mut self, key: Key, fd: BorrowedFd<'_>) -> io::Result<()> {
        let interest = match key {
            Key::Child(_, End::Stdin) => Interest::WRITABLE,
            Key::Child(_, End::Exit | End::Stdout | End::Stderr) | Key::Signals | Key::Mailbox => {
                Interest::READABLE
            }
        };
        let copy = fd.try_clone_to_owned()?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that close early; an OwnedFd does not"
        )]
        let watched = AsyncFd::with_interest(copy, interest)?;
        self.0.insert(key, watched);
        Ok(())
    }

    fn unwatch(&mut self, key: Key, _fd: BorrowedFd<'_>) {
        self.0.remove(&key);
    }
}

//! The readiness loop of the core on tokio: ears, and nothing else. What is heard is told to `agentd-host`'s reactor,
//! whose hands do what the core says, the same as under mio.
//!
//! Owns the registrations with tokio's own epoll and the waiting. Refuses policy, and anything process-wide. The future
//! must be polled inside a runtime with IO and time enabled. Called by embedders, and by the binary where it was built
//! with this driver.

use agentd_core::event::Event;
use agentd_core::machine::Machine;
use agentd_core::time::Duration;
use agentd_host::ears::{Ears, End, Key};
use agentd_host::error::{DriverError, OsError};
use agentd_host::outside::Outside;
use agentd_host::reactor::{Ended, Next, Options, Reactor};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Events of one source told in one turn; more wait for the next.
const SHARE: usize = 256;

/// Drives `core` until it says `Exit`. Dropping the future before that kills and reaps the children it has.
///
/// # Errors
/// The operating system refused what the loop cannot be without.
pub async fn run<M, O>(core: &mut M, outside: &mut O, options: Options) -> Result<Ended, DriverError>
where
    M: Machine + ?Sized,
    O: Outside,
{
    drive(core, outside, options, |_, _| Poll::Pending).await
}

/// The same, with events that `outside` learns from this runtime: `hear` is asked for the next, and wakes the task it
/// is called from when there is one.
pub(crate) async fn drive<M, O>(
    core: &mut M,
    outside: &mut O,
    options: Options,
    mut hear: impl FnMut(&mut O, &mut Context<'_>) -> Poll<Event>,
) -> Result<Ended, DriverError>
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
                let outside = reactor.outside();
                let heard =
                    ears.hear(limit, |context| share(context, |context| hear(outside, context))).await;
                heard.keys.into_iter().for_each(|key| reactor.ready(key));
                heard.events.into_iter().for_each(|event| reactor.learn(event));
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

/// What came of one wait.
#[derive(Debug, Default)]
struct Heard {
    /// Descriptors that are ready, each once.
    keys: Vec<Key>,
    events: Vec<Event>,
}

impl TokioEars {
    /// Waits for edges or events, at most `limit`.
    async fn hear(
        &self,
        limit: Option<Duration>,
        mut events: impl FnMut(&mut Context<'_>) -> Vec<Event>,
    ) -> Heard {
        let mut look =
            |context: &mut Context<'_>| Heard { keys: self.ready(context), events: events(context) };
        let heard = poll_fn(|context| {
            let heard = look(context);
            if heard.keys.is_empty() && heard.events.is_empty() { Poll::Pending } else { Poll::Ready(heard) }
        });
        match limit {
            None => heard.await,
            // Others on this thread get their turn also while the loop is busy.
            Some(Duration::ZERO) => {
                drop(heard);
                tokio::task::yield_now().await;
                poll_fn(|context| Poll::Ready(look(context))).await
            }
            Some(limit) => tokio::time::timeout(limit, heard).await.unwrap_or_default(),
        }
    }

    /// Takes the edges that are there and asks to be woken by the next.
    fn ready(&self, context: &mut Context<'_>) -> Vec<Key> {
        let mut ready = Vec::new();
        for (key, watched) in &self.0 {
            let (reads, writes) = match key {
                Key::Child(_, End::Stdin) => (false, true),
                Key::Conn(_) => (true, true),
                Key::Child(_, End::Exit | End::Stdout | End::Stderr)
                | Key::Signals
                | Key::Mailbox
                | Key::Listener(_) => (true, false),
            };
            let heard_read = reads && heard(watched.poll_read_ready(context));
            let heard_write = writes && heard(watched.poll_write_ready(context));
            if heard_read || heard_write {
                ready.push(*key);
            }
        }
        ready
    }
}

/// Whether there was an edge; the next one is news again, whatever is made of this one. Of a runtime that shuts down
/// what can be read is found by trying.
fn heard<T: std::os::fd::AsRawFd>(
    polled: Poll<io::Result<tokio::io::unix::AsyncFdReadyGuard<'_, T>>>,
) -> bool {
    match polled {
        Poll::Pending => false,
        Poll::Ready(Ok(mut guard)) => {
            guard.clear_ready();
            true
        }
        Poll::Ready(Err(_)) => true,
    }
}

/// The events that are there, up to one share. A full share leaves no wake-up behind, so the next is asked for.
fn share(context: &mut Context<'_>, mut next: impl FnMut(&mut Context<'_>) -> Poll<Event>) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < SHARE
        && let Poll::Ready(event) = next(context)
    {
        events.push(event);
    }
    if events.len() == SHARE {
        context.waker().wake_by_ref();
    }
    events
}

impl Ears for TokioEars {
    fn watch(&mut self, key: Key, fd: BorrowedFd<'_>) -> io::Result<()> {
        let interest = match key {
            Key::Child(_, End::Stdin) => Interest::WRITABLE,
            Key::Conn(_) => Interest::READABLE.add(Interest::WRITABLE),
            Key::Child(_, End::Exit | End::Stdout | End::Stderr)
            | Key::Signals
            | Key::Mailbox
            | Key::Listener(_) => Interest::READABLE,
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

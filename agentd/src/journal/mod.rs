//! The flight recorder (S17.6): every event the core was fed, in order, in a file that a replay can rebuild the
//! core from. Written by a thread of its own, so that a slow disk delays nobody.
//!
//! A journal with a gap is worthless behind the gap. So nothing is ever skipped: when an event cannot be kept
//! (the disk fails, or is slower than the events for too long) the journal ends there, and that is said once.
//! The file holds content (prompts, what children say) and no secrets: values of servers' variables, of
//! models' keys and headers are left out.

mod files;
mod format;
mod reader;
mod writer;

pub use files::{JournalError, KEPT, SEGMENT_BYTES};
pub use format::Header;
pub use reader::{ReadError, Reader};

use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::machine::Traced;
use agentd_core::time::{Duration, Now};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use writer::Writer;

/// Events that wait to be written; with one more the journal ends.
const QUEUE_EVENTS: usize = 65_536;

/// Bytes that wait to be written; with more the journal ends.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    /// `None` once it has ended.
    queue: Option<SyncSender<Traced>>,
    waiting: Arc<AtomicUsize>,
    outcome: Receiver<Result<(), JournalError>>,
}

impl Journal {
    /// Begins a journal at `path`. One that is there already becomes `path.1`, and so on; anything else there
    /// is refused.
    pub fn create(path: &Path, config: &Config, now: Now) -> Result<Journal, JournalError> {
        Journal::with_segments(path, config, now, SEGMENT_BYTES)
    }

    fn with_segments(
        path: &Path,
        config: &Config,
        now: Now,
        segment_bytes: u64,
    ) -> Result<Journal, JournalError> {
        let header = Header::new(config, now);
        let mut writer = Writer::create(path, header, segment_bytes)?;
        let (queue, incoming) = mpsc::sync_channel::<Traced>(QUEUE_EVENTS);
        let (end, outcome) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&waiting);
        let thread = thread::Builder::new().name("agentd:journal".into());
        let spawned = thread.spawn(move || {
            let outcome = writer.run(&incoming, |event| {
                theirs.fetch_sub(cost(event), Ordering::Relaxed);
            });
            // The file is unlocked before anybody hears of the end.
            drop(writer);
            // Nobody listens when closing was given up.
            let _ = end.send(outcome);
        });
        spawned.map_err(|error| JournalError::system("start a thread for", path, error))?;
        Ok(Journal { queue: Some(queue), waiting, outcome })
    }

    /// Records an event. Never blocks. When the journal has ended, says why, once.
    pub fn observe(&mut self, now: Now, event: &Event) -> Option<JournalError> {
        let queue = self.queue.as_ref()?;
        let cost = cost(event);
        let waiting = self.waiting.fetch_add(cost, Ordering::Relaxed);
        if waiting.saturating_add(cost) > QUEUE_BYTES.max(cost) {
            return self.end(JournalError::TooSlow);
        }
        match queue.try_send(Traced { now, event: event.clone() }) {
            Ok(()) => None,
            Err(TrySendError::Full(_)) => self.end(JournalError::TooSlow),
            Err(TrySendError::Disconnected(_)) => {
                let why = self.outcome.try_recv().ok().and_then(Result::err);
                self.end(why.unwrap_or(JournalError::Lost))
            }
        }
    }

    /// Writes what waits, for at most this long.
    pub fn close(mut self, within: Duration) -> Result<(), JournalError> {
        // One that ended before has said why.
        match self.queue.take() {
            None => Ok(()),
            Some(queue) => {
                drop(queue);
                self.outcome.recv_timeout(within).unwrap_or(Err(JournalError::TooSlow))
            }
        }
    }

    fn end(&mut self, why: JournalError) -> Option<JournalError> {
        self.queue = None;
        Some(why)
    }
}

/// Bytes an event takes in the queue, near enough.
fn cost(event: &Event) -> usize {
    let content = match event {
        Event::ChildBytes { bytes, .. } | Event::ChildStderr { bytes, .. } => bytes.len(),
        Event::PromptSubmitted { text } => text.len(),
        Event::TurnCancelled { reason, .. } => reason.len(),
        Event::SpawnFailed { error, .. }
        | Event::SpawnFrameFailed { error, .. }
        | Event::ChildWriteFailed { error, .. }
        | Event::StoreFailed { error, .. } => error.len(),
        Event::OperatorCalled { tool, args, .. } => tool.len() + args.0.len(),
        Event::HostToolAnswered { value, .. } => value.0.len(),
        Event::Seeded { .. }
        | Event::Tick
        | Event::ChildSpawned { .. }
        | Event::ChildEof { .. }
        | Event::ChildWrote { .. }
        | Event::ExitObserved { .. }
        | Event::Swept { .. }
        | Event::Reaped { .. }
        | Event::Stored { .. }
        | Event::Signalled { .. }
        | Event::OperatorHungUp { .. } => 0,
    };
    128 + content
}

#[cfg(test)]
mod tests;

//! The flight recorder (S17.6): every event the core was fed and every action it answered with, in order, in files
//! that a replay rebuilds the core from. Written by a thread of its own, so that a slow disk delays nobody.
//!
//! A journal with a gap is worthless behind the gap. So nothing is ever skipped: when a record cannot be kept
//! (the disk fails, or is slower than the events for too long) the journal ends there, and that is said once.
//! When a file is full the next one begins with the core's state, so that it can be replayed when the older ones
//! are gone. The files hold content (prompts, what children say) and no secrets: values of servers' variables, of
//! models' keys and headers are left out.

mod files;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod reader;
mod recording;
mod writer;

pub use files::{JournalError, KEPT, SEGMENT_BYTES};
pub use format::{Header, actions_bytes};
pub use reader::{Decision, ReadError, Reader};
pub use recording::{OpenError, Recording};

use agentd_core::action::Action;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::time::{Duration, Now};
use std::path::Path;
use std::sync::Arc;
use writer::{Desk, Writer};

/// How long a journal that nobody closed may take to write what waits: the daemon panics.
const DROPPED_END: Duration = Duration::from_secs(1);

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    desk: Arc<Desk>,
    /// It has ended, and that was told.
    ended: bool,
    /// The file in hand's.
    header: Header,
    /// Bytes before its first event, and bytes of its events.
    head: u64,
    written: u64,
    segment_bytes: u64,
    /// Events in all files.
    events: u64,
}

impl Journal {
    /// Begins a journal at `path`. One that is there already becomes `path.1`, and so on; anything else there
    /// is refused.
    pub fn create(path: &Path, config: &Config, now: Now) -> Result<Journal, JournalError> {
        Journal::with_segments(path, config, now, SEGMENT_BYTES)
    }

    /// The same with files of another size, for tests and benchmarks.
    pub fn with_segments(
        path: &Path,
        config: &Config,
        now: Now,
        segment_bytes: u64,
    ) -> Result<Journal, JournalError> {
        let header = Header::new(config, now);
        let head = header.head(&[]).map_err(JournalError::Encoding)?;
        let desk = Arc::new(Desk::default());
        Writer::create(path, &head)?.start(Arc::clone(&desk))?;
        Ok(Journal::on(desk, header, size(head.len()), segment_bytes))
    }

    fn on(desk: Arc<Desk>, header: Header, head: u64, segment_bytes: u64) -> Journal {
        Journal { desk, ended: false, header, head, written: 0, segment_bytes, events: 0 }
    }

    /// Records an event, before the core gets it. Never blocks. When the journal has ended, says why, once.
    pub fn observe(&mut self, now: Now, event: &Event) -> Option<JournalError> {
        self.events += 1;
        self.append(|out| format::append_event(now, event, out))
    }

    /// Records what the core answered to the event observed last. As [`Journal::observe`].
    pub fn decided(&mut self, actions: &[Action]) -> Option<JournalError> {
        self.append(|out| format::append_actions(actions, out))
    }

    /// Whether the file is full: the next one begins with the core's state as it is now, between two events.
    pub fn wants_checkpoint(&self) -> bool {
        // A large state leaves its file room for a fair number of events all the same.
        let full = self.head.saturating_add(self.written) >= self.segment_bytes;
        full && self.written >= self.segment_bytes / 4 && !self.ended
    }

    /// Begins the next file with the state that was wanted. As [`Journal::observe`].
    pub fn checkpointed(&mut self, state: Result<Vec<u8>, String>) -> Option<JournalError> {
        if self.ended {
            return None;
        }
        let begun = state.and_then(|state| {
            self.header.segment += 1;
            self.header.events = self.events;
            self.header.state = Some(size(state.len()));
            self.header.head(&state)
        });
        let head = match begun {
            Ok(head) => head,
            Err(why) => return self.end(JournalError::Encoding(why)),
        };
        (self.head, self.written) = (size(head.len()), 0);
        self.desk.next_file(head).err().and_then(|why| self.end(why))
    }

    /// Writes what waits, for at most this long.
    pub fn close(mut self, within: Duration) -> Result<(), JournalError> {
        // One that ended before has said why.
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.desk.close();
        self.desk.outcome(within)
    }

    fn append(&mut self, append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> Option<JournalError> {
        if self.ended {
            return None;
        }
        match self.desk.append(append) {
            Ok(bytes) => {
                self.written = self.written.saturating_add(size(bytes));
                None
            }
            Err(why) => self.end(why),
        }
    }

    fn end(&mut self, why: JournalError) -> Option<JournalError> {
        self.ended = true;
        self.desk.close();
        Some(why)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.desk.close();
            // Nobody is left to be told.
            let _ = self.desk.outcome(DROPPED_END);
        }
    }
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;

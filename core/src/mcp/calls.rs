//! The tool calls that are open at one server, by request id. A call leaves the table exactly once, and whoever
//! takes it out answers it.

use crate::limits;
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

/// A `tools/call` without its answer.
#[derive(Debug)]
pub(super) struct Call {
    /// The caller's name for it.
    pub(super) key: u64,
    /// The server's name of the tool.
    pub(super) tool: String,
    /// As it was asked for, for the message.
    pub(super) timeout: Duration,
    /// When it is given up.
    pub(super) due: Instant,
    progressed: Option<Instant>,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<u64, Call>);

impl Calls {
    /// Whether one more would pass [`limits::MCP_OPEN_CALLS`].
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= limits::MCP_OPEN_CALLS
    }

    /// Puts a call in under an id that was never used.
    pub(super) fn open(&mut self, id: u64, key: u64, tool: &str, now: Instant, timeout: Duration) {
        let call = Call { key, tool: tool.to_owned(), timeout, due: now + timeout, progressed: None };
        self.0.insert(id, call);
    }

    /// Takes the call with this id out.
    pub(super) fn take(&mut self, id: u64) -> Option<Call> {
        self.0.remove(&id)
    }

    /// Takes all out, oldest first.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Call> + use<> {
        std::mem::take(&mut self.0).into_values()
    }

    /// The id of the open call with this key.
    pub(super) fn id_of(&self, key: u64) -> Option<u64> {
        self.0.iter().find(|(_, call)| call.key == key).map(|(id, _)| *id)
    }

    /// The ids of the calls that are due by `now`, oldest first.
    pub(super) fn due(&self, now: Instant) -> Vec<u64> {
        self.0.iter().filter(|(_, call)| call.due <= now).map(|(id, _)| *id).collect()
    }

    /// When the first call is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|call| call.due).min()
    }

    /// Notes a sign of life. `None` when no such call is open; else whether it is time to pass it on, and for
    /// which key.
    pub(super) fn progress(&mut self, id: u64, now: Instant) -> Option<(u64, bool)> {
        let call = self.0.get_mut(&id)?;
        let pass_on = call.progressed.is_none_or(|at| now.since(at) >= limits::MCP_PROGRESS_EVERY);
        if pass_on {
            call.progressed = Some(now);
        }
        Some((call.key, pass_on))
    }
}

//! What a driver needs to know of the thing it drives.

use crate::action::Actions;
use crate::event::Event;
use crate::snapshot::Snapshot;
use crate::time::{Instant, Now};
use serde::{Deserialize, Serialize};

/// The next time the machine wants a `Tick`, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Deadline {
    /// Not before this.
    pub at: Instant,
    /// For people: what becomes due.
    pub why: &'static str,
}

/// A pure machine that a driver feeds: the supervisor's core, or a stand-in that tests a driver.
pub trait Machine {
    /// Takes one event and appends what is to be done. Infallible, bounded, does not re-enter.
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions);

    /// When the next `Tick` is due; `None` when only an outside event can move it.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// All that it knows, for a recording that begins in the middle of its life.
    ///
    /// # Errors
    /// A stand-in has nothing that could be written.
    fn checkpoint(&self) -> Result<Vec<u8>, String> {
        Err("this machine has no checkpoints".to_owned())
    }

    /// How things stand, for people; `None` from a stand-in that has nothing to show.
    fn snapshot(&self) -> Option<Snapshot> {
        None
    }
}

/// One line of a trace: when, and what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The driver's clocks.
    pub now: Now,
    /// What happened.
    pub event: Event,
}

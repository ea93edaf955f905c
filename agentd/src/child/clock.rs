//! The child's monotonic clock, in the core's terms.

use agentd_core::time::{Duration, Instant, Wall};
use std::time::SystemTime;

/// Counts from the start of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(std::time::Instant);

impl Clock {
    /// Starts at [`Instant::ZERO`].
    pub(super) fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    /// Read where an input is taken, never deeper.
    pub(super) fn now(self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    /// The time of day, for what people read.
    pub(super) fn wall(self) -> Wall {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// How long to wait for `at`; zero when it is past.
    pub(super) fn until(self, at: Instant) -> Duration {
        at.since(self.now())
    }
}

//! The child's monotonic clock, in the core's terms.

use agentd_core::time::{Duration, Instant};

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

    /// How long to wait for `at`; zero when it is past.
    pub(super) fn until(self, at: Instant) -> Duration {
        at.since(self.now())
    }
}

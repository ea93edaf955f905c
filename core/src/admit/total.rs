//! The lifetime total (S4.3): spawns of one run, or of the last while in a daemon that has no end.

use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Spawns that passed the gates, waiting ones included.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Total {
    limit: u32,
    /// How long a spawn counts; `None`: for ever.
    window: Option<Duration>,
    /// Without a window: how many there were.
    passed: u32,
    /// With one: when they were, oldest first. Never more than the highest limit there was, as who is beyond it does not
    /// pass.
    recent: VecDeque<Instant>,
}

impl Total {
    /// None yet.
    pub(super) fn new(limit: u32, window: Option<Duration>) -> Total {
        Total { limit, window, passed: 0, recent: VecDeque::new() }
    }

    /// Another limit. Those that passed count as before.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Spawns that count at `now`.
    pub(super) fn used(&self, now: Instant) -> u32 {
        let Some(window) = self.window else { return self.passed };
        let gone = self.recent.partition_point(|at| *at + window <= now);
        u32::try_from(self.recent.len() - gone).unwrap_or(u32::MAX)
    }

    /// Spawns that are left at `now`.
    pub(super) fn left(&self, now: Instant) -> u32 {
        self.limit.saturating_sub(self.used(now))
    }

    /// One more passed.
    pub(super) fn count(&mut self, now: Instant) {
        let Some(window) = self.window else {
            self.passed = self.passed.saturating_add(1);
            return;
        };
        while self.recent.front().is_some_and(|at| *at + window <= now) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
    }

    /// What is wrong when none is left, for the refusal.
    pub(super) fn problem(&self, now: Instant) -> String {
        let (limit, used) = (self.limit, self.used(now));
        let Some(window) = self.window else {
            return format!("total: {used} of {limit} spawns of this run are used");
        };
        let hours = window.as_secs() / 3_600;
        let first = self.recent.iter().map(|at| *at + window).find(|at| *at > now);
        let next = first.map(|at| at.since(now).as_secs().div_ceil(60)).map_or(String::new(), |minutes| {
            format!("; the next is free in {} h {} min", minutes / 60, minutes % 60)
        });
        format!("total: {used} of {limit} spawns within {hours} h are used{next}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_run_counts_for_ever_and_a_daemon_for_a_day() {
        let (mut run, mut daemon) = (Total::new(2, None), Total::new(2, Some(DAY)));
        let first = Instant::from_millis(5);
        for total in [&mut run, &mut daemon] {
            total.count(first);
            total.count(first + Duration::from_secs(60));
            assert_eq!(total.left(first + Duration::from_secs(60)), 0);
        }
        let last = first + DAY;
        let before = Instant::from_nanos(last.nanos() - 1);
        assert_eq!((run.left(last), daemon.left(before), daemon.left(last)), (0, 0, 1));
        assert_eq!(daemon.left(last + Duration::from_secs(60)), 2);
        daemon.count(last);
        assert_eq!((daemon.recent.len(), daemon.left(last)), (2, 0));
    }

    #[test]
    fn another_limit_forgets_nobody() {
        let mut total = Total::new(3, Some(DAY));
        (0..3).for_each(|second| total.count(Instant::from_millis(second * 1_000)));
        let now = Instant::from_millis(2_000);
        total.set_limit(1);
        assert_eq!((total.used(now), total.left(now)), (3, 0));
        assert_eq!(total.left(now + DAY), 1, "all of them are a day old");
        total.set_limit(5);
        assert_eq!(total.left(now), 2);
    }

    #[test]
    fn it_says_when_the_next_is_free() {
        let mut daemon = Total::new(1, Some(DAY));
        daemon.count(Instant::ZERO);
        assert_eq!(
            daemon.problem(Instant::from_millis(3_600_001)),
            "total: 1 of 1 spawns within 24 h are used; the next is free in 23 h 0 min"
        );
        let mut two = Total::new(2, Some(DAY));
        two.count(Instant::ZERO);
        two.count(Instant::ZERO + Duration::from_secs(60));
        // The first of them is free just now.
        assert_eq!(
            two.problem(Instant::ZERO + DAY),
            "total: 1 of 2 spawns within 24 h are used; the next is free in 0 h 1 min"
        );
        let none = Total::new(0, Some(DAY)).problem(Instant::ZERO);
        assert_eq!(none, "total: 0 of 0 spawns within 24 h are used");
        assert_eq!(Total::new(0, None).problem(Instant::ZERO), "total: 0 of 0 spawns of this run are used");
    }
}

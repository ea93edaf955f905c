//! The kill ladder (S9.4, S9.5): cancel → SIGTERM+SIGCONT → SIGKILL. Rungs only rise, and the time of a rung
//! only moves earlier, so no late or milder reason can slow a stop down.

use crate::config::Kill;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rung {
    /// Nobody stops it.
    None,
    /// It was asked by a `cancel` frame.
    Cancel,
    /// Its group got SIGTERM and SIGCONT.
    Term,
    /// Its group got SIGKILL.
    Kill,
}

/// Why the ladder is entered; decides where and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// A kill: cancel now, SIGTERM after `term_after`, SIGKILL `kill_after` later.
    Ask,
    /// Stuck or past the hard deadline: SIGTERM now, SIGKILL `kill_after` later.
    Insist,
    /// A terminal frame came: the child may take `exit_after_result` to leave by itself.
    Leave,
    /// A protocol error, the end of a drain, or a process nobody wants any more: SIGKILL now.
    Force,
}

/// One process's ladder: when each rung is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    rung: Rung,
    cancel: Option<Instant>,
    term: Option<Instant>,
    kill: Option<Instant>,
    /// Entered for a stop, which `after_ms` in the log counts from.
    since: Option<Instant>,
}

impl Ladder {
    /// Nobody stops it yet.
    pub const fn new() -> Ladder {
        Ladder { rung: Rung::None, cancel: None, term: None, kill: None, since: None }
    }

    /// The highest rung reached.
    pub fn rung(&self) -> Rung {
        self.rung
    }

    /// When [`Ladder::climb`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        [(Rung::Cancel, self.cancel), (Rung::Term, self.term), (Rung::Kill, self.kill)]
            .into_iter()
            .filter(|(rung, _)| *rung > self.rung)
            .filter_map(|(_, at)| at)
            .min()
    }

    /// Since the ladder was entered.
    pub fn age(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |s| now.since(s))
    }

    /// Enters the ladder or hurries it. What is due at once comes from `climb` at the same instant.
    pub fn push(&mut self, push: Push, now: Instant, keys: &Kill) {
        self.since.get_or_insert(now);
        match push {
            Push::Ask => {
                sooner(&mut self.cancel, now);
                sooner(&mut self.term, now + keys.term_after);
            }
            Push::Insist => sooner(&mut self.term, now),
            Push::Leave => sooner(&mut self.term, now + keys.exit_after_result),
            Push::Force => sooner(&mut self.kill, now),
        }
    }

    /// The rung that is due at `now`, if one is. Call until it says `None`. A rung that is overtaken by a
    /// higher one is skipped; SIGKILL by way of SIGTERM always leaves `kill_after` between them, also when
    /// the daemon itself was stopped and both are overdue.
    pub fn climb(&mut self, now: Instant, keys: &Kill) -> Option<Rung> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let rung = if self.rung < Rung::Kill && is_due(self.kill) {
            Rung::Kill
        } else if self.rung < Rung::Term && is_due(self.term) {
            sooner(&mut self.kill, now + keys.kill_after);
            Rung::Term
        } else if self.rung < Rung::Cancel && is_due(self.cancel) {
            Rung::Cancel
        } else {
            return None;
        };
        self.rung = rung;
        Some(rung)
    }
}

impl Default for Ladder {
    fn default() -> Ladder {
        Ladder::new()
    }
}

fn sooner(slot: &mut Option<Instant>, at: Instant) {
    *slot = Some(slot.map_or(at, |old| old.min(at)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEYS: Kill = Kill {
        term_after: Duration::from_secs(5),
        kill_after: Duration::from_secs(2),
        exit_after_result: Duration::from_secs(5),
    };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn climb_all(l: &mut Ladder, now: Instant) -> Vec<Rung> {
        std::iter::from_fn(|| l.climb(now, &KEYS)).collect()
    }

    #[test]
    fn a_kill_takes_five_then_two_seconds() {
        let mut l = Ladder::new();
        l.push(Push::Ask, at(1_000), &KEYS);
        assert_eq!(climb_all(&mut l, at(1_000)), [Rung::Cancel]);
        assert_eq!(l.due(), Some(at(6_000)));
        assert_eq!(climb_all(&mut l, at(5_999)), []);
        assert_eq!(climb_all(&mut l, at(6_000)), [Rung::Term]);
        assert_eq!(l.due(), Some(at(8_000)));
        assert_eq!(climb_all(&mut l, at(8_000)), [Rung::Kill]);
        assert_eq!((l.due(), l.age(at(8_000))), (None, Duration::from_secs(7)));
    }

    #[test]
    fn a_second_kill_does_not_start_over() {
        let mut l = Ladder::new();
        l.push(Push::Ask, at(0), &KEYS);
        climb_all(&mut l, at(0));
        l.push(Push::Ask, at(4_000), &KEYS);
        assert_eq!(climb_all(&mut l, at(4_000)), []);
        assert_eq!(l.due(), Some(at(5_000)));
    }

    #[test]
    fn a_result_during_a_kill_does_not_postpone_it() {
        let mut l = Ladder::new();
        l.push(Push::Ask, at(0), &KEYS);
        climb_all(&mut l, at(0));
        l.push(Push::Leave, at(4_900), &KEYS);
        assert_eq!(climb_all(&mut l, at(5_000)), [Rung::Term]);
    }

    #[test]
    fn force_overtakes_everything() {
        let mut l = Ladder::new();
        l.push(Push::Ask, at(0), &KEYS);
        l.push(Push::Force, at(0), &KEYS);
        assert_eq!(climb_all(&mut l, at(0)), [Rung::Kill]);
    }

    #[test]
    fn overdue_rungs_still_leave_time_between_term_and_kill() {
        let mut l = Ladder::new();
        l.push(Push::Ask, at(0), &KEYS);
        assert_eq!(climb_all(&mut l, at(60_000)), [Rung::Term]);
        assert_eq!(l.due(), Some(at(62_000)));
    }

    proptest! {
        #[test]
        fn rungs_only_rise_and_due_is_never_past_after_climbing(
            steps in prop::collection::vec((0u8..4, 0u64..4_000), 1..40),
        ) {
            let (mut l, mut now, mut last) = (Ladder::new(), Instant::ZERO, Rung::None);
            for (push, wait) in steps {
                let push = [Push::Ask, Push::Insist, Push::Leave, Push::Force][usize::from(push)];
                let before = l.due();
                l.push(push, now, &KEYS);
                if let (Some(b), Some(a)) = (before, l.due()) {
                    prop_assert!(a <= b, "a push postponed a rung");
                }
                for rung in climb_all(&mut l, now) {
                    prop_assert!(rung > last);
                    last = rung;
                }
                prop_assert!(l.due().is_none_or(|d| d > now));
                now = now + Duration::from_millis(wait);
            }
        }
    }
}

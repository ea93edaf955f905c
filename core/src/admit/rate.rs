//! The spawn rate: a token bucket over nanoseconds, exact at any instant and with any order of calls.

use crate::config::Rate;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Refills continuously: one token every `per / burst`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Bucket {
    rate: Rate,
    /// Tokens in units of 1/`per` nanoseconds each, so that no refill is lost to rounding.
    level: u128,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate, now: Instant) -> Bucket {
        Bucket { rate, level: full(rate), at: now }
    }

    /// Another rate from `now` on. The tokens that were taken and are not refilled yet stay taken, so that no sequence
    /// of rates gives more than each of them would; a part of one counts as whole where it cannot be told exactly.
    pub(super) fn set_rate(&mut self, rate: Rate, now: Instant) {
        self.refill(now);
        if rate == self.rate {
            return;
        }
        let (old, new) = (self.rate.per.as_nanos().max(1), rate.per.as_nanos());
        let taken = full(self.rate).saturating_sub(self.level);
        let part = (taken % old).checked_mul(new).map_or(new, |part| part.div_ceil(old));
        let taken = (taken / old).saturating_mul(new).saturating_add(part);
        self.rate = rate;
        self.level = full(rate).saturating_sub(taken);
    }

    /// Adds what has come since it was last looked at.
    fn refill(&mut self, now: Instant) {
        let gained = now.since(self.at).as_nanos().saturating_mul(u128::from(self.rate.burst));
        self.level = self.level.saturating_add(gained).min(full(self.rate));
        self.at = self.at.max(now);
    }

    /// Takes one token, or says how long until one is there.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        let one = self.rate.per.as_nanos();
        if self.level >= one {
            self.level -= one;
            return Ok(());
        }
        let missing = (one - self.level).div_ceil(u128::from(self.rate.burst).max(1));
        Err(Duration::from_nanos(u64::try_from(missing).unwrap_or(u64::MAX)))
    }

    /// When one token is there; in the past when one is there already.
    pub(super) fn free_at(&self) -> Instant {
        let missing = self.rate.per.as_nanos().saturating_sub(self.level);
        let wait = missing.div_ceil(u128::from(self.rate.burst).max(1));
        self.at + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

fn full(rate: Rate) -> u128 {
    rate.per.as_nanos().saturating_mul(u128::from(rate.burst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: Rate = Rate { burst: 8, per: Duration::from_secs(2) };

    #[test]
    fn burst_then_one_each_quarter_second() {
        let mut b = Bucket::new(RATE, Instant::ZERO);
        for _ in 0..8 {
            assert_eq!(b.take(Instant::ZERO), Ok(()));
        }
        assert_eq!(b.take(Instant::ZERO), Err(Duration::from_millis(250)));
        assert_eq!(b.take(Instant::from_millis(249)), Err(Duration::from_millis(1)));
        assert_eq!(b.take(Instant::from_millis(250)), Ok(()));
        assert_eq!(b.take(Instant::from_millis(250)), Err(Duration::from_millis(250)));
    }

    #[test]
    fn another_rate_keeps_what_was_taken() {
        let (start, second) = (Instant::ZERO, |s: u64| Instant::from_millis(s * 1_000));
        let rate = |burst, secs| Rate { burst, per: Duration::from_secs(secs) };
        // Six of eight are taken, so two of a smaller bucket are missing too, and more of a larger one are there.
        for (to, left) in
            [(rate(8, 60), 2), (rate(7, 2), 1), (rate(6, 2), 0), (rate(2, 2), 0), (rate(20, 2), 14)]
        {
            let mut b = Bucket::new(RATE, start);
            (0..6).for_each(|_| assert_eq!(b.take(start), Ok(())));
            b.set_rate(to, start);
            assert_eq!((0..32).filter(|_| b.take(start).is_ok()).count(), left, "{to:?}");
        }
        // What came back before the change is there, at the rate of then; what comes after it, at the new one.
        let mut b = Bucket::new(rate(2, 2), start);
        assert!(b.take(start).is_ok() && b.take(start).is_ok() && b.take(start).is_err());
        b.set_rate(rate(2, 200), second(1));
        assert_eq!((b.take(second(1)), b.take(second(1))), (Ok(()), Err(Duration::from_secs(100))));
        b.set_rate(rate(2, 2), second(51));
        assert_eq!(b.take(second(51)), Err(Duration::from_millis(500)), "half of one had come");
    }

    #[test]
    fn rates_of_any_size_are_taken() {
        let huge = Rate { burst: u32::MAX, per: Duration::MAX };
        let mut b = Bucket::new(huge, Instant::ZERO);
        assert_eq!(b.take(Instant::ZERO), Ok(()));
        b.set_rate(RATE, Instant::ZERO);
        assert_eq!((0..32).filter(|_| b.take(Instant::ZERO).is_ok()).count(), 7);
        b.set_rate(huge, Instant::from_nanos(1));
        assert!(b.take(Instant::from_nanos(1)).is_ok());
    }

    proptest! {
        /// In any window of length w no more than burst + w / (per / burst) tokens are given, and waiting as long as
        /// told is enough, and no more than enough.
        #[test]
        fn never_over_the_rate_in_any_window(
            burst in 1u32..20,
            per in 1u64..4_000_000_000,
            steps in prop::collection::vec(prop_oneof![Just(0), 0u64..400_000_000], 1..120),
        ) {
            let mut b = Bucket::new(Rate { burst, per: Duration::from_nanos(per) }, Instant::ZERO);
            let (mut now, mut given) = (Instant::ZERO, Vec::new());
            for step in steps {
                now = now + Duration::from_nanos(step);
                if let Err(wait) = b.take(now) {
                    prop_assert!(b.take(now + (wait - Duration::from_nanos(1))).is_err(), "told too long a wait");
                    now = now + wait;
                    prop_assert_eq!(b.take(now), Ok(()));
                }
                given.push(now.nanos());
            }
            for (first, from) in given.iter().enumerate() {
                for (last, to) in given.iter().enumerate().skip(first) {
                    let most = u128::from(burst) + u128::from(to - from) * u128::from(burst) / u128::from(per);
                    prop_assert!((last - first + 1) as u128 <= most, "{} in {} ns", last - first + 1, to - from);
                }
            }
        }
    }
}

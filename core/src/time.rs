//! Time as the core sees it: always an argument, never read.
//!
//! Decisions use [`Instant`] (monotonic); records, budgets and schedules use [`Wall`]. A driver reads both
//! clocks once per turn and hands them over as one [`Now`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
pub use std::time::Duration;

/// Monotonic nanoseconds since the daemon's epoch. Arithmetic saturates, so no input can overflow a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// The daemon's epoch.
    pub const ZERO: Instant = Instant(0);

    /// The instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Instant {
        Instant(ns)
    }

    /// The instant `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: u64) -> Instant {
        Instant(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch.
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long ago `earlier` was; zero when it lies in the future.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, rhs: Instant) -> Duration {
        self.since(rhs)
    }
}

/// Wall time in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Wall(pub u64);

impl fmt::Display for Wall {
    /// RFC 3339 in UTC with milliseconds, `2026-11-30T19:18:29.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, ms) = (self.0 / 1000, self.0 % 1000);
        let (days, rest) = (secs / 86_400, secs % 86_400);
        let (y, m, d) = civil_from_days(days);
        write!(f, "{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{ms:03}Z", rest / 3600, rest % 3600 / 60, rest % 60)
    }
}

impl Wall {
    /// What [`Wall`]'s own form says: RFC 3339 in UTC with milliseconds. `None` of any other text.
    pub fn parse(text: &str) -> Option<Wall> {
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (y, m, d) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hours, minutes, secs, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
        if y < 1970 || !(1..=12).contains(&m) || !(1..=31).contains(&d) {
            return None;
        }
        let secs = ((days_from_civil(y, m, d) * 24 + hours) * 60 + minutes) * 60 + secs;
        let wall = Wall(secs * 1_000 + ms);
        // One form for each time: what is printed otherwise was no time, or was written otherwise.
        (wall.to_string() == text).then_some(wall)
    }
}

/// The day count of a date; the inverse of [`civil_from_days`].
fn days_from_civil(y: u64, m: u64, d: u64) -> u64 {
    let y = if m <= 2 { y - 1 } else { y };
    let (era, yoe) = (y / 400, y % 400);
    let doy = (153 * ((m + 9) % 12) + 2) / 5 + d - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

/// Proleptic Gregorian date of a day count since 1970-01-01, counted in 400-year eras that begin in March.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let d = doy - (153 * mp + 2) / 5 + 1;
    let m = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(m <= 2), m, d)
}

/// Both clocks, read together once per driver turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Now {
    /// For decisions.
    pub mono: Instant,
    /// For records.
    pub wall: Wall,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_prints_rfc3339_across_leap_days() {
        assert_eq!(Wall(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Wall(951_782_400_123).to_string(), "2000-02-29T00:00:00.123Z");
        assert_eq!(Wall(1_796_066_309_000).to_string(), "2026-11-30T19:18:29.000Z");
        assert_eq!(Wall(4_107_542_400_000).to_string(), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn wall_reads_what_it_prints_and_nothing_else() {
        let days = (0..40_000u64).step_by(17).map(|day| day * 86_400_000 + 12_345);
        for ms in days.chain([0, 951_782_400_123, 1_796_066_309_000, 4_107_542_399_999, 4_107_542_400_000]) {
            assert_eq!(Wall::parse(&Wall(ms).to_string()), Some(Wall(ms)));
        }
        for text in [
            "",
            "2026",
            "2026-02-30T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-11-30T24:00:00.000Z",
            "2026-11-30T19:18:29Z",
            "2026-11-30 19:18:29.000Z",
            "1969-12-31T00:00:00.000Z",
            "2026-11-3éT19:18:29.000Z",
        ] {
            assert_eq!(Wall::parse(text), None, "{text}");
        }
    }

    #[test]
    fn instants_saturate() {
        let late = Instant::from_nanos(u64::MAX - 1);
        assert_eq!((late + Duration::MAX).nanos(), u64::MAX);
        assert_eq!(Instant::ZERO.since(late), Duration::ZERO);
    }
}

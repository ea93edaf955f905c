//! An account that begins anew each minute, hour or day by the wall clock.

use super::amount::{Amount, Caps};
use crate::store::WindowRow;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// How long a window is. It begins at the full minute, hour or day of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
}

impl Per {
    /// Every one with its name.
    pub const ALL: [(&'static str, Per); 3] =
        [("minute", Per::Minute), ("hour", Per::Hour), ("day", Per::Day)];

    /// Its name in configurations and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Per::Minute => "minute",
            Per::Hour => "hour",
            Per::Day => "day",
        }
    }

    /// In milliseconds.
    pub const fn ms(self) -> u64 {
        match self {
            Per::Minute => 60_000,
            Per::Hour => 3_600_000,
            Per::Day => 86_400_000,
        }
    }
}

/// One window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) per: Per,
    pub(super) caps: Caps,
    /// When it began.
    begun: Wall,
    used: Amount,
}

impl Window {
    pub(super) fn new(per: Per, caps: Caps, now: Wall) -> Window {
        Window { per, caps, begun: start(per, now), used: Amount::default() }
    }

    /// The time is `now`. A wall clock that is set back opens no window a second time.
    pub(super) fn turn(&mut self, now: Wall) {
        let start = start(self.per, now);
        if start > self.begun {
            (self.begun, self.used) = (start, Amount::default());
        }
    }

    /// What was used in it, with what may yet be.
    pub(super) fn row(&self, reserved: Amount) -> WindowRow {
        WindowRow { per: self.per, begun: self.begun, used: self.used.plus(reserved) }
    }

    /// Goes on with what an earlier life of the daemon used, if the window is still open. A wall clock that was set back
    /// meanwhile opens it no second time.
    pub(super) fn go_on(&mut self, row: &WindowRow, now: Wall) {
        (self.begun, self.used) = (row.begun, row.used);
        self.turn(now);
    }

    pub(super) fn used(&self) -> Amount {
        self.used
    }

    pub(super) fn charge(&mut self, amount: Amount) {
        self.used = self.used.plus(amount);
    }

    /// Takes back what was charged too much. What was charged in a window that is over stays there.
    pub(super) fn correct(&mut self, amount: Amount) {
        self.used = self.used.less(amount);
    }

    /// When the next one begins.
    pub(super) fn ends(&self) -> Wall {
        Wall(self.begun.0.saturating_add(self.per.ms()))
    }

    /// From when on `amount` in all is within an even pace: half of the cap may be used at any time, the other half as
    /// fast as the window passes.
    pub(super) fn paced_from(&self, amount: Amount) -> Wall {
        let share = self.caps.share(amount).min(1_000_000);
        let late = share.saturating_sub(500_000) * 2;
        Wall(self.begun.0.saturating_add((self.per.ms() * late).div_ceil(1_000_000)))
    }
}

fn start(per: Per, now: Wall) -> Wall {
    Wall(now.0 - now.0 % per.ms())
}

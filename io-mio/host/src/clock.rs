//! The only place where a driver reads clocks and draws chance.

use agentd_core::time::{Instant, Now, Wall};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Both clocks, the monotonic one counted from the moment this was made.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    pub fn start() -> Clock {
        Clock { epoch: std::time::Instant::now() }
    }

    /// CLOCK_MONOTONIC, which stands still while the machine sleeps, and CLOCK_REALTIME.
    pub fn now(&self) -> Now {
        let mono = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // A wall clock set before 1970 reads as 1970.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Now { mono: Instant::from_nanos(mono), wall: Wall(u64::try_from(wall).unwrap_or(u64::MAX)) }
    }
}

/// 64 bits from the system's generator, which never waits once the machine has booted.
///
/// # Errors
/// `getrandom(2)`.
pub fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes[filled..], flags))?;
    }
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_the_epoch_and_seeds_differ() {
        let clock = Clock::start();
        let (a, b) = (clock.now(), clock.now());
        assert!(a.mono <= b.mono && b.mono < Instant::from_millis(60_000));
        assert!(a.wall > Wall(1_700_000_000_000));
        assert_ne!(seed().expect("getrandom works"), seed().expect("getrandom works"));
    }
}

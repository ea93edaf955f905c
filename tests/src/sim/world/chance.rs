//! Chance in the world. Every party draws from a stream of its own, so that deleting a step of a plan leaves the
//! luck of all others as it was, and shrinking works.

use crate::sim::agenda::Stream;
use agentd_core::rng::Rng;
use agentd_core::time::Duration;
use std::collections::BTreeMap;

pub(crate) struct Chance {
    seed: u64,
    jitter_us: u64,
    streams: BTreeMap<Stream, Rng>,
}

impl Chance {
    pub(crate) fn new(seed: u64, jitter_ms: u64) -> Chance {
        Chance { seed, jitter_us: jitter_ms * 1_000, streams: BTreeMap::new() }
    }

    /// A number below `bound`, from the stream of `whom`.
    pub(crate) fn below(&mut self, whom: Stream, bound: u64) -> u64 {
        let seed = self.seed;
        self.streams
            .entry(whom)
            .or_insert_with(|| {
                let name = whom.0.name().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
                    (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
                });
                Rng::new(seed ^ name ^ whom.1.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            })
            .below(bound)
    }

    /// An ordinary delay: mostly almost nothing, at times as long as the plan allows.
    pub(crate) fn delay(&mut self, whom: Stream) -> Duration {
        let most = match self.below(whom, 4) {
            0..=2 => self.jitter_us / 10,
            _ => self.jitter_us,
        };
        Duration::from_micros(1 + self.below(whom, most.max(1)))
    }
}

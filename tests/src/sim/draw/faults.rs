//! What goes wrong around the processes.

use super::Draw;
use crate::sim::plan::{Fault, Interrupt, Knobs};

impl Draw {
    pub(super) fn faults(&mut self, temper: u64, knobs: &Knobs, asked: u64) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.one_in(4) {
            self.signals(&mut faults, knobs);
        }
        if self.one_in(if knobs.one_shot { 10 } else { 2 }) {
            for _ in 0..1 + self.rng.below(3) {
                let prompt = 1 + self.rng.below(asked + 2);
                let at_ms = self.pick(&[0, 1, 4, 30, 400, 1_600, 7_000]);
                faults.push(Fault::CancelPrompt { prompt, at_ms });
            }
        }
        for _ in 0..temper * self.rng.below(3) {
            faults.push(self.fault(knobs));
        }
        faults
    }

    fn signals(&mut self, faults: &mut Vec<Fault>, knobs: &Knobs) {
        let signal = self.pick(&[Interrupt::Term, Interrupt::Term, Interrupt::Int, Interrupt::Hup]);
        let at_ms = self.pick(&[0, 2, 10, 60, 700, 3_000, 9_000]);
        faults.push(Fault::Signal { at_ms, signal });
        if self.one_in(2) {
            let later = self.pick(&[0, 1, 300, knobs.drain_ms, knobs.drain_ms + 1_500]);
            faults.push(Fault::Signal { at_ms: at_ms + later, signal });
        }
    }

    fn fault(&mut self, knobs: &Knobs) -> Fault {
        let nth = self.rng.below(9) as u32;
        match self.rng.below(13) {
            12 => Fault::SpawnFrameFails { nth },
            11 => Fault::Orphan { at_ms: self.pick(&[1, 400, 4_000]) },
            0 => Fault::SpawnFails { nth, times: 1 + self.rng.below(5) as u32, transient: self.one_in(2) },
            1 => Fault::Stillborn { nth },
            2 | 3 => Fault::SpawnSlow { nth, ms: self.pick(&[20, 700, 6_000]) },
            4 => {
                let ms = self.pick(&[5, 400, 3_000]);
                Fault::StoreSlow { nth: self.rng.below(12), times: 1 + self.rng.below(20), ms }
            }
            5 => {
                let (nth, times) = (self.rng.below(14), 1 + self.rng.below(3));
                Fault::StoreFails { nth, times, retryable: !self.one_in(4) }
            }
            6 => Fault::ExitLate { nth, ms: self.pick(&[3, 40, 900, 2_500]) },
            // Late, but not so late that a pong behind it counts as missing.
            7 => Fault::ReadLate { nth, ms: self.pick(&[3, 40, 300, 850]).min(knobs.pong_ms / 3) },
            8 => Fault::ExitUnknown { nth },
            _ => Fault::Gap {
                at_ms: self.pick(&[1, 30, 500, 2_000, 8_000]),
                ms: self.pick(&[900, 5_000, 60_000, 400_000]),
                machine: self.one_in(2),
            },
        }
    }
}

//! What goes wrong around the processes.

use super::Draw;
use super::swarm::Trouble;
use crate::sim::plan::{Fault, Interrupt, Knobs, Limits, Order, Plan};

/// A kind of fault, and how one is drawn.
type Kind = (Trouble, fn(&mut Draw, &Knobs) -> Fault);

const KINDS: [Kind; 8] = [
    (Trouble::Forks, Draw::fork),
    (Trouble::Store, Draw::store),
    (Trouble::Lateness, Draw::late),
    (Trouble::Gaps, Draw::gap),
    (Trouble::Wall, Draw::wall),
    (Trouble::Orphans, Draw::orphan),
    (Trouble::Operators, Draw::operator),
    (Trouble::Limits, Draw::reload),
];

impl Draw {
    pub(super) fn faults(&mut self, temper: u64, knobs: &Knobs, asked: u64) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.has(Trouble::Signals) && self.one_in(2) {
            self.signals(&mut faults, knobs);
        }
        if self.has(Trouble::Cancels) && self.one_in(if knobs.one_shot { 5 } else { 1 }) {
            for _ in 0..1 + self.rng.below(3) {
                let prompt = 1 + self.rng.below(asked + 2);
                let at_ms = self.pick(&[0, 1, 4, 30, 400, 1_600, 7_000]);
                faults.push(Fault::CancelPrompt { prompt, at_ms });
            }
        }
        if self.has(Trouble::Crash) && self.one_in(6) {
            let range = self.pick(&[8, 60, 60, 400, 2_000]);
            faults.push(Fault::Crash { at_action: self.rng.below(range) });
        }
        let kinds: Vec<Kind> = KINDS.into_iter().filter(|(trouble, _)| self.has(*trouble)).collect();
        for _ in 0..temper * self.rng.below(4) {
            if !kinds.is_empty() {
                let (_, draw) = self.pick(&kinds);
                faults.push(draw(self, knobs));
            }
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

    /// A store that outlives the daemon, and daemons that are killed and begun again on it.
    pub(super) fn restarts(&mut self, plan: &mut Plan) {
        plan.knobs.keeps = true;
        plan.knobs.relaxed = self.one_in(4);
        plan.knobs.ephemeral = self.one_in(8);
        for _ in 0..self.pick(&[0, 1, 1, 1, 2, 3, 6]) {
            let range = self.pick(&[6, 30, 60, 200, 800]);
            plan.faults.push(Fault::Restart { at_action: self.rng.below(range), torn: self.one_in(4) });
        }
    }

    fn fork(&mut self, _: &Knobs) -> Fault {
        let nth = self.rng.below(9) as u32;
        match self.rng.below(8) {
            7 => Fault::KillAll { at_ms: self.pick(&[3, 60, 900, 5_000]) },
            0 => Fault::SpawnFrameFails { nth },
            1 => Fault::Stillborn { nth },
            2 => Fault::ExecFails { nth, ms: self.pick(&[0, 1, 30]) },
            3 | 4 => Fault::SpawnSlow { nth, ms: self.pick(&[20, 700, 6_000]) },
            _ => Fault::SpawnFails { nth, times: 1 + self.rng.below(5) as u32, transient: self.one_in(2) },
        }
    }

    /// Other limits, some of them as they were.
    fn reload(&mut self, knobs: &Knobs) -> Fault {
        let limits = Limits {
            breadth: self.pick(&[1, 2, 3, 8, knobs.breadth]),
            total: self.pick(&[1, 3, 6, 64, knobs.total]),
            depth: self.pick(&[0, 1, 2, knobs.depth]),
            burst: self.pick(&[1, 2, 8, knobs.burst]),
            refill_ms: self.pick(&[200, 2_000, 60_000, knobs.refill_ms]),
            queue: self.pick(&[0, 1, 4, knobs.queue]),
        };
        Fault::Reload { at_ms: self.pick(&[0, 1, 5, 40, 500, 1_900, 6_000]), limits }
    }

    fn store(&mut self, _: &Knobs) -> Fault {
        if self.one_in(2) {
            let ms = self.pick(&[5, 400, 3_000]);
            return Fault::StoreSlow { nth: self.rng.below(12), times: 1 + self.rng.below(20), ms };
        }
        let (nth, times) = (self.rng.below(14), 1 + self.rng.below(3));
        Fault::StoreFails { nth, times, retryable: !self.one_in(4) }
    }

    fn late(&mut self, knobs: &Knobs) -> Fault {
        let nth = self.rng.below(9) as u32;
        match self.rng.below(3) {
            0 => Fault::ExitLate { nth, ms: self.pick(&[3, 40, 900, 2_500]) },
            // Late, but not so late that a pong behind it counts as missing.
            1 => Fault::ReadLate { nth, ms: self.pick(&[3, 40, 300, 850]).min(knobs.pong_ms / 3) },
            _ => Fault::ExitUnknown { nth },
        }
    }

    fn gap(&mut self, _: &Knobs) -> Fault {
        Fault::Gap {
            at_ms: self.pick(&[1, 30, 500, 2_000, 8_000]),
            ms: self.pick(&[900, 5_000, 60_000, 400_000]),
            machine: self.one_in(2),
        }
    }

    fn wall(&mut self, _: &Knobs) -> Fault {
        const DAY: i64 = 86_400_000;
        let by_ms = self.pick(&[1, -1, 900, -5_000, 3_600_000, -3_600_000, 400 * DAY, -900 * DAY]);
        Fault::Wall { at_ms: self.pick(&[0, 5, 80, 900, 6_000]), by_ms }
    }

    fn orphan(&mut self, _: &Knobs) -> Fault {
        Fault::Orphan { at_ms: self.pick(&[1, 400, 4_000]) }
    }

    fn operator(&mut self, knobs: &Knobs) -> Fault {
        // A kill of somebody on whom much hangs.
        if self.has(Trouble::Families) && self.one_in(2) {
            let (at_ms, handle) = (self.pick(&[20, 150, 900, 4_000]), 1 + self.rng.below(2));
            return Fault::Operator { at_ms, handle, order: Order::Kill { only: self.one_in(4) } };
        }
        let order = match self.rng.below(8) {
            0 | 1 => Order::Kill { only: self.one_in(4) },
            2..=4 => Order::Pause { ms: self.pick(&[0, 30, 900, 5_000, 2 * knobs.progress_ms]) },
            5 => Order::Status,
            6 => Order::Await { ms: self.pick(&[0, 300, 20_000]) },
            _ => Order::Nonsense,
        };
        let at_ms = self.pick(&[0, 3, 20, 150, 900, 4_000]);
        Fault::Operator { at_ms, handle: 1 + self.rng.below(4), order }
    }
}

//! What models do that processes ask: their endpoints' limits, and what calls of them may cost.

use super::Draw;
use crate::sim::plan::{Fault, Plan, Provider, Purse, Step};
use agentd_core::budget::OnExhausted;

impl Draw {
    /// A model behind endpoints, and calls of it in between everything else.
    pub(super) fn providers(&mut self, plan: &mut Plan) {
        plan.knobs.endpoints = 1 + self.rng.below(2) as u32;
        for script in &mut plan.scripts {
            for steps in [&mut script.steps].into_iter().chain(&mut script.turns) {
                for _ in 0..self.rng.below(5) {
                    let says = match self.rng.below(6) {
                        0 => Provider::Answers,
                        1 | 2 => Provider::Fails,
                        3 => Provider::Limits,
                        _ => Provider::LimitsFor(self.pick(&[0, 1, 800, 3_000, 40_000, u64::MAX])),
                    };
                    let at = self.rng.below(steps.len() as u64 + 1) as usize;
                    steps.insert(at, Step::Ask(says));
                }
            }
        }
    }

    /// A budget, and calls that meet it.
    pub(super) fn purse(&mut self, plan: &mut Plan) {
        let cap = |d: &mut Draw| d.pick(&[0, 0, 300, 1_000, 1_000, 4_000]);
        // A window begins by the wall clock; where that is set, none does.
        let is_set = plan.faults.iter().any(|fault| matches!(fault, Fault::Wall { .. }));
        let purse = Purse {
            lifetime: cap(self),
            minute: if is_set { 0 } else { cap(self) },
            money: self.one_in(2),
            run: cap(self),
            policy: self.pick(&[
                OnExhausted::Wait,
                OnExhausted::Slow,
                OnExhausted::Degrade,
                OnExhausted::Refuse,
                OnExhausted::Fail,
            ]),
        };
        // Money is counted only where there are prices.
        plan.knobs.priced |= purse.money || purse.run > 0;
        plan.knobs.purse = Some(purse);
        for script in &mut plan.scripts {
            for steps in [&mut script.steps].into_iter().chain(&mut script.turns) {
                for _ in 0..self.rng.below(6) {
                    let most = self.pick(&[1, 90, 200, 400, 900, 5_000]);
                    let used = self.pick(&[0, 1, most / 3, most, most]);
                    let ms = self.pick(&[0, 1, 40, 700, 20_000]);
                    let at = self.rng.below(steps.len() as u64 + 1) as usize;
                    steps.insert(at, Step::Call { most, used, ms });
                }
            }
        }
    }
}

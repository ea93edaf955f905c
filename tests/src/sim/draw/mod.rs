//! A plan from a seed. Plans are drawn towards trouble: small limits, small pipes, quick clocks, and several things
//! going wrong at once; and towards plainness often enough that the plain way is walked too. Which kinds of trouble
//! there are at all is drawn first.

mod choices;
mod faults;
mod models;
mod scripts;
mod swarm;

use super::plan::{Knobs, Plan};
use agentd_core::rng::Rng;
use choices::Choices;
use swarm::{Swarm, Trouble};

/// The plan that a seed means.
pub fn plan(seed: u64) -> Plan {
    plan_by(Choices::Seed(Rng::new(seed)), seed)
}

/// The plan that bytes mean: the first two are the seed of the world's jitter, each other one decides one choice of the
/// drawing. So any bytes are a plan that a seed could have drawn, and a small change of them is a small change of it.
pub fn plan_of_bytes(bytes: &[u8]) -> Plan {
    let (seed, choices) = bytes.split_at(bytes.len().min(2));
    let seed = seed.iter().fold(0, |seed, byte| seed * 256 + u64::from(*byte));
    plan_by(Choices::Bytes(choices.iter().copied().collect()), seed)
}

fn plan_by(mut rng: Choices, seed: u64) -> Plan {
    let swarm = Swarm::draw(&mut rng);
    let mut d = Draw { rng, swarm, warm: false };
    // How much goes wrong in this life: calm, rough or wild.
    let temper = d.rng.below(4);
    let knobs = d.knobs(temper);
    d.warm = d.swarm.has(Trouble::Talk);
    let kinds = 1 + d.rng.below(5) as usize;
    let mut scripts = vec![d.root(kinds, &knobs)];
    for kind in 1..=kinds {
        scripts.push(d.script(kind, kinds, temper, &knobs));
    }
    let prompts_ms = d.prompts(&knobs);
    let faults = d.faults(temper, &knobs, prompts_ms.len() as u64);
    let heal_ms = d.one_in(4).then(|| d.pick(&[20, 400, 3_000, 20_000]));
    let mut plan = Plan { seed, knobs, scripts, prompts_ms, faults, heal_ms };
    // Last, so that a plan is otherwise what it was before there were providers.
    if d.rng.below(3) == 1 {
        d.providers(&mut plan);
    }
    if d.rng.below(3) == 1 {
        d.purse(&mut plan);
    }
    // The same of a store that outlives the daemon.
    if d.rng.below(3) == 1 {
        d.restarts(&mut plan);
    }
    plan
}

struct Draw {
    rng: Choices,
    swarm: Swarm,
    /// Warm runs, and what is said to them, come up.
    warm: bool,
}

impl Draw {
    fn has(&self, trouble: Trouble) -> bool {
        self.swarm.has(trouble)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.below(from.len() as u64) as usize]
    }

    fn knobs(&mut self, temper: u64) -> Knobs {
        let plain = Knobs::default();
        if temper == 0 && self.one_in(2) {
            return plain;
        }
        let quick = self.one_in(2);
        let (limited, pieces) = (self.has(Trouble::Limits), self.has(Trouble::Pieces));
        let turn_ms = match (self.has(Trouble::Turns) && self.one_in(2), quick) {
            (false, _) => 0,
            (true, true) => self.pick(&[1, 10, 50]),
            (true, false) => self.pick(&[1, 20, 200]),
        };
        let one_shot = !self.one_in(3);
        let wake = !one_shot && self.one_in(2);
        Knobs {
            queue: if self.has(Trouble::Queue) { self.pick(&[1, 2, 5, 16]) } else { 0 },
            one_shot,
            idle_ms: self.pick(&[50, 1_000, 5_000, 60_000]),
            wake,
            // A conversation that is told of each turn it asks for may go on for as long as it is let.
            stop_ms: match (wake, quick) {
                (true, _) => self.pick(&[1_500, 3_000]),
                (false, true) => self.pick(&[1_500, 8_000]),
                (false, false) => self.pick(&[1_500, 8_000, 30_000]),
            },
            breadth: if limited { self.pick(&[1, 2, 3]) } else { self.pick(&[3, 8]) },
            total: if limited { self.pick(&[2, 5, 12, 64]) } else { 64 },
            depth: if self.has(Trouble::Families) { self.pick(&[2, 3]) } else { self.pick(&[1, 1, 2, 2, 3]) },
            burst: if limited { self.pick(&[1, 3, 8, 50]) } else { 50 },
            refill_ms: self.pick(&[100, 2_000, 2_000]),
            deadline_ms: self.pick(&[20_000, 120_000, 600_000]),
            ping_ms: if quick { 200 } else { plain.ping_ms },
            pong_ms: if quick { 700 } else { plain.pong_ms },
            progress_ms: if quick { 2_000 } else { plain.progress_ms },
            ready_ms: if quick { 1_500 } else { plain.ready_ms },
            grace_ms: self.pick(&[1_000, 60_000]),
            term_ms: if quick { 500 } else { plain.term_ms },
            kill_ms: if quick { 200 } else { plain.kill_ms },
            exit_ms: if quick { 500 } else { plain.exit_ms },
            drain_ms: self.pick(&[1_000, 5_000, 25_000]),
            pids: self.pick(&[8, 12, 20, 32]),
            strangers: self.one_in(3),
            // Small pipes and a byte at a time only where nobody is soon judged by how long a frame takes.
            pipe: match (pieces, quick) {
                (false, _) => 65_536,
                (true, true) => self.pick(&[16_384, 65_536]),
                (true, false) => self.pick(&[512, 4_096, 65_536]),
            },
            read: match (pieces, quick) {
                (false, _) => 65_536,
                (true, true) => self.pick(&[31, 65_536]),
                (true, false) => self.pick(&[1, 7, 7, 61, 400, 65_536]),
            },
            write: match (pieces && turn_ms == 0, quick) {
                (false, _) => 65_536,
                (true, true) => self.pick(&[4_096, 65_536]),
                (true, false) => self.pick(&[61, 400, 65_536]),
            },
            turn_ms,
            endpoints: 0,
            priced: self.one_in(2),
            purse: None,
            keeps: false,
            relaxed: false,
            ephemeral: false,
            parent_death: true,
            jitter_ms: self.pick(&[0, 1, 1, 10, 40]),
            tick_first: self.one_in(2),
        }
    }

    /// When the conversation is asked again.
    fn prompts(&mut self, knobs: &Knobs) -> Vec<u64> {
        if knobs.one_shot && !self.one_in(12) {
            return Vec::new();
        }
        // More than may wait, at times.
        let count = if self.one_in(40) { 70 } else { self.rng.below(6) };
        let mut at_ms = 0;
        (0..count)
            .map(|_| {
                at_ms += self.pick(&[0, 0, 1, 20, 300, 1_500, 6_000]);
                at_ms
            })
            .collect()
    }
}

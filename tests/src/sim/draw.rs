//! A plan from a seed. Plans are drawn towards trouble: small limits, small pipes, quick clocks, and several things
//! going wrong at once; and towards plainness often enough that the plain way is walked too.

use super::plan::{
    Answer, Fault, Flaw, Interrupt, Knobs, Mode, Nature, Offspring, OnCancel, OnTerm, Plan, Readiness,
    Rubbish, Script, Step,
};
use agentd_core::rng::Rng;

/// The plan that a seed means.
pub fn plan(seed: u64) -> Plan {
    let mut d = Draw(Rng::new(seed));
    // How much goes wrong in this life: calm, rough or wild.
    let temper = d.0.below(4);
    let knobs = d.knobs(temper);
    let kinds = 1 + d.0.below(5) as usize;
    let mut scripts = vec![d.root(kinds, &knobs)];
    for kind in 1..=kinds {
        scripts.push(d.script(kind, kinds, temper, &knobs));
    }
    let faults = d.faults(temper, &knobs);
    Plan { seed, knobs, scripts, faults }
}

struct Draw(Rng);

impl Draw {
    fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.below(from.len() as u64) as usize]
    }

    fn knobs(&mut self, temper: u64) -> Knobs {
        let plain = Knobs::default();
        if temper == 0 && self.one_in(2) {
            return plain;
        }
        let quick = self.one_in(2);
        Knobs {
            breadth: self.pick(&[1, 2, 3, 3, 8]),
            total: self.pick(&[2, 5, 12, 64, 64]),
            depth: self.pick(&[1, 1, 2, 2, 3]),
            burst: self.pick(&[1, 3, 8, 50, 50]),
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
            pipe: if quick { self.pick(&[4_096, 65_536]) } else { self.pick(&[512, 4_096, 65_536]) },
            read: if quick { self.pick(&[31, 65_536]) } else { self.pick(&[1, 7, 61, 65_536]) },
            jitter_ms: self.pick(&[0, 1, 1, 10, 40]),
            tick_first: self.one_in(2),
        }
    }

    /// The worker: calls, waits, looks, kills, and says its last word.
    fn root(&mut self, kinds: usize, knobs: &Knobs) -> Script {
        let mut steps = Vec::new();
        let rounds = 1 + self.0.below(4);
        let mut made = 0;
        for _ in 0..rounds {
            for _ in 0..1 + self.0.below(u64::from(knobs.breadth) + 3) {
                steps.push(self.run(kinds, 0));
                made += 1;
            }
            self.meddle(&mut steps, made);
            if !self.one_in(4) {
                steps.push(Step::Collect);
            }
        }
        if self.one_in(3) {
            let handles = (1..=made.min(6)).collect();
            steps.push(Step::Await { handles, any: self.one_in(3), timeout_ms: self.timeout() });
        }
        if !self.one_in(4) {
            steps.push(Step::Collect);
        }
        if self.one_in(12) {
            steps.push(self.ending());
        }
        let nature = Nature { on_cancel: self.on_cancel(), ..Nature::default() };
        Script { nature, steps }
    }

    /// A subagent of one kind; later kinds are made by earlier ones, so that no plan is endless.
    fn script(&mut self, kind: usize, kinds: usize, temper: u64, knobs: &Knobs) -> Script {
        let mut steps = Vec::new();
        for _ in 0..self.0.below(4) {
            match self.0.below(8) {
                0 | 1 => steps.push(Step::Wait(self.pick(&[1, 20, 300, 2_500, 9_000, 130_000]))),
                2 => steps.push(Step::Say(1 + self.0.below(20) as u32)),
                3 if self.one_in(4) => steps.push(Step::Say(400)),
                4 | 5 if kind < kinds => {
                    steps.push(self.run(kinds, kind));
                    self.meddle(&mut steps, 4);
                    if self.one_in(2) {
                        steps.push(Step::Collect);
                    }
                }
                6 if self.one_in(3) => steps.push(Step::Nonsense),
                6 if self.one_in(2) => steps.push(Step::Mutter(self.pick(&[1, 3, 200]))),
                7 => steps.push(Step::Fork(self.offspring())),
                _ => {}
            }
        }
        let wrong = temper > 0 && self.0.below(4) < temper;
        if wrong {
            steps.push(self.wrong());
        }
        if self.one_in(2) {
            steps.push(self.ending());
        }
        let nature = if temper > 0 && self.one_in(3) { self.nature(knobs) } else { Nature::default() };
        Script { nature, steps }
    }

    fn run(&mut self, kinds: usize, above: usize) -> Step {
        let script = above + 1 + self.0.below((kinds - above).max(1) as u64) as usize;
        let flaw = self
            .one_in(12)
            .then(|| self.pick(&[Flaw::Empty, Flaw::Mode, Flaw::Key, Flaw::Zero, Flaw::Server, Flaw::Depth]));
        let mode = self.pick(&[Mode::Sync, Mode::Sync, Mode::Async, Mode::Async, Mode::Detached]);
        Step::Run { script, mode, delegate: self.one_in(2), flaw }
    }

    /// Looks at, waits for or kills somebody that may exist.
    fn meddle(&mut self, steps: &mut Vec<Step>, made: u64) {
        for _ in 0..self.0.below(3) {
            let handle = 1 + self.0.below(made + 1);
            match self.0.below(7) {
                0 => steps.push(Step::Status(handle)),
                1 => steps.push(Step::List),
                2 | 3 => steps.push(Step::Kill { handle, only: self.one_in(4) }),
                4 => {
                    let (any, timeout_ms) = (self.one_in(2), self.timeout());
                    steps.push(Step::Await { handles: vec![handle, handle + 1], any, timeout_ms });
                }
                _ => steps.push(Step::Wait(self.pick(&[1, 30, 400, 4_000]))),
            }
        }
    }

    fn timeout(&mut self) -> Option<u64> {
        self.one_in(2).then(|| self.pick(&[1, 200, 3_000, 30_000]))
    }

    fn wrong(&mut self) -> Step {
        match self.0.below(8) {
            0 | 1 => Step::Hang,
            2 => Step::Stopped,
            3 => Step::CloseStdout,
            4 => Step::Die(self.pick(&[6, 9, 11])),
            5 => Step::Exit(self.pick(&[0, 1, 101])),
            _ => Step::Rubbish(self.pick(&[
                Rubbish::Text,
                Rubbish::Zero,
                Rubbish::Huge,
                Rubbish::Gap,
                Rubbish::SameId,
                Rubbish::Cut,
            ])),
        }
    }

    fn ending(&mut self) -> Step {
        let answer =
            self.pick(&[Answer::Text, Answer::Object, Answer::Long, Answer::Exhausted, Answer::Refused]);
        match self.0.below(8) {
            0 => Step::Fail,
            1 => Step::Exit(0),
            2 => Step::Finish { answer, exit_ms: None },
            3 => Step::Finish { answer, exit_ms: Some(self.pick(&[10, 400, 4_000, 7_000])) },
            _ => Step::Finish { answer, exit_ms: Some(0) },
        }
    }

    fn nature(&mut self, knobs: &Knobs) -> Nature {
        let ready = match self.0.below(6) {
            0 => Readiness::Never,
            1 => Readiness::Exits(self.pick(&[0, 2, 127])),
            2 => Readiness::After(knobs.ready_ms + self.pick(&[0, 1]) * 5_000),
            _ => Readiness::After(self.pick(&[0, 1, 50, 900])),
        };
        Nature {
            ready,
            on_cancel: self.on_cancel(),
            on_term: self.pick(&[
                OnTerm::Dies,
                OnTerm::Dies,
                OnTerm::Exits(1),
                OnTerm::Exits(150),
                OnTerm::Exits(1_900),
                OnTerm::Ignores,
            ]),
            deaf: self.one_in(8),
            dying_ms: self.pick(&[0, 0, 1, 30, 300]),
        }
    }

    fn on_cancel(&mut self) -> OnCancel {
        self.pick(&[
            OnCancel::Obeys(0),
            OnCancel::Obeys(1),
            OnCancel::Obeys(300),
            OnCancel::Leaves(0),
            OnCancel::Leaves(40),
            OnCancel::Ignores,
        ])
    }

    fn offspring(&mut self) -> Offspring {
        let stubborn = self.one_in(40);
        Offspring {
            escapes: self.one_in(2),
            holds: self.one_in(2),
            exits_ms: self.one_in(3).then(|| self.pick(&[1, 100, 5_000])),
            ignores_term: self.one_in(2),
            keeper_ms: self.one_in(3).then(|| self.pick(&[1, 100, 400, 1_500, 60_000])),
            respawns: if stubborn { 1_000 } else { self.pick(&[0, 0, 0, 1, 3]) },
            dying_ms: if self.one_in(40) { 20_000 } else { self.pick(&[0, 1, 5, 120]) },
        }
    }

    fn faults(&mut self, temper: u64, knobs: &Knobs) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.one_in(4) {
            self.signals(&mut faults, knobs);
        }
        for _ in 0..temper * self.0.below(3) {
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
        let nth = self.0.below(9) as u32;
        match self.0.below(12) {
            11 => Fault::Orphan { at_ms: self.pick(&[1, 400, 4_000]) },
            0 => Fault::SpawnFails { nth, times: 1 + self.0.below(5) as u32, transient: self.one_in(2) },
            1 => Fault::Stillborn { nth },
            2 | 3 => Fault::SpawnSlow { nth, ms: self.pick(&[20, 700, 6_000]) },
            4 => {
                let ms = self.pick(&[5, 400, 3_000]);
                Fault::StoreSlow { nth: self.0.below(12), times: 1 + self.0.below(20), ms }
            }
            5 => {
                let (nth, times) = (self.0.below(14), 1 + self.0.below(3));
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

//! What processes do.

use super::Draw;
use super::swarm::Trouble;
use crate::sim::plan::{
    Answer, Flaw, ItemStatus, Knobs, Mode, Nature, Offspring, OnCancel, OnTerm, OnTurnCancel, Rank,
    Readiness, Rubbish, Script, Step, TurnEnd,
};

impl Draw {
    /// The worker: calls, waits, looks, kills, and says its last word.
    pub(super) fn root(&mut self, kinds: usize, knobs: &Knobs) -> Script {
        let mut made = 0;
        let mut steps = self.root_turn(kinds, knobs, &mut made);
        let mut turns = Vec::new();
        if !knobs.one_shot {
            for _ in 0..self.rng.below(4) {
                turns.push(if self.one_in(3) { Vec::new() } else { self.root_turn(kinds, knobs, &mut made) });
            }
        }
        if self.one_in(12) {
            steps.push(self.ending());
        }
        if !knobs.one_shot && self.has(Trouble::Wrongs) && self.one_in(4) {
            let last = turns.last_mut().unwrap_or(&mut steps);
            let wrong = if self.one_in(2) { self.wrong() } else { self.turn_end() };
            last.push(wrong);
        }
        let between = if knobs.one_shot { Vec::new() } else { self.between() };
        let nature = match self.has(Trouble::Natures) {
            true => Nature {
                on_cancel: self.on_cancel(),
                on_turn_cancel: self.on_turn_cancel(),
                ..Nature::default()
            },
            false => Nature::default(),
        };
        Script { nature, steps, turns, between }
    }

    fn root_turn(&mut self, kinds: usize, knobs: &Knobs, made: &mut u64) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.has(Trouble::Plans) && self.one_in(2) {
            let most = if self.one_in(10) { 40 } else { 5 };
            steps.push(Step::Plan(self.rng.below(most) as u32));
        }
        let rounds = 1 + self.rng.below(if knobs.one_shot { 4 } else { 2 });
        for _ in 0..rounds {
            for _ in 0..1 + self.rng.below(u64::from(knobs.breadth) + 3) {
                steps.push(self.run(kinds, 0));
                *made += 1;
            }
            self.meddle(&mut steps, *made);
            self.plan_on(&mut steps, *made);
            if !self.one_in(4) {
                steps.push(Step::Collect);
            }
            if self.warm {
                self.meddle(&mut steps, *made);
            }
        }
        self.plan_on(&mut steps, *made);
        if self.has(Trouble::Awaits) && self.one_in(2) {
            let handles = (1..=(*made).min(6)).collect();
            let (any, timeout_ms) = (self.one_in(3), self.timeout());
            steps.push(Step::Await { handles, any, timeout_ms, message: None });
        }
        if !self.one_in(4) {
            steps.push(Step::Collect);
        }
        steps
    }

    /// A subagent of one kind; later kinds are made by earlier ones, so that no plan is endless.
    pub(super) fn script(&mut self, kind: usize, kinds: usize, temper: u64, knobs: &Knobs) -> Script {
        let mut steps = self.family(kind, kinds);
        steps.extend(self.work(kind, kinds));
        let mut turns = Vec::new();
        let mut between = Vec::new();
        if self.warm {
            for _ in 0..self.rng.below(4) {
                let mut turn = self.work(kind, kinds);
                if temper > 0 && self.has(Trouble::Wrongs) && self.one_in(5) {
                    turn.push(self.wrong());
                }
                if self.one_in(3) {
                    turn.push(self.turn_end());
                }
                turns.push(turn);
            }
            between = self.between();
        }
        let goes_wrong = self.has(Trouble::Wrongs) || self.has(Trouble::Rubbish);
        let wrong = temper > 0 && goes_wrong && self.rng.below(4) < temper;
        if wrong {
            steps.push(self.wrong());
        }
        if self.warm && self.one_in(3) {
            steps.push(self.turn_end());
        } else if self.one_in(2) {
            steps.push(self.ending());
        }
        let nature = if temper > 0 && self.has(Trouble::Natures) && !self.one_in(3) {
            self.nature(knobs)
        } else {
            Nature::default()
        };
        Script { nature, steps, turns, between }
    }

    /// Runs below this one, and time in which they are there together.
    fn family(&mut self, kind: usize, kinds: usize) -> Vec<Step> {
        if !self.has(Trouble::Families) || kind == kinds {
            return Vec::new();
        }
        let mut steps: Vec<Step> = (0..1 + self.rng.below(2)).map(|_| self.run(kinds, kind)).collect();
        steps.push(Step::Wait(self.pick(&[1, 300, 2_500, 9_000])));
        steps
    }

    fn work(&mut self, kind: usize, kinds: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..self.rng.below(4) {
            match self.rng.below(8) {
                0 | 1 => steps.push(Step::Wait(self.pick(&[1, 20, 300, 2_500, 9_000, 130_000]))),
                2 => steps.push(Step::Say(1 + self.rng.below(20) as u32)),
                3 if self.one_in(4) => steps.push(Step::Say(400)),
                3 => {
                    steps.push(Step::Think);
                    if self.one_in(2) {
                        steps.push(Step::Wait(self.pick(&[1, 300, 9_000])));
                        steps.push(Step::Say(2));
                    }
                }
                4 | 5 if kind < kinds => {
                    steps.push(self.run(kinds, kind));
                    self.meddle(&mut steps, 4);
                    if self.one_in(2) {
                        steps.push(Step::Collect);
                    }
                }
                6 if self.one_in(3) => steps.push(Step::Nonsense),
                6 if self.one_in(2) => steps.push(Step::Mutter(self.pick(&[1, 3, 200]))),
                7 if self.has(Trouble::Offspring) => steps.push(Step::Fork(self.offspring())),
                _ => {}
            }
        }
        steps
    }

    /// What a warm process does while nobody asks it anything: mostly nothing.
    fn between(&mut self) -> Vec<Step> {
        if !self.has(Trouble::Wrongs) || !self.one_in(3) {
            return Vec::new();
        }
        let wait = Step::Wait(self.pick(&[0, 1, 30, 900, 6_000]));
        let then = match self.rng.below(5) {
            0 => Step::Exit(0),
            1 => Step::EndTurn(self.pick(&[TurnEnd::With(Answer::Text), TurnEnd::Other])),
            2 => Step::Say(3),
            _ => self.wrong(),
        };
        vec![wait, then]
    }

    fn turn_end(&mut self) -> Step {
        Step::EndTurn(match self.rng.below(8) {
            0 => TurnEnd::Twice,
            1 => TurnEnd::Other,
            2 | 3 => TurnEnd::Failed,
            _ => TurnEnd::With(self.pick(&[Answer::Text, Answer::Object, Answer::Long, Answer::Exhausted])),
        })
    }

    fn run(&mut self, kinds: usize, above: usize) -> Step {
        let script = above + 1 + self.rng.below((kinds - above).max(1) as u64) as usize;
        let flaw = (self.has(Trouble::Flaws) && self.one_in(7))
            .then(|| self.pick(&[Flaw::Empty, Flaw::Mode, Flaw::Key, Flaw::Zero, Flaw::Server, Flaw::Depth]));
        let mode = if self.warm && self.one_in(3) {
            Mode::Warm
        } else {
            self.pick(&[Mode::Sync, Mode::Sync, Mode::Async, Mode::Async, Mode::Detached])
        };
        let rank = self.pick(&[Rank::Normal, Rank::Normal, Rank::Low, Rank::High]);
        let item = (self.has(Trouble::Plans) && self.one_in(4)).then(|| 1 + self.rng.below(5) as u32);
        let delegate = self.has(Trouble::Families) || self.one_in(2);
        Step::Run { script, mode, delegate, flaw, rank, item }
    }

    /// Looks at, waits for, talks to or kills somebody that may exist.
    fn meddle(&mut self, steps: &mut Vec<Step>, made: u64) {
        for _ in 0..self.rng.below(if self.warm { 5 } else { 3 }) {
            let handle = 1 + self.rng.below(made + 1);
            if self.warm && self.one_in(2) {
                steps.push(self.talk(handle));
                continue;
            }
            match self.rng.below(7) {
                0 => steps.push(Step::Status(handle)),
                1 => steps.push(Step::List),
                2 | 3 if self.has(Trouble::Kills) => steps.push(Step::Kill { handle, only: self.one_in(4) }),
                4 if self.has(Trouble::Awaits) => {
                    let (any, timeout_ms) = (self.one_in(2), self.timeout());
                    let handles = vec![handle, handle + 1];
                    steps.push(Step::Await { handles, any, timeout_ms, message: None });
                }
                _ => steps.push(Step::Wait(self.pick(&[1, 30, 400, 4_000]))),
            }
        }
    }

    /// Looks at the plan, binds its items to runs, says how far they are.
    fn plan_on(&mut self, steps: &mut Vec<Step>, made: u64) {
        if !self.has(Trouble::Plans) {
            return;
        }
        for _ in 0..self.rng.below(4) {
            match self.rng.below(5) {
                0 => steps.push(Step::ShowPlan),
                1 => steps.push(Step::Overview),
                _ => {
                    let bind = (!self.one_in(4)).then(|| 1 + self.rng.below(made + 1));
                    let all = [
                        ItemStatus::Pending,
                        ItemStatus::InProgress,
                        ItemStatus::Done,
                        ItemStatus::Blocked,
                        ItemStatus::Skipped,
                    ];
                    let status = self.one_in(3).then(|| self.pick(&all));
                    steps.push(Step::Item { item: 1 + self.rng.below(5) as u32, bind, status });
                }
            }
        }
    }

    /// Says something to a run, or waits for what it says.
    fn talk(&mut self, handle: u64) -> Step {
        match self.rng.below(12) {
            0..=4 => {
                let times = if self.one_in(30) { 70 } else { self.pick(&[1, 1, 2, 5]) };
                Step::Send { handle, times }
            }
            5 | 6 => {
                let times = if self.one_in(15) { 20 } else { self.pick(&[1, 1, 2]) };
                Step::Steer { handle, times }
            }
            7 => Step::Hurry(handle),
            8 => Step::Retire(handle),
            _ => {
                let message = Some(1 + self.rng.below(4));
                Step::Await { handles: vec![handle], any: false, timeout_ms: self.timeout(), message }
            }
        }
    }

    fn timeout(&mut self) -> Option<u64> {
        self.one_in(2).then(|| self.pick(&[1, 200, 3_000, 30_000]))
    }

    fn wrong(&mut self) -> Step {
        if self.has(Trouble::Rubbish) && (self.one_in(3) || !self.has(Trouble::Wrongs)) {
            return Step::Rubbish(self.pick(&[
                Rubbish::Text,
                Rubbish::Zero,
                Rubbish::Huge,
                Rubbish::Gap,
                Rubbish::SameId,
                Rubbish::Cut,
            ]));
        }
        match self.rng.below(6) {
            0 => Step::Hang,
            1 => Step::Parrot,
            2 => Step::Stopped,
            3 => Step::CloseStdout,
            4 => Step::Die(self.pick(&[6, 9, 11])),
            _ => Step::Exit(self.pick(&[0, 1, 101])),
        }
    }

    fn ending(&mut self) -> Step {
        let answer =
            self.pick(&[Answer::Text, Answer::Object, Answer::Long, Answer::Exhausted, Answer::Refused]);
        match self.rng.below(8) {
            0 => Step::Fail,
            1 => Step::Exit(0),
            2 => Step::Finish { answer, exit_ms: None },
            3 => Step::Finish { answer, exit_ms: Some(self.pick(&[10, 400, 4_000, 7_000])) },
            _ => Step::Finish { answer, exit_ms: Some(0) },
        }
    }

    fn nature(&mut self, knobs: &Knobs) -> Nature {
        let ready = match self.rng.below(6) {
            0 => Readiness::Never,
            1 => Readiness::Exits(self.pick(&[0, 2, 127])),
            2 => Readiness::After(knobs.ready_ms + self.pick(&[0, 1]) * 5_000),
            _ => Readiness::After(self.pick(&[0, 1, 50, 900])),
        };
        Nature {
            ready,
            on_cancel: self.on_cancel(),
            on_turn_cancel: self.on_turn_cancel(),
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

    fn on_turn_cancel(&mut self) -> OnTurnCancel {
        self.pick(&[
            OnTurnCancel::Obeys(0),
            OnTurnCancel::Obeys(1),
            OnTurnCancel::Obeys(400),
            OnTurnCancel::EndsItself,
            OnTurnCancel::Leaves,
            OnTurnCancel::Ignores,
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
}

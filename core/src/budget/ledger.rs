//! All accounts together: a call asks, is charged, and gives back what it did not use.

use super::amount::{Amount, Caps};
use super::window::{Per, Window};
use super::{Budget, OnExhausted};
use crate::id::NodeId;
use crate::money::Usd;
use crate::store::LedgerRow;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// With which of its models a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tariff {
    /// The run's own.
    Own,
    /// The cheaper one of `on_exhausted: degrade`.
    Degraded,
}

/// What a call may cost at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// With the run's own model.
    pub own: Amount,
    /// With the cheaper one, where there is one to degrade to.
    pub degraded: Option<Amount>,
}

/// What is left of budgets; of what is not capped, nothing is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Of the run that asks, with what it delegates: of `limits.run.usd` and the like.
    #[serde(skip_serializing_if = "Caps::is_empty")]
    pub run: Caps,
    /// Of the daemon's life.
    #[serde(skip_serializing_if = "Caps::is_empty")]
    pub lifetime: Caps,
    /// Of each minute, hour or day that is capped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowLeft>,
}

impl Left {
    /// Whether nothing is capped.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.lifetime.is_empty() && self.windows.is_empty()
    }
}

/// What is left of one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WindowLeft {
    /// Which one.
    pub per: Per,
    /// Tokens and dollars.
    #[serde(flatten)]
    pub left: Caps,
    /// Until it begins anew, in milliseconds of the wall clock.
    pub ends_in_ms: u64,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may be made; its worst case is reserved.
    Granted(Tariff),
    /// Not yet. It is to be asked again whenever something is charged or given back, and at this time at the latest,
    /// where there is one.
    Wait {
        /// When a window turns that stands in the way, or the pace may allow it.
        until: Option<Wall>,
    },
    /// Not yet, for a run's own bound: once calls below that bound gave back what they do not use. Others that wait may
    /// go first.
    WaitForOwn,
    /// Never, or not under this policy; the run ends out of tokens.
    Refused {
        /// What is used up, how far, and what would help.
        why: String,
    },
    /// As refused, and the run ends failed.
    Failed {
        /// As above.
        why: String,
    },
}

/// What one run, with all below it, may use.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Run {
    above: Option<NodeId>,
    caps: Caps,
    used: Amount,
    /// What its subtree's calls in flight may cost, its own included.
    reserved: Amount,
    /// What its own call in flight may cost.
    call: Option<Amount>,
    /// What a call of it that was cut off was charged: its worst case, as nobody may ever report it.
    cut: Option<Amount>,
}

/// See the module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ledger {
    budget: Budget,
    lifetime: Amount,
    windows: Vec<Window>,
    /// By calls in flight, all together.
    reserved: Amount,
    runs: BTreeMap<NodeId, Run>,
}

impl Ledger {
    /// Nothing used.
    pub fn new(budget: Budget, now: Wall) -> Ledger {
        let windows = budget.windows.iter().map(|(per, caps)| Window::new(*per, *caps, now)).collect();
        Ledger {
            budget,
            lifetime: Amount::default(),
            windows,
            reserved: Amount::default(),
            runs: BTreeMap::new(),
        }
    }

    /// Other caps and another policy from `now` on. What was used and is reserved stays so: of the life, and of each window
    /// that there was before. One that is new begins empty, for nobody has counted what went before it.
    pub fn set_budget(&mut self, budget: Budget, now: Wall) {
        self.turn(now);
        let mut before = std::mem::take(&mut self.windows);
        for (per, caps) in &budget.windows {
            let kept = before.iter().position(|window| window.per == *per).map(|at| before.remove(at));
            let mut window = kept.unwrap_or_else(|| Window::new(*per, *caps, now));
            window.caps = *caps;
            self.windows.push(window);
        }
        self.budget = budget;
    }

    /// A run begins, below another or none. `caps` bound it and all below it.
    pub fn open(&mut self, node: NodeId, above: Option<NodeId>, caps: Caps) {
        let (used, reserved) = (Amount::default(), Amount::default());
        self.runs.insert(node, Run { above, caps, used, reserved, call: None, cut: None });
    }

    /// What a run used in an earlier life of the daemon counts towards its caps and those above it.
    pub fn used_before(&mut self, node: NodeId, used: Amount) {
        if let Some(run) = self.runs.get_mut(&node) {
            run.used = used;
        }
    }

    /// What was used, for the next life of the daemon. What calls in flight may cost counts as spent: should the daemon
    /// die, nobody can say any more what they did cost.
    pub fn row(&self) -> LedgerRow {
        let windows = self.windows.iter().map(|window| window.row(self.reserved));
        LedgerRow { lifetime: self.lifetime.plus(self.reserved), windows: windows.collect() }
    }

    /// What was used in an earlier life counts. Windows that are over, or configured no more, begin anew.
    pub fn go_on(&mut self, row: &LedgerRow, now: Wall) {
        self.lifetime = row.lifetime;
        for window in &mut self.windows {
            let kept = row.windows.iter().find(|kept| kept.per == window.per);
            kept.into_iter().for_each(|kept| window.go_on(kept, now));
        }
    }

    /// A run's turn begins: its caps count from here (S6.3).
    pub fn renew(&mut self, node: NodeId) {
        if let Some(run) = self.runs.get_mut(&node) {
            run.used = Amount::default();
        }
    }

    /// A run is over and nothing more is heard of it. A call in flight counts as spent, whole.
    pub fn close(&mut self, node: NodeId, now: Wall) {
        self.cut(node, now);
        let above = self.runs.remove(&node).and_then(|run| run.above);
        // What is left of it goes on under whoever was above.
        for run in self.runs.values_mut().filter(|run| run.above == Some(node)) {
            run.above = above;
        }
    }

    /// A run wants to make a call.
    pub fn ask(&mut self, node: NodeId, ask: &Ask, now: Wall) -> Decision {
        self.turn(now);
        match self.room_of_runs(node, ask.own) {
            Room::None { why, .. } => return Decision::Refused { why },
            Room::Later { .. } => return Decision::WaitForOwn,
            Room::Now => {}
        }
        let mut options = vec![(Tariff::Own, ask.own)];
        if let (OnExhausted::Degrade, Some(cheaper)) = (self.budget.on_exhausted, ask.degraded) {
            options.push((Tariff::Degraded, cheaper));
        }
        for (tariff, worst) in options {
            match self.room(worst, now) {
                Room::Now => {
                    self.reserve(node, worst, now);
                    return Decision::Granted(tariff);
                }
                // Calls in flight give back more than enough, sooner than anything else would help.
                Room::Later { until } => return Decision::Wait { until },
                Room::None { .. } => {}
            }
        }
        let Room::None { why, turns } = self.room(ask.own, now) else {
            return Decision::Wait { until: None };
        };
        match (self.budget.on_exhausted, turns) {
            (OnExhausted::Wait | OnExhausted::Slow, Some(until)) => Decision::Wait { until: Some(until) },
            (OnExhausted::Fail, _) => Decision::Failed { why },
            (OnExhausted::Wait | OnExhausted::Slow | OnExhausted::Degrade | OnExhausted::Refuse, _) => {
                Decision::Refused { why }
            }
        }
    }

    /// A run's call was answered and used so much. Without a call in flight it is charged all the same.
    pub fn charge(&mut self, node: NodeId, used: Amount, now: Wall) {
        self.turn(now);
        self.release(node);
        let before = self.runs.get_mut(&node).and_then(|run| run.cut.take());
        match before {
            // It was charged whole when it was cut off, and is heard of after all.
            Some(whole) => self.spend(node, used.less(whole), whole.less(used)),
            None => self.spend(node, used, Amount::default()),
        }
    }

    /// A run's call in flight was given up before it was sent, or refused by its provider: it cost nothing.
    pub fn give_back(&mut self, node: NodeId) {
        self.release(node);
    }

    /// A run's call in flight was cut off: what it cost nobody may ever say, so its worst case counts as spent.
    pub fn cut(&mut self, node: NodeId, now: Wall) {
        self.turn(now);
        if let Some(whole) = self.release(node) {
            self.spend(node, whole, Amount::default());
            if let Some(run) = self.runs.get_mut(&node) {
                run.cut = Some(whole);
            }
        }
    }

    /// What is left of everything that is capped, calls in flight held at their worst case.
    pub fn left(&self, node: NodeId, now: Wall) -> Left {
        let mut windows = self.windows.clone();
        windows.iter_mut().for_each(|window| window.turn(now));
        let rest = |used: Amount, caps: &Caps| caps.rest(used.plus(self.reserved));
        let of_window = |window: &Window| WindowLeft {
            per: window.per,
            left: rest(window.used(), &window.caps),
            ends_in_ms: window.ends().0.saturating_sub(now.0),
        };
        let own = self.runs.get(&node).map(|run| run.caps.rest(run.used.plus(run.reserved)));
        Left {
            run: own.unwrap_or_default(),
            lifetime: rest(self.lifetime, &self.budget.lifetime),
            windows: windows.iter().filter(|window| !window.caps.is_empty()).map(of_window).collect(),
        }
    }

    /// Whether nothing is left, so that a run that begins could make no call (S4.2): the sentence that says so.
    pub fn is_out(&mut self, now: Wall) -> Option<String> {
        self.turn(now);
        let least = Amount { tokens: 1, usd: Usd::from_nanos(1) };
        match (self.budget.on_exhausted, self.room(least, now)) {
            (OnExhausted::Wait | OnExhausted::Slow, Room::None { turns: Some(_), .. }) => None,
            (_, Room::None { why, .. }) => Some(why),
            (_, Room::Now | Room::Later { .. }) => None,
        }
    }

    fn turn(&mut self, now: Wall) {
        self.windows.iter_mut().for_each(|window| window.turn(now));
    }

    /// Whether the daemon's own caps have room for `worst`.
    fn room(&self, worst: Amount, now: Wall) -> Room {
        let in_flight = self.reserved.plus(worst);
        let caps = &self.budget.lifetime;
        if !caps.hold(self.lifetime.plus(worst)) {
            let what = caps.passed(self.lifetime, worst).unwrap_or_default();
            let why = format!("the lifetime budget is used up: {what}; raise intelligence.budget.lifetime");
            return Room::None { why, turns: None };
        }
        // When the first of what stands in the way may be gone.
        let mut until: Option<Wall> = None;
        let mut waits = !caps.hold(self.lifetime.plus(in_flight));
        for window in &self.windows {
            if !window.caps.hold(window.used().plus(worst)) {
                let what = window.caps.passed(window.used(), worst).unwrap_or_default();
                let per = window.per.name();
                let fits_an_empty_one = window.caps.hold(worst);
                let why =
                    format!("the budget of this {per} is used up: {what}; raise intelligence.budget.windows");
                return Room::None { why, turns: fits_an_empty_one.then(|| window.ends()) };
            }
            let mut wait_until = |at: Wall| until = Some(until.map_or(at, |was: Wall| was.min(at)));
            if !window.caps.hold(window.used().plus(in_flight)) {
                waits = true;
                wait_until(window.ends());
            }
            if self.budget.on_exhausted == OnExhausted::Slow {
                let from = window.paced_from(window.used().plus(in_flight));
                if from > now {
                    wait_until(from);
                }
            }
        }
        match (waits, until) {
            (false, None) => Room::Now,
            (_, until) => Room::Later { until },
        }
    }

    /// Whether a run and those above it have room of their own for `worst`.
    fn room_of_runs(&self, node: NodeId, worst: Amount) -> Room {
        let mut room = Room::Now;
        for at in self.path(node) {
            let Some(run) = self.runs.get(&at) else { continue };
            if let Some(what) = run.caps.passed(run.used, worst) {
                let whose = if at == node { "the run's budget" } else { "the budget of a run above it" };
                let why = format!("{whose} is used up: {what}; raise limits.usd");
                return Room::None { why, turns: None };
            }
            if !run.caps.hold(run.used.plus(run.reserved).plus(worst)) {
                room = Room::Later { until: None };
            }
        }
        room
    }

    /// Whether a run, or one above it, has a cap on money.
    pub fn counts_money(&self, node: NodeId) -> bool {
        self.path(node).any(|at| self.runs.get(&at).is_some_and(|run| run.caps.usd.is_some()))
    }

    /// A run and those above it.
    fn path(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(node), |at| self.runs.get(at)?.above)
    }

    fn reserve(&mut self, node: NodeId, worst: Amount, now: Wall) {
        // A run has one call in flight; a second one without a word about the first has cost that one.
        self.cut(node, now);
        self.reserved = self.reserved.plus(worst);
        for at in self.path(node).collect::<Vec<_>>() {
            if let Some(run) = self.runs.get_mut(&at) {
                run.reserved = run.reserved.plus(worst);
            }
        }
        if let Some(run) = self.runs.get_mut(&node) {
            // Frames keep their order: what is reported from now on is this call's.
            (run.call, run.cut) = (Some(worst), None);
        }
    }

    fn release(&mut self, node: NodeId) -> Option<Amount> {
        let worst = self.runs.get_mut(&node)?.call.take()?;
        self.reserved = self.reserved.less(worst);
        for at in self.path(node).collect::<Vec<_>>() {
            if let Some(run) = self.runs.get_mut(&at) {
                run.reserved = run.reserved.less(worst);
            }
        }
        Some(worst)
    }

    /// Charges `more` and takes back `less`, everywhere.
    fn spend(&mut self, node: NodeId, more: Amount, less: Amount) {
        self.lifetime = self.lifetime.plus(more).less(less);
        for window in &mut self.windows {
            window.charge(more);
            window.correct(less);
        }
        for at in self.path(node).collect::<Vec<_>>() {
            if let Some(run) = self.runs.get_mut(&at) {
                run.used = run.used.plus(more).less(less);
            }
        }
    }
}

/// Whether a worst case fits.
enum Room {
    Now,
    /// Once calls in flight gave back what they do not use; at that time it is to be looked at again.
    Later {
        until: Option<Wall>,
    },
    None {
        why: String,
        /// When the window turns that is full; `None` where no waiting helps.
        turns: Option<Wall>,
    },
}

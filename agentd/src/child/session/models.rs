//! The models of a run: the one that its calls are made with, the cheaper one, and those that a reload gave it and the loop
//! has not taken yet (S10.8).
//!
//! Owns their threads. Refuses a model that no connection can be made to: the run goes on with what it has. Called by the
//! session.

use super::super::catalogue::event;
use super::super::clock::Clock;
use super::super::inbox::Inbox;
use super::super::model::{self, Connected, Order};
use agentd_core::agent::Input;
use agentd_core::model::ModelRequest;
use agentd_core::wire::message::{CallBudget, Event, FailKind, Model, ModelSwap, Spawn, Throttle};
use std::sync::mpsc::Sender;

/// See the module.
#[derive(Default)]
pub(in crate::child) struct Models {
    in_use: Pair,
    /// The last one that came, by its number.
    next: Option<(u64, Pair)>,
}

/// A model, and the cheaper one that calls are made with where a budget says so.
#[derive(Default)]
struct Pair {
    own: Option<Connected>,
    degraded: Option<Connected>,
}

impl Pair {
    fn open(
        model: &Model,
        budget: Option<&CallBudget>,
        run: &Spawn,
        clock: Clock,
        inbox: &Sender<Inbox>,
    ) -> Result<Pair, (FailKind, String)> {
        let open = |model| model::open(model, run, clock, inbox);
        let degraded = budget.and_then(|budget| budget.degraded.as_ref()).map(open).transpose()?;
        Ok(Pair { own: Some(open(model)?), degraded })
    }

    fn each(&self) -> impl Iterator<Item = &Connected> {
        [&self.own, &self.degraded].into_iter().flatten()
    }
}

impl Models {
    /// Opens those of the spawn frame.
    pub(in crate::child) fn open(
        run: &Spawn,
        clock: Clock,
        inbox: &Sender<Inbox>,
    ) -> Result<Models, (FailKind, String)> {
        let in_use = Pair::open(&run.model, run.budget.as_ref(), run, clock, inbox)?;
        Ok(Models { in_use, next: None })
    }

    /// Opens another one; what the loop is told of it, or what people are.
    pub(in crate::child) fn offer(
        &mut self,
        swap: ModelSwap,
        run: &Spawn,
        clock: Clock,
        inbox: &Sender<Inbox>,
    ) -> Result<Input, Event> {
        let ModelSwap { id, model, budget, restart } = swap;
        let failed = |why: String| event("warn", "model.swap_failed", why);
        let model = model.ok_or_else(|| failed("the supervisor has none to give".to_owned()))?;
        let pair = Pair::open(&model, budget.as_ref(), run, clock, inbox).map_err(|(_, why)| failed(why))?;
        self.next = Some((id, pair));
        Ok(Input::ModelChanged { id, model: Box::new(model), budget, restart })
    }

    /// The loop has taken the one of this number.
    pub(in crate::child) fn take(&mut self, id: u64) {
        if let Some((_, pair)) = self.next.take_if(|(next, _)| *next == id) {
            self.in_use = pair;
        }
    }

    /// Makes a call.
    pub(in crate::child) fn call(&self, call: u64, request: Box<ModelRequest>) {
        let model = if request.degraded { &self.in_use.degraded } else { &self.in_use.own };
        if let Some(model) = model {
            model.order(Order::Call { call, request });
        }
    }

    /// Calls are numbered over both, so only the one that has it knows it.
    pub(in crate::child) fn abandon(&self, call: u64) {
        self.in_use.each().for_each(|model| model.order(Order::Abandon { call }));
    }

    /// See [`Models::abandon`].
    pub(in crate::child) fn go_on(&self, call: u64) {
        self.in_use.each().for_each(|model| model.order(Order::GoOn { call }));
    }

    /// Tells all of them what other runs learned of an endpoint.
    pub(in crate::child) fn throttle(&self, throttle: &Throttle) {
        let next = self.next.iter().flat_map(|(_, pair)| pair.each());
        self.in_use.each().chain(next).for_each(|model| model.order(Order::Throttle(throttle.clone())));
    }

    /// How much of the reply to the call in flight has come.
    pub(in crate::child) fn came(&self) -> Option<Input> {
        // Calls are numbered over both, so the later one is the one in flight.
        let so_far =
            self.in_use.each().filter_map(|model| model.came.so_far()).max_by_key(|came| came.call)?;
        Some(Input::ModelCame { call: so_far.call, attempt: so_far.attempt, came: so_far.came })
    }
}

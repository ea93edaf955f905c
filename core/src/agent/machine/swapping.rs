//! Another model for a run that goes on (S10.8): it is taken between two turns; at once where the supervisor says so, and
//! then a model call in flight is given up and made again. Tool calls are neither given up nor made again: what they say is
//! read by the new model.

use super::asking::Asks;
use super::{Loop, Phase, Wanted};
use crate::agent::Output;
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::{Ack, CallBudget, Model, WaitingOn};

/// A model that is not taken yet.
#[derive(Debug)]
pub(super) struct Swap {
    id: u64,
    name: String,
    asks: Option<Asks>,
    /// It is taken at the next boundary, and not only with the next turn.
    restart: bool,
}

impl Swap {
    pub(super) fn new(id: u64, model: &Model, budget: Option<&CallBudget>, restart: bool) -> Swap {
        Swap { id, name: model.name.clone(), asks: budget.map(|budget| Asks::new(model, budget)), restart }
    }
}

impl Loop {
    /// There is another model. The last one counts.
    pub(super) fn swap(&mut self, now: Instant, phase: Phase, swap: Swap, out: &mut Vec<Output>) -> Phase {
        if !self.is_new(swap.id) {
            return phase;
        }
        let restart = swap.restart;
        self.swap = Some(swap);
        match phase {
            Phase::Asking(asking) if restart => self.call_again(now, asking.what, out),
            Phase::Thinking(thought) if restart => {
                let what = match thought.condenses {
                    Some(before) => Wanted::Summary { before },
                    None => Wanted::Next { last: thought.last },
                };
                self.abandon(now, Phase::Thinking(thought), SWAPPED, out);
                self.call_again(now, what, out)
            }
            Phase::Waiting
            | Phase::Asking(_)
            | Phase::Thinking(_)
            | Phase::Acting(_)
            | Phase::Paused(_)
            | Phase::Idle
            | Phase::Ended => phase,
        }
    }

    /// Takes the model that is there, in the middle of a turn only one that is to be taken there.
    pub(super) fn take_swap(&mut self, in_turn: bool, out: &mut Vec<Output>) {
        let Some(Swap { id, name, asks, .. }) = self.swap.take_if(|swap| swap.restart || !in_turn) else {
            return;
        };
        (self.model, self.asks) = (name, asks);
        if in_turn {
            // The supervisor takes nothing to be in flight now.
            self.told = None;
        }
        out.push(Output::UseModel { swap: id });
        out.push(Output::Emit(Up::Ack(Ack { id })));
    }

    /// The call that was wanted, with the new model: a step of its own, like every call.
    fn call_again(&mut self, now: Instant, what: Wanted, out: &mut Vec<Output>) -> Phase {
        let Wanted::Summary { before } = what else { return self.boundary(now, out) };
        self.take_swap(true, out);
        if self.paused {
            self.tell(WaitingOn::Paused, None, out);
            // The history still is too long: the call that says so asks for the summary again.
            self.turn.compacted = false;
            return Phase::Paused(now);
        }
        match self.budget.exhausted(now) {
            Some((end, why)) => self.finish(end, Some(why), out),
            None => self.ask_for_summary(now, before, out),
        }
    }
}

/// Why a call was given up.
const SWAPPED: &str = "the run goes on with another model";

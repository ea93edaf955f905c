//! The models that a run's child goes on with after a reload (S10.8): which it was sent, and with which its calls are made
//! and paid for until it says that it has taken one.
//!
//! Owns what changes at that moment, all of it together. Refuses to guess when that is: the child's `ack` says so. Called
//! by the supervisor.

use super::Run;
use crate::limits;
use crate::money::Price;
use serde::{Deserialize, Serialize};

/// The model of `intelligence.budget.degrade`, as this run's child knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cheaper {
    /// Its reference.
    pub name: String,
    /// What its tokens cost.
    pub price: Option<Price>,
}

/// With what a run's model calls are made and paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Reference of the model.
    pub model: String,
    /// What its tokens cost.
    pub price: Option<Price>,
    /// Each call is asked for first.
    pub asks: bool,
    /// What a call can be told to use instead.
    pub cheaper: Option<Cheaper>,
}

/// A `model` frame that was not taken yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Its number.
    pub id: u64,
    /// What it leads to.
    pub calls: Calls,
}

impl Run {
    /// With what its calls are made now.
    pub fn calls(&self) -> Calls {
        Calls { model: self.model.clone(), price: self.price, asks: self.asks, cheaper: self.cheaper.clone() }
    }

    /// With what they will be made once its child has taken all that it was sent.
    pub fn calls_to_come(&self) -> Calls {
        self.swaps.back().map_or_else(|| self.calls(), |swap| swap.calls.clone())
    }

    /// Its child is sent another model.
    pub fn swap_sent(&mut self, swap: Swap) {
        if self.swaps.len() >= limits::SWAPS_WAITING {
            self.swaps.pop_front();
        }
        self.swaps.push_back(swap);
    }

    /// Its child has taken the model of this number, and passes over those before it. Whether there is such a model.
    pub fn swap_taken(&mut self, id: u64) -> bool {
        let Some(at) = self.swaps.iter().position(|swap| swap.id == id) else { return false };
        let taken = self.swaps.drain(..=at).next_back();
        if let Some(Swap { calls, .. }) = taken {
            self.take_calls(calls);
        }
        true
    }

    /// Its calls are made with this from now on.
    pub fn take_calls(&mut self, calls: Calls) {
        (self.model, self.price, self.asks, self.cheaper) =
            (calls.model, calls.price, calls.asks, calls.cheaper);
    }
}

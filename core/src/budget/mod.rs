//! Budgets (S15.6): what model calls may cost before they are made. Every call's worst case is reserved first, in
//! tokens and in money, against the lifetime, each window, and each run it belongs to with the runs above; what it did
//! cost is charged afterwards and the difference given back. So the sum of what was spent and what may still be spent
//! by calls in flight never passes a cap.
//!
//! Owns the accounts, the reservations and who waits for room. Refuses what can never fit. Called by the supervisor,
//! which tells it which call wants what, and what came of it.
//!
//! | file | owns |
//! |---|---|
//! | `amount` | tokens and money, and caps on them |
//! | `window` | one account that begins anew each minute, hour or day |
//! | `ledger` | all accounts: asking, charging, giving back, waiting |

mod amount;
mod ledger;
mod window;

pub use amount::{Amount, Caps};
pub use ledger::{Ask, Decision, Ledger, Left, Tariff, WindowLeft};
pub use window::Per;

use serde::{Deserialize, Serialize};

/// `intelligence.budget`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// For the daemon's whole life, restarts included.
    pub lifetime: Caps,
    /// For each minute, hour or day by the wall clock.
    pub windows: Vec<(Per, Caps)>,
    /// What happens to a call that does not fit.
    pub on_exhausted: OnExhausted,
}

impl Budget {
    /// Whether anything is capped at all.
    pub fn is_empty(&self) -> bool {
        self.lifetime.is_empty() && self.windows.iter().all(|(_, caps)| caps.is_empty())
    }

    /// Whether money is capped: then a model without a price cannot be used.
    pub fn counts_money(&self) -> bool {
        self.lifetime.usd.is_some() || self.windows.iter().any(|(_, caps)| caps.usd.is_some())
    }
}

/// What happens to a call that does not fit a cap that is the daemon's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// It waits for the next window. A lifetime has none: there it is refused.
    #[default]
    Wait,
    /// As `wait`; and from the middle of a window's cap on, calls are spread evenly over what is left of its time.
    Slow,
    /// It is made with the cheaper model, where the worst case of that fits; else it is refused.
    Degrade,
    /// The run ends `exhausted_tokens`, with what it had.
    Refuse,
    /// The run ends `failed`.
    Fail,
}

#[cfg(test)]
mod tests;

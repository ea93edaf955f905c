//! A plan: everything that makes one simulated life of the daemon what it is. Plain data that serialises, so that a plan
//! is a seed's meaning, a failing test's smallest form and a committed trace alike. It decides nothing; `world`
//! performs it and `draw` makes it from a seed.

mod fault;
mod knobs;
mod step;

pub use fault::{Fault, Interrupt, Limits, Order};
pub use knobs::{Knobs, Purse};
pub use step::{Answer, Flaw, ItemStatus, Mode, Offspring, Provider, Rank, Rubbish, Step, TurnEnd};

use agentd_core::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// When the daemon starts; times in a plan are counted from here.
pub(crate) const START: Instant = Instant::from_millis(1);

/// Wall time at the daemon's epoch, in milliseconds since 1970: 2026-11-30.
pub(crate) const EPOCH_MS: u64 = 1_796_000_000_000;

/// One simulated life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of every jitter in the world, and of the core's own randomness.
    pub seed: u64,
    /// Limits, durations and the machine's size.
    #[serde(default)]
    pub knobs: Knobs,
    /// What processes do; the first is the conversation's worker, the others are named by [`Step::Run`].
    pub scripts: Vec<Script>,
    /// When the conversation is asked again, in milliseconds; it is asked first at 0.
    #[serde(default)]
    pub prompts_ms: Vec<u64>,
    /// What goes wrong around them.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// From here on nothing goes wrong any more: no fault begins, and processes that are made do as they should. All
    /// must then come to rest within a time that follows from the knobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heal_ms: Option<u64>,
}

impl Plan {
    /// When everything is well from.
    pub(crate) fn healed_from(&self) -> Option<Instant> {
        self.heal_ms.map(|ms| START + Duration::from_millis(ms))
    }

    /// Whether everything is well by then.
    pub(crate) fn is_healed(&self, now: Instant) -> bool {
        self.healed_from().is_some_and(|at| now >= at)
    }
}

/// What one kind of process does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// How it begins and how it takes being told to end.
    pub nature: Nature,
    /// Performed in order; one that falls off the end finishes with a text. Of a warm process this is its first
    /// turn.
    pub steps: Vec<Step>,
    /// The further turns of a warm process; one that is not there is an empty one.
    pub turns: Vec<Vec<Step>>,
    /// What a warm process does between its turns, each time from the beginning.
    pub between: Vec<Step>,
}

impl Script {
    /// Every step of it.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(self.turns.iter().flatten()).chain(&self.between)
    }
}

/// How a process begins and how it takes being told to end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Nature {
    /// When it says `ready`.
    pub ready: Readiness,
    /// What it does on `cancel`.
    pub on_cancel: OnCancel,
    /// What it does on a `cancel` that names the turn in hand.
    pub on_turn_cancel: OnTurnCancel,
    /// What it does on SIGTERM.
    pub on_term: OnTerm,
    /// Reads nothing after its spawn frame.
    pub deaf: bool,
    /// How long SIGKILL needs to end it (a big process, or one in the kernel), in milliseconds.
    pub dying_ms: u64,
}

/// When a process says `ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// This many milliseconds after it read the spawn frame.
    After(u64),
    /// It lives, and never says it.
    Never,
    /// It exits with this code instead.
    Exits(i32),
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness::After(1)
    }
}

/// What a process does on `cancel` or the end of its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// Sends `result: cancelled` this many milliseconds later and exits.
    Obeys(u64),
    /// Exits this many milliseconds later without a word.
    Leaves(u64),
    /// Goes on as if nothing had been said.
    Ignores,
}

impl Default for OnCancel {
    fn default() -> OnCancel {
        OnCancel::Obeys(1)
    }
}

/// What a warm process does when only its turn is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTurnCancel {
    /// Ends the turn as cancelled so many milliseconds later, and stays.
    Obeys(u64),
    /// Ends as a whole, with a terminal frame.
    EndsItself,
    /// Exits without a word.
    Leaves,
    /// Goes on with the turn.
    Ignores,
}

impl Default for OnTurnCancel {
    fn default() -> OnTurnCancel {
        OnTurnCancel::Obeys(1)
    }
}

/// What a process does on SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTerm {
    /// Dies of it.
    #[default]
    Dies,
    /// Exits with code 0 this many milliseconds later.
    Exits(u64),
    /// Nothing.
    Ignores,
}

//! The durable row of a run, and the one result object that every reader gets (S6.1).

use crate::id::{Handle, NodeId, RunId};
use crate::money::Usd;
use crate::time::Wall;
use crate::wire::message::{Mode, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a run is or became (S8.3). The order is the life's: live first, then terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for a permit (S4.8).
    Held,
    /// Admitted; its process is not yet up.
    Spawned,
    /// Its process is up.
    Running,
    /// A warm run that takes no more messages and ends with the turn in hand.
    Retiring,
    /// A drain stopped it; the next start spawns it again.
    Parked,
    /// Ended with a result.
    Completed,
    /// Ended without one.
    Failed,
    /// Stopped by a kill or with its parent.
    Cancelled,
    /// The provider refused.
    Refused,
    /// Out of steps.
    ExhaustedSteps,
    /// Out of tokens or money.
    ExhaustedTokens,
    /// Out of time.
    Deadline,
    /// Spinning.
    LoopDetected,
    /// Detached, and running when its daemon died.
    Crashed,
}

impl Status {
    /// Whether nothing changes it any more in this daemon's life.
    pub const fn is_terminal(self) -> bool {
        match self {
            Status::Held | Status::Spawned | Status::Running | Status::Retiring => false,
            Status::Parked
            | Status::Completed
            | Status::Failed
            | Status::Cancelled
            | Status::Refused
            | Status::ExhaustedSteps
            | Status::ExhaustedTokens
            | Status::Deadline
            | Status::LoopDetected
            | Status::Crashed => true,
        }
    }

    /// Whether nothing changes it any more in any daemon's life: no start takes it up.
    pub const fn has_ended(self) -> bool {
        self.is_terminal() && !matches!(self, Status::Parked)
    }

    /// Its name in records, logs and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Held => "held",
            Status::Spawned => "spawned",
            Status::Running => "running",
            Status::Retiring => "retiring",
            Status::Parked => "parked",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Refused => "refused",
            Status::ExhaustedSteps => "exhausted_steps",
            Status::ExhaustedTokens => "exhausted_tokens",
            Status::Deadline => "deadline",
            Status::LoopDetected => "loop_detected",
            Status::Crashed => "crashed",
        }
    }
}

/// Tokens used and what they cost: of one call, or a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens in.
    pub input: u64,
    /// Tokens out.
    pub output: u64,
    /// Of `input`, read from a cache.
    pub cached: u64,
    /// Some part is an estimate.
    pub estimated: bool,
    /// What they cost, as far as their models have a price.
    #[serde(default)]
    pub usd: Usd,
    /// Some part was used by a model without a price.
    #[serde(default)]
    pub unpriced: bool,
}

impl Tokens {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &Tokens) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.estimated |= other.estimated;
        self.usd = self.usd.plus(other.usd);
        self.unpriced |= other.unpriced;
    }
}

impl Tokens {
    /// Each part as it is here or in `other`, whichever is more.
    #[must_use]
    pub fn at_least(&self, other: &Tokens) -> Tokens {
        Tokens {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached: self.cached.max(other.cached),
            estimated: self.estimated | other.estimated,
            usd: self.usd.max(other.usd),
            unpriced: self.unpriced | other.unpriced,
        }
    }
}

/// Own use and that of everything below (S8.5): `subtree` includes `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageSum {
    /// The run's own calls.
    pub own: Tokens,
    /// Own and all below.
    pub subtree: Tokens,
}

/// Counted by the machinery, not claimed by the model (S8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Model calls begun.
    pub model_calls: u32,
    /// Tool calls asked for.
    pub tool_calls: u32,
    /// Tool calls that failed.
    pub tool_errors: u32,
    /// Runs it delegated.
    pub children: u32,
    /// From spawn to the terminal state, in milliseconds.
    pub duration_ms: u64,
}

/// The one result object: for tools, steps, await and `--json` (S6.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultObject {
    /// Short name; absent for a conversation's worker.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handle: Option<Handle>,
    /// Name for ever.
    pub run_id: RunId,
    /// See [`Status`].
    pub status: Status,
    /// Distilled value (S8.1); `null` when there is none.
    pub result: Value,
    /// `result` is not a full answer.
    pub partial: bool,
    /// Why it is not `completed`.
    pub error: Option<String>,
    /// Own and subtree.
    pub usage: UsageSum,
    /// What was counted.
    pub evidence: Evidence,
    /// Process life, from 1.
    pub attempt: u32,
}

/// The durable row of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name for ever.
    pub run_id: RunId,
    /// Short name; absent for a conversation's worker.
    pub handle: Option<Handle>,
    /// Process that serves this attempt.
    pub node: NodeId,
    /// Run that asked; absent at the root.
    pub parent: Option<RunId>,
    /// The model's id of the delegating tool call.
    pub call_id: Option<String>,
    /// Depth in the run tree.
    pub depth: u32,
    /// Who it acts for.
    pub principal: String,
    /// Kind of child.
    pub role: Role,
    /// How it was asked for.
    pub mode: Mode,
    /// See [`Status`].
    pub status: Status,
    /// Distilled value.
    pub result: Value,
    /// `result` is not a full answer.
    pub partial: bool,
    /// Why it is not `completed`.
    pub error: Option<String>,
    /// Own use only; a subtree is summed when it is asked for.
    pub usage: Tokens,
    /// Process life, from 1.
    pub attempt: u32,
    /// When it was admitted.
    pub created: Wall,
    /// When it became terminal.
    pub ended: Option<Wall>,
}

//! The values: what is kept of each thing, as much as it takes to go on with it.

use crate::a2a::TaskState;
use crate::action::Walls;
use crate::budget::{Amount, Caps, Per};
use crate::bytes::Json;
use crate::config::Priority;
use crate::id::RunId;
use crate::record::{Evidence, Record, Tokens, UsageSum};
use crate::time::Wall;
use crate::transcript::Location;
use crate::wire::message::{ContextMessage, RunLimits, Text, Trace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run, as far as it changes while it lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// The record.
    pub record: Record,
    /// What it and all below it used.
    pub subtree: Tokens,
    /// What was counted; of an ended run for good.
    pub evidence: Evidence,
    /// How often a start took it up since it last got anywhere (its first attempt, a turn that ended, a drain).
    pub restarts: u32,
    /// It was killed with all that it delegated: no start takes up what is below it.
    pub takes_below: bool,
    /// Of a run that has many turns: where it is.
    pub turns: Option<Turns>,
    /// Highest number of a message or steer to it.
    pub last_text: u64,
    /// The beginning of its instruction, for people.
    pub title: String,
}

/// Where a warm run is among its messages. The messages are kept apart, each as a [`Letter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Turns {
    /// The message whose turn it is in.
    pub in_hand: Option<u64>,
    /// It takes no more messages and ends with the turn in hand.
    pub retiring: bool,
}

/// One message to a warm run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Letter {
    /// Its turn has not ended.
    Open(Text),
    /// Its turn's result, the same bytes for every reader.
    Ended {
        /// The message's number.
        id: u64,
        /// The result.
        object: Json,
    },
}

impl Letter {
    /// The message's number.
    pub fn id(&self) -> u64 {
        match self {
            Letter::Open(text) => text.id,
            Letter::Ended { id, .. } => *id,
        }
    }
}

/// What it takes to begin a run's process again: its payload without the connections. Kept once, when the run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Whose.
    pub run_id: RunId,
    /// What is to be done.
    pub instruction: String,
    /// Messages the caller chose to pass.
    pub context: Vec<ContextMessage>,
    /// What the answer should look like.
    pub output_contract: Option<String>,
    /// JSON Schema that the answer must fit.
    pub output_schema: Option<Json>,
    /// Servers and groups of the embedding program's tools it was granted, by name.
    pub servers: Vec<String>,
    /// Patterns over tools; `None` is every tool of the servers.
    pub tools: Option<Vec<String>>,
    /// It may delegate onward.
    pub delegates: bool,
    /// Reference of its model.
    pub model: String,
    /// That is the agent's own, whatever it is called when the run is begun again.
    #[serde(default)]
    pub own_model: bool,
    /// The loop's limits.
    pub limits: RunLimits,
    /// Kernel limits.
    pub walls: Walls,
    /// Among those who wait.
    pub priority: Priority,
    /// What it and all below it may use.
    pub caps: Caps,
    /// Trace context.
    pub trace: Trace,
    /// A restart takes it up; otherwise it is gone with the daemon.
    pub durable: bool,
    /// Its transcript, where there is one, is gone on with.
    pub resume: bool,
    /// Where it writes.
    #[serde(default)]
    pub transcript: Option<Location>,
}

/// The root conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConversationRow {
    /// Number of the last prompt.
    pub last: u64,
    /// A one-shot conversation has its answer.
    pub over: bool,
    /// The turn in hand.
    pub turn: Option<TurnRow>,
    /// Prompts that wait for their turn.
    pub waiting: Vec<PromptRow>,
    /// What was said.
    pub past: Vec<ContextMessage>,
    /// What workers that are forgotten by now have used.
    pub spent: UsageSum,
    /// Where its workers write.
    #[serde(default)]
    pub session: Option<Location>,
    /// Its name to A2A clients, where there can be any.
    #[serde(default)]
    pub context: Option<RunId>,
}

/// A client's message as a task, which is one prompt of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Its name to clients.
    pub id: RunId,
    /// Whose it is.
    pub principal: String,
    /// The prompt's number.
    pub prompt: u64,
    /// The client's own name for the message; the same message is the same task.
    pub message_id: String,
    /// What was asked.
    pub text: String,
    /// Where it is.
    pub state: TaskState,
    /// Since when.
    pub since: Wall,
    /// Why it ended without a full answer.
    pub error: Option<String>,
    /// The answer.
    pub result: Value,
    /// It is not all of an answer.
    pub partial: bool,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptRow {
    /// Its number; 0 when nobody asked and the conversation is told of ended runs.
    pub number: u64,
    /// What was asked.
    pub text: String,
}

/// A turn that has begun and has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    /// What was asked.
    pub prompt: PromptRow,
    /// The worker's run.
    pub worker: RunId,
    /// Its number in the transcript.
    pub written: u64,
}

/// What was used of the daemon's budget.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Ever.
    pub lifetime: Amount,
    /// In the windows that were open.
    pub windows: Vec<WindowRow>,
}

/// One window of the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRow {
    /// How long it is.
    pub per: Per,
    /// When it began.
    pub begun: Wall,
    /// What was used in it.
    pub used: Amount,
}

//! What is said and done in a run, as its transcript has it.

use crate::wire::message::TurnOutcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    /// A message that the caller chose to pass, before all others.
    Context {
        /// Whose words they are.
        role: ItemRole,
        /// What it says.
        text: String,
    },
    /// A turn begins: the instruction, or a message to a run with many turns.
    Turn {
        /// The number of its message; the instruction is 1.
        turn: u64,
        /// What is asked.
        text: String,
    },
    /// What the model is told in the middle of a turn: a steer, a correction, that it is to finish.
    Told {
        /// What it says.
        text: String,
    },
    /// What the model answered. Its calls are made after this line is written.
    Assistant {
        /// What it wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What it called, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ItemCall>,
        /// It is not all of an answer: it was cut at its length limit, or asked for before the work was done.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// What came of a call, in the order in which calls were done.
    ToolResult(ItemResult),
    /// The history was made shorter (S7.7), and is these from here on.
    Compacted {
        /// The whole of it.
        history: Vec<Item>,
    },
    /// A turn ended.
    Ended {
        /// The number of its message.
        turn: u64,
        /// How.
        outcome: TurnOutcome,
        /// It was the process that was told to end, or whose supervisor was gone, and not the turn: who begins the run again
        /// goes on with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stopped: bool,
    },
}

/// Whose words a message of the context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemRole {
    /// Who asks.
    User,
    /// The model.
    Assistant,
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemCall {
    /// Unique within the run.
    pub id: String,
    /// Wire name.
    pub name: String,
    /// A JSON object.
    pub args: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemResult {
    /// The call's id.
    pub id: String,
    /// The call's wire name.
    pub name: String,
    /// The text is an error to react to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    /// What the model reads of it.
    pub text: String,
}

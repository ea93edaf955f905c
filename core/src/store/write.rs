//! What is to be kept, and what waits for it.

use super::row::{ConversationRow, LedgerRow, Letter, RunRow, TaskRow, Work};
use crate::id::RunId;
use crate::plan::Plan;
use crate::record::Record;
use serde::{Deserialize, Serialize};

/// What a save holds back until it is durable (S10.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A process: it is made once its run is on record.
    Spawn,
    /// The caller of a run that waits for a permit: it hears the handle then.
    Held,
    /// Whoever waits for a run's end, where that is told no sooner than it is durable.
    Ending,
    /// Nothing. It is saved so that less is lost.
    Progress,
}

/// One value that is to be kept, in place of an older one, or to be kept no longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    /// A run as it is now.
    Run(Box<RunRow>),
    /// A run that never was, or is forgotten.
    NoRun(RunId),
    /// What it takes to begin a run again.
    Work(Box<Work>),
    /// It will not be begun again.
    NoWork(RunId),
    /// A message to a warm run, or its turn's result.
    Letter {
        /// To whom.
        run: RunId,
        /// See there.
        letter: Letter,
    },
    /// A message that nobody asks for any more.
    NoLetter {
        /// To whom.
        run: RunId,
        /// Its number.
        id: u64,
    },
    /// The number of the last handle; none up to it is ever given again.
    Handles(u64),
    /// The conversation's plan.
    Plan(Option<Plan>),
    /// The conversation.
    Conversation(Box<ConversationRow>),
    /// What was used of the daemon's budget.
    Ledger(LedgerRow),
    /// A task as it is now.
    Task(Box<TaskRow>),
    /// A task that is forgotten.
    NoTask(RunId),
}

/// The record among writes that belong together; there is one at most.
pub fn record_in(writes: &[Write]) -> Option<&Record> {
    writes.iter().find_map(|write| if let Write::Run(row) = write { Some(&row.record) } else { None })
}

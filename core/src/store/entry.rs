//! One durable value as a store holds it: a kind, a key and bytes, and how the bytes are written and read.

use super::row::{ConversationRow, LedgerRow, Letter, RunRow, TaskRow, Work};
use super::write::Write;
use crate::id::RunId;
use crate::plan::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a value is of. The names are part of the form on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A [`RunRow`], by run id.
    Run,
    /// A [`Work`], by run id.
    Work,
    /// A [`Letter`], by run id and number.
    Letter,
    /// The number of the last handle.
    Handles,
    /// The conversation's plan.
    Plan,
    /// A [`ConversationRow`].
    Conversation,
    /// A [`LedgerRow`].
    Ledger,
    /// A [`TaskRow`], by its id.
    Task,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::Run,
        Kind::Work,
        Kind::Letter,
        Kind::Handles,
        Kind::Plan,
        Kind::Conversation,
        Kind::Ledger,
        Kind::Task,
    ];

    /// Its name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Work => "work",
            Kind::Letter => "letter",
            Kind::Handles => "handles",
            Kind::Plan => "plan",
            Kind::Conversation => "conversation",
            Kind::Ledger => "ledger",
            Kind::Task => "task",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One change to what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Of what.
    pub kind: Kind,
    /// Which; empty where there is one of its kind.
    pub key: String,
    /// The value, in CBOR; `None` takes it out.
    pub value: Option<Vec<u8>>,
}

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Nothing of this kind is known.
    #[error("it is of a kind that this agentd does not know")]
    Kind,
    /// The bytes are not what this kind is made of.
    #[error("it cannot be read: {0}")]
    Value(String),
    /// The value belongs under another key.
    #[error("it stands under a key that is not its own: it says it is {0}")]
    Key(String),
    /// What it belongs to is not there.
    #[error("what it belongs to is not there")]
    Orphan,
    /// Its handle is another run's.
    #[error("its handle is that of an earlier run")]
    Namesake,
}

impl Entry {
    /// A change as the store is to make it.
    ///
    /// # Errors
    /// A value that cannot be written; a bug.
    pub fn of(write: &Write) -> Result<Entry, String> {
        let (kind, key) = address(write);
        let value = match write {
            Write::Run(row) => Some(bytes(row)?),
            Write::Work(work) => Some(bytes(work)?),
            Write::Letter { letter, .. } => Some(bytes(letter)?),
            Write::Handles(last) => Some(bytes(last)?),
            Write::Plan(plan) => Some(bytes(plan)?),
            Write::Conversation(row) => Some(bytes(row)?),
            Write::Ledger(row) => Some(bytes(row)?),
            Write::Task(row) => Some(bytes(row)?),
            Write::NoRun(_) | Write::NoWork(_) | Write::NoLetter { .. } | Write::NoTask(_) => None,
        };
        Ok(Entry { kind, key, value })
    }
}

/// Where a change goes.
fn address(write: &Write) -> (Kind, String) {
    match write {
        Write::Run(row) => (Kind::Run, row.record.run_id.to_string()),
        Write::NoRun(run) => (Kind::Run, run.to_string()),
        Write::Work(work) => (Kind::Work, work.run_id.to_string()),
        Write::NoWork(run) => (Kind::Work, run.to_string()),
        Write::Letter { run, letter } => (Kind::Letter, letter_key(*run, letter.id())),
        Write::NoLetter { run, id } => (Kind::Letter, letter_key(*run, *id)),
        Write::Handles(_) => (Kind::Handles, String::new()),
        Write::Plan(_) => (Kind::Plan, String::new()),
        Write::Conversation(_) => (Kind::Conversation, String::new()),
        Write::Ledger(_) => (Kind::Ledger, String::new()),
        Write::Task(row) => (Kind::Task, row.id.to_string()),
        Write::NoTask(task) => (Kind::Task, task.to_string()),
    }
}

fn letter_key(run: RunId, id: u64) -> String {
    format!("{run}/{id}")
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// What a value says, as the change that put it there.
pub(super) fn read(kind: Kind, key: &str, value: &[u8]) -> Result<Write, Unreadable> {
    let write = match kind {
        Kind::Run => Write::Run(Box::new(value_of::<RunRow>(value)?)),
        Kind::Work => Write::Work(Box::new(value_of::<Work>(value)?)),
        Kind::Letter => {
            let run = key.split_once('/').and_then(|(run, _)| run.parse().ok());
            let run = run.ok_or_else(|| Unreadable::Key("a letter to nobody".to_owned()))?;
            Write::Letter { run, letter: value_of::<Letter>(value)? }
        }
        Kind::Handles => Write::Handles(value_of(value)?),
        Kind::Plan => Write::Plan(value_of::<Option<Plan>>(value)?),
        Kind::Conversation => Write::Conversation(Box::new(value_of::<ConversationRow>(value)?)),
        Kind::Ledger => Write::Ledger(value_of::<LedgerRow>(value)?),
        Kind::Task => Write::Task(Box::new(value_of::<TaskRow>(value)?)),
    };
    let (_, own) = address(&write);
    if own == key { Ok(write) } else { Err(Unreadable::Key(own)) }
}

fn value_of<T: DeserializeOwned>(value: &[u8]) -> Result<T, Unreadable> {
    let mut rest = value;
    let read = ciborium::from_reader(&mut rest).map_err(|error| Unreadable::Value(error.to_string()))?;
    match rest.is_empty() {
        true => Ok(read),
        false => Err(Unreadable::Value(format!("{} bytes come after it", rest.len()))),
    }
}

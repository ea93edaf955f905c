//! Transcripts (S11.1, S11.2): what a run's process writes of its conversation, one JSON object a line, complete up to
//! the last finished line after any death.
//!
//! Owns the form of a line, where a run's files are, and what can be read back of them. Opens no file: the child writes
//! the lines that its loop gives it, and `agentd sessions` and a child that resumes read them. It refuses to read a
//! damaged line as if it were another one: that is left out and counted.
//!
//! | file | owns |
//! |---|---|
//! | `item` | what is said and done, in the order in which it became part of the history |
//! | `meta` | the head of a transcript, and the small file beside a child's |
//! | `place` | names of folders and files |
//! | `span` | ids of spans that nobody has to write down |
//! | `past` | a history that is made of lines again |

mod item;
mod meta;
mod past;
pub mod place;
pub mod span;

pub use item::{Item, ItemCall, ItemResult, ItemRole};
pub use meta::{META_BYTES, Meta, SessionMeta};
pub use past::{ORPHANED, Past, Reader, Said};
pub use place::Location;

use crate::time::Wall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One line. In the file it has a timestamp besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Entry {
    /// The first line, and the first of each further process that goes on with the file.
    SessionMeta(Box<SessionMeta>),
    /// A part of the history: what a resumed run takes up again.
    ResponseItem(Item),
    /// What happened besides: model calls, tool calls, usage. Nothing of it is said to a model again.
    AgentEvent(AgentEvent),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentEvent {
    /// `usage`, or a log event of the child (`docs/log-events.md`).
    pub event: String,
    /// Its fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A line as it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When it was written, as the line has it: RFC 3339 in UTC.
    pub timestamp: String,
    /// What it says.
    pub entry: Entry,
}

/// The bytes of a line, its newline included.
pub fn line(at: Wall, entry: &Entry) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        timestamp: String,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    let line = Line { timestamp: at.to_string(), entry };
    // Strings, numbers and JSON values as they are: nothing of it can fail to be written.
    let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a line without its newline.
///
/// # Errors
/// It is no line of a transcript: what is wrong with it.
pub fn read_line(bytes: &[u8]) -> Result<Record, String> {
    #[derive(Deserialize)]
    struct Line {
        timestamp: String,
        #[serde(flatten)]
        entry: Entry,
    }
    let Line { timestamp, entry } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(Record { timestamp, entry })
}

#[cfg(test)]
mod tests;

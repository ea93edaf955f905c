//! Why something was done, for the log. The core's only way to speak to people.

use crate::id::{Handle, NodeId, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much a note matters. `Error` is a bug or data loss and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A bug, or something lost.
    Error,
    /// Someone should look.
    Warn,
    /// The story of the daemon.
    Info,
    /// For finding faults.
    Debug,
}

/// One log event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// How much it matters.
    pub level: Level,
    /// A stable dotted name; every one is listed in `note::names` and in the docs.
    pub event: String,
    /// The run it is about.
    pub run_id: Option<RunId>,
    /// Its handle.
    pub handle: Option<Handle>,
    /// Its process.
    pub node: Option<NodeId>,
    /// Its attempt.
    pub attempt: Option<u32>,
    /// Its trace.
    pub trace_id: Option<String>,
    /// The rest, values as JSON scalars.
    pub fields: BTreeMap<String, serde_json::Value>,
}

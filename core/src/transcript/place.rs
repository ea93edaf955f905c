//! Where a run's files are, below the folder of sessions (S11.1). A conversation is
//! `YYYY/MM/DD/rollout-<time>-<id>.jsonl`; what it delegates is in a folder of the same name beside it, and what that
//! delegates nests the same way, so that whoever lists conversations never opens a child's file.

use crate::id::RunId;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// Where one run writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Below the folder of sessions.
    pub path: String,
    /// The conversation it belongs to.
    pub session: RunId,
}

/// The folder in which a run's children are.
pub const CHILDREN: &str = "subagents";

const SUFFIX: &str = ".jsonl";

/// The transcript of a new conversation: a path below the folder of sessions. Its day is that of UTC.
pub fn session(at: Wall, id: RunId) -> String {
    // 2026-11-30T19:18:29.000Z
    let time = at.to_string();
    let (day, clock) = (&time[..10], &time[11..19]);
    format!("{}/rollout-{day}T{}-{id}{SUFFIX}", day.replace('-', "/"), clock.replace(':', "-"))
}

/// The transcript of a child of the run whose transcript is `parent`.
pub fn child(parent: &str, id: RunId) -> String {
    format!("{}/{CHILDREN}/agent-{id}{SUFFIX}", children_of(parent))
}

/// The folder that belongs to a transcript. Its children are in [`CHILDREN`] there.
pub fn children_of(transcript: &str) -> &str {
    transcript.strip_suffix(SUFFIX).unwrap_or(transcript)
}

/// The small file beside a child's transcript.
pub fn meta(transcript: &str) -> String {
    format!("{}.meta.json", children_of(transcript))
}

/// The run that a file's name says it is of; `None` of any other file.
pub fn run_of(name: &str) -> Option<RunId> {
    let stem = name.strip_suffix(SUFFIX)?;
    let id = match stem.strip_prefix("agent-") {
        Some(id) => id,
        // After the date and the time, which have no place for an id's first group.
        None => stem.strip_prefix("rollout-")?.get("2026-11-30T19-18-29-".len()..)?,
    };
    id.parse().ok()
}

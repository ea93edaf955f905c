//! Who a transcript is of.

use crate::id::{Handle, RunId};
use crate::wire::message::{Mode, Role};
use serde::{Deserialize, Serialize};

/// Bytes of a `meta.json` at most: many are read to list a run's children.
pub const META_BYTES: usize = 1024;

/// Bytes of a description at most, so that the whole stays within [`META_BYTES`].
const DESCRIPTION_BYTES: usize = 256;

/// The small file beside a child's transcript (S11.3), which saves opening that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The run's id.
    pub agent_id: RunId,
    /// Name of its template or surface; else `general-purpose`.
    pub agent_type: String,
    /// How its instruction begins.
    pub description: String,
    /// The delegating call's id; `null` of a workflow's step or an operator's call.
    pub tool_call_id: Option<String>,
    /// The run that asked for it; `null` where nobody did.
    pub parent_session_id: Option<RunId>,
    /// The conversation it belongs to.
    pub root_session_id: RunId,
    /// 0 for a conversation.
    pub spawn_depth: u32,
    /// When it began: RFC 3339 in UTC.
    pub timestamp: String,
}

impl Meta {
    /// A description that fits, of a longer text: its first line, or a part of it.
    pub fn description(text: &str) -> String {
        let line = text.trim().lines().next().unwrap_or_default();
        crate::preview::preview(line, DESCRIPTION_BYTES)
    }
}

/// The first line of a transcript: all that [`Meta`] has, so that it can be made again, and the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// What the small file has.
    #[serde(flatten)]
    pub meta: Meta,
    /// Of this form of a transcript; a reader refuses none for it.
    pub version: u32,
    /// The program that wrote it.
    pub agentd: String,
    /// The run whose process begins here: that of a conversation changes with its worker.
    pub run_id: RunId,
    /// Short name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// Process life of the run, from 1.
    pub attempt: u32,
    /// Kind of child.
    pub role: Role,
    /// How it was asked for.
    pub mode: Mode,
    /// Reference of its model.
    pub model: String,
    /// W3C trace id.
    pub trace_id: String,
    /// This run's span.
    pub span_id: String,
    /// The delegating call's span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// What the lines before say goes on; else the history begins here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
}

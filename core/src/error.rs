//! Errors sorted by whose fault they are. Each says what was seen, what was legal and what would make it work.

use serde::{Deserialize, Serialize};

/// A spawn or a handle call that is turned down. The model reads it as the tool's answer (S4.1), so it carries
/// what would make the call succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The gate that said no, in the words of S4.2.
    pub gate: String,
    /// One sentence: what was seen and what would succeed.
    pub message: String,
    /// The limit that was met, when there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<String>,
    /// What was observed against it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub observed: Option<String>,
    /// What to do next.
    pub hint: String,
}

/// A peer broke the control protocol. It ends that peer only (S2.5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct ProtocolError(pub String);

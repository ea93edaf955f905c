//! What can go wrong for a program that embeds a supervisor, said so that its author can act.

use agentd_core::error::Refusal;
use agentd_host::error::OsError;

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// This process was made to be a child and went on as if it were none. Without this error it would make children
    /// that make children.
    #[error(
        "this process was started as a child of a supervisor, and its main went past that: call agentd::child_main() \
         first thing in main, and return what it gives"
    )]
    IsChild,
    /// A tool, or the name its tools are granted by, cannot be offered.
    #[error("{tool}: {fault}")]
    Tool {
        /// Which: `server` or `server.tool`.
        tool: String,
        /// What is wrong and what is accepted.
        fault: String,
    },
    /// A recorder cannot begin.
    #[error("the journal {0}")]
    Recorder(String),
    /// The system refused a descriptor.
    #[error("starting the supervisor: {0}")]
    System(#[from] OsError),
}

/// Why a call has no answer of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The supervisor turned it down; nothing was done.
    #[error("{}", with_gate(.0))]
    Refused(Refusal),
    /// The supervisor has ended, or ended before it could answer.
    #[error("the supervisor has ended")]
    Ended,
    /// An answer that this library cannot read; a bug.
    #[error("an answer that cannot be read, a bug: {0}")]
    Unreadable(String),
}

/// The message, which begins with its gate's name.
fn with_gate(refusal: &Refusal) -> String {
    let Refusal { gate, message, .. } = refusal;
    if message.starts_with(&format!("{gate}:")) { message.clone() } else { format!("{gate}: {message}") }
}

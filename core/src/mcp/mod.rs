//! The MCP client as a machine: bytes of one server in, bytes for it and results out. No IO and no clock; the
//! child's threads feed it (S14).
//!
//! One file an idea, so that the next era of the protocol can stand beside [`Client`] on the same floors:
//!
//! | file | owns |
//! |---|---|
//! | `client` | the `initialize` era (2025-11-25 and earlier): handshake, calls, timeouts |
//! | `calls` | the calls that are open |
//! | `handshake` | which versions are spoken, what a server says of itself |
//! | `catalogue` | a server's tool list over its pages |
//! | `content` | a tool's result as one value |
//! | `jsonrpc` | one message, read tolerantly and written strictly |
//! | `tally` | what is skipped: told once, then counted |
//! | `lines` | line-delimited bytes, bounded |
//! | `preview` | foreign text inside our own sentences, bounded |

mod calls;
mod catalogue;
mod client;
mod content;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod jsonrpc;
mod lines;
mod preview;
mod tally;

pub use client::Client;
pub use handshake::{ClientInfo, VERSIONS};

use crate::bytes::Json;
use crate::note::Level;

/// What a client wants done or has to tell, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Write these bytes to the server: whole lines.
    Send(Vec<u8>),
    /// The server is usable. Once, and never after `Failed`.
    Ready {
        /// The server's own name for itself.
        server_name: String,
        /// Its own version.
        version: String,
        /// The protocol version agreed on.
        protocol: String,
        /// What it offers, in its order; at most [`crate::limits::MCP_TOOLS`].
        tools: Vec<ToolInfo>,
    },
    /// The server cannot be used. Once, and never after `Ready`.
    Failed {
        /// One sentence: what was seen and what was expected.
        error: String,
    },
    /// The one answer to a call.
    CallDone {
        /// The key the call was made with.
        key: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// The server says that this call is getting on.
    Progress {
        /// The key the call was made with.
        key: u64,
    },
    /// For the log.
    Log {
        /// How much it matters.
        level: Level,
        /// A stable dotted name.
        event: &'static str,
        /// One sentence; foreign text in it is bounded.
        text: String,
    },
    /// Take the server down: it broke a rule that cannot be mended. Nothing follows but log lines.
    Close {
        /// Which rule.
        why: String,
    },
}

/// What came of a tool call, as the model will read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The call did not do what it was asked; `value` says why.
    pub error: bool,
    /// The answer.
    pub value: Value,
}

impl Outcome {
    /// An error in words.
    pub fn failed(text: impl Into<String>) -> Outcome {
        Outcome { error: true, value: Value::Text(text.into()) }
    }
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Its text parts, joined, with other parts described.
    Text(String),
    /// Its structured content; always parses within serde_json's bounds.
    Json(Json),
}

/// A tool as the server declares it, repaired where that is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolInfo {
    /// The server's own name of it: 1 to 256 characters, none of them white space or control.
    pub name: String,
    /// For the model; may be empty.
    pub description: String,
    /// JSON Schema of its arguments: always an object of `type` `object`.
    pub schema: Json,
}

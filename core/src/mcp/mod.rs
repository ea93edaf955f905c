//! The MCP client as a machine: bytes of one server in, bytes for it and results out. No IO and no clock; the
//! child's threads feed it (S14).
//!
//! | file | owns |
//! |---|---|
//! | `client` | one server over its life: start, calls, what it sends unasked, both eras, both transports |
//! | `era` | which era a server is of, what each request of the stateless one carries |
//! | `handshake` | `initialize`: which versions are spoken, what a server says of itself |
//! | `http` | streamable HTTP: exchanges, sessions, streams that are taken up again |
//! | `headers` | what the stateless era repeats in headers |
//! | `calls` | the calls that are open |
//! | `catalogue`, `resources`, `pages` | what a server offers, over its pages |
//! | `elicit` | questions of a server to a person |
//! | `content` | a tool's result as one value |
//! | `jsonrpc` | one message, read tolerantly and written strictly |
//! | `tally` | what is skipped: told once, then counted |
//! | `lines` | line-delimited bytes, bounded |
//! | `preview` | foreign text inside our own sentences, bounded |

mod calls;
mod catalogue;
mod client;
mod content;
mod elicit;
mod era;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod headers;
mod http;
mod jsonrpc;
mod lines;
mod pages;
mod preview;
mod resources;
mod tally;

pub use client::Client;
pub use elicit::{Elicitation, Form, Reply, content as form_content};
pub use era::{Era, STATELESS};
pub use handshake::{ClientInfo, VERSIONS};
pub use http::{Broken, Exchange, Method};
pub use resources::READ_TOOL;

use crate::bytes::Json;
use crate::note::Level;

/// What a client wants done or has to tell, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Write these bytes to the server's input: whole lines. Over pipes only.
    Send(Vec<u8>),
    /// Make this exchange, and say what comes of it. Over HTTP only.
    Open(Exchange),
    /// Shut this exchange, wherever it is; nothing of it is wanted any more.
    Shut {
        /// Its number.
        exchange: u64,
    },
    /// The server is usable. Once, and never after `Failed`.
    Ready {
        /// The server's own name for itself.
        server_name: String,
        /// Its own version.
        version: String,
        /// The protocol version agreed on.
        protocol: String,
        /// The era of that version.
        era: Era,
        /// What the server says that it can do, as it says it: a JSON object where it is one.
        capabilities: Json,
        /// What it offers, in its order; at most [`crate::limits::MCP_TOOLS`], and [`READ_TOOL`] for its resources.
        tools: Vec<ToolInfo>,
        /// What can be read from it; at most twice [`crate::limits::MCP_RESOURCES`].
        resources: Vec<ResourceInfo>,
    },
    /// What it offers has changed. Only after `Ready`.
    Changed {
        /// All of it, as in `Ready`.
        tools: Vec<ToolInfo>,
        /// All of it, as in `Ready`.
        resources: Vec<ResourceInfo>,
    },
    /// The server asks a person something. The answer goes to [`Client::reply`]; a call that waits for it goes on
    /// against its own time limit.
    Elicit {
        /// The question's number; none is used twice.
        question: u64,
        /// What it asks.
        elicitation: Elicitation,
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
    /// The words are the client's own, and may quote the server; otherwise they are the server's answer.
    pub own: bool,
    /// The answer.
    pub value: Value,
}

impl Outcome {
    /// An error in words.
    pub fn failed(text: impl Into<String>) -> Outcome {
        Outcome { error: true, own: true, value: Value::Text(text.into()) }
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

/// A resource as the server declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    /// Its address; of a template, with parts in braces to fill in. Without control characters.
    pub uri: String,
    /// What it is called, in one line; may be empty.
    pub name: String,
    /// What it is, in one line; may be empty.
    pub description: String,
    /// It is a template.
    pub template: bool,
}

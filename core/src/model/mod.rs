//! What a model is asked and what it answers, in the form that every dialect translates from and to.
//!
//! Owns the request, the history in it, the reply and the ways a call can fail. It holds no provider's wire
//! format: a dialect does ([`mock`], [`openai`], [`responses`], [`anthropic`]). Used by the agent loop (which makes requests and
//! reads replies) and by the child's model connections; never by the supervisor.

pub mod anthropic;
pub mod api;
mod draft;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod http;
mod loose;
pub mod mock;
pub mod names;
pub mod openai;
pub mod refusal;
pub mod responses;
pub mod retry;
pub mod stream;

pub use names::WireNames;

use crate::bytes::Json;
use crate::time::Duration;
use crate::wire::message::{FailKind, Remote, ToolDecl};
use std::sync::Arc;

/// One model call, whole. Cheap to clone: the history and the tools are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Reference of the model, as the configuration knows it.
    pub model: String,
    /// It is the cheaper model of `on_exhausted: degrade` (S15.6).
    pub degraded: bool,
    /// Most tokens of the reply that were asked for; the provider must be told no more.
    pub max_output: Option<u64>,
    /// System text; empty for none.
    pub system: String,
    /// The history, oldest first. Every call of an assistant message is answered by the results right after it.
    pub messages: Vec<Arc<Message>>,
    /// How many of the first messages are the caller's context; the message after them is the instruction.
    pub context: usize,
    /// Index of the message that began the turn in hand; the instruction's in the first turn.
    pub begins: usize,
    /// Which turn of a warm child this is, from 1; always 1 in any other.
    pub turn: u32,
    /// The tools on offer, under their wire names; none in a run's last call (S6.9).
    pub tools: Arc<[ToolDecl]>,
    /// The tools that were on offer when the history's calls were made.
    pub declared: Arc<[ToolDecl]>,
    /// From wire names to registry names and back.
    pub names: Arc<WireNames>,
    /// Which model call of the turn this is, from 1.
    pub step: u32,
    /// Tokens of the turn's budget that are left, input and output together; at least 1.
    pub tokens_left: u64,
}

impl ModelRequest {
    /// Most tokens of the reply, of what is configured for the model and what was asked for; `None` where neither says.
    pub fn most_output(&self, remote: &Remote) -> Option<u64> {
        [remote.max_output, self.max_output].into_iter().flatten().min()
    }

    /// The tools a provider is told of, and whether they may be called: some providers refuse a history with calls
    /// of tools that the request does not declare.
    pub fn told_tools(&self) -> (&[ToolDecl], bool) {
        let has_calls =
            |m: &Arc<Message>| matches!(&**m, Message::Assistant { calls, .. } if !calls.is_empty());
        if self.tools.is_empty() && self.messages.iter().any(has_calls) {
            (&self.declared, false)
        } else {
            (&self.tools, true)
        }
    }
}

/// One message of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What the model is asked or told.
    User(String),
    /// What the model answered. It has text, calls or both.
    Assistant {
        /// What it wrote.
        text: Option<String>,
        /// What it called, in its order.
        calls: Vec<PastCall>,
    },
    /// The answers to the calls of the assistant message before it: one each, in its order.
    Results(Vec<CallResult>),
}

/// A call as the history keeps it: always well-formed, whatever the model sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Unique within the run.
    pub id: String,
    /// Wire name; of a tool that does not exist, the nearest legal one.
    pub name: String,
    /// A JSON object; `{}` where the model sent none.
    pub args: Json,
}

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// The call's wire name.
    pub name: String,
    /// The text is an error to react to.
    pub error: bool,
    /// The result, bounded.
    pub text: String,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it wrote, if anything.
    pub text: Option<String>,
    /// What it wants called. Only calls that were received whole; a half-received one makes the call fail.
    pub calls: Vec<Call>,
    /// Why it stopped.
    pub finish: Finish,
    /// What the provider says was used; all absent when it said nothing.
    pub usage: ReplyUsage,
}

/// A call as the model sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The model's id; may be empty or repeated.
    pub id: String,
    /// Wire name, or whatever the model wrote in its place.
    pub name: String,
    /// Arguments, raw.
    pub args: String,
}

/// Why a model stopped (S7.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// It had said what it wanted to say.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// The reply was cut at a length limit.
    Length,
    /// The provider refused.
    Refusal,
    /// A reason this version does not know.
    Other(String),
    /// No reason was given.
    Missing,
}

impl Finish {
    /// Its name in logs and playbooks.
    pub fn name(&self) -> &str {
        match self {
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool_calls",
            Finish::Length => "length",
            Finish::Refusal => "refusal",
            Finish::Other(text) => text,
            Finish::Missing => "missing",
        }
    }
}

/// Tokens of one call as the provider reported them. What is absent is estimated (S7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyUsage {
    /// Tokens in, those read from a cache included.
    pub input: Option<u64>,
    /// Tokens out.
    pub output: Option<u64>,
    /// Of `input`, read from a cache.
    pub cached: Option<u64>,
}

/// What had come of a reply that is not whole. Nothing of it is acted on, but the provider is paid for it (S7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partial {
    /// Bytes of text, thoughts and calls.
    pub bytes: usize,
    /// What the provider had said by then.
    pub usage: ReplyUsage,
}

impl Partial {
    /// Itself, unless nothing came.
    pub fn some(self) -> Option<Partial> {
        (self != Partial::default()).then_some(self)
    }
}

/// A model call that gave no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Whose fault, and whether trying again can help.
    pub kind: ModelErrorKind,
    /// One sentence for the person who must act.
    pub message: String,
    /// How long the provider wants to be left alone, when it said so.
    pub retry_after: Option<Duration>,
    /// What had come of a reply; `None` where nothing had, and nothing is paid.
    pub came: Option<Partial>,
}

impl ModelError {
    /// An error after which the provider did not say how long to wait.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError { kind, message: message.into(), retry_after: None, came: None }
    }
}

/// How a model call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelErrorKind {
    /// No connection, or it broke.
    Unreachable,
    /// The provider asks for less (429, 503, 529).
    Overloaded,
    /// The provider does not accept the request.
    Rejected,
    /// The provider does not accept the credential.
    Credential,
    /// What came is not a reply: cut off, or against the dialect.
    Malformed,
    /// The history no longer fits the model's window.
    TooLong,
}

impl ModelErrorKind {
    /// Every kind, in order.
    pub const ALL: [ModelErrorKind; 6] = [
        ModelErrorKind::Unreachable,
        ModelErrorKind::Overloaded,
        ModelErrorKind::Rejected,
        ModelErrorKind::Credential,
        ModelErrorKind::Malformed,
        ModelErrorKind::TooLong,
    ];

    /// What a run that ends by it has failed of, and so its exit code (S17.3): whether a model is to be had at all, or
    /// gives nothing that is of use.
    pub const fn fails_as(self) -> FailKind {
        match self {
            ModelErrorKind::Unreachable | ModelErrorKind::Overloaded | ModelErrorKind::Credential => {
                FailKind::Model
            }
            ModelErrorKind::Rejected | ModelErrorKind::Malformed | ModelErrorKind::TooLong => FailKind::Reply,
        }
    }

    /// Its name in logs and playbooks.
    pub const fn name(self) -> &'static str {
        match self {
            ModelErrorKind::Unreachable => "unreachable",
            ModelErrorKind::Overloaded => "overloaded",
            ModelErrorKind::Rejected => "rejected",
            ModelErrorKind::Credential => "credential",
            ModelErrorKind::Malformed => "malformed",
            ModelErrorKind::TooLong => "too_long",
        }
    }
}

#[cfg(test)]
mod tests;

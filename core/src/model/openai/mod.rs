//! Chat completions (`openai`), as OpenAI publishes it and as many servers imitate it.
//!
//! Owns the request body and the reading of answers, streamed or whole. What imitators leave out, add or mix up is
//! read for what it means (F04, F18); what a server refuses to read is not sent to it again ([`Manner`]). Called
//! through [`crate::model::api`].

mod calls;
mod chunks;
mod request;

pub use request::request;

use crate::model::{ModelError, ModelErrorKind, stream};

/// Reads an answer.
pub type Reader = stream::Reader<chunks::Chunks>;

/// How one server wants to be asked, as far as servers differ. It is learned from refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Whether the stream is asked to report usage (`stream_options`).
    pub usage: bool,
    /// Whether the bound of the reply is called `max_completion_tokens`; `max_tokens` is the older name.
    pub completion_tokens: bool,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner { usage: true, completion_tokens: false }
    }
}

impl Manner {
    /// Learns from a refusal. `true`: the same request in the new manner may be accepted.
    pub fn learn(&mut self, error: &ModelError) -> bool {
        if error.kind != ModelErrorKind::Rejected {
            return false;
        }
        let before = *self;
        if error.message.contains("stream_options") || error.message.contains("include_usage") {
            self.usage = false;
        }
        if error.message.contains("max_completion_tokens") && error.message.contains("max_tokens") {
            self.completion_tokens = true;
        }
        before != *self
    }
}

#[cfg(test)]
mod tests;

//! A reply while it comes in: text, why it stopped, what it used. Refuses to grow past its bounds. Shared by the
//! dialects' readers.

use crate::limits::{REPLY_BYTES, REPLY_CALLS};
use crate::model::loose::number;
use crate::model::{Call, Finish, ModelError, ModelErrorKind, Partial, Reply, ReplyUsage};
use serde_json::Value;

/// What a call costs of the reply's bound besides its text.
const CALL_BYTES: usize = 64;

/// What came so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
    finish: Option<Finish>,
    usage: ReplyUsage,
    bytes: usize,
    calls: usize,
    /// Bytes that the model wrote, its thoughts included.
    written: usize,
}

impl Draft {
    /// More text.
    pub(super) fn say(&mut self, text: &str) -> Result<(), ModelError> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// The whole text, of a dialect that counted its bytes as they came.
    pub(super) fn wrote(&mut self, text: String) {
        self.text = text;
    }

    /// Room for one more call.
    pub(super) fn add_call(&mut self) -> Result<(), ModelError> {
        self.calls += 1;
        if self.calls > REPLY_CALLS {
            return Err(too_big(format!("more than {REPLY_CALLS} tool calls")));
        }
        self.room(CALL_BYTES)
    }

    /// The model wrote so many bytes of a call.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.written = self.written.saturating_add(bytes);
        self.room(bytes)
    }

    /// The model wrote so many bytes that are not kept.
    pub(super) fn thought(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes);
    }

    /// What came, for a reply that will not be whole.
    pub(super) fn came(&self) -> Partial {
        Partial { bytes: self.written, usage: self.usage }
    }

    /// Room for so many bytes that are kept.
    pub(super) fn room(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > REPLY_BYTES {
            return Err(too_big(format!("more than {REPLY_BYTES} bytes")));
        }
        Ok(())
    }

    /// A reason to stop, if it is one. The last one stands, but that a reply was cut or refused is not taken back.
    pub(super) fn stop(&mut self, finish: Finish) {
        if finish != Finish::Missing && !matches!(self.finish, Some(Finish::Length | Finish::Refusal)) {
            self.finish = Some(finish);
        }
    }

    /// Whether a reason to stop came.
    pub(super) fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }

    /// What was used so far: counts only rise, so a report that is repeated adds nothing. Whether it is news.
    pub(super) fn used(&mut self, seen: ReplyUsage) -> bool {
        let before = self.usage;
        let usage = &mut self.usage;
        for (kept, seen) in [
            (&mut usage.input, seen.input),
            (&mut usage.output, seen.output),
            (&mut usage.cached, seen.cached),
        ] {
            *kept = (*kept).max(seen);
        }
        before != self.usage
    }

    /// The whole reply.
    pub(super) fn reply(self, calls: Vec<Call>) -> Reply {
        let text = (!self.text.is_empty()).then_some(self.text);
        Reply { text, calls, finish: self.finish.unwrap_or(Finish::Missing), usage: self.usage }
    }
}

/// Why a model stopped, by any provider's word for it. Compatible servers mix the words, so there is one table.
pub(super) fn finish(word: &str) -> Finish {
    match word {
        "" => Finish::Missing,
        "stop" | "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_calls" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded" => {
            Finish::Length
        }
        "content_filter" | "refusal" => Finish::Refusal,
        other => Finish::Other(other.to_owned()),
    }
}

/// What a provider with OpenAI's words says was used. Names of other dialects and of older servers count as well.
pub(super) fn usage(usage: &Value) -> ReplyUsage {
    let first = |values: &[&Value]| values.iter().copied().find_map(number);
    ReplyUsage {
        input: first(&[&usage["prompt_tokens"], &usage["input_tokens"]]),
        output: first(&[&usage["completion_tokens"], &usage["output_tokens"]]),
        cached: first(&[
            &usage["prompt_tokens_details"]["cached_tokens"],
            &usage["input_tokens_details"]["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
        ]),
    }
}

/// Arguments as the loop is to see them: a tool without parameters is often called with nothing at all.
pub(super) fn arguments(raw: String) -> String {
    if raw.trim().is_empty() { "{}".to_owned() } else { raw }
}

fn too_big(what: String) -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, format!("the reply has {what}, which no model is asked for"))
}

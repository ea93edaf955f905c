//! The answer of chat completions: chunks of a stream, or one completion.

use super::calls::{Calls, Piece};
use crate::model::draft::{self, Draft};
use crate::model::loose::{is_something, list, number, parts, text};
use crate::model::refusal::of_error;
use crate::model::stream::{Events, Seen};
use crate::model::{Finish, ModelError, ModelErrorKind, Partial, Reply};
use serde_json::Value;

/// What came so far.
#[derive(Debug, Default)]
pub struct Chunks {
    draft: Draft,
    calls: Calls,
    /// The model's own words for a refusal.
    refusal: String,
    begun: bool,
}

impl Events for Chunks {
    const END: &'static str = "data: [DONE]";

    fn is_end(data: &str) -> bool {
        data == "[DONE]"
    }

    fn take(&mut self, _name: &str, chunk: &Value) -> Result<Seen, ModelError> {
        if is_something(&chunk["error"]) {
            return Err(of_error(&chunk["error"]));
        }
        // The first chunk says that the model has begun, whatever it holds.
        let mut news = !std::mem::replace(&mut self.begun, true);
        news |= self.draft.used(draft::usage(&chunk["usage"]));
        for choice in list(&chunk["choices"]) {
            if number(&choice["index"]).unwrap_or(0) == 0 {
                news |= self.choice(choice)?;
            }
        }
        Ok(if news { Seen::Something } else { Seen::Nothing })
    }

    fn whole(&mut self, body: &Value) -> Result<(), ModelError> {
        self.take("", body)?;
        if body["choices"].is_array() {
            return Ok(());
        }
        let message = "the answer is JSON but no chat completion: it has no `choices`; is this the address of a \
                       chat completions endpoint?";
        Err(ModelError::new(ModelErrorKind::Malformed, message))
    }

    /// Servers exist that never send `[DONE]`. A reason to stop is the model's own end of what it says; usage may
    /// still follow it, so the body is read to its end all the same.
    fn may_end(&self) -> bool {
        self.draft.has_stopped()
    }

    fn came(&self) -> Partial {
        self.draft.came()
    }

    fn reply(mut self) -> Reply {
        if !self.refusal.is_empty() {
            self.draft.stop(Finish::Refusal);
        }
        let mut reply = self.draft.reply(self.calls.finish());
        if reply.text.is_none() && !self.refusal.is_empty() {
            reply.text = Some(self.refusal);
        }
        reply
    }
}

impl Chunks {
    /// Whether the choice holds news.
    fn choice(&mut self, choice: &Value) -> Result<bool, ModelError> {
        // A completion in one piece has `message`, and so do some servers' streams.
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        for piece in parts(&delta["content"]) {
            self.draft.say(piece)?;
        }
        // Compatible servers have two names for a model's thoughts.
        for thought in [&delta["reasoning_content"], &delta["reasoning"]] {
            self.draft.thought(text(thought).len());
        }
        let refusal = text(&delta["refusal"]);
        self.draft.grow(refusal.len())?;
        self.refusal.push_str(refusal);
        let mut pieces: Vec<Piece<'_>> = list(&delta["tool_calls"]).iter().map(Piece::of).collect();
        if delta["function_call"].is_object() {
            pieces.push(Piece::of_function(&delta["function_call"]));
        }
        self.calls.take(&pieces, &mut self.draft)?;
        let finish = text(&choice["finish_reason"]);
        if finish == "error" {
            return Err(of_error(&Value::from("the provider ended the reply with `finish_reason: error`")));
        }
        self.draft.stop(draft::finish(finish));
        // Thinking, and fields nobody here knows, are signs of work too.
        let said =
            delta.as_object().is_some_and(|d| d.iter().any(|(key, v)| key != "role" && is_something(v)));
        Ok(said || !finish.is_empty())
    }
}

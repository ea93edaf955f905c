//! The answer of messages: events of a stream, or one message.

use crate::model::draft::{self, Draft, arguments};
use crate::model::loose::{is_something, list, number, text};
use crate::model::refusal::of_error;
use crate::model::stream::{Events, Seen};
use crate::model::{Call, ModelError, ModelErrorKind, Partial, Reply, ReplyUsage};
use serde_json::Value;

/// What came so far.
#[derive(Debug, Default)]
pub struct Blocks {
    draft: Draft,
    calls: Vec<ToolUse>,
    usage: Tokens,
}

/// A block of type `tool_use`.
#[derive(Debug)]
struct ToolUse {
    index: Option<u64>,
    id: String,
    name: String,
    /// Input that came with the block's beginning; what comes in pieces is in its place.
    whole: String,
    pieces: String,
}

/// Tokens in, which this provider counts in three parts.
#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    fresh: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
}

impl Events for Blocks {
    const END: &'static str = "message_stop";

    fn take(&mut self, name: &str, event: &Value) -> Result<Seen, ModelError> {
        let kind = Some(text(&event["type"])).filter(|kind| !kind.is_empty()).unwrap_or(name);
        match kind {
            "error" => return Err(of_error(&event["error"])),
            "message_stop" => return Ok(Seen::End),
            "message_start" => {
                self.message(&event["message"])?;
            }
            "content_block_start" => self.begin(number(&event["index"]), &event["content_block"])?,
            "content_block_delta" => {
                self.delta(number(&event["index"]), &event["delta"])?;
                // A delta of its type alone is a sign of life.
                let said = |(key, value): (&String, &Value)| key != "type" && is_something(value);
                let news = event["delta"].as_object().is_some_and(|delta| delta.iter().any(said));
                return Ok(if news { Seen::Something } else { Seen::Nothing });
            }
            "content_block_stop" => {}
            "message_delta" => {
                self.used(&event["usage"]);
                self.stop(&event["delta"]);
            }
            // Pings, and what later versions add.
            _ if is_something(&event["error"]) => return Err(of_error(&event["error"])),
            _ => return Ok(Seen::Nothing),
        }
        Ok(Seen::Something)
    }

    fn whole(&mut self, body: &Value) -> Result<(), ModelError> {
        if is_something(&body["error"]) {
            return Err(of_error(&body["error"]));
        }
        if body.get("content").is_none() {
            let message = "the answer is JSON but no message: it has no `content`; is this the address of a \
                           messages endpoint?";
            return Err(ModelError::new(ModelErrorKind::Malformed, message));
        }
        self.message(body)
    }

    fn came(&self) -> Partial {
        self.draft.came()
    }

    fn reply(self) -> Reply {
        let call = |used: ToolUse| {
            let raw = if used.pieces.is_empty() { used.whole } else { used.pieces };
            Call { id: used.id, name: used.name, args: arguments(raw) }
        };
        self.draft.reply(self.calls.into_iter().map(call).collect())
    }
}

impl Blocks {
    /// A message as far as it goes: in a stream it begins empty.
    fn message(&mut self, message: &Value) -> Result<(), ModelError> {
        self.used(&message["usage"]);
        if let Some(content) = message["content"].as_str() {
            self.draft.say(content)?;
        }
        for (index, block) in (0..).zip(list(&message["content"])) {
            self.begin(Some(index), block)?;
        }
        self.stop(message);
        Ok(())
    }

    fn begin(&mut self, index: Option<u64>, block: &Value) -> Result<(), ModelError> {
        match text(&block["type"]) {
            "text" => self.draft.say(text(&block["text"])),
            "tool_use" => {
                let input = &block["input"];
                let whole = match input.as_str() {
                    Some(raw) => raw.to_owned(),
                    None if is_something(input) => input.to_string(),
                    None => String::new(),
                };
                let (id, name) = (text(&block["id"]).to_owned(), text(&block["name"]).to_owned());
                self.draft.add_call()?;
                self.draft.grow(id.len() + name.len() + whole.len())?;
                self.calls.push(ToolUse { index, id, name, whole, pieces: String::new() });
                Ok(())
            }
            // Thinking, the provider's own tools, and what later versions add.
            _ => Ok(()),
        }
    }

    fn delta(&mut self, index: Option<u64>, delta: &Value) -> Result<(), ModelError> {
        self.draft.say(text(&delta["text"]))?;
        self.draft.thought(text(&delta["thinking"]).len());
        let piece = text(&delta["partial_json"]);
        self.draft.grow(piece.len())?;
        let same = |used: &ToolUse| index.is_none() || used.index.is_none() || used.index == index;
        // Pieces of the provider's own tools have no block here.
        if let Some(used) = self.calls.iter_mut().rev().find(|used| same(used)) {
            used.pieces.push_str(piece);
        }
        Ok(())
    }

    fn stop(&mut self, holder: &Value) {
        self.draft.stop(draft::finish(text(&holder["stop_reason"])));
    }

    /// Every report holds the sums so far.
    fn used(&mut self, usage: &Value) {
        let tokens = &mut self.usage;
        tokens.fresh = tokens.fresh.max(number(&usage["input_tokens"]));
        tokens.cache_read = tokens.cache_read.max(number(&usage["cache_read_input_tokens"]));
        tokens.cache_creation = tokens.cache_creation.max(number(&usage["cache_creation_input_tokens"]));
        let parts = [tokens.fresh, tokens.cache_read, tokens.cache_creation];
        let input = parts.iter().flatten().copied().reduce(u64::saturating_add);
        let output = number(&usage["output_tokens"]);
        self.draft.used(ReplyUsage { input, output, cached: tokens.cache_read });
    }
}

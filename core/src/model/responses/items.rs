//! The answer of responses: events of a stream, or one response.
//!
//! An item comes up to three times: in pieces, whole when it is done, and once more in the response that ends the
//! stream. What is told whole takes the place of its pieces; the response at the end counts only where nothing came
//! before it. Items are told apart by their place, since some servers change an item's id from event to event.

use crate::model::draft::{self, Draft, arguments};
use crate::model::loose::{is_something, list, number, text};
use crate::model::refusal::of_error;
use crate::model::stream::{Events, Seen};
use crate::model::{Call, Finish, ModelError, ModelErrorKind, Partial, Reply};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What an item, or a part of one, costs of the reply's bound besides its text.
const PART_BYTES: usize = 64;

/// What came so far.
#[derive(Debug, Default)]
pub struct Items {
    draft: Draft,
    items: Vec<Item>,
}

/// An item of the output that is for us.
#[derive(Debug)]
struct Item {
    index: Option<u64>,
    id: String,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Parts of a message by their place.
    Message(BTreeMap<u64, Part>),
    Call(Call),
}

#[derive(Debug, Default)]
struct Part {
    text: String,
    refusal: String,
}

/// Which kind of item an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Call,
}

/// What a text is of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Piece,
    Whole,
}

impl Events for Items {
    const END: &'static str = "response.completed";

    fn take(&mut self, name: &str, event: &Value) -> Result<Seen, ModelError> {
        let kind = Some(text(&event["type"])).filter(|kind| !kind.is_empty()).unwrap_or(name);
        match kind {
            "error" => {
                let inner = &event["error"];
                return Err(of_error(if is_something(inner) { inner } else { event }));
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let ended = kind.trim_start_matches("response.");
                self.response(&event["response"], ended)?;
                return Ok(Seen::End);
            }
            // They are repeated to keep a connection alive.
            "response.queued" | "response.in_progress" => return Ok(Seen::Nothing),
            "response.output_item.added" | "response.output_item.done" => {
                self.item(number(&event["output_index"]), &event["item"])?;
            }
            "response.content_part.added" | "response.content_part.done" => {
                let part = &event["part"];
                self.part(event, Share::Whole, text(&part["text"]), text(&part["refusal"]))?;
            }
            "response.output_text.delta" => self.part(event, Share::Piece, text(&event["delta"]), "")?,
            "response.output_text.done" => self.part(event, Share::Whole, text(&event["text"]), "")?,
            "response.refusal.delta" => self.part(event, Share::Piece, "", text(&event["delta"]))?,
            "response.refusal.done" => self.part(event, Share::Whole, "", text(&event["refusal"]))?,
            "response.function_call_arguments.delta" => self.args(event, Share::Piece, &event["delta"])?,
            "response.function_call_arguments.done" => self.args(event, Share::Whole, &event["arguments"])?,
            _ if is_something(&event["error"]) => return Err(of_error(&event["error"])),
            "response.created" => {
                self.draft.used(draft::usage(&event["response"]["usage"]));
            }
            // Thinking, the provider's own tools, and what later versions add.
            _ => {
                self.draft.thought(text(&event["delta"]).len());
                return Ok(if is_something(&event["delta"]) { Seen::Something } else { Seen::Nothing });
            }
        }
        // A piece of nothing is a sign of life at most.
        let empty = kind.ends_with(".delta") && !is_something(&event["delta"]);
        Ok(if empty { Seen::Nothing } else { Seen::Something })
    }

    fn whole(&mut self, body: &Value) -> Result<(), ModelError> {
        if is_something(&body["error"]) {
            return Err(of_error(&body["error"]));
        }
        if !body["output"].is_array() {
            let message = "the answer is JSON but no response: it has no `output`; is this the address of a responses \
                           endpoint?";
            return Err(ModelError::new(ModelErrorKind::Malformed, message));
        }
        self.response(body, "")
    }

    fn came(&self) -> Partial {
        self.draft.came()
    }

    fn reply(mut self) -> Reply {
        let (mut said, mut refused, mut calls) = (String::new(), String::new(), Vec::new());
        for item in self.items {
            match item.body {
                Body::Message(parts) => {
                    for part in parts.into_values() {
                        said.push_str(&part.text);
                        refused.push_str(&part.refusal);
                    }
                }
                Body::Call(call) if call.id.is_empty() && call.name.is_empty() && call.args.is_empty() => {}
                Body::Call(call) => calls.push(Call { args: arguments(call.args), ..call }),
            }
        }
        if !refused.is_empty() {
            self.draft.stop(Finish::Refusal);
        } else if !calls.is_empty() {
            self.draft.stop(Finish::ToolCalls);
        }
        self.draft.wrote(if said.is_empty() { refused } else { said });
        self.draft.reply(calls)
    }
}

impl Items {
    /// The response as a whole: `ended` is how its event says that it ended, empty for one without an event.
    fn response(&mut self, response: &Value, ended: &str) -> Result<(), ModelError> {
        if is_something(&response["error"]) {
            return Err(of_error(&response["error"]));
        }
        let status = text(&response["status"]);
        let is = |word: &str| ended == word || status == word;
        if is("failed") || is("cancelled") {
            return Err(of_error(&Value::from("it ended the response without saying why")));
        }
        if ended.is_empty() && (is("in_progress") || is("queued")) {
            let message = format!("the answer is a response that is still {status}, which was not asked for");
            return Err(ModelError::new(ModelErrorKind::Malformed, message));
        }
        self.draft.used(draft::usage(&response["usage"]));
        if !self.items.iter().any(Item::says_something) {
            for (index, item) in (0..).zip(list(&response["output"])) {
                self.item(Some(index), item)?;
            }
        }
        self.draft.stop(if is("incomplete") {
            match draft::finish(text(&response["incomplete_details"]["reason"])) {
                Finish::Refusal => Finish::Refusal,
                // Whatever the reason: it is not all that the model wanted to say.
                Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Other(_) | Finish::Missing => {
                    Finish::Length
                }
            }
        } else {
            Finish::Stop
        });
        Ok(())
    }

    /// An item as far as it goes: it begins empty, and is whole when it is done.
    fn item(&mut self, index: Option<u64>, item: &Value) -> Result<(), ModelError> {
        match text(&item["type"]) {
            "message" => {
                let at = self.place(index, text(&item["id"]), Kind::Message)?;
                if let Some(alone) = item["content"].as_str() {
                    self.write(at, 0, Share::Whole, alone, "")?;
                }
                for (nth, part) in (0..).zip(list(&item["content"])) {
                    self.write(at, nth, Share::Whole, text(&part["text"]), text(&part["refusal"]))?;
                }
            }
            "function_call" => {
                let at = self.place(index, text(&item["id"]), Kind::Call)?;
                self.called(at, Share::Whole, &item["arguments"])?;
                if let Body::Call(call) = &mut self.items[at].body {
                    for (kept, seen) in [(&mut call.id, &item["call_id"]), (&mut call.name, &item["name"])] {
                        let seen = text(seen).trim();
                        if !seen.is_empty() && seen != kept {
                            self.draft.grow(seen.len())?;
                            *kept = seen.to_owned();
                        }
                    }
                }
            }
            // Reasoning, the provider's own tools, and what later versions add.
            _ => return Ok(()),
        }
        if text(&item["status"]) == "incomplete" {
            self.draft.stop(Finish::Length);
        }
        Ok(())
    }

    /// A part of the message that an event names.
    fn part(&mut self, event: &Value, share: Share, said: &str, refused: &str) -> Result<(), ModelError> {
        if said.is_empty() && refused.is_empty() {
            return Ok(());
        }
        let at = self.place(number(&event["output_index"]), text(&event["item_id"]), Kind::Message)?;
        self.write(at, number(&event["content_index"]).unwrap_or(0), share, said, refused)
    }

    fn args(&mut self, event: &Value, share: Share, args: &Value) -> Result<(), ModelError> {
        let at = self.place(number(&event["output_index"]), text(&event["item_id"]), Kind::Call)?;
        self.called(at, share, args)
    }

    /// Where the item is that an event is about: by its place, else by its id, else the last of its kind; a new one
    /// when there is none.
    fn place(&mut self, index: Option<u64>, id: &str, kind: Kind) -> Result<usize, ModelError> {
        let mut of_kind = (0..self.items.len()).rev().filter(|at| self.items[*at].kind() == kind);
        let found = of_kind.find(|at| {
            let item = &self.items[*at];
            match (index, item.index) {
                (Some(index), Some(own)) => index == own,
                _ => id.is_empty() || item.id.is_empty() || item.id == id,
            }
        });
        if let Some(at) = found {
            return Ok(at);
        }
        let body = match kind {
            Kind::Message => {
                self.draft.room(PART_BYTES)?;
                Body::Message(BTreeMap::new())
            }
            Kind::Call => {
                self.draft.add_call()?;
                Body::Call(Call { id: String::new(), name: String::new(), args: String::new() })
            }
        };
        self.draft.room(id.len())?;
        self.items.push(Item { index, id: id.to_owned(), body });
        Ok(self.items.len() - 1)
    }

    fn write(
        &mut self,
        at: usize,
        part: u64,
        share: Share,
        said: &str,
        refused: &str,
    ) -> Result<(), ModelError> {
        let Body::Message(parts) = &mut self.items[at].body else { return Ok(()) };
        if said.is_empty() && refused.is_empty() {
            return Ok(());
        }
        if !parts.contains_key(&part) {
            self.draft.room(PART_BYTES)?;
        }
        let part = parts.entry(part).or_default();
        put(&mut self.draft, &mut part.text, share, said)?;
        put(&mut self.draft, &mut part.refusal, share, refused)
    }

    fn called(&mut self, at: usize, share: Share, args: &Value) -> Result<(), ModelError> {
        let args = match args.as_str() {
            Some(text) => Cow::Borrowed(text),
            // Some servers send what the text would spell.
            None if args.is_object() => Cow::Owned(args.to_string()),
            None => Cow::Borrowed(""),
        };
        match &mut self.items[at].body {
            Body::Call(call) => put(&mut self.draft, &mut call.args, share, &args),
            Body::Message(_) => Ok(()),
        }
    }
}

impl Item {
    fn kind(&self) -> Kind {
        match self.body {
            Body::Message(_) => Kind::Message,
            Body::Call(_) => Kind::Call,
        }
    }

    fn says_something(&self) -> bool {
        match &self.body {
            Body::Message(parts) => !parts.is_empty(),
            Body::Call(call) => !(call.name.is_empty() && call.args.is_empty()),
        }
    }
}

/// A piece is added; a whole takes the place of what came, unless it is empty.
fn put(draft: &mut Draft, into: &mut String, share: Share, said: &str) -> Result<(), ModelError> {
    match share {
        Share::Piece => {
            draft.grow(said.len())?;
            into.push_str(said);
        }
        Share::Whole if said.is_empty() || said == into => {}
        Share::Whole => {
            draft.grow(said.len().saturating_sub(into.len()))?;
            said.clone_into(into);
        }
    }
    Ok(())
}

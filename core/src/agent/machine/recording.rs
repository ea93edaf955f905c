//! What becomes part of the history goes to the transcript as well (S11.2), in the order in which it does and before
//! anything that follows from it.

use super::Loop;
use crate::agent::Output;
use crate::model::{Message, PastCall};
use crate::transcript::{Item, ItemCall, ItemResult, ItemRole};
use crate::wire::message::{ContextRole, Spawn, TurnOutcome};

/// What a run begins with.
pub(super) fn opening(spec: &Spawn, turn: u64) -> Vec<Item> {
    let context = spec.context.iter().map(|message| {
        let role = match message.role {
            ContextRole::User => ItemRole::User,
            ContextRole::Assistant => ItemRole::Assistant,
        };
        Item::Context { role, text: message.content.clone() }
    });
    context.chain([Item::Turn { turn, text: spec.instruction.clone() }]).collect()
}

impl Loop {
    fn record(&self, item: impl FnOnce() -> Item, out: &mut Vec<Output>) {
        if self.records {
            out.push(Output::Record(Box::new(item())));
        }
    }

    /// What a run begins with is written when it begins.
    pub(super) fn record_opening(&mut self, out: &mut Vec<Output>) {
        for item in std::mem::take(&mut self.opening) {
            self.record(|| item, out);
        }
    }

    /// The message of a turn that begins.
    pub(super) fn record_turn(&self, text: &str, out: &mut Vec<Output>) {
        self.record(|| Item::Turn { turn: self.turn.written, text: text.to_owned() }, out);
    }

    /// The model is told something in the middle of a turn.
    pub(super) fn say(&mut self, text: String, out: &mut Vec<Output>) {
        self.record(|| Item::Told { text: text.clone() }, out);
        self.history.told(text);
    }

    /// The model has answered, without calls. One without text leaves no trace.
    pub(super) fn hear(&mut self, text: Option<String>, partial: bool, out: &mut Vec<Output>) {
        if text.is_some() {
            self.record(|| Item::Assistant { text: text.clone(), calls: Vec::new(), partial }, out);
        }
        self.history.answered(text);
    }

    /// The model has called: written before any of it is done.
    pub(super) fn record_calls<'c>(
        &self,
        text: Option<&String>,
        calls: impl Iterator<Item = &'c PastCall>,
        out: &mut Vec<Output>,
    ) {
        let calls = || calls.map(item_call).collect();
        self.record(|| Item::Assistant { text: text.cloned(), calls: calls(), partial: false }, out);
    }

    pub(super) fn record_result(&self, call: &PastCall, error: bool, text: &str, out: &mut Vec<Output>) {
        let (id, name) = (&call.id, &call.name);
        let result = || ItemResult { id: id.clone(), name: name.clone(), error, text: text.to_owned() };
        self.record(|| Item::ToolResult(result()), out);
    }

    /// The history was made shorter.
    pub(super) fn record_compacted(&self, out: &mut Vec<Output>) {
        self.record(|| Item::Compacted { history: self.items() }, out);
    }

    /// The turn in hand has ended, or the process while it was in hand.
    pub(super) fn record_end(&self, outcome: &TurnOutcome, stopped: bool, out: &mut Vec<Output>) {
        let item = || Item::Ended { turn: self.turn.written, outcome: outcome.clone(), stopped };
        self.record(item, out);
    }

    /// The history, as a transcript has it.
    fn items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for (at, message) in self.history.messages().iter().enumerate() {
            match message.as_ref() {
                Message::User(text) if at < self.history.context => {
                    items.push(Item::Context { role: ItemRole::User, text: text.clone() });
                }
                Message::Assistant { text, .. } if at < self.history.context => {
                    let text = text.clone().unwrap_or_default();
                    items.push(Item::Context { role: ItemRole::Assistant, text });
                }
                Message::User(text) if at == self.history.begins => {
                    items.push(Item::Turn { turn: self.turn.written, text: text.clone() });
                }
                Message::User(text) => items.push(Item::Told { text: text.clone() }),
                Message::Assistant { text, calls } => {
                    let calls = calls.iter().map(item_call).collect();
                    items.push(Item::Assistant { text: text.clone(), calls, partial: false });
                }
                Message::Results(results) => items.extend(results.iter().map(|result| {
                    let (id, name) = (result.id.clone(), result.name.clone());
                    Item::ToolResult(ItemResult { id, name, error: result.error, text: result.text.clone() })
                })),
            }
        }
        items
    }
}

fn item_call(call: &PastCall) -> ItemCall {
    // The arguments of a past call are a JSON object, whatever the model sent.
    let args = call.args.parse().unwrap_or_default();
    ItemCall { id: call.id.clone(), name: call.name.clone(), args }
}

//! A history that is made of a transcript's lines again (S11.6).
//!
//! Owns what a damaged or missing line does to it: the history stays one that a provider takes, with one result for each
//! call. Refuses results of calls that nobody made.

use super::{AgentEvent, Entry, Item, ItemCall, ItemResult, ItemRole, read_line};
use crate::id::RunId;
use crate::wire::message::TurnOutcome;

/// What a resumed run is told of a call whose result nobody wrote down.
pub const ORPHANED: &str = "there is no result: the process that made this call ended before it came. It may have been made, or not; \
     look before you make it again.";

/// A message of the history.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// What the model was asked or told.
    User(String),
    /// What it answered.
    Assistant {
        /// What it wrote.
        text: Option<String>,
        /// What it called.
        calls: Vec<ItemCall>,
    },
    /// The results of these calls, one each, in their order.
    Results(Vec<ItemResult>),
}

/// What was said and done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Past {
    /// Oldest first.
    pub messages: Vec<Said>,
    /// The run whose process wrote last.
    pub run: Option<RunId>,
    /// How many of the first are the caller's context.
    pub context: usize,
    /// Where the last turn begins.
    pub begins: usize,
    /// The number of the message that began the last turn; 0 when there was none.
    pub turn: u64,
    /// How many turns there were.
    pub turns: u32,
    /// The last thing that was said, where that is an answer whose turn was not ended with it any more: its text, and
    /// whether it is partial.
    pub answered: Option<(String, bool)>,
    /// How turn 1 ended, once it did: a run with many turns is asked for it again.
    pub first: Option<TurnOutcome>,
    /// The last turn that ended, and how.
    pub ended: Option<(u64, TurnOutcome)>,
    /// Model calls of the last turn.
    pub steps: u32,
    /// Tokens of the last turn, in and out.
    pub tokens: u64,
    /// Results that stand for those nobody wrote down: they are in `messages`, and not in the file yet.
    pub orphans: Vec<ItemResult>,
    /// Lines that could not be read, or make no sense where they are.
    pub damaged: u64,
}

/// Takes the lines of a file, in order.
#[derive(Debug, Default)]
pub struct Reader {
    past: Past,
    /// The calls of the last message, until each has its result.
    open: Vec<(ItemCall, Option<ItemResult>)>,
}

impl Past {
    /// The last turn goes on: it has begun and has not ended.
    pub fn is_in_turn(&self) -> bool {
        self.turn > 0 && self.ended.as_ref().is_none_or(|(turn, _)| *turn != self.turn)
    }
}

impl Reader {
    /// The next line, without its newline. An empty one is none.
    pub fn take(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        match read_line(line) {
            Ok(record) => self.entry(record.entry),
            Err(_) => self.past.damaged += 1,
        }
    }

    /// What the lines come to.
    pub fn finish(mut self) -> Past {
        self.past.orphans = self.close();
        self.past
    }

    fn entry(&mut self, entry: Entry) {
        match entry {
            Entry::SessionMeta(head) if head.resumed => self.past.run = Some(head.run_id),
            // Whatever was said before is not taken up again.
            Entry::SessionMeta(head) => {
                let (run, damaged) = (Some(head.run_id), self.past.damaged);
                *self = Reader { past: Past { run, damaged, ..Past::default() }, open: Vec::new() };
            }
            Entry::ResponseItem(item) => self.item(item),
            Entry::AgentEvent(AgentEvent { event, fields }) if event == "usage" => {
                let of = |key: &str| fields.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
                self.past.steps = self.past.steps.saturating_add(1);
                self.past.tokens = self.past.tokens.saturating_add(of("input")).saturating_add(of("output"));
            }
            Entry::AgentEvent(_) => {}
        }
    }

    fn item(&mut self, item: Item) {
        if let Item::ToolResult(result) = item {
            return self.result(result);
        }
        self.close();
        self.past.answered = None;
        self.said(item);
    }

    fn said(&mut self, item: Item) {
        let past = &mut self.past;
        match item {
            Item::Context { role, text } => {
                if past.context == past.messages.len() {
                    past.context += 1;
                }
                past.messages.push(match role {
                    ItemRole::User => Said::User(text),
                    ItemRole::Assistant => Said::Assistant { text: Some(text), calls: Vec::new() },
                });
            }
            Item::Turn { turn, text } => {
                past.begins = past.messages.len();
                past.turn = turn;
                past.turns = past.turns.saturating_add(1);
                (past.steps, past.tokens) = (0, 0);
                past.messages.push(Said::User(text));
            }
            Item::Told { text } => past.messages.push(Said::User(text)),
            Item::Assistant { text, calls, partial } => {
                if calls.is_empty() {
                    past.answered = text.clone().map(|text| (text, partial));
                }
                self.open = calls.iter().map(|call| (call.clone(), None)).collect();
                past.messages.push(Said::Assistant { text, calls });
            }
            Item::Compacted { history } => self.compacted(history),
            Item::Ended { stopped: true, .. } => {}
            Item::Ended { turn, outcome, stopped: false } => {
                if turn == 1 {
                    past.first = Some(outcome.clone());
                }
                past.ended = Some((turn, outcome));
            }
            Item::ToolResult(result) => self.result(result),
        }
    }

    /// The history is another one from here on; which turn is in hand stays.
    fn compacted(&mut self, history: Vec<Item>) {
        let mut shorter = Reader::default();
        history.into_iter().for_each(|item| shorter.item(item));
        let short = shorter.finish();
        self.past.damaged += short.damaged;
        (self.past.messages, self.past.context, self.past.begins) =
            (short.messages, short.context, short.begins);
    }

    fn result(&mut self, result: ItemResult) {
        let waits = |(call, had): &&mut (ItemCall, Option<ItemResult>)| call.id == result.id && had.is_none();
        match self.open.iter_mut().find(waits) {
            Some((_, had)) => *had = Some(result),
            None => self.past.damaged += 1,
        }
        if self.open.iter().all(|(_, had)| had.is_some()) {
            self.close();
        }
    }

    /// The calls of the last message have all the results they will have. Gives those that were made up.
    fn close(&mut self) -> Vec<ItemResult> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let mut made_up = Vec::new();
        let results = std::mem::take(&mut self.open).into_iter().map(|(call, had)| {
            had.unwrap_or_else(|| {
                let result =
                    ItemResult { id: call.id, name: call.name, error: true, text: ORPHANED.to_owned() };
                made_up.push(result.clone());
                result
            })
        });
        let results = results.collect();
        self.past.messages.push(Said::Results(results));
        made_up
    }
}

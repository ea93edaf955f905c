//! The run's messages. Valid at every boundary: each call id is unique, and right after an assistant message
//! with calls come their results, one each, in order (S6.6).

use crate::bytes::{Bytes, Json};
use crate::model::names::legal;
use crate::model::{Call, CallResult, Message, PastCall};
use crate::transcript::{ItemCall, ItemResult, Said};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Characters of a model's call id that are kept as they are.
const ID_CHARS: usize = 128;

/// The messages and what is known of them.
#[derive(Debug)]
pub(super) struct History {
    messages: Vec<Arc<Message>>,
    /// How many of the first messages are the caller's context.
    pub(super) context: usize,
    /// Where the turn in hand begins: the index of its message.
    pub(super) begins: usize,
    /// Bytes of all messages, for estimates.
    pub(super) bytes: usize,
    ids: BTreeSet<String>,
    minted: u64,
    /// Rounds in a row of this turn, up to the last, that made the same calls and got the same results.
    pub(super) streak: u32,
    /// What the last round asked and got; `None` before the first of a turn.
    last_round: Option<Vec<Step>>,
}

/// A call and its result, as far as two rounds are compared.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: String,
    args: Json,
    /// Of what the model wrote, where that was no call and the history keeps something else.
    unusable: Option<u64>,
    error: bool,
    text: String,
}

impl History {
    /// Begins with these; all but the last are the caller's context.
    pub(super) fn new(opening: Vec<Message>) -> History {
        let mut history = History {
            messages: Vec::new(),
            context: opening.len().saturating_sub(1),
            begins: opening.len().saturating_sub(1),
            bytes: 0,
            ids: BTreeSet::new(),
            minted: 0,
            streak: 0,
            last_round: None,
        };
        opening.into_iter().for_each(|message| history.push(message));
        history
    }

    /// Goes on with what an earlier process wrote down.
    pub(super) fn taken_up(said: Vec<Said>, context: usize, begins: usize) -> History {
        let mut history = History::new(Vec::new());
        for said in said {
            let message = match said {
                Said::User(text) => Message::User(text),
                Said::Assistant { text, calls } => {
                    let calls: Vec<PastCall> = calls.into_iter().map(past_again).collect();
                    history.ids.extend(calls.iter().map(|call| call.id.clone()));
                    Message::Assistant { text, calls }
                }
                Said::Results(results) => Message::Results(results.into_iter().map(result_again).collect()),
            };
            history.push(message);
        }
        (history.context, history.begins) = (context, begins);
        history
    }

    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The last answer, which had no calls. One without text leaves no trace.
    pub(super) fn answered(&mut self, text: Option<String>) {
        if text.is_some() {
            self.push(Message::Assistant { text, calls: Vec::new() });
        }
    }

    /// What the model is asked or told.
    pub(super) fn told(&mut self, text: String) {
        self.push(Message::User(text));
    }

    /// A new turn: where it begins, and what came before is no beginning of spinning.
    pub(super) fn begin_turn(&mut self, text: String) {
        self.begins = self.messages.len();
        self.streak = 0;
        self.last_round = None;
        self.told(text);
    }

    /// A whole round: what the model wrote and called, and the results in the same order. `unusable` tells calls
    /// apart of which the history keeps nothing that would.
    pub(super) fn observed(
        &mut self,
        text: Option<String>,
        calls: Vec<PastCall>,
        unusable: Vec<Option<u64>>,
        results: Vec<CallResult>,
    ) {
        debug_assert!(
            calls.iter().map(|c| &c.id).eq(results.iter().map(|r| &r.id)),
            "one result for each call"
        );
        let round = steps(&calls, unusable, &results);
        self.push(Message::Assistant { text, calls });
        self.push(Message::Results(results));
        let same = self.last_round.as_ref() == Some(&round);
        self.streak = if same { self.streak.saturating_add(1) } else { 1 };
        self.last_round = Some(round);
    }

    /// An id for a call: the model's own where it is usable and new, else a minted one.
    pub(super) fn id(&mut self, wanted: &str) -> String {
        let usable =
            !wanted.is_empty() && wanted.chars().count() <= ID_CHARS && !wanted.chars().any(char::is_control);
        let mut id = wanted.to_owned();
        while !usable && id == wanted || self.ids.contains(&id) {
            self.minted += 1;
            id = format!("call_{}", self.minted);
        }
        self.ids.insert(id.clone());
        id
    }

    /// Puts shorter messages in the place of all, of the same rounds and fewer; the turn in hand begins at `begins`.
    pub(super) fn replace(&mut self, messages: Vec<Arc<Message>>, begins: usize) {
        self.bytes = messages.iter().map(|message| bytes(message)).sum();
        self.messages = messages;
        self.begins = begins;
    }

    fn push(&mut self, message: Message) {
        self.bytes = self.bytes.saturating_add(bytes(&message));
        self.messages.push(Arc::new(message));
    }
}

/// A round as it is compared with the next. The same call several times in one message counts as once: parallel
/// spawns that are all refused alike are no spinning.
fn steps(calls: &[PastCall], unusable: Vec<Option<u64>>, results: &[CallResult]) -> Vec<Step> {
    let mut steps: Vec<Step> = calls
        .iter()
        .zip(unusable)
        .zip(results)
        .map(|((call, unusable), result)| Step {
            name: call.name.clone(),
            args: call.args.clone(),
            unusable,
            error: result.error,
            text: result.text.clone(),
        })
        .collect();
    steps.dedup();
    steps
}

/// What tells one call that cannot be made from another: of two that differ the history may keep the same.
pub(super) fn fingerprint(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.name, &call.args).hash(&mut hasher);
    hasher.finish()
}

/// A call as the history keeps it. Where the arguments were not usable it keeps an empty object: providers
/// refuse a history whose arguments are not one.
pub(super) fn past_call(id: &str, call: &Call, args: Option<Json>) -> PastCall {
    PastCall {
        id: id.to_owned(),
        name: legal(&call.name),
        args: args.unwrap_or_else(|| Json(Bytes::from(b"{}".as_slice()))),
    }
}

fn past_again(call: ItemCall) -> PastCall {
    PastCall { id: call.id, name: call.name, args: Json::of(&call.args) }
}

fn result_again(result: ItemResult) -> CallResult {
    CallResult { id: result.id, name: result.name, error: result.error, text: result.text }
}

fn bytes(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant { text, calls } => {
            let calls: usize = calls.iter().map(|c| c.id.len() + c.name.len() + c.args.0.len()).sum();
            text.as_ref().map_or(0, String::len) + calls
        }
        Message::Results(results) => results.iter().map(|r| r.id.len() + r.text.len()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_when_new_and_minted_when_not() {
        let mut history = History::new(Vec::new());
        assert_eq!(history.id("call_1"), "call_1");
        assert_eq!(history.id("call_1"), "call_2");
        assert_eq!(history.id(""), "call_3");
        assert_eq!(history.id("toolu_x"), "toolu_x");
        assert_eq!(history.id("toolu_x"), "call_4");
        assert_eq!(history.id("a\nb"), "call_5");
        assert_eq!(history.id(&"x".repeat(129)), "call_6");
        assert_eq!(history.id("call_7"), "call_7");
        assert_eq!(history.id(""), "call_8");
    }
}

//! The run's messages. Valid at every boundary: each call id is unique, and right after an assistant message
//! with calls come their results, one each, in order (S6.6).

use crate::bytes::{Bytes, Json};
use crate::model::names::legal;
use crate::model::{Call, CallResult, Message, PastCall};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Characters of a model's call id that are kept as they are.
const ID_CHARS: usize = 128;

/// The messages and what is known of them.
#[derive(Debug)]
pub(super) struct History {
    messages: Vec<Arc<Message>>,
    /// How many of the first messages are the caller's context.
    pub(super) context: usize,
    /// Bytes of all messages, for estimates.
    pub(super) bytes: usize,
    ids: BTreeSet<String>,
    minted: u64,
    /// Rounds in a row, up to the last, that made the same calls and got the same results.
    pub(super) streak: u32,
    /// Where the last round's assistant message is.
    last_round: Option<usize>,
}

impl History {
    /// Begins with these; all but the last are the caller's context.
    pub(super) fn new(opening: Vec<Message>) -> History {
        let mut history = History {
            messages: Vec::new(),
            context: opening.len().saturating_sub(1),
            bytes: 0,
            ids: BTreeSet::new(),
            minted: 0,
            streak: 0,
            last_round: None,
        };
        opening.into_iter().for_each(|message| history.push(message));
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

    /// A whole round: what the model wrote and called, and the results in the same order.
    pub(super) fn observed(&mut self, text: Option<String>, calls: Vec<PastCall>, results: Vec<CallResult>) {
        debug_assert!(
            calls.iter().map(|c| &c.id).eq(results.iter().map(|r| &r.id)),
            "one result for each call"
        );
        let round = self.messages.len();
        self.push(Message::Assistant { text, calls });
        self.push(Message::Results(results));
        let same = self.last_round.is_some_and(|last| self.is_same(last, round));
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

    fn push(&mut self, message: Message) {
        self.bytes = self.bytes.saturating_add(bytes(&message));
        self.messages.push(Arc::new(message));
    }

    /// Whether two rounds made the same calls with the same results. The same call several times in one
    /// message counts as once: parallel spawns that are all refused alike are no spinning.
    fn is_same(&self, one: usize, other: usize) -> bool {
        let steps = |round: usize| {
            let pair =
                (self.messages.get(round).map(Arc::as_ref), self.messages.get(round + 1).map(Arc::as_ref));
            let (calls, results) = match pair {
                (Some(Message::Assistant { calls, .. }), Some(Message::Results(results))) => (calls, results),
                (Some(_), _) | (None, _) => return Vec::new(),
            };
            let mut steps: Vec<_> = calls
                .iter()
                .zip(results)
                .map(|(call, result)| (&call.name, &*call.args.0, result.error, &result.text))
                .collect();
            steps.dedup();
            steps
        };
        steps(one) == steps(other)
    }
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

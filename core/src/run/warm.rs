//! A warm run's turns (S6.3): which message is in hand, which wait, what the ended ones gave. One message is handed
//! to the child at a time, so what waits here is neither lost nor reordered by anything the child does.

use crate::bytes::Json;
use crate::limits;
use crate::run::Ending;
use crate::store::{Letter, Turns};
use crate::time::{Duration, Instant};
use crate::wire::message::Text;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The message that stands for a warm run's instruction.
pub const FIRST_TURN: u64 = 1;

/// A warm run's side of its conversation.
#[derive(Debug, Serialize, Deserialize)]
pub struct Warm {
    /// The message whose turn the child is in; `None` while it is idle. Its text is for another process that must take
    /// the turn up; the instruction's is in the payload.
    in_hand: Option<Text>,
    /// When the turn in hand began.
    since: Instant,
    waiting: VecDeque<Text>,
    /// Ended turns and what each gave, oldest first.
    done: VecDeque<(u64, Json)>,
    last: Option<Ending>,
    retiring: bool,
}

/// What is known of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<'a> {
    /// Its turn ended with this.
    Ended(&'a Json),
    /// Its turn is in hand, or it waits for it.
    Coming,
    /// There is no such message, or its result is no longer kept.
    Not,
}

impl Warm {
    /// A run that begins with its instruction.
    pub fn begun(now: Instant) -> Warm {
        Warm {
            in_hand: Some(Text { id: FIRST_TURN, text: String::new() }),
            since: now,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            last: None,
            retiring: false,
        }
    }

    /// A run of an earlier life of the daemon, which begins with its instruction again: what was in hand and what waited
    /// come after that, in order. `last` is how its last turn ended, if one did.
    pub fn again(turns: &Turns, letters: Vec<Letter>, last: Option<Ending>, now: Instant) -> Warm {
        let mut warm = Warm { retiring: turns.retiring, last, ..Warm::begun(now) };
        for letter in letters {
            match letter {
                Letter::Ended { id, object } => warm.done.push_back((id, object)),
                Letter::Open(text) if text.id == FIRST_TURN => {}
                Letter::Open(text) => warm.waiting.push_back(text),
            }
        }
        warm
    }

    /// Where it is, for the store.
    pub fn turns(&self) -> Turns {
        Turns { in_hand: self.in_hand(), retiring: self.retiring }
    }

    /// A message as it is kept; `None` of one that nobody asks for any more.
    pub fn letter(&self, id: u64) -> Option<Letter> {
        if let Some((_, object)) = self.done.iter().find(|(done, _)| *done == id) {
            return Some(Letter::Ended { id, object: object.clone() });
        }
        let open = self.in_hand.iter().chain(&self.waiting).find(|text| text.id == id);
        open.map(|text| Letter::Open(text.clone()))
    }

    /// The messages of which something is kept.
    pub fn letters(&self) -> impl Iterator<Item = u64> + '_ {
        let open = self.in_hand.iter().chain(&self.waiting).map(|text| text.id);
        self.done.iter().map(|(id, _)| *id).chain(open)
    }

    /// The message whose turn is in hand.
    pub fn in_hand(&self) -> Option<u64> {
        self.in_hand.as_ref().map(|text| text.id)
    }

    /// How long the turn in hand has taken.
    pub fn took(&self, now: Instant) -> Duration {
        now.since(self.since)
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// No more messages are taken.
    pub fn is_retiring(&self) -> bool {
        self.retiring
    }

    /// Adds a message, if there is room for it.
    pub fn push(&mut self, message: Text) -> bool {
        let room = self.waiting.len() < limits::WARM_QUEUE && !self.retiring;
        if room {
            self.waiting.push_back(message);
        }
        room
    }

    /// The next message while the child is idle; it is in hand from now on.
    pub fn take_next(&mut self, now: Instant) -> Option<Text> {
        if self.in_hand.is_some() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.in_hand = Some(next.clone());
        self.since = now;
        Some(next)
    }

    /// A message that could not be handed over waits on, first.
    pub fn put_back(&mut self, message: Text) {
        self.in_hand = None;
        self.waiting.push_front(message);
    }

    /// The turn in hand has ended; the message whose result is kept no longer, if there is one. A turn that was made
    /// again after a restart changes nothing of what was told of it.
    pub fn ended(&mut self, ending: Ending, object: Json) -> Option<u64> {
        let id = self.in_hand.take()?.id;
        if self.done.iter().any(|(done, _)| *done == id) {
            return None;
        }
        self.last = Some(ending);
        self.done.push_back((id, object));
        let over = self.done.len() > limits::TURN_RESULTS;
        over.then(|| self.done.pop_front()).flatten().map(|(id, _)| id)
    }

    /// What is known of a message.
    pub fn known(&self, id: u64) -> Known<'_> {
        if let Some((_, object)) = self.done.iter().find(|(done, _)| *done == id) {
            Known::Ended(object)
        } else if self.in_hand() == Some(id) || self.waiting.iter().any(|m| m.id == id) {
            Known::Coming
        } else {
            Known::Not
        }
    }

    /// Takes no more messages; those that wait never get a turn, and are given back by number.
    pub fn retire(&mut self) -> Vec<u64> {
        self.retiring = true;
        self.drop_waiting()
    }

    /// Those that wait never get a turn.
    pub fn drop_waiting(&mut self) -> Vec<u64> {
        self.waiting.drain(..).map(|m| m.id).collect()
    }

    /// How the last turn ended; `None` before there was one.
    pub fn last(&self) -> Option<&Ending> {
        self.last.as_ref()
    }

    /// How many turns' results are known.
    pub fn results(&self) -> impl Iterator<Item = (u64, &Json)> {
        self.done.iter().map(|(id, object)| (*id, object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;

    fn text(id: u64) -> Text {
        Text { id, text: format!("m{id}") }
    }

    fn ending() -> Ending {
        Ending::without_result(Status::Completed, "")
    }

    #[test]
    fn one_at_a_time_in_order() {
        let mut warm = Warm::begun(Instant::ZERO);
        assert!(warm.push(text(2)) && warm.push(text(5)));
        assert_eq!(warm.take_next(Instant::ZERO), None, "the instruction is in hand");
        warm.ended(ending(), Json::default());
        let first = warm.take_next(Instant::ZERO).expect("one waits");
        assert_eq!((first.id, warm.in_hand()), (2, Some(2)));
        warm.put_back(first);
        assert_eq!(
            warm.take_next(Instant::ZERO).map(|m| m.id),
            Some(2),
            "what could not be sent is still first"
        );
        warm.ended(ending(), Json::default());
        assert_eq!(warm.take_next(Instant::ZERO).map(|m| m.id), Some(5));
        assert_eq!(warm.known(5), Known::Coming);
        assert!(matches!(warm.known(2), Known::Ended(_)));
        assert_eq!(warm.known(3), Known::Not);
    }

    #[test]
    fn the_queue_has_a_bound_and_retiring_closes_it() {
        let mut warm = Warm::begun(Instant::ZERO);
        let last = 1 + limits::WARM_QUEUE as u64;
        assert!((2..=last).all(|id| warm.push(text(id))));
        assert!(!warm.push(text(last + 1)));
        assert_eq!(warm.retire().len(), limits::WARM_QUEUE);
        assert!(!warm.push(text(last + 2)));
        assert_eq!(warm.in_hand(), Some(FIRST_TURN), "the turn in hand goes on");
    }

    #[test]
    fn old_results_are_forgotten_at_the_bound() {
        let mut warm = Warm::begun(Instant::ZERO);
        for id in 2..200 {
            warm.ended(ending(), Json::default());
            assert!(warm.push(text(id)));
            assert_eq!(warm.take_next(Instant::ZERO).map(|m| m.id), Some(id));
        }
        assert_eq!(warm.known(1), Known::Not);
        assert!(matches!(warm.known(198), Known::Ended(_)));
        assert_eq!(warm.results().count(), limits::TURN_RESULTS);
    }
}

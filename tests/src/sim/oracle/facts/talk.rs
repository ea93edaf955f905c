//! What was said to a run: the messages that begin its turns, steers, and that it is to retire.

use agentd_core::record::Status;
use agentd_core::time::Instant;
use agentd_core::wire::message::{Mode, RunResult, Turn, TurnOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Default)]
pub(in crate::sim::oracle) struct Talk {
    /// The message whose turn is in hand; of a warm run that was handed its instruction.
    pub(in crate::sim::oracle) in_hand: Option<u64>,
    pub(in crate::sim::oracle) messages: BTreeMap<u64, Message>,
    /// Those of them that wait for their turn.
    waiting: BTreeSet<u64>,
    /// The last message that was handed over.
    pub(in crate::sim::oracle) last_handed: u64,
    pub(in crate::sim::oracle) steers: BTreeMap<u64, Steer>,
    /// Those of them that were taken from a caller and not by the child, and those that were not sent.
    untaken: BTreeSet<u64>,
    unsent: BTreeSet<u64>,
    pub(in crate::sim::oracle) last_steer: u64,
    /// Somebody asked for its retirement; no proof that it was granted.
    pub(in crate::sim::oracle) retire_asked: Option<Instant>,
    /// It was told that it retires.
    pub(in crate::sim::oracle) retiring: Option<Instant>,
    pub(in crate::sim::oracle) last_turn: Option<TurnSeen>,
    /// Turns that have ended, in order.
    pub(in crate::sim::oracle) turns: Vec<u64>,
    /// When a `finish` was last handed on, and whether one is owed.
    pub(in crate::sim::oracle) finish_sent: Option<Instant>,
    pub(in crate::sim::oracle) finish_owed: bool,
}

/// A message to a warm run.
#[derive(Default)]
pub(in crate::sim::oracle) struct Message {
    /// Its text, which holds a token that nobody else has.
    pub(in crate::sim::oracle) text: String,
    /// It was taken from a caller.
    pub(in crate::sim::oracle) accepted: bool,
    pub(in crate::sim::oracle) handed: bool,
    /// Its turn has ended so.
    pub(in crate::sim::oracle) turn: Option<TurnSeen>,
    /// It was told that it never gets a turn.
    pub(in crate::sim::oracle) dropped: Option<Instant>,
}

impl Message {
    /// It waits for its turn.
    pub(in crate::sim::oracle) fn waits(&self) -> bool {
        self.accepted && !self.handed && self.dropped.is_none()
    }
}

/// A steer.
#[derive(Default)]
pub(in crate::sim::oracle) struct Steer {
    pub(in crate::sim::oracle) text: String,
    pub(in crate::sim::oracle) sent: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sim::oracle) struct TurnSeen {
    pub(in crate::sim::oracle) at: Instant,
    pub(in crate::sim::oracle) status: Status,
    pub(in crate::sim::oracle) text: Option<String>,
}

impl Talk {
    /// A warm run is handed its instruction, which is its first turn.
    pub(super) fn begun(&mut self, mode: Mode, instruction: &str) {
        if mode != Mode::Warm {
            return;
        }
        self.in_hand = Some(1);
        self.last_handed = 1;
        let message = self.messages.entry(1).or_default();
        message.text = instruction.to_owned();
        message.handed = true;
    }

    /// A `turn` frame came. `false` when it is not of the turn in hand.
    pub(super) fn turn_ended(&mut self, now: Instant, turn: &Turn) -> bool {
        if self.in_hand != Some(turn.id) {
            return false;
        }
        self.in_hand = None;
        let (status, text) = match &turn.outcome {
            TurnOutcome::Result(RunResult { end, text, .. }) => (super::node::status_of(*end), text.clone()),
            TurnOutcome::Failed(failed) => (Status::Failed, failed.text.clone()),
        };
        let seen = TurnSeen { at: now, status, text };
        self.messages.entry(turn.id).or_default().turn = Some(seen.clone());
        self.last_turn = Some(seen);
        self.turns.push(turn.id);
        true
    }

    /// Something was taken.
    pub(super) fn acked(&mut self, id: u64) {
        self.untaken.remove(&id);
    }

    /// A message is taken from a caller.
    pub(in crate::sim::oracle) fn accept(&mut self, id: u64, text: &str) {
        let message = self.messages.entry(id).or_default();
        message.accepted = true;
        text.clone_into(&mut message.text);
        if message.waits() {
            self.waiting.insert(id);
        }
    }

    /// A message is handed over: its turn is in hand.
    pub(in crate::sim::oracle) fn hand(&mut self, id: u64, text: &str) {
        let message = self.messages.entry(id).or_default();
        text.clone_into(&mut message.text);
        message.handed = true;
        self.waiting.remove(&id);
        self.in_hand = Some(id);
        self.last_handed = id;
    }

    /// A message that waits gets no turn. `false` when it does not wait.
    pub(in crate::sim::oracle) fn give_up(&mut self, id: u64, now: Instant) -> bool {
        if let Some(message) = self.messages.get_mut(&id).filter(|_| self.waiting.remove(&id)) {
            message.dropped = Some(now);
            return true;
        }
        false
    }

    /// A steer, as it is first heard of.
    pub(in crate::sim::oracle) fn steer(&mut self, id: u64, text: &str) -> &mut Steer {
        let (untaken, unsent) = (&mut self.untaken, &mut self.unsent);
        self.steers.entry(id).or_insert_with(|| {
            untaken.insert(id);
            unsent.insert(id);
            Steer { text: text.to_owned(), sent: false }
        })
    }

    /// A steer is sent.
    pub(in crate::sim::oracle) fn steer_sent(&mut self, id: u64) {
        if let Some(steer) = self.steers.get_mut(&id) {
            steer.sent = true;
        }
        self.unsent.remove(&id);
        self.last_steer = id;
    }

    /// A steer that was never sent.
    pub(in crate::sim::oracle) fn first_unsent(&self) -> Option<u64> {
        self.unsent.first().copied()
    }

    /// Messages that wait for their turn.
    pub(in crate::sim::oracle) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first of them.
    pub(in crate::sim::oracle) fn first_waiting(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// Steers that were taken from a caller and not by the child.
    pub(in crate::sim::oracle) fn steers_out(&self) -> usize {
        self.untaken.len()
    }

    /// Whether the result of this message's turn must still be known.
    pub(in crate::sim::oracle) fn is_kept(&self, id: u64) -> bool {
        self.turns.iter().rev().take(agentd_core::limits::TURN_RESULTS).any(|turn| *turn == id)
    }
}

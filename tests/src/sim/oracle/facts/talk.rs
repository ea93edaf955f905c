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
    /// The last message that was handed over.
    pub(in crate::sim::oracle) last_handed: u64,
    pub(in crate::sim::oracle) steers: BTreeMap<u64, Steer>,
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
    pub(in crate::sim::oracle) acked: bool,
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
        if let Some(steer) = self.steers.get_mut(&id) {
            steer.acked = true;
        }
    }

    /// Messages that wait for their turn.
    pub(in crate::sim::oracle) fn waiting(&self) -> usize {
        self.messages.values().filter(|m| m.waits()).count()
    }

    /// Steers that were taken from a caller and not by the child.
    pub(in crate::sim::oracle) fn steers_out(&self) -> usize {
        self.steers.values().filter(|s| !s.acked).count()
    }

    /// Whether the result of this message's turn must still be known.
    pub(in crate::sim::oracle) fn is_kept(&self, id: u64) -> bool {
        let kept: BTreeSet<u64> =
            self.turns.iter().rev().take(agentd_core::limits::TURN_RESULTS).copied().collect();
        kept.contains(&id)
    }
}

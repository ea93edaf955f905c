//! One message's calls, from the moment the model made them until each has its result.

use crate::agent::history::History;
use crate::agent::{ToolOutcome, ToolSource, ToolValue};
use crate::model::{CallResult, PastCall};
use crate::time::Instant;
use crate::wire::message::WaitingOn;
use std::collections::BTreeSet;

/// The calls of one message.
#[derive(Debug)]
pub(super) struct Round {
    /// What the model wrote besides.
    pub(super) text: Option<String>,
    /// When the calls were made.
    pub(super) began: Instant,
    /// In the model's order.
    pub(super) slots: Vec<Slot>,
    /// The call among them that ends the turn once all have their results.
    pub(super) finish: Option<Finishing>,
}

/// A call of the loop's own `finish`.
#[derive(Debug)]
pub(super) struct Finishing {
    /// Its slot.
    pub(super) slot: usize,
    /// The answer it gives.
    pub(super) text: String,
}

/// One call.
#[derive(Debug)]
pub(super) struct Slot {
    /// For the history.
    pub(super) call: PastCall,
    /// Of what the model wrote, where it could not be called.
    pub(super) unusable: Option<u64>,
    /// Registry name, or a look at what the model wrote; for people.
    pub(super) label: String,
    pub(super) state: SlotState,
}

/// Whether a call has its result.
#[derive(Debug)]
pub(super) enum SlotState {
    Open {
        /// The number it is known by outside.
        number: u64,
        source: ToolSource,
    },
    Done {
        error: bool,
        text: String,
    },
}

impl Round {
    /// The open call of this number.
    pub(super) fn open(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.number() == Some(number))
    }

    pub(super) fn is_done(&self) -> bool {
        self.slots.iter().all(|slot| slot.number().is_none())
    }

    /// What the run waits on while calls are open: its servers' tools, each name once, in the order the
    /// message first named them, so that it changes only when one is done with.
    pub(super) fn waiting_on(&self) -> WaitingOn {
        let open: BTreeSet<&str> = self.slots.iter().filter_map(Slot::open_server_tool).collect();
        let mut names: Vec<String> = Vec::new();
        for slot in self.slots.iter().filter(|slot| open.contains(slot.label.as_str())) {
            if !names.contains(&slot.label) {
                names.push(slot.label.clone());
            }
        }
        if names.is_empty() { WaitingOn::Supervisor } else { WaitingOn::Tools(names) }
    }

    /// Puts the whole into the history: the calls and their results, in order. A call without one is answered with
    /// `unanswered`.
    pub(super) fn close(self, unanswered: &str, history: &mut History) {
        let mut calls = Vec::with_capacity(self.slots.len());
        let mut unusables = Vec::with_capacity(self.slots.len());
        let mut results = Vec::with_capacity(self.slots.len());
        for Slot { call, unusable, state, .. } in self.slots {
            let (error, text) = match state {
                SlotState::Done { error, text } => (error, text),
                SlotState::Open { .. } => (true, unanswered.to_owned()),
            };
            results.push(CallResult { id: call.id.clone(), name: call.name.clone(), error, text });
            calls.push(call);
            unusables.push(unusable);
        }
        history.observed(self.text, calls, unusables, results);
    }
}

impl Slot {
    /// The call's number while it is open.
    pub(super) fn number(&self) -> Option<u64> {
        match &self.state {
            SlotState::Open { number, .. } => Some(*number),
            SlotState::Done { .. } => None,
        }
    }

    fn open_server_tool(&self) -> Option<&str> {
        match &self.state {
            SlotState::Open { source: ToolSource::Server { .. }, .. } => Some(&self.label),
            SlotState::Open { source: ToolSource::Supervisor, .. } | SlotState::Done { .. } => None,
        }
    }
}

/// What the model reads of an outcome.
pub(super) fn text(outcome: ToolOutcome) -> String {
    match outcome.value {
        ToolValue::Text(text) => text,
        ToolValue::Json(json) => String::from_utf8_lossy(&json.0).into_owned(),
    }
}

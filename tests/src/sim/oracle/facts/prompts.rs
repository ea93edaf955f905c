//! What is known of the conversation: its prompts, who serves them, and what has its answer.

use agentd_core::id::NodeId;
use agentd_core::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// One prompt of a person.
pub(in crate::sim::oracle) struct Prompt {
    pub(in crate::sim::oracle) at: Instant,
    pub(in crate::sim::oracle) text: String,
    pub(in crate::sim::oracle) cancelled: Option<Instant>,
    /// Handed to this worker, as this message.
    pub(in crate::sim::oracle) begun: Option<(NodeId, u64)>,
    pub(in crate::sim::oracle) delivered: Option<Instant>,
}

/// All prompts by number.
#[derive(Default)]
pub(in crate::sim::oracle) struct Prompts {
    pub(in crate::sim::oracle) all: BTreeMap<u64, Prompt>,
    /// The last that began.
    pub(in crate::sim::oracle) last_begun: u64,
    /// The last with a turn that was answered.
    pub(in crate::sim::oracle) last_answered: u64,
    /// Turns that tell of ended runs, in hand or answered: by worker and message.
    pub(in crate::sim::oracle) notes: Vec<(NodeId, u64)>,
    pub(in crate::sim::oracle) notes_answered: usize,
    /// Ended runs of which the conversation must still be told: by the beginning of the note.
    pub(in crate::sim::oracle) owed: BTreeSet<String>,
    /// Notes that a worker was sent and has not taken.
    sent: BTreeMap<(NodeId, u64), String>,
    /// Since when nothing is going on in the conversation.
    pub(in crate::sim::oracle) quiet: Option<Instant>,
}

impl Prompts {
    pub(super) fn asked(&mut self, now: Instant, text: &str) {
        let number = self.all.len() as u64 + 1;
        let text = text.to_owned();
        self.all.insert(number, Prompt { at: now, text, cancelled: None, begun: None, delivered: None });
    }

    /// A worker is handed this text as this message. Gives the prompt's number; `None` for a note.
    pub(in crate::sim::oracle) fn begun(&mut self, node: NodeId, message: u64, text: &str) -> Option<u64> {
        self.told(text);
        let found = self.all.iter_mut().find(|(_, p)| p.text == text);
        let Some((number, prompt)) = found else {
            self.notes.push((node, message));
            return None;
        };
        prompt.begun = Some((node, message));
        Some(*number)
    }

    /// A worker is handed a text: what it tells is told.
    pub(super) fn told(&mut self, text: &str) {
        self.owed.retain(|note| !text.lines().any(|line| line.starts_with(note.as_str())));
    }

    /// A worker is sent a note.
    pub(in crate::sim::oracle) fn note_sent(&mut self, node: NodeId, id: u64, text: &str) {
        self.sent.insert((node, id), text.to_owned());
    }

    /// It has taken it.
    pub(super) fn note_taken(&mut self, node: NodeId, id: u64) {
        if let Some(text) = self.sent.remove(&(node, id)) {
            self.told(&text);
        }
    }

    /// Prompts without their answer.
    pub(in crate::sim::oracle) fn open(&self) -> impl Iterator<Item = (u64, &Prompt)> {
        self.all.iter().filter(|(_, p)| p.delivered.is_none()).map(|(number, p)| (*number, p))
    }
}

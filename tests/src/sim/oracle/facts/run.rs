//! What is known of one run: its record, how far that has come, and what was said to it.

use super::{Facts, Talk};
use agentd_core::record::{Record, Status, UsageSum};
use agentd_core::time::Instant;
use agentd_core::wire::message::Mode;

/// One run.
pub(in crate::sim::oracle) struct Run {
    pub(in crate::sim::oracle) record: Record,
    /// When its first record was made.
    pub(in crate::sim::oracle) admitted: Instant,
    /// What it and all below it had used as its end became durable, and whether that cannot be told exactly.
    pub(in crate::sim::oracle) told: Option<UsageSum>,
    pub(in crate::sim::oracle) told_vaguely: bool,
    /// Some record of it is durable.
    pub(in crate::sim::oracle) stored: bool,
    /// Its record could not be saved, at least once.
    pub(in crate::sim::oracle) store_failed: bool,
    /// When its end could not be saved: the last time, and how often in a row.
    pub(in crate::sim::oracle) unsaved: Option<(Instant, u32)>,
    pub(in crate::sim::oracle) terminal: Option<(Instant, Record)>,
    /// Its terminal record is durable, or never will be.
    pub(in crate::sim::oracle) settled: Option<Instant>,
    /// Somebody asked for its end: a kill of it or above it, or the end of who waits for it.
    pub(in crate::sim::oracle) doomed: Option<Instant>,
    /// How far the record has come that a process may be made for it.
    pub(in crate::sim::oracle) intent: Intent,
    pub(in crate::sim::oracle) talk: Talk,
}

/// Whether a run may have a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim::oracle) enum Intent {
    /// It waits for a permit, or never had one.
    None,
    /// Its record is on the way to the store.
    Out(u64),
    /// Its record is durable.
    Stored,
    /// Its record could not be saved.
    Failed,
}

impl Run {
    /// It has, or had, a permit.
    pub(in crate::sim::oracle) fn has_begun(&self) -> bool {
        self.intent != Intent::None
    }

    /// It is warm, was handed its instruction and is between turns.
    pub(in crate::sim::oracle) fn is_idle(&self, facts: &Facts) -> bool {
        let has_frame = facts.nodes.get(&self.record.node).is_some_and(|n| n.first_frame);
        self.record.mode == Mode::Warm && has_frame && self.talk.in_hand.is_none()
    }

    /// Why a plan's item that is bound to it cannot go on; `None` when it is done.
    pub(in crate::sim::oracle) fn plan_cause(&self) -> Option<&str> {
        let (_, record) = self.terminal.as_ref()?;
        let cause = record.error.as_deref().unwrap_or(record.status.name());
        (record.status != Status::Completed).then_some(cause)
    }

    /// It waits for a permit.
    pub(in crate::sim::oracle) fn is_held(&self) -> bool {
        !self.has_begun() && self.terminal.is_none() && !self.is_forgotten()
    }

    /// Its caller was told that there is none.
    pub(in crate::sim::oracle) fn is_forgotten(&self) -> bool {
        self.store_failed && !self.stored && self.terminal.is_none()
    }
}

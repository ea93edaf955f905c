//! Spawns that wait for a permit (S4.8): in priority then arrival order, with a handle and status `held`. Held time
//! counts against no deadline, for nothing has begun.

use super::Core;
use super::keeping::Purpose;
use crate::action::Actions;
use crate::config::Priority;
use crate::id::NodeId;
use crate::machine::Deadline;
use crate::note::Level;
use crate::record::Status;
use crate::run::process::Process;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Who waits, best first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue(BTreeSet<(Reverse<Priority>, NodeId)>);

impl Queue {
    /// Adds a run behind all of its priority.
    pub(super) fn join(&mut self, node: NodeId, priority: Priority) {
        self.0.insert((Reverse(priority), node));
    }

    /// Takes a run out.
    pub(super) fn leave(&mut self, node: NodeId, priority: Priority) {
        self.0.remove(&(Reverse(priority), node));
    }

    /// A run's place, from 1, and how many wait.
    pub(super) fn place(&self, node: NodeId) -> (u32, u32) {
        let place = self.0.iter().position(|(_, n)| *n == node).map_or(0, |at| at + 1);
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (small(place), small(self.0.len()))
    }

    fn first(&self) -> Option<NodeId> {
        self.0.first().map(|(_, node)| *node)
    }
}

impl Core {
    /// That a run waits is durable: its caller hears the handle.
    pub(super) fn held_stored(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if let Process::Held { stored } = &mut run.process {
            *stored = true;
            self.answer_started(node, out);
        }
    }

    /// Begins as many of those who wait as breadth and rate allow.
    pub(super) fn promote(&mut self, out: &mut Actions) {
        while let Some(node) = self.promotable() {
            let now = self.now.mono;
            let Some(run) = self.run(node) else { return };
            let Some(place) = run.place.take() else { return };
            let priority = run.priority;
            let permit = self.admission.promote(place, now);
            let Some(run) = self.run(node) else { return };
            match permit {
                Err(place) => {
                    run.place = Some(place);
                    return;
                }
                Ok(permit) => {
                    run.permit = Some(permit);
                    run.process = Process::Recording;
                    run.record.status = if run.is_retiring() { Status::Retiring } else { Status::Spawned };
                    let waited = super::ms(now.since(run.admitted));
                    self.queue.leave(node, priority);
                    out.push(
                        self.note(node, Level::Info, "subagent.promoted").with("after_ms", waited).into(),
                    );
                    self.persist(node, Purpose::Promotion, out);
                }
            }
        }
    }

    /// The first in the queue, once that it waits is durable. Nobody overtakes it meanwhile.
    fn promotable(&self) -> Option<NodeId> {
        let first = self.queue.first()?;
        let stored =
            self.runs.get(&first).is_some_and(|r| matches!(r.process, Process::Held { stored: true }));
        (stored && self.drain.is_none()).then_some(first)
    }

    /// When the first in the queue gets a token.
    pub(super) fn queue_due(&self) -> Option<Deadline> {
        self.promotable()?;
        self.admission.promotes_at().map(|at| Deadline { at, why: "the spawn rate" })
    }

    /// A run that waits does so no longer, and never begins.
    pub(super) fn leave_queue(&mut self, node: NodeId) {
        let Some(run) = self.run(node) else { return };
        let priority = run.priority;
        if let Some(place) = run.place.take() {
            self.admission.leave(place);
            self.queue.leave(node, priority);
        }
    }
}

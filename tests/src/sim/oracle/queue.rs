//! Who waits for a permit (S4.8): only a conversation's spawns, no more than the queue holds, in priority then arrival
//! order; nobody without need, and nobody who could begin.

use super::bounds::Bounds;
use super::facts::{Facts, Run, name};
use super::{Verdict, unless};
use agentd_core::record::{Record, Status};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::Role;

/// See the module.
pub(super) struct Queue {
    /// `limits.subagents.queue`.
    pub(super) most: u32,
    /// Since when the first could begin.
    free: Option<Instant>,
}

impl Queue {
    pub(super) fn new(most: u32) -> Queue {
        Queue { most, free: None }
    }

    /// A run is admitted, to wait or to begin at once.
    pub(super) fn joins(&self, facts: &Facts, record: &Record, free: bool) -> Verdict {
        let who = name(record);
        let waiting = facts.runs.values().filter(|r| r.is_held()).count();
        let by_worker = is_workers(facts, record);
        if record.status != Status::Held {
            return unless(!by_worker || waiting == 0, "nobody overtakes who waits", || {
                format!("{who} begins before {waiting} who wait")
            });
        }
        unless(by_worker, "a nested spawn never waits", || who.clone())?;
        unless((waiting as u64) < u64::from(self.most), "a queue has a bound", || {
            format!("{who} waits beside {waiting} of {}", self.most)
        })?;
        unless(waiting > 0 || !free, "nobody waits without need", || who.clone())
    }

    /// A run begins, at once or after it waited.
    pub(super) fn begins(&self, facts: &Facts, record: &Record, waited: bool) -> Verdict {
        if !waited {
            return Ok(());
        }
        let first = self.first(facts).map(|run| run.record.run_id);
        unless(first == Some(record.run_id), "those who wait begin in order", || {
            let first = first.and_then(|id| facts.runs.get(&id)).map(|r| name(&r.record));
            format!("{} begins before {first:?}", name(record))
        })
    }

    /// Who is next: the highest priority, then who came first.
    pub(super) fn first<'f>(&self, facts: &'f Facts) -> Option<&'f Run> {
        let held = facts.runs.values().filter(|r| r.is_held());
        held.min_by_key(|r| (priority(facts, &r.record), r.record.handle))
    }

    /// Nobody waits who could begin; `free` says that there is room.
    pub(super) fn judge_time(&mut self, facts: &Facts, bounds: &Bounds, now: Instant, free: bool) -> Verdict {
        let could = free && facts.draining().is_none() && self.first(facts).is_some_and(|r| r.stored);
        self.free = could.then(|| self.free.unwrap_or(now));
        let due = self.free.map(|at| at + bounds.slack() + Duration::from_millis(50));
        unless(due.is_none_or(|at| now <= at), "nobody waits who could begin", || {
            self.first(facts).map(|r| name(&r.record)).unwrap_or_default()
        })
    }
}

/// Whether a conversation's worker asked for it.
fn is_workers(facts: &Facts, record: &Record) -> bool {
    let parent = record.parent.and_then(|id| facts.runs.get(&id));
    parent.is_some_and(|run| run.record.role == Role::Worker)
}

/// The priority its call asked for, the highest first.
fn priority(facts: &Facts, record: &Record) -> u8 {
    let parent = record.parent.and_then(|id| facts.runs.get(&id));
    let node = parent.and_then(|run| facts.nodes.get(&run.record.node));
    let call = |request: &&super::facts::Request| {
        request.name == "subagent.run" && Some(&request.call_id) == record.call_id.as_ref()
    };
    match node.and_then(|n| n.requests.values().find(call)).and_then(|r| r.args["priority"].as_str()) {
        Some("high") => 0,
        Some("low") => 2,
        Some(_) | None => 1,
    }
}

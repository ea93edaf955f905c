//! What holds across the daemon's lives (S10.3, S10.4, S8.5): no handle is given or served twice, what ended stays so,
//! what had not ended is taken up exactly once, and what was used is counted once.

use super::facts::Facts;
use super::{Verdict, unless};
use crate::sim::disk::Disk;
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::record::{Record, Status, Tokens};
use agentd_core::store::{Class, Saved, Write, record_in};
use std::collections::{BTreeMap, BTreeSet};

const ONCE: &str = "a run that had not ended is taken up exactly once";
const HANDLES: &str = "no handle is given twice";
const ENDED: &str = "no start changes what had ended";
const SERVED: &str = "two processes never serve one run";
const USED: &str = "what was used is counted once across lives";

/// A run that an earlier life left.
#[derive(Debug, Clone)]
struct Left {
    record: Record,
    /// A start takes it up, or says why not.
    owed: bool,
    /// The attempt that this life has made of it.
    made: Option<u32>,
    resolved: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Across {
    life: u32,
    handles: BTreeMap<Handle, RunId>,
    left: BTreeMap<RunId, Left>,
    nodes: BTreeMap<NodeId, RunId>,
    serving: BTreeMap<RunId, NodeId>,
    /// Runs whose rows are gone.
    gone: BTreeSet<RunId>,
}

impl Across {
    /// Which life it is, from 1.
    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// A daemon begins with this.
    pub(crate) fn begin(&mut self, saved: &Saved) {
        self.life += 1;
        self.nodes.clear();
        self.serving.clear();
        let durable: BTreeMap<RunId, bool> =
            saved.work.iter().map(|work| (work.run_id, work.durable)).collect();
        self.left = saved
            .runs
            .iter()
            .map(|row| {
                let record = row.record.clone();
                let ended = is_over(record.status);
                let owed = !ended && durable.get(&record.run_id).copied().unwrap_or(false);
                (record.run_id, Left { record, owed, made: None, resolved: false })
            })
            .collect();
    }

    /// What a run had used when this life began.
    fn base(&self, run: RunId) -> Tokens {
        self.left.get(&run).map(|left| left.record.usage).unwrap_or_default()
    }

    pub(super) fn fed(&mut self, event: &Event) {
        if let Event::Reaped { node } | Event::SpawnFailed { node, transient: false, .. } = event
            && let Some(run) = self.nodes.get(node)
            && self.serving.get(run) == Some(node)
        {
            self.serving.remove(run);
        }
    }

    pub(super) fn did(&mut self, facts: &Facts, action: &Action) -> Verdict {
        match action {
            Action::Persist { class, writes, .. } => {
                for write in writes {
                    if let Write::NoRun(run) = write {
                        self.gone.insert(*run);
                    }
                }
                record_in(writes).map_or(Ok(()), |record| self.persisted(facts, *class, record))
            }
            Action::Spawn { node, .. } => self.spawned(*node),
            Action::Exit { .. } => self.exits(),
            _ => Ok(()),
        }
    }

    fn persisted(&mut self, facts: &Facts, class: Class, record: &Record) -> Verdict {
        let run = record.run_id;
        self.nodes.insert(record.node, run);
        if let Some(handle) = record.handle {
            let holder = *self.handles.entry(handle).or_insert(run);
            // One whose record was never durable was never told.
            unless(holder == run || !self.was_durable(holder), HANDLES, || {
                format!("{handle} is that of {holder} and becomes that of {run}")
            })?;
            self.handles.insert(handle, run);
        }
        if self.life > 1 {
            self.counted(facts, record)?;
        }
        let Some(left) = self.left.get_mut(&run) else { return Ok(()) };
        let was = &left.record;
        if is_over(was.status) {
            let same =
                (was.status, &was.error, &was.result) == (record.status, &record.error, &record.result);
            return unless(same, ENDED, || format!("{was:?} becomes {record:?}"));
        }
        left.resolved |= record.status.is_terminal();
        if class != Class::Spawn {
            return Ok(());
        }
        let next = if was.status == Status::Held { was.attempt } else { was.attempt + 1 };
        unless(record.attempt == next, ONCE, || format!("{was:?} becomes {record:?}"))?;
        left.made = Some(record.attempt);
        left.resolved = true;
        Ok(())
    }

    /// Whether a run is one that an earlier life left behind.
    fn was_durable(&self, run: RunId) -> bool {
        self.left.contains_key(&run)
    }

    fn counted(&self, facts: &Facts, record: &Record) -> Verdict {
        let base = self.base(record.run_id);
        let numbers = |t: &Tokens| (t.input, t.output, t.cached, t.usd.nanos());
        let (now, then) = (numbers(&record.usage), numbers(&base));
        let more = now.0.checked_sub(then.0).zip(now.1.checked_sub(then.1));
        let spent = facts.spent.get(&record.node);
        let fits = more.is_some_and(|(input, output)| match spent {
            Some(spent) => spent.may_come_to(input, output),
            None => (input, output) == (0, 0),
        });
        unless(fits, USED, || format!("{base:?} becomes {:?} of attempt {}", record.usage, record.attempt))
    }

    fn spawned(&mut self, node: NodeId) -> Verdict {
        let Some(run) = self.nodes.get(&node).copied() else { return Ok(()) };
        if let Some(left) = self.left.get(&run) {
            unless(!is_over(left.record.status), ENDED, || format!("{run} gets a process"))?;
        }
        let other = self.serving.insert(run, node).filter(|other| *other != node);
        unless(other.is_none(), SERVED, || format!("{run} is served by {other:?} and {node}"))
    }

    fn exits(&self) -> Verdict {
        let lost =
            self.left.iter().find(|(run, left)| left.owed && !left.resolved && !self.gone.contains(run));
        unless(lost.is_none(), ONCE, || format!("{lost:?} was never taken up"))
    }

    /// What is told to have ended is durable (S10.2).
    pub(super) fn told(&self, disk: &Disk, run: RunId, status: Status) -> Verdict {
        let durable = disk.record(&run.to_string()).map(|record| record.status);
        unless(durable == Some(status), "an end is told when it is durable", || {
            format!("{run} is told as {}, and {durable:?} is durable", status.name())
        })
    }
}

/// Whether no start changes it any more; the oracles' own list.
fn is_over(status: Status) -> bool {
    match status {
        Status::Held | Status::Spawned | Status::Running | Status::Retiring | Status::Parked => false,
        Status::Completed | Status::Failed | Status::Cancelled | Status::Refused => true,
        Status::ExhaustedSteps | Status::ExhaustedTokens | Status::Deadline => true,
        Status::LoopDetected | Status::Crashed => true,
    }
}

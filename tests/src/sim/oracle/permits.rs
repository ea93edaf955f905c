//! Limits are never passed, and nobody is refused who is under them (S4.3, S4.7). Kept by a count of its own.

use super::bounds::Bounds;
use super::budget;
use super::facts::{Facts, Intent, Node, Run, name};
use super::queue::Queue;
use super::{Verdict, unless};
use crate::sim::kernel::Kernel;
use crate::sim::plan::Knobs;
use agentd_core::config::SubagentLimits;
use agentd_core::id::{NodeId, RunId};
use agentd_core::record::{Record, Status};
use agentd_core::time::Instant;
use agentd_core::wire::message::{Role, ToolResult};
use serde_json::Value;
use std::collections::BTreeSet;

const PASSED: &str = "limits are never passed";
const GHOST: &str = "only who is over a limit is refused";

/// See the module.
pub(super) struct Permits {
    breadth: u32,
    total: u32,
    depth: u32,
    admitted: BTreeSet<RunId>,
    rate: Bucket,
    queue: Queue,
}

impl Permits {
    pub(super) fn new(knobs: &Knobs) -> Permits {
        Permits {
            breadth: knobs.breadth,
            total: knobs.total,
            depth: knobs.depth,
            admitted: BTreeSet::new(),
            rate: Bucket::new(knobs.burst, knobs.refill_ms),
            queue: Queue::new(knobs.queue),
        }
    }

    /// Other limits: who was admitted stays so, and what was used stays used.
    pub(super) fn reloaded(&mut self, now: Instant, limits: &SubagentLimits) {
        (self.breadth, self.total, self.depth) = (limits.breadth, limits.total, limits.depth);
        self.rate.reloaded(now, limits.rate.burst, limits.rate.per.as_nanos());
        self.queue.most = limits.queue;
    }

    /// A record is handed to the store: a run's first is its admission, its first that is not `held` its beginning.
    pub(super) fn persisted(&mut self, facts: &Facts, now: Instant, record: &Record) -> Verdict {
        if record.role != Role::Subagent {
            return Ok(());
        }
        let known = facts.runs.get(&record.run_id);
        if known.is_none() {
            self.admitted.insert(record.run_id);
            self.admits(facts, record)?;
            let free = self.is_free(facts, now);
            self.queue.joins(facts, record, free)?;
        }
        let ready = record.status != Status::Held && !record.status.is_terminal();
        if ready && !known.is_some_and(Run::has_begun) {
            self.begins(facts, now, record)?;
            self.queue.begins(facts, record, known.is_some())?;
        }
        Ok(())
    }

    fn admits(&self, facts: &Facts, record: &Record) -> Verdict {
        let count = self.admitted.len();
        let who = name(record);
        unless(count as u64 <= u64::from(self.total), PASSED, || {
            format!("{who} is the {count}th of {}", self.total)
        })?;
        unless(record.depth <= self.depth, PASSED, || format!("{who} has depth {}", record.depth))?;
        unless(facts.draining().is_none(), "a drain admits nobody", || who.clone())
    }

    fn begins(&mut self, facts: &Facts, now: Instant, record: &Record) -> Verdict {
        let who = name(record);
        unless(facts.draining().is_none(), "a drain begins nobody", || who.clone())?;
        unless(self.rate.take(now), PASSED, || format!("{who} is over the rate"))?;
        let held = facts.runs.values().filter(|r| holds_surely(facts, r)).count() + 1;
        unless(held as u64 <= u64::from(self.breadth), PASSED, || {
            format!("{who} is the {held}th live of {}", self.breadth)
        })
    }

    /// Whether breadth and rate surely have room.
    fn is_free(&mut self, facts: &Facts, now: Instant) -> bool {
        let held = facts.runs.values().filter(|r| holds_maybe(facts, r)).count();
        (held as u64) < u64::from(self.breadth) && self.rate.has(now)
    }

    /// Nobody waits who could begin.
    pub(super) fn judge_time(&mut self, facts: &Facts, bounds: &Bounds, now: Instant) -> Verdict {
        let free = self.queue.first(facts).is_some() && self.is_free(facts, now);
        self.queue.judge_time(facts, bounds, now, free)
    }

    /// A process is asked for.
    pub(super) fn spawned(&self, facts: &Facts, node: NodeId) -> Verdict {
        let run = facts.run_of(node);
        unless(run.is_some(), "a process has a run", || format!("{node}"))
    }

    /// An answer leaves; if it is a refusal over a limit, the limit was met.
    pub(super) fn answered(
        &mut self,
        facts: &Facts,
        now: Instant,
        node: NodeId,
        answer: &ToolResult,
    ) -> Verdict {
        let Some(request) = facts.nodes.get(&node).and_then(|n| n.requests.get(&answer.id)) else {
            return Ok(());
        };
        let value = answer.value.parse().unwrap_or(Value::Null);
        if request.name != "subagent.run" {
            return Ok(());
        }
        let seen = |why: String| move || format!("{} {}: {why}", request.call_id, value["error"]["message"]);
        let by_worker = facts.run_of(node).is_some_and(|r| r.record.role == Role::Worker);
        let waiting = facts.runs.values().filter(|r| r.is_held()).count();
        let cannot_wait = !by_worker || waiting as u64 >= u64::from(self.queue.most);
        match answer.value.parse().unwrap_or(Value::Null)["error"]["gate"].as_str() {
            Some("breadth" | "rate") if !cannot_wait => {
                Err((GHOST, seen(format!("{waiting} of {} wait", self.queue.most))()))
            }
            // Behind those who wait there is no room at once, whatever else is free.
            Some("breadth") if by_worker && waiting > 0 => Ok(()),
            Some("breadth") => {
                let held = facts.runs.values().filter(|r| holds_maybe(facts, r)).count();
                let met = held as u64 >= u64::from(self.breadth);
                unless(met, GHOST, seen(format!("{held} of {} hold a permit", self.breadth)))
            }
            Some("total") => {
                let count = self.admitted.len();
                unless(
                    count as u64 >= u64::from(self.total),
                    GHOST,
                    seen(format!("{count} of {}", self.total)),
                )
            }
            Some("depth") => {
                let depth = facts.run_of(node).map_or(0, |r| r.record.depth) + 1;
                unless(depth > self.depth, GHOST, seen(format!("depth {depth} of {}", self.depth)))
            }
            Some("rate") => unless(!self.rate.has(now), GHOST, seen("the bucket is not empty".into())),
            Some("budget") => {
                let out = facts.run_of(node).is_some_and(|run| budget::is_out(facts, run));
                unless(out, GHOST, seen("something is left of every budget".into()))
            }
            Some("draining") => unless(facts.draining().is_some(), GHOST, seen("no drain has begun".into())),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether the run's process may live as far as the core can know: the strictest reading of "not known gone".
fn holds_surely(facts: &Facts, run: &Run) -> bool {
    run.record.role == Role::Subagent
        && run.has_begun()
        && facts.nodes.get(&run.record.node).is_some_and(|n| !never_made(n, run) && n.exit.is_none())
}

/// Whether the run may still be counted: the kindest reading, until its process is reaped.
fn holds_maybe(facts: &Facts, run: &Run) -> bool {
    run.record.role == Role::Subagent
        && run.has_begun()
        && facts.nodes.get(&run.record.node).is_some_and(|n| !never_made(n, run) && !n.reaped)
}

/// No process was made and none will be.
fn never_made(node: &Node, run: &Run) -> bool {
    let unasked = node.spawn_asked.is_none() || node.spawn_failed;
    // A run that ended before its intent was durable is let go when the store has answered.
    let over = match run.intent {
        Intent::None => true,
        Intent::Out(_) => false,
        Intent::Stored => run.terminal.is_some(),
        Intent::Failed => true,
    };
    unasked && over
}

/// Processes that really live, whatever anybody knows.
pub(super) fn judge_live(facts: &Facts, kernel: &Kernel) -> Verdict {
    let live = facts
        .runs
        .values()
        .filter(|r| r.record.role == Role::Subagent && kernel.alive(r.record.node))
        .count();
    // A breadth that a reload lowered ends nobody.
    let breadth = facts.most_breadth;
    unless(live as u64 <= u64::from(breadth), PASSED, || format!("{live} of {breadth} subagents live"))
}

/// A token bucket that refills steadily, in exact arithmetic: a token costs `per` and `burst` flows in a nanosecond.
struct Bucket {
    burst: u128,
    per: u128,
    level: u128,
    last: Instant,
}

impl Bucket {
    fn new(burst: u32, refill_ms: u64) -> Bucket {
        let (burst, per) = (u128::from(burst), u128::from(refill_ms) * 1_000_000);
        Bucket { burst, per, level: burst * per, last: Instant::ZERO }
    }

    /// Another size and time: the tokens that are missing stay missing.
    fn reloaded(&mut self, now: Instant, burst: u32, per: u128) {
        self.flow(now);
        let missing = self.burst * self.per - self.level;
        let missing = (missing * per).div_ceil(self.per);
        (self.burst, self.per) = (u128::from(burst), per);
        self.level = (self.burst * per).saturating_sub(missing);
    }

    fn flow(&mut self, now: Instant) {
        let flowed = self.burst * now.since(self.last).as_nanos();
        self.level = (self.level + flowed).min(self.burst * self.per);
        self.last = self.last.max(now);
    }

    /// Rounding may differ by a microsecond.
    fn rounding(&self) -> u128 {
        self.burst * 1_000
    }

    fn has(&mut self, now: Instant) -> bool {
        self.flow(now);
        self.level > self.per + self.rounding()
    }

    fn take(&mut self, now: Instant) -> bool {
        self.flow(now);
        let enough = self.level + self.rounding() >= self.per;
        self.level = self.level.saturating_sub(self.per);
        enough
    }
}

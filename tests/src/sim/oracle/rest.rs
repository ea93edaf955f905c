//! The end of all trouble: once nothing goes wrong any more everything comes to rest within a time that follows from the
//! plan; and a daemon that was killed leaves nobody (S9.7).

use super::bounds::Bounds;
use super::facts::Facts;
use super::{Verdict, unless};
use crate::sim::kernel::{Kernel, Owner};
use crate::sim::plan::Plan;
use agentd_core::limits::{END_OF_FILE_WAIT, SWEEP_WAIT};
use agentd_core::time::{Duration, Instant};

/// No rest for longer than this after the last trouble.
pub(super) fn judge_time(facts: &Facts, bounds: &Bounds, now: Instant) -> Verdict {
    let Some(healed) = facts.plan.healed_from() else { return Ok(()) };
    let after = Duration::from_secs(3) + SWEEP_WAIT + END_OF_FILE_WAIT + bounds.slack();
    let due = match bounds.drain_end(facts) {
        Some(end) => end.max(healed) + after,
        // It ends by itself; any other conversation does so only by a drain.
        None if facts.plan.knobs.one_shot => healed + longest_life(&facts.plan) + after,
        None => return Ok(()),
    };
    unless(now <= due, "all comes to rest once nothing goes wrong", || {
        format!("due at {:.3} s; {}", due.nanos() as f64 / 1e9, facts.unfinished())
    })
}

/// How long a conversation of one turn can take when nothing goes wrong: its worker, then who waits for a permit one
/// after the other, then what these delegated level by level; each as long as its hard deadline lets it.
fn longest_life(plan: &Plan) -> Duration {
    let knobs = &plan.knobs;
    let one = knobs.deadline_ms + knobs.grace_ms + knobs.term_ms + knobs.kill_ms + knobs.exit_ms + 10_000;
    let generations = 2 + u64::from(knobs.depth) + u64::from(knobs.queue);
    Duration::from_millis(generations * one + knobs.drain_ms)
}

/// A daemon was killed, and the time that something of it may live is over.
pub(super) fn judge_crash(bounds: &Bounds, at: Instant, kernel: &Kernel) -> Verdict {
    // One that keeps forking, or cannot die, is a stated limit.
    let left = kernel.ours().filter(|process| process.owner != Owner::Foundling).count();
    unless(left == 0 || bounds.stubborn, "nothing outlives the daemon", || {
        format!("{left} processes live on after its death at {:.3} s", at.nanos() as f64 / 1e9)
    })
}

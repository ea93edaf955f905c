//! How long anything may take; that every signal has a reason; that timers move, and that the end is one (S9).

use super::facts::{Facts, Node};
use super::{Misdeed, Verdict, unless};
use crate::sim::kernel::{Kernel, Serial};
use crate::sim::plan::{Fault, Order, Plan};
use agentd_core::action::{Action, ChildSignal};
use agentd_core::event::SupervisorSignal;
use agentd_core::id::NodeId;
use agentd_core::limits::{END_OF_FILE_WAIT, ORPHAN_SWEEP, SWEEP_WAIT};
use agentd_core::time::{Duration, Instant};

/// Ticks in a row that may lead to nothing.
const IDLE_TICKS: u32 = 64;

/// See the module.
pub(super) struct Bounds {
    /// How long the daemon was stopped in all.
    pub(super) gaps: Duration,
    /// How much later everything may be, because the plan made it late.
    faults: Duration,
    /// When the daemon or the machine stood still.
    standstills: Vec<Instant>,
    interrupts: Vec<Instant>,
    /// Some process cannot be killed in time, by plan.
    pub(super) stubborn: bool,
    ticks: (u32, Instant),
    /// The oldest orphan that nobody has waited for, and since when.
    orphan: Option<(Serial, Instant)>,
}

impl Bounds {
    pub(super) fn new(plan: &Plan) -> Bounds {
        let knobs = &plan.knobs;
        let mut faults = Duration::from_millis(200 + 40 * knobs.notice_ms());
        let mut longest = [0; 4];
        let mut fails = 0;
        for fault in &plan.faults {
            match fault {
                Fault::SpawnSlow { ms, .. } | Fault::ExecFails { ms, .. } => {
                    faults += Duration::from_millis(*ms)
                }
                Fault::StoreSlow { ms, .. } => longest[0] = longest[0].max(*ms),
                Fault::StoreFails { times, .. } => fails += times,
                Fault::ExitLate { ms, .. } => longest[2] = longest[2].max(*ms),
                Fault::ReadLate { ms, .. } => longest[3] = longest[3].max(*ms),
                Fault::Operator { order: Order::Pause { ms }, .. } => faults += Duration::from_millis(*ms),
                Fault::SpawnFails { .. } => faults += Duration::from_millis(400),
                Fault::Stillborn { .. }
                | Fault::Restart { .. }
                | Fault::SpawnFrameFails { .. }
                | Fault::CancelPrompt { .. }
                | Fault::ExitUnknown { .. }
                | Fault::Gap { .. }
                | Fault::Orphan { .. }
                | Fault::Wall { .. }
                | Fault::Crash { .. }
                | Fault::KillAll { .. }
                | Fault::Reload { .. }
                | Fault::Operator { .. }
                | Fault::Signal { .. } => {}
            }
        }
        // The core's own pauses between tries. Two faults may follow upon each other and hit the same record.
        longest[1] = (0..fails).map(|i| (500 << i.min(6)).min(30_000)).sum();
        // And an answer may wait for two of them: that a run was to be, and that it could not be.
        longest[0] *= 2 + fails;
        let dying = plan.scripts.iter().map(|s| s.nature.dying_ms).max().unwrap_or(0);
        faults += Duration::from_millis(longest.iter().sum::<u64>() + dying);
        let stubborn = plan.scripts.iter().flat_map(|s| s.all_steps()).any(|step| match step {
            crate::sim::plan::Step::Fork(what) => what.dying_ms > 500 || what.respawns > 4,
            _ => false,
        });
        Bounds {
            gaps: Duration::ZERO,
            faults,
            standstills: Vec::new(),
            interrupts: Vec::new(),
            stubborn,
            ticks: (0, Instant::ZERO),
            orphan: None,
        }
    }

    pub(super) fn slack(&self) -> Duration {
        self.faults + self.gaps
    }

    /// The daemon or the machine stops here for so long.
    pub(super) fn stands_still(&mut self, now: Instant, length: Duration) {
        self.gaps += length;
        self.standstills.push(now);
    }

    /// When a wait that began at `since` is over at the latest. A daemon cannot tell how long it stood still, only that it
    /// did, and then begins the wait anew, so that what it lost of it is at most the wait.
    fn over(&self, since: Instant, wait: Duration) -> Instant {
        let anew = self.standstills.iter().filter(|at| **at >= since).count();
        std::iter::repeat_n(wait, anew).fold(since + wait + self.slack(), |due, lost| due + lost)
    }

    pub(super) fn interrupted(&mut self, now: Instant) {
        self.interrupts.push(now);
    }

    pub(super) fn was_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// Orphans that ended do not stay (S5.3).
    pub(super) fn orphans(&mut self, facts: &Facts, now: Instant, kernel: &Kernel) -> Verdict {
        // An idle daemon that is not PID 1 has nobody whose orphans could land on it, but for what it gave up on.
        let idle = facts.nodes.values().all(|n| n.born.is_none() || n.reaped);
        let excused = idle && !facts.plan.knobs.pids.is_multiple_of(8) && kernel.is_foundling_zombie();
        self.orphan = kernel.orphan_zombie().filter(|_| !excused).map(|serial| match self.orphan {
            Some((old, since)) if old == serial => (serial, since),
            Some(_) | None => (serial, now),
        });
        let due = self.orphan.map(|(_, since)| since + ORPHAN_SWEEP + ORPHAN_SWEEP + self.slack());
        unless(due.is_none_or(|at| now <= at), "orphans are reaped", || format!("{:?}", self.orphan))
    }

    /// When a drain stops waiting.
    pub(super) fn drain_end(&self, facts: &Facts) -> Option<Instant> {
        let first = *self.interrupts.first()?;
        let timeout = first + Duration::from_millis(facts.plan.knobs.drain_ms);
        Some(self.interrupts.get(1).map_or(timeout, |second| timeout.min(*second)))
    }

    /// Whether the drain has stopped waiting.
    pub(super) fn drain_over(&self, facts: &Facts, now: Instant) -> bool {
        self.drain_end(facts).is_some_and(|at| now >= at)
    }

    /// Timers move: none is due again right after its `Tick`, and they do not go on for nothing.
    pub(super) fn turned(&mut self, now: Instant, was_tick: bool, next: Option<Instant>) -> Verdict {
        if !was_tick {
            self.ticks = (0, now);
            return Ok(());
        }
        unless(next.is_none_or(|at| at > now), "no timer is due right after a Tick", || format!("{next:?}"))?;
        self.ticks.0 += 1;
        let idle = self.ticks.0 >= IDLE_TICKS && now.since(self.ticks.1) < Duration::from_millis(500);
        if self.ticks.0 >= IDLE_TICKS {
            self.ticks = (0, now);
        }
        unless(!idle, "timers do not spin", || format!("{IDLE_TICKS} ticks in half a second"))
    }
}

/// A signal has a reason (S9.4: a child that exits by itself is never signalled), and SIGKILL one that does not leave a
/// process the time to heed SIGTERM.
pub(super) fn judge_signal(facts: &Facts, bounds: &Bounds, now: Instant, action: &Action) -> Verdict {
    let Action::Signal { node, signal } = action else { return Ok(()) };
    let Some(n) = facts.nodes.get(node) else { return Ok(()) };
    let knobs = &facts.plan.knobs;
    let past =
        |since: Option<Instant>, ms: u64| since.is_some_and(|at| now >= at + Duration::from_millis(ms));
    // Paused time is nobody's fault (S6.9).
    let judged = n.paused.is_none();
    let paused_ms = u64::try_from(n.paused_for.as_millis()).unwrap_or(u64::MAX);
    let run = facts.run_of(*node);
    let at_once = n.frame_failed.is_some()
        || n.broken.is_some()
        || bounds.drain_over(facts, now)
        // Nobody wanted it any more before it was made, or nobody waits for it.
        || run.is_some_and(|run| (run.terminal.is_some() && !n.first_frame) || facts.left_over(run, now));
    let reason = at_once
        || past(n.cancelled, knobs.term_ms)
        || past(n.terminal.as_ref().map(|t| t.0), knobs.exit_ms)
        || (judged && past(n.armed, n.deadline_ms + knobs.grace_ms + paused_ms))
        || past(n.turn_cancelled, knobs.term_ms)
        || (judged && n.ready.is_none() && past(n.spawned, knobs.ready_ms + paused_ms))
        || n.write_failed
        || (judged && silent(n, now, facts.shortest_silence_ms()))
        || facts.plan.scripts.iter().any(|s| s.nature.deaf);
    unless(reason, "a signal has a reason", || format!("{node} gets {signal:?} and has done nothing"))?;
    let asked_first = past(n.signals.first().map(|(at, _)| *at), knobs.kill_ms);
    unless(*signal != ChildSignal::Kill || at_once || asked_first, "SIGKILL comes after SIGTERM", || {
        format!("{node} got {:?}", n.signals)
    })?;
    unless(!n.signals.iter().any(|(_, s)| s > signal), "rungs only rise", || {
        format!("{node} gets {signal:?} after {:?}", n.signals)
    })
}

fn silent(node: &Node, now: Instant, ms: u64) -> bool {
    node.misdeeds.iter().any(|(at, what)| match what {
        Misdeed::Silent => now >= node.judged_from(*at) + Duration::from_millis(ms),
        Misdeed::ClosedStdout => true,
    })
}

/// Nobody outlives its time.
pub(super) fn judge_time(facts: &Facts, bounds: &Bounds, now: Instant, kernel: &Kernel) -> Verdict {
    for (id, node) in &facts.nodes {
        if node.reaped || node.born.is_none() {
            continue;
        }
        if kernel.alive(*id) {
            for (why, at) in ends(facts, bounds, *id, node) {
                unless(now <= at + bounds.slack(), "a process is gone in time", || {
                    format!("{id} is alive; {why}, due at {:.3} s", at.nanos() as f64 / 1e9)
                })?;
            }
        } else if let Some((exit, _)) = node.exit {
            // A slot waits for no clock when there is nothing to wait for (F06).
            let idle = node.finished.is_some_and(|at| now > at) && !node.reap_asked;
            unless(!idle, "what is swept and read is reaped at once", || format!("{id}"))?;
            after_exit(facts, bounds, now, *id, exit, kernel)?;
        }
    }
    if let Some(end) = bounds.drain_end(facts).filter(|_| !bounds.stubborn) {
        let due = end + Duration::from_secs(3) + bounds.slack();
        unless(now <= due, "a drain ends in time", || facts.unfinished())?;
    }
    Ok(())
}

/// When a living process must be gone, by each reason there is.
fn ends(facts: &Facts, bounds: &Bounds, id: NodeId, node: &Node) -> Vec<(&'static str, Instant)> {
    let knobs = &facts.plan.knobs;
    let ms = Duration::from_millis;
    let kill = ms(knobs.kill_ms) + Duration::from_secs(1);
    let mut ends = Vec::new();
    let mut add = |why, since: Option<Instant>, after: Duration| {
        if let Some(at) = since {
            ends.push((why, at + after + kill));
        }
    };
    let judged = node.paused.is_none();
    if node.ready.is_none() && judged {
        add("it was never ready", node.spawned, ms(knobs.ready_ms) + node.paused_for);
    }
    add("it has said its last word", node.terminal.as_ref().map(|t| t.0), ms(knobs.exit_ms));
    add("it wrote what is no frame", node.broken, Duration::ZERO);
    if judged {
        add("its hard deadline", node.armed, ms(node.deadline_ms + knobs.grace_ms) + node.paused_for);
    }
    add("it was handed nothing", node.frame_failed, Duration::ZERO);
    let stuck = ms(knobs.progress_ms.max(knobs.pong_ms) + knobs.pong_ms + 2 * knobs.ping_ms);
    for (at, what) in node.misdeeds.iter().filter(|_| judged) {
        let since = Some(node.judged_from(*at));
        match what {
            Misdeed::Silent => add("it answers nothing", since, stuck),
            Misdeed::ClosedStdout => add("it can say nothing", since, stuck),
        }
    }
    if let (Some(run), Some(spawned)) = (facts.run_of(id), node.spawned) {
        let killed = run.terminal.as_ref().filter(|_| run.doomed.is_some()).map(|(at, _)| (*at).max(spawned));
        add("it was killed", killed, ms(knobs.term_ms));
        let cancelled = node.cancelled.map(|at| at.max(spawned));
        add("it was told to end", cancelled, ms(knobs.term_ms));
    }
    if let Some(end) = bounds.drain_end(facts) {
        ends.push(("the drain is over", end + Duration::from_secs(3)));
    }
    ends
}

/// What a dead process leaves is gone soon, and its record says how it ended.
fn after_exit(
    facts: &Facts,
    bounds: &Bounds,
    now: Instant,
    id: NodeId,
    exit: Instant,
    kernel: &Kernel,
) -> Verdict {
    let left = kernel.below(id).count();
    let due = bounds.over(exit, SWEEP_WAIT);
    unless(left == 0 || bounds.stubborn || now <= due, "nothing survives its run", || {
        format!("{id} left {left} processes")
    })?;
    let due = bounds.over(exit, END_OF_FILE_WAIT);
    let ended = facts.run_of(id).is_none_or(|r| r.terminal.is_some());
    unless(ended || now <= due, "nobody waits for the end of a dead child's output", || {
        format!("{id} is dead since {:?} and its run is live", now.since(exit))
    })?;
    let due = bounds.over(exit, SWEEP_WAIT + END_OF_FILE_WAIT) + Duration::from_secs(1);
    unless(now <= due, "a zombie is reaped", || format!("{id}"))
}

/// The end is one: nobody lives, nobody is unreaped, and what could not be ended is counted.
pub(super) fn judge_exit(
    facts: &Facts,
    bounds: &Bounds,
    kernel: &Kernel,
    interrupted: Option<SupervisorSignal>,
    leaked: u32,
) -> Verdict {
    const RULE: &str = "the end leaves nobody";
    let unreaped = facts.nodes.iter().find(|(_, n)| n.born.is_some() && !n.reap_asked);
    if let Some((id, _)) = unreaped {
        return Err((RULE, format!("{id} is not reaped")));
    }
    let alive = kernel.ours().count();
    unless(alive as u64 <= u64::from(leaked), RULE, || format!("{alive} are alive, {leaked} are told"))?;
    unless(leaked == 0 || bounds.stubborn, RULE, || format!("{leaked} are given up"))?;
    let first = facts.interrupts.first().map(|(_, signal)| *signal);
    unless(interrupted == first, "the exit names the signal", || format!("{interrupted:?} for {first:?}"))
}

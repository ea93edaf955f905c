//! The numbers of a plan: limits, durations, budgets, and how the machine and the driver are.

use agentd_core::budget::OnExhausted;
use serde::{Deserialize, Serialize};

/// Limits, durations and the machine's size. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// `limits.subagents.breadth`.
    pub breadth: u32,
    /// `limits.subagents.total`.
    pub total: u32,
    /// `limits.subagents.depth`.
    pub depth: u32,
    /// `limits.subagents.rate`: burst.
    pub burst: u32,
    /// `limits.subagents.rate`: time to refill.
    pub refill_ms: u64,
    /// `limits.subagents.queue`.
    pub queue: u32,
    /// The conversation is one turn; any other ends by a drain.
    pub one_shot: bool,
    /// `agent.worker_idle`.
    pub idle_ms: u64,
    /// `agent.wake_on: [subagent_result]`.
    pub wake: bool,
    /// When a conversation that is not one-shot gets a SIGTERM, if the faults have none.
    pub stop_ms: u64,
    /// `limits.run.deadline` of every run.
    pub deadline_ms: u64,
    /// `lifecycle.liveness.ping`.
    pub ping_ms: u64,
    /// `lifecycle.liveness.pong`.
    pub pong_ms: u64,
    /// `lifecycle.liveness.progress`.
    pub progress_ms: u64,
    /// `lifecycle.liveness.ready`.
    pub ready_ms: u64,
    /// `lifecycle.liveness.hard_deadline_grace`.
    pub grace_ms: u64,
    /// `lifecycle.kill.term_after`.
    pub term_ms: u64,
    /// `lifecycle.kill.kill_after`.
    pub kill_ms: u64,
    /// `lifecycle.kill.exit_after_result`.
    pub exit_ms: u64,
    /// `lifecycle.drain_timeout`.
    pub drain_ms: u64,
    /// How many pids the machine has.
    pub pids: u32,
    /// Whether freed pids are taken at once by strangers.
    pub strangers: bool,
    /// Capacity of every pipe in bytes.
    pub pipe: usize,
    /// Longest read of a child's output by the driver, in bytes: short reads cut frames anywhere.
    pub read: usize,
    /// Longest write to a child's stdin at once, in bytes: the rest meets a full pipe and waits (EAGAIN).
    pub write: usize,
    /// The driver looks around only so often, and then hands over all it has learned at once, in any order that
    /// keeps each node's own; 0 is at once.
    pub turn_ms: u64,
    /// How many endpoints the model has; 0 is a playbook.
    pub endpoints: u32,
    /// The model's tokens have a price.
    pub priced: bool,
    /// What model calls may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purse: Option<Purse>,
    /// The store outlives the daemon: it is told everything that a restart needs.
    pub keeps: bool,
    /// `store.durability.commit: relaxed`.
    pub relaxed: bool,
    /// `store.durability.work: ephemeral`.
    pub ephemeral: bool,
    /// Children have the parent-death signal, as the spawner sets it. A machine without it is for tests of the rules.
    pub parent_death: bool,
    /// Longest ordinary delay of a notice.
    pub jitter_ms: u64,
    /// Whether a late driver hands over the `Tick` before what else is due.
    pub tick_first: bool,
}

/// `intelligence.budget` and `limits.run.usd`. Amounts are in tokens that the run's own model reads; zero is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Purse {
    /// `lifetime`.
    pub lifetime: u64,
    /// The window of a minute.
    pub minute: u64,
    /// Both of these are the price of so many tokens.
    pub money: bool,
    /// `limits.run.usd`, as the price of so many tokens.
    pub run: u64,
    /// `on_exhausted`.
    pub policy: OnExhausted,
}

impl Knobs {
    /// The longest that an ordinary notice may take to reach the core.
    pub(crate) fn notice_ms(&self) -> u64 {
        self.jitter_ms + self.turn_ms
    }
}

impl Default for Knobs {
    /// The daemon's own defaults on a quick, roomy machine.
    fn default() -> Knobs {
        Knobs {
            breadth: 8,
            total: 64,
            depth: 1,
            burst: 8,
            refill_ms: 2_000,
            queue: 0,
            one_shot: true,
            idle_ms: 60_000,
            wake: false,
            stop_ms: 300_000,
            deadline_ms: 600_000,
            ping_ms: 3_000,
            pong_ms: 10_000,
            progress_ms: 120_000,
            ready_ms: 30_000,
            grace_ms: 60_000,
            term_ms: 5_000,
            kill_ms: 2_000,
            exit_ms: 5_000,
            drain_ms: 25_000,
            pids: 32,
            strangers: false,
            pipe: 65_536,
            read: 65_536,
            write: 65_536,
            turn_ms: 0,
            endpoints: 0,
            priced: false,
            purse: None,
            keeps: false,
            relaxed: false,
            ephemeral: false,
            parent_death: true,
            jitter_ms: 1,
            tick_first: false,
        }
    }
}

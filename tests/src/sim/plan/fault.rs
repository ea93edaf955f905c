//! What goes wrong in a plan: forks, stores, late notices, standstills, signals.

use serde::{Deserialize, Serialize};

/// What goes wrong around the processes. Counting is from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The n-th `Spawn` and the next ones fail.
    SpawnFails {
        /// Which is the first.
        nth: u32,
        /// How many.
        times: u32,
        /// Whether another try might do.
        transient: bool,
    },
    /// The n-th process dies by SIGSEGV before it reads anything.
    Stillborn {
        /// Which.
        nth: u32,
    },
    /// The n-th process dies between its fork and its exec: a pid was taken, and nobody came of it.
    ExecFails {
        /// Which.
        nth: u32,
        /// How long the pid is gone.
        ms: u64,
    },
    /// The n-th `Spawn` takes this long to be answered.
    SpawnSlow {
        /// Which.
        nth: u32,
        /// How long.
        ms: u64,
    },
    /// From the n-th `Persist` on, so many are answered this late.
    StoreSlow {
        /// Which is the first.
        nth: u64,
        /// How many.
        times: u64,
        /// How long.
        ms: u64,
    },
    /// The n-th `Persist` and the next ones fail.
    StoreFails {
        /// Which is the first.
        nth: u64,
        /// How many.
        times: u64,
        /// Whether another try might do.
        retryable: bool,
    },
    /// The exit of the n-th process is noticed this late.
    ExitLate {
        /// Which.
        nth: u32,
        /// How long.
        ms: u64,
    },
    /// The last words of the n-th process are read this late.
    ReadLate {
        /// Which.
        nth: u32,
        /// How long.
        ms: u64,
    },
    /// The n-th process's exit status was taken by somebody else.
    ExitUnknown {
        /// Which.
        nth: u32,
    },
    /// The daemon is stopped for a while, and the machine with it or not.
    Gap {
        /// When.
        at_ms: u64,
        /// How long.
        ms: u64,
        /// The whole machine slept: nobody else got on meanwhile.
        machine: bool,
    },
    /// Somebody sets the wall clock.
    Wall {
        /// When.
        at_ms: u64,
        /// By how much, forth or back.
        by_ms: i64,
    },
    /// The daemon is killed as it is about to perform this action, counted from 0. Nothing of it may be left.
    Crash {
        /// Which action.
        at_action: u64,
    },
    /// The daemon is killed as it is about to perform this action of its life, counted from 0, and begun again with what
    /// is durable. Each life takes the next of these.
    Restart {
        /// Which action.
        at_action: u64,
        /// The disk tears the save that it is about to make.
        torn: bool,
    },
    /// A stranger's orphan lands on the supervisor and ends there.
    Orphan {
        /// When.
        at_ms: u64,
    },
    /// The first frame of the n-th process cannot be made.
    SpawnFrameFails {
        /// Which.
        nth: u32,
    },
    /// A person takes a prompt back.
    CancelPrompt {
        /// Its number, from 1.
        prompt: u64,
        /// When.
        at_ms: u64,
    },
    /// Somebody kills every process that the daemon has made so far, the first aside, at one instant.
    KillAll {
        /// When.
        at_ms: u64,
    },
    /// An operator calls for something about `sub-<n>`. Calls are named by their place among the faults.
    Operator {
        /// When.
        at_ms: u64,
        /// About whom.
        handle: u64,
        /// What.
        order: Order,
    },
    /// The daemon is given another configuration: other limits.
    Reload {
        /// When.
        at_ms: u64,
        /// Which.
        limits: Limits,
    },
    /// The supervisor gets a signal.
    Signal {
        /// When.
        at_ms: u64,
        /// Which.
        signal: Interrupt,
    },
}

/// What an operator calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `subagent.kill`.
    Kill {
        /// `only`.
        only: bool,
    },
    /// `subagent.pause`, and `subagent.resume` so many milliseconds later.
    Pause {
        /// How long.
        ms: u64,
    },
    /// `subagent.status`.
    Status,
    /// `subagent.await`, for whom the operator waits no longer than this.
    Await {
        /// When it hangs up.
        ms: u64,
    },
    /// A tool that operators do not have.
    Nonsense,
}

/// `limits.subagents` of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// `breadth`.
    pub breadth: u32,
    /// `total`.
    pub total: u32,
    /// `depth`.
    pub depth: u32,
    /// `rate`: burst.
    pub burst: u32,
    /// `rate`: time to refill.
    pub refill_ms: u64,
    /// `queue`.
    pub queue: u32,
}

/// Signals the supervisor gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGHUP.
    Hup,
}

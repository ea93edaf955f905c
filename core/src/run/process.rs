//! The life of one process, from the decision to make it until its pid is free again. Each state holds only
//! what is legal there; the supervisor asks, this module answers what comes next.
//!
//! ```text
//! Held ─────┬→ Recording → Spawning ⇄ Retrying
//! Restored ─┘                  ↓
//!                            Alive → Sweeping → Draining → Reaping → Gone
//! ```
//!
//! The order at the end is the whole point (S5.4): exit observed (the zombie pins the pid) → what it left is
//! swept → its last output is read → it is reaped. A process that was never made goes to Gone at once.

use crate::event::Exit;
use crate::limits;
use crate::run::ladder::Ladder;
use crate::run::liveness::Liveness;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Where a process is in its life.
#[derive(Debug, Serialize, Deserialize)]
pub enum Process {
    /// It waits for a permit; nothing is made before it has one (S4.8).
    Held {
        /// That it waits is durable.
        stored: bool,
    },
    /// It is of an earlier life of the daemon and waits for its turn to begin again.
    Restored {
        /// When that is.
        at: Instant,
    },
    /// The intent is being made durable; no process exists.
    Recording,
    /// A `Spawn` is out for the `tries`-th time.
    Spawning {
        /// From 1.
        tries: usize,
    },
    /// A fork failed for want of resources and will be tried again.
    Retrying {
        /// How often it was tried.
        tries: usize,
        /// When it is tried again.
        at: Instant,
    },
    /// It exists and may run.
    Alive(Box<Alive>),
    /// It ended; what it left behind is being killed.
    Sweeping(Sweep),
    /// It ended and left nothing; its output is read to the end.
    Draining {
        /// How it ended.
        exit: Exit,
        /// When nobody waits any longer.
        until: Instant,
    },
    /// A `Reap` is out.
    Reaping,
    /// Its pid is free, or it was never made.
    Gone,
}

/// A process that may run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Alive {
    /// For people only.
    pub pid: u32,
    /// When it was spawned.
    pub since: Instant,
    /// Its signs of life.
    pub liveness: Liveness,
    /// Its stop.
    pub ladder: Ladder,
}

/// The sweep after an exit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// How the process ended.
    pub exit: Exit,
    /// When the exit was observed.
    pub since: Instant,
    /// Passes done.
    pub passes: usize,
    /// When the next pass is due; `None` while one is out.
    pub next: Option<Instant>,
    /// Killed so far.
    pub killed: u32,
}

/// What a sweep pass that found `remaining` processes means.
#[derive(Debug, PartialEq, Eq)]
pub enum SweepNext {
    /// Nothing is left.
    Clean,
    /// Look again at this time.
    Again(Instant),
    /// The bound is reached; this many are given up on.
    GiveUp(u32),
}

impl Sweep {
    /// A sweep whose first pass is out.
    pub fn begin(exit: Exit, now: Instant) -> Sweep {
        Sweep { exit, since: now, passes: 0, next: None, killed: 0 }
    }

    /// Whether keepers have had their time to finish and are killed too.
    pub fn keepers(&self, now: Instant) -> bool {
        now.since(self.since) >= limits::SWEEP_KEEPER_GRACE
    }

    /// A pass was performed.
    pub fn pass(&mut self, killed: u32, remaining: u32, now: Instant) -> SweepNext {
        self.passes += 1;
        self.killed = self.killed.saturating_add(killed);
        if remaining == 0 {
            return SweepNext::Clean;
        }
        if now.since(self.since) >= limits::SWEEP_WAIT {
            return SweepNext::GiveUp(remaining);
        }
        let pause = limits::SWEEP_PAUSES[(self.passes - 1).min(limits::SWEEP_PAUSES.len() - 1)];
        let at = now + pause;
        self.next = Some(at);
        SweepNext::Again(at)
    }
}

impl Process {
    /// The daemon itself stood still for `gap`: nobody is judged by it (S9.3), a sweep has its time yet, and
    /// what a dead child wrote is still in the pipe and will be read.
    pub fn forgive(&mut self, gap: Duration, now: Instant) {
        match self {
            Process::Alive(alive) => alive.liveness.forgive(gap),
            Process::Sweeping(sweep) => sweep.since = now,
            Process::Draining { until, .. } => *until = now + limits::END_OF_FILE_WAIT,
            Process::Held { .. }
            | Process::Restored { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Retrying { .. }
            | Process::Reaping
            | Process::Gone => {}
        }
    }

    /// Its name in logs and documents.
    pub fn name(&self) -> &'static str {
        match self {
            Process::Held { .. } => "held",
            Process::Restored { .. } => "restored",
            Process::Recording => "recording",
            Process::Spawning { .. } => "spawning",
            Process::Retrying { .. } => "retrying",
            Process::Alive(a) if a.ladder.rung() > crate::run::ladder::Rung::None => "stopping",
            Process::Alive(a) if a.liveness.is_ready() => "running",
            Process::Alive(_) => "starting",
            Process::Sweeping(_) => "sweeping",
            Process::Draining { .. } => "draining",
            Process::Reaping => "reaping",
            Process::Gone => "gone",
        }
    }

    /// Whether an exit was observed or no process was ever made.
    pub fn has_ended(&self) -> bool {
        match self {
            Process::Held { .. }
            | Process::Restored { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Retrying { .. }
            | Process::Alive(_) => false,
            Process::Sweeping(_) | Process::Draining { .. } | Process::Reaping | Process::Gone => true,
        }
    }

    /// When it wants a tick.
    pub fn due(&self, keys: &crate::config::Liveness) -> Option<Instant> {
        match self {
            Process::Retrying { at, .. } | Process::Restored { at } => Some(*at),
            Process::Alive(a) => {
                let live = a.liveness.due(keys);
                // Once a signal has been sent nobody is judged any more: the ladder ends it.
                match a.ladder.rung() {
                    crate::run::ladder::Rung::None | crate::run::ladder::Rung::Cancel => {
                        Some(a.ladder.due().map_or(live, |d| d.min(live)))
                    }
                    crate::run::ladder::Rung::Term | crate::run::ladder::Rung::Kill => a.ladder.due(),
                }
            }
            Process::Sweeping(s) => s.next,
            Process::Draining { until, .. } => Some(*until),
            Process::Held { .. }
            | Process::Recording
            | Process::Spawning { .. }
            | Process::Reaping
            | Process::Gone => None,
        }
    }
}

/// The name of a signal, or its number.
pub fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 16] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(n, _)| *n == signal)
        .map_or_else(|| format!("signal {signal}"), |(_, s)| (*s).to_owned())
}

/// How a process ended, in words.
pub fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => signal_name(signal),
        Exit::Unknown => "exit status unknown".to_owned(),
    }
}

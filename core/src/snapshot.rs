//! How things stand, for people: every live run with the one thing it waits on (S17.1c). A copy that nothing
//! points back from; the live tree, the tools and the operator's commands read it.

use crate::id::{Handle, NodeId};
use crate::record::{Status, Tokens};
use crate::time::{Duration, Instant, Now, Wall};
use crate::wire::message::{Mode, Role};
use serde::Serialize;
use std::fmt;

/// All live runs at one moment, in the order they were asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// When it was taken.
    pub now: Now,
    /// Runs whose outcome is open or whose process is not yet gone.
    pub runs: Vec<RunView>,
    /// What the conversation and everything below it used so far.
    pub total: Tokens,
    /// Runs that have ended, and how many of them ended `completed`.
    pub ended: (u32, u32),
    /// No new runs are taken.
    pub draining: bool,
    /// Whether what must be durable can be made so.
    pub store: StoreView,
}

/// Whether the store works (S10.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreView {
    /// The last save was made.
    Works,
    /// The last save was not.
    Down {
        /// Since when, by the daemon's clock.
        since: Instant,
        /// And by the wall clock.
        wall: Wall,
        /// What the store said.
        error: String,
        /// Saves that wait for their next try.
        unsaved: usize,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunView {
    /// Its process.
    pub node: NodeId,
    /// The run that asked.
    pub parent: Option<NodeId>,
    /// Its short name; a conversation's worker has none.
    pub handle: Option<Handle>,
    /// Depth in the run tree.
    pub depth: u32,
    /// Kind of child.
    pub role: Role,
    /// How it was asked for.
    pub mode: Mode,
    /// What it is.
    pub status: Status,
    /// The beginning of its instruction, on one line.
    pub title: String,
    /// What it waits on.
    pub waits: Waits,
    /// Since when.
    pub since: Instant,
    /// Model calls begun.
    pub step: u32,
    /// Its own use.
    pub own: Tokens,
    /// Its own use and everything below.
    pub subtree: Tokens,
}

/// The one thing a run waits on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// A permit: its place in the queue and the queue's length.
    Queued {
        /// From 1.
        place: u32,
        /// How many wait.
        of: u32,
    },
    /// Its process to be made and to say that it is ready.
    Start,
    /// Its servers.
    Servers,
    /// A model call.
    Model,
    /// Tools of its servers.
    Tools(Vec<String>),
    /// Runs it delegated.
    Children(u32),
    /// A provider that asked for patience.
    Throttled {
        /// Until when.
        until: Wall,
    },
    /// The next message.
    Message,
    /// A person's `resume`.
    Paused,
    /// Room in a budget for its next model call.
    Budget,
    /// Nothing that it told; its control thread answers.
    Silent,
    /// Pongs are missing.
    NoPong {
        /// Since the last frame that shows progress.
        silent: Duration,
        /// Since the last pong.
        no_pong: Duration,
        /// When it is judged stuck.
        stuck_at: Duration,
    },
    /// Its end: a stop, its servers, its last processes.
    Ending,
}

impl RunView {
    /// The reason and its age in a few words, as of `now`; `clock` says a wall-clock time.
    pub fn words(&self, now: Instant, clock: impl Fn(Wall) -> String) -> String {
        let age = Age(now.since(self.since));
        match &self.waits {
            Waits::Queued { place, of } => format!("queued {place}/{of}"),
            Waits::Start => format!("starting {age}"),
            Waits::Servers => format!("servers {age}"),
            Waits::Model => format!("model {age}"),
            Waits::Tools(names) => match names.as_slice() {
                [one] => format!("tool {one} {age}"),
                [first, rest @ ..] => format!("tool {first} +{} {age}", rest.len()),
                [] => format!("tools {age}"),
            },
            Waits::Children(count) => format!("children {count}"),
            Waits::Throttled { until } => format!("throttled until {}", clock(*until)),
            Waits::Message => format!("message {age}"),
            Waits::Paused => format!("paused {age}"),
            Waits::Budget => format!("budget {age}"),
            Waits::Silent => format!("silent {age}, answering"),
            Waits::NoPong { silent, no_pong, stuck_at } => {
                format!("silent {}, no pong {} (stuck at {})", Age(*silent), Age(*no_pong), Age(*stuck_at))
            }
            Waits::Ending => format!("ending {age}"),
        }
    }
}

/// A duration in its largest whole unit: `42s`, `3m`, `2h`, `5d`; seconds up to three minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            s @ ..180 => write!(f, "{s}s"),
            s @ ..10_800 => write!(f, "{}m", s / 60),
            s @ ..172_800 => write!(f, "{}h", s / 3_600),
            s => write!(f, "{}d", s / 86_400),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(waits: Waits) -> RunView {
        RunView {
            node: NodeId(1),
            parent: None,
            handle: None,
            depth: 0,
            role: Role::Worker,
            mode: Mode::Sync,
            status: Status::Running,
            title: String::new(),
            waits,
            since: Instant::ZERO,
            step: 0,
            own: Tokens::default(),
            subtree: Tokens::default(),
        }
    }

    #[test]
    fn each_reason_reads_as_the_specification_spells_it() {
        let s = Duration::from_secs;
        let tools = |names: &[&str]| Waits::Tools(names.iter().map(|n| (*n).to_owned()).collect());
        for (waits, seconds, words) in [
            (Waits::Model, 42, "model 42s"),
            (tools(&["files.grep"]), 3, "tool files.grep 3s"),
            (tools(&["a", "b", "c"]), 3, "tool a +2 3s"),
            (Waits::Throttled { until: Wall(7) }, 9, "throttled until 14:05"),
            (Waits::Queued { place: 2, of: 5 }, 9, "queued 2/5"),
            (Waits::Children(2), 190, "children 2"),
            (Waits::Silent, 95, "silent 95s, answering"),
            (
                Waits::NoPong { silent: s(130), no_pong: s(8), stuck_at: s(10) },
                130,
                "silent 130s, no pong 8s (stuck at 10s)",
            ),
            (Waits::Paused, 300, "paused 5m"),
            (Waits::Budget, 300, "budget 5m"),
            (Waits::Message, 7_200, "message 120m"),
            (Waits::Start, 0, "starting 0s"),
        ] {
            assert_eq!(view(waits).words(Instant::from_millis(seconds * 1_000), |_| "14:05".into()), words);
        }
    }
}

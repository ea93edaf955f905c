//! A plan: everything that makes one simulated life of the daemon what it is. Plain data that serialises, so that a plan
//! is a seed's meaning, a failing test's smallest form and a committed trace alike. It decides nothing; `world`
//! performs it and `draw` makes it from a seed.

mod fault;
mod knobs;

pub use fault::{Fault, Interrupt};
pub use knobs::Knobs;

use serde::{Deserialize, Serialize};

/// One simulated life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of every jitter in the world, and of the core's own randomness.
    pub seed: u64,
    /// Limits, durations and the machine's size.
    #[serde(default)]
    pub knobs: Knobs,
    /// What processes do; the first is the conversation's worker, the others are named by [`Step::Run`].
    pub scripts: Vec<Script>,
    /// What goes wrong around them.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// What one kind of process does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// How it begins and how it takes being told to end.
    pub nature: Nature,
    /// Performed in order; one that falls off the end finishes with a text.
    pub steps: Vec<Step>,
}

/// How a process begins and how it takes being told to end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Nature {
    /// When it says `ready`.
    pub ready: Readiness,
    /// What it does on `cancel`.
    pub on_cancel: OnCancel,
    /// What it does on SIGTERM.
    pub on_term: OnTerm,
    /// Reads nothing after its spawn frame.
    pub deaf: bool,
    /// How long SIGKILL needs to end it (a big process, or one in the kernel), in milliseconds.
    pub dying_ms: u64,
}

/// When a process says `ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// This many milliseconds after it read the spawn frame.
    After(u64),
    /// It lives, and never says it.
    Never,
    /// It exits with this code instead.
    Exits(i32),
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness::After(1)
    }
}

/// What a process does on `cancel` or the end of its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// Sends `result: cancelled` this many milliseconds later and exits.
    Obeys(u64),
    /// Exits this many milliseconds later without a word.
    Leaves(u64),
    /// Goes on as if nothing had been said.
    Ignores,
}

impl Default for OnCancel {
    fn default() -> OnCancel {
        OnCancel::Obeys(1)
    }
}

/// What a process does on SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTerm {
    /// Dies of it.
    #[default]
    Dies,
    /// Exits with code 0 this many milliseconds later.
    Exits(u64),
    /// Nothing.
    Ignores,
}

/// One thing a process does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Sends nothing by itself for so many milliseconds, and answers pings.
    Wait(u64),
    /// Sends so many frames of progress: events, states and usage in turn.
    Say(u32),
    /// Calls `subagent.run` and goes on at once.
    Run {
        /// Script of the run; one that does not exist is an empty one.
        script: usize,
        /// `sync`, `async`, `detached`, or anything.
        mode: Mode,
        /// Whether the run may delegate onward.
        #[serde(default)]
        delegate: bool,
        /// Something wrong with the call.
        #[serde(default)]
        flaw: Option<Flaw>,
    },
    /// Calls `subagent.await` and goes on at once.
    Await {
        /// Whom: `sub-<n>`.
        handles: Vec<u64>,
        /// `until: any`.
        #[serde(default)]
        any: bool,
        /// `timeout`.
        #[serde(default)]
        timeout_ms: Option<u64>,
    },
    /// Calls `subagent.status` for `sub-<n>`.
    Status(u64),
    /// Calls `subagent.list`.
    List,
    /// Calls `subagent.kill` for `sub-<n>`.
    Kill {
        /// Whom: `sub-<n>`.
        handle: u64,
        /// `only`.
        #[serde(default)]
        only: bool,
    },
    /// Calls a tool the supervisor does not have.
    Nonsense,
    /// Waits until every call is answered.
    Collect,
    /// Stops answering pings and doing anything, for ever.
    Hang,
    /// Is stopped by a stranger's SIGSTOP.
    Stopped,
    /// Writes bytes that are no frame.
    Rubbish(Rubbish),
    /// Writes so many lines to its stderr, the last without its newline.
    Mutter(u32),
    /// Closes its stdout and lives on.
    CloseStdout,
    /// Starts a process of its own.
    Fork(Offspring),
    /// Ends with a result and exits.
    Finish {
        /// What the result is.
        #[serde(default)]
        answer: Answer,
        /// How long it takes to exit; `None` is never.
        #[serde(default = "at_once")]
        exit_ms: Option<u64>,
    },
    /// Sends `failed` and exits with 1.
    Fail,
    /// Exits with this code and no result.
    Exit(i32),
    /// Dies by this signal.
    Die(i32),
}

fn at_once() -> Option<u64> {
    Some(0)
}

/// The modes a call can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The caller waits.
    Sync,
    /// The caller collects.
    Async,
    /// Nobody waits.
    Detached,
}

impl Mode {
    /// As the call spells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Async => "async",
            Mode::Detached => "detached",
        }
    }
}

/// What can be wrong with a call of `subagent.run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// No instruction.
    Empty,
    /// A mode nobody knows.
    Mode,
    /// A key nobody knows.
    Key,
    /// A budget of zero.
    Zero,
    /// A server nobody knows.
    Server,
    /// Claims a depth.
    Depth,
}

/// Bytes that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rubbish {
    /// Text, as a library that prints would write.
    Text,
    /// A length of zero.
    Zero,
    /// A length of 4 GB.
    Huge,
    /// A frame number that was not next.
    Gap,
    /// A call whose id was used before.
    SameId,
    /// A frame that is cut by the end of the process (exit 0).
    Cut,
}

/// A process of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Offspring {
    /// Leaves the group and the session.
    pub escapes: bool,
    /// Holds its parent's stdout open.
    pub holds: bool,
    /// Ends by itself after so long.
    pub exits_ms: Option<u64>,
    /// Ignores SIGTERM.
    pub ignores_term: bool,
    /// A keeper: ends by itself so many milliseconds after its parent, unless it is killed first.
    pub keeper_ms: Option<u64>,
    /// Each kill finds another one, so many times.
    pub respawns: u32,
    /// How long SIGKILL needs to end it.
    pub dying_ms: u64,
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A line of text.
    #[default]
    Text,
    /// A JSON object, which is the value and is not cut.
    Object,
    /// More text than is kept.
    Long,
    /// A JSON object of 3 MiB, which is kept whole.
    Huge,
    /// Out of steps, with the last text written.
    Exhausted,
    /// The provider refused.
    Refused,
}

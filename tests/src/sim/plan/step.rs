//! What processes do, step by step.

use serde::{Deserialize, Serialize};

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
        /// `priority`.
        #[serde(default)]
        rank: Rank,
        /// `plan_item`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
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
        /// `message_id`, of a single handle.
        #[serde(default)]
        message: Option<u64>,
    },
    /// Calls `subagent.send` for `sub-<n>`, so many times.
    Send {
        /// Whom: `sub-<n>`.
        handle: u64,
        /// How often.
        times: u32,
    },
    /// Calls `subagent.steer` for `sub-<n>`, so many times.
    Steer {
        /// Whom: `sub-<n>`.
        handle: u64,
        /// How often.
        times: u32,
    },
    /// Calls `subagent.finish` for `sub-<n>`.
    Hurry(u64),
    /// Calls `subagent.retire` for `sub-<n>`.
    Retire(u64),
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
    /// Calls `plan.create` with so many items.
    Plan(u32),
    /// Calls `plan.update`.
    Item {
        /// Which.
        item: u32,
        /// `bind`: to `sub-<n>`.
        #[serde(default)]
        bind: Option<u64>,
        /// `status`.
        #[serde(default)]
        status: Option<ItemStatus>,
    },
    /// Calls `plan.get`.
    ShowPlan,
    /// Calls `status`.
    Overview,
    /// Says that a model call is in flight, and what it has sent; the next progress may tell what it used.
    Think,
    /// Asks its model, at an endpoint that may be asked: waits for one, and says what came of it.
    Ask(Provider),
    /// Makes a model call: asks for it where it has to, and ends its turn when it is refused.
    Call {
        /// Most tokens that it may need.
        most: u64,
        /// Tokens that it needs; no more than `most`.
        used: u64,
        /// How long it takes.
        ms: u64,
    },
    /// Calls a tool the supervisor does not have.
    Nonsense,
    /// Waits until every call is answered.
    Collect,
    /// Stops answering pings and doing anything, for ever.
    Hang,
    /// The same, but it goes on to send its last pong again and again, as if that were an answer.
    Parrot,
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
    /// Ends the turn in hand of a warm process, which stays; of any other it is a frame out of place.
    EndTurn(TurnEnd),
    /// Sends `failed` and exits with 1.
    Fail,
    /// Exits with this code and no result.
    Exit(i32),
    /// Dies by this signal.
    Die(i32),
    /// Does nothing until the gate of this name is open, and answers pings meanwhile. Gates are opened by whoever
    /// stages the plan; one that nobody opens is a wait for ever.
    Until(String),
}

impl Step {
    /// What no process does once everything is well.
    pub(crate) fn is_wrong(&self) -> bool {
        match self {
            Step::Hang
            | Step::Parrot
            | Step::Stopped
            | Step::Rubbish(_)
            | Step::CloseStdout
            | Step::Exit(_)
            | Step::Die(_)
            | Step::Finish { exit_ms: None, .. } => true,
            Step::Wait(_)
            | Step::Say(_)
            | Step::Run { .. }
            | Step::Await { .. }
            | Step::Send { .. }
            | Step::Steer { .. }
            | Step::Hurry(_)
            | Step::Retire(_)
            | Step::Status(_)
            | Step::List
            | Step::Kill { .. }
            | Step::Plan(_)
            | Step::Item { .. }
            | Step::ShowPlan
            | Step::Overview
            | Step::Think
            | Step::Ask(_)
            | Step::Call { .. }
            | Step::Nonsense
            | Step::Collect
            | Step::Mutter(_)
            | Step::Fork(_)
            | Step::Finish { .. }
            | Step::EndTurn(_)
            | Step::Fail
            | Step::Until(_) => false,
        }
    }
}

fn at_once() -> Option<u64> {
    Some(0)
}

/// What comes of asking a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// An answer.
    Answers,
    /// No answer.
    Fails,
    /// It asks for less, and does not say for how long.
    Limits,
    /// It asks to be left alone for so many milliseconds.
    LimitsFor(u64),
}

/// How a turn of a warm process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With a result.
    With(Answer),
    /// With a failure that the next turn may not meet again.
    Failed,
    /// It is told twice.
    Twice,
    /// The end of another turn is told.
    Other,
}

/// How far an item of a plan is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Done,
    /// Cannot go on.
    Blocked,
    /// Left out.
    Skipped,
}

impl ItemStatus {
    /// As the call spells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ItemStatus::Pending => "pending",
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Done => "done",
            ItemStatus::Blocked => "blocked",
            ItemStatus::Skipped => "skipped",
        }
    }
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
    /// Stays, for a turn with each message.
    Warm,
}

impl Mode {
    /// As the call spells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Async => "async",
            Mode::Detached => "detached",
            Mode::Warm => "warm",
        }
    }
}

/// The priorities a call can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// Behind the others.
    Low,
    /// What a call that says nothing gets.
    #[default]
    Normal,
    /// Before the others.
    High,
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

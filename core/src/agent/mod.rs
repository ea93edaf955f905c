//! The agent loop as a machine (S7): think, call tools, observe, until a final answer or a limit. A warm child's loop
//! does so once for each message (S6.3), with fresh budgets and the history of all turns, and is idle in between.
//!
//! Owns the history, the budgets, which calls are made and how a run ends. It performs nothing: the child's
//! shell makes the model calls and tool calls it asks for and feeds back what came of them, with the time. It
//! refuses calls of tools that were not granted, and never puts a half-answered call into the history. Called by
//! the child only.

mod answer;
mod bound;
mod budget;
mod catalogue;
mod compact;
mod finish;
mod history;
mod log;
mod machine;
mod prompt;
mod round;

pub use crate::wire::message::FINISH_TOOL;
pub use log::EVENTS;
pub use machine::Loop;

use crate::bytes::Json;
use crate::model::{ModelError, ModelRequest, Partial, Reply};
use crate::transcript::Item;
use crate::wire::Up;
use crate::wire::message::{BudgetVerdict, CallBudget, Failed, Model, RunResult, ToolDecl, Turn};

/// A tool that the shell can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// As the model is told of it, under its registry name.
    pub decl: ToolDecl,
    /// Who answers it.
    pub source: ToolSource,
}

/// Who answers a tool's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSource {
    /// The supervisor, by `tool_request`.
    Supervisor,
    /// A server of the child.
    Server {
        /// Its name.
        server: String,
        /// The server's own name of the tool.
        tool: String,
    },
}

/// What the loop is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Begin. A second one changes nothing.
    Start,
    /// Whether a model call may be made. About one that is no longer asked for it is dropped.
    Granted {
        /// The number of the [`Up::BudgetRequest`].
        call: u64,
        /// With which model, or why not.
        verdict: BudgetVerdict,
    },
    /// What came of a model call. One that is no longer awaited is dropped.
    ModelReply {
        /// The number of [`Output::CallModel`].
        call: u64,
        /// The reply, or why there is none.
        reply: Result<Reply, ModelError>,
    },
    /// What came of a tool call. One that is no longer awaited is dropped.
    ToolDone {
        /// The number of [`Output::CallTool`].
        call: u64,
        /// The result.
        outcome: ToolOutcome,
    },
    /// The model connection waits for its provider, or has waited. About a call that is no longer awaited it is
    /// dropped.
    ModelWaiting {
        /// The number of [`Output::CallModel`].
        call: u64,
        /// Until when, in wall-clock milliseconds since 1970; `None` once the call goes on.
        until_ms: Option<u64>,
    },
    /// How much of the reply has come by now: told before whatever may end the call. About a call that is no longer
    /// awaited it is dropped.
    ModelCame {
        /// The number of [`Output::CallModel`].
        call: u64,
        /// Which attempt at it, rising.
        attempt: u64,
        /// All of it.
        came: Partial,
    },
    /// An attempt at a model call broke off with a part of the reply, and another one is to be made: not before
    /// [`Output::GoOnModel`]. About a call that is no longer awaited it is dropped.
    ModelCut {
        /// The number of [`Output::CallModel`].
        call: u64,
        /// Which attempt at it, rising.
        attempt: u64,
        /// What that attempt had brought.
        came: Partial,
    },
    /// What can be reached has changed: all of it. The model sees it from its next call on, within the same grant; calls
    /// in flight are what they were.
    ToolsChanged {
        /// As [`Loop::new`] takes them.
        tools: Vec<Tool>,
    },
    /// There is another model, which the shell has a connection to. It is taken with the next turn; where it is to
    /// restart the turn in hand, at once. An id as [`Input::Message`]'s.
    ModelChanged {
        /// The supervisor's.
        id: u64,
        /// The connection.
        model: Box<Model>,
        /// Whether model calls are asked for from then on.
        budget: Option<CallBudget>,
        /// The turn in hand does not end on the model it began with.
        restart: bool,
    },
    /// A warm loop's next turn. One that comes while a turn is in hand waits for that turn's end. An id that is not
    /// over all before it has been taken already, and is dropped; so is a message to a loop that is not warm.
    Message {
        /// The supervisor's.
        id: u64,
        /// What is said.
        text: String,
    },
    /// Something the model is told once, before the next model call; its id as [`Input::Message`]'s.
    Steer {
        /// The supervisor's.
        id: u64,
        /// What is said.
        text: String,
    },
    /// From the next boundary on: one last model call without tools, and its text is the result. Dropped while idle.
    Finish {
        /// Why, for the model.
        reason: String,
    },
    /// Make no model call from the next boundary on. The time that is stood still there moves the deadline.
    Pause,
    /// Go on.
    Resume,
    /// End this turn, if it is the one in hand. Turn 1 of a loop that is not warm is the run.
    CancelTurn {
        /// The message that began it.
        turn: u64,
        /// Why, for the record.
        reason: String,
    },
    /// End the run now.
    Cancel {
        /// Why, for the record.
        reason: String,
    },
    /// Time has passed.
    Tick,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// The value is an error for the model to react to.
    pub error: bool,
    /// What the tool said.
    pub value: ToolValue,
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolValue {
    /// Text.
    Text(String),
    /// A JSON value; the model reads its text.
    Json(Json),
}

/// What the loop wants done. Call numbers count up over both kinds and are never used twice.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Make a model call.
    CallModel {
        /// Its number.
        call: u64,
        /// What to ask.
        request: Box<ModelRequest>,
    },
    /// Shut the model call down; nobody waits for it.
    AbandonModel {
        /// Its number.
        call: u64,
    },
    /// Make the next attempt at the model call, as soon as its provider may be asked.
    GoOnModel {
        /// Its number.
        call: u64,
    },
    /// The model of this [`Input::ModelChanged`] is taken: every [`Output::CallModel`] from here on is meant for it.
    UseModel {
        /// Its id.
        swap: u64,
    },
    /// Make a tool call. Several at once run in parallel.
    CallTool {
        /// Its number.
        call: u64,
        /// The model's id of it, unique within the run.
        call_id: String,
        /// Who answers it.
        source: ToolSource,
        /// Registry name.
        name: String,
        /// A JSON object on one line, within S7.3's bounds.
        args: Json,
    },
    /// Tell the tool that its call is off; nobody waits for it.
    AbandonTool {
        /// Its number.
        call: u64,
    },
    /// Write this to the transcript, before anything that comes after it is done.
    Record(Box<Item>),
    /// Send a `state`, `usage`, `event` or `ack` frame.
    Emit(Up),
    /// A warm loop's turn has ended. Once for each message; the loop is idle, or begins the next turn at once.
    Turn(Turn),
    /// The loop has ended with this. Once, and the last output of all.
    Finish(Terminal),
}

/// How the loop ended: the payload of the terminal frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terminal {
    /// By itself, or by a `cancel`.
    Result(RunResult),
    /// By something that gave out.
    Failed(Failed),
}

#[cfg(test)]
mod tests;

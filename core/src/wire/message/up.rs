//! The bodies of the child's messages.

use crate::bytes::Json;
use crate::wire::exact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// See [`Up::Ready`](super::Up::Ready).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// [`VERSION`](super::VERSION) of the child.
    #[serde(deserialize_with = "exact::version")]
    pub v: [u16; 2],
}

/// See [`Up::Pong`](super::Up::Pong).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The ping's number.
    pub seq: u64,
}

/// See [`Up::Event`](super::Up::Event).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// A stable dotted name, `mcp.connect`.
    pub name: String,
    /// Its fields, as text.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// See [`Up::State`](super::Up::State).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What the run waits on.
    #[serde(deserialize_with = "exact::variant")]
    pub waiting_on: WaitingOn,
    /// Model calls begun so far.
    pub step: u32,
    /// What the loop counted so far, for a run that ends without a terminal frame (S8.6).
    #[serde(default)]
    pub evidence: LoopEvidence,
    /// Tokens that the model call in flight is estimated to have sent; absent when none is. A call that a signal
    /// cuts off is charged by it (S8.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
}

impl State {
    /// A state in which no model call is in flight and nothing was counted yet.
    pub fn of(waiting_on: WaitingOn, step: u32) -> State {
        State { waiting_on, step, evidence: LoopEvidence::default(), in_flight: None }
    }
}

/// What a run waits on (S17.1c).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingOn {
    /// Its servers are starting.
    Servers,
    /// A model call.
    Model,
    /// Tool calls of its own servers: their registry names, each once, in the order first called.
    Tools(Vec<String>),
    /// Only answers of the supervisor (a delegated run, an await).
    Supervisor,
    /// A provider that asked for patience, or that is to be tried again: until this wall-clock time, in
    /// milliseconds since 1970 (S15.4, S7.10).
    Throttled(u64),
    /// A warm child's next message.
    Message,
    /// A `resume` (S6.9).
    Paused,
    /// Room in a budget for its next model call (S15.6).
    Budget,
    /// Its servers are being closed; the terminal frame is next or sent.
    Closing,
}

/// See [`Up::Usage`](super::Up::Usage): what one model call used, not a running sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in.
    pub input: u64,
    /// Tokens out.
    pub output: u64,
    /// Of `input`, read from a cache.
    #[serde(default)]
    pub cached: u64,
    /// The numbers are an estimate (S7.5).
    #[serde(default)]
    pub estimated: bool,
    /// Model that was called.
    pub model: String,
}

/// See [`Up::BudgetRequest`](super::Up::BudgetRequest). The worst case in tokens; what that costs is the supervisor's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRequest {
    /// Rising, never used twice by a child.
    pub id: u64,
    /// Most that is read.
    pub input: u64,
    /// Most that is written.
    pub output: u64,
}

/// See [`Up::Tools`](super::Up::Tools).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// The server's name.
    pub server: String,
    /// The server's own names, after its `allow` and `exclude`, in the server's order.
    pub tools: Vec<String>,
}

/// See [`Up::ToolRequest`](super::Up::ToolRequest).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Minted by the child, never used twice.
    pub id: u64,
    /// The model's own id of the call, for the record.
    pub call_id: String,
    /// Registry name.
    pub name: String,
    /// Arguments: a JSON object within S7.3's bounds.
    pub args: Json,
}

/// See [`Up::Ack`](super::Up::Ack).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The message's or steer's.
    pub id: u64,
}

/// See [`Up::ModelHealth`](super::Up::ModelHealth).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHealth {
    /// The endpoint's base address, as the spawn frame has it.
    pub endpoint: String,
    /// How it is.
    pub health: Health,
    /// With [`Health::Limited`]: for how long it wants to be left alone, in milliseconds, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// How an endpoint was when it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It answered a model call.
    Answered,
    /// It could not be reached, or gave no reply.
    Failed,
    /// It asked for less (429, 503, 529).
    Limited,
}

/// See [`Up::Turn`](super::Up::Turn).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The message that began it; 1 is the instruction.
    pub id: u64,
    /// How it ended.
    #[serde(deserialize_with = "exact::variant")]
    pub outcome: TurnOutcome,
}

/// How a warm child's turn ended. What it counted (`evidence`) is the child's sum over all its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// By itself, by a limit or by a `cancel`.
    Result(RunResult),
    /// By something that gave out and that the next turn may not meet again (an empty reply, a schema).
    Failed(Failed),
}

/// See [`Up::Result`](super::Up::Result).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// How the loop ended.
    pub end: LoopEnd,
    /// The last text written; `None` when there was none.
    #[serde(default)]
    pub text: Option<String>,
    /// The text is not a full answer (S7.2, S7.4).
    #[serde(default)]
    pub partial: bool,
    /// One sentence on an ending other than `completed`.
    #[serde(default)]
    pub error: Option<String>,
    /// Counted by the loop.
    pub evidence: LoopEvidence,
}

/// How a loop can end by itself (S7.2, S7.4, S7.6, S7.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// A final answer.
    Completed,
    /// A `cancel` was obeyed.
    Cancelled,
    /// The provider refused.
    Refused,
    /// Out of steps.
    ExhaustedSteps,
    /// Out of tokens.
    ExhaustedTokens,
    /// Out of time.
    Deadline,
    /// The same call gave the same result too often.
    LoopDetected,
}

/// What the loop itself counted (S8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopEvidence {
    /// Model calls begun.
    pub model_calls: u32,
    /// Tool calls asked for by the model, whatever became of them.
    pub tool_calls: u32,
    /// Of these, how many the model was told had failed.
    pub tool_errors: u32,
}

/// See [`Up::Failed`](super::Up::Failed).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// What gave out.
    pub kind: FailKind,
    /// One sentence for the person who must act.
    pub error: String,
    /// The last text written, if any.
    #[serde(default)]
    pub text: Option<String>,
    /// Counted by the loop.
    #[serde(default)]
    pub evidence: LoopEvidence,
}

/// What gave out in a child that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    /// The spawn frame was not usable.
    Spawn,
    /// A required server could not be used (exit code 6 of a one-shot run).
    Server,
    /// The model could not be reached or its credential was rejected (exit code 4).
    Model,
    /// The model was reached and gave no usable reply: its provider does not accept the request, what came is no whole
    /// reply, or the history does not fit its window.
    Reply,
    /// The model gave neither text nor calls, twice.
    EmptyReply,
    /// The answer did not fit `output_schema`, twice (S7.8).
    Schema,
    /// A budget is used up, and that is a failure by `on_exhausted: fail` (S15.6).
    Budget,
    /// Something inside the child; a bug.
    Internal,
}

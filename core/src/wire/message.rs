//! The messages of the control protocol (S2.4), both ways. One struct a type; the frame around them (`t`, `n`)
//! is `wire::codec`'s. Later protocol versions only add types and optional keys.

use super::exact;
use crate::bytes::{Bytes, Json};
use crate::id::{Handle, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The protocol's version, `[major, minor]`, in the first frame each way. A different major ends the child.
pub const VERSION: [u16; 2] = [1, 0];

/// Registry name of the conversation's tool that ends its turn: the loop answers it itself (S6.10).
pub const FINISH_TOOL: &str = "finish";

/// Supervisor to child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Down {
    /// First and once: all that the child is given (S3.1).
    Spawn(Box<Spawn>),
    /// Asks for a `pong` with the same number.
    Ping(Ping),
    /// End now, at the next point that can (S7.9).
    Cancel(Cancel),
    /// The one answer to a `tool_request`.
    ToolResult(ToolResult),
    /// A warm child's next turn.
    Message(Text),
    /// Something to be told at the next step of the turn in hand (S6.9).
    Steer(Text),
    /// One last model call without tools, then the result as it is (S6.9).
    Finish(Finish),
    /// Stand still from the next boundary on; that time counts against no deadline (S6.9).
    Pause(Pause),
    /// Go on.
    Resume(Resume),
    /// An endpoint of the model is to be left alone for a while, or no longer (S15.4).
    Throttle(Throttle),
    /// The one answer to a `budget_request`.
    BudgetGrant(BudgetGrant),
}

/// Child to supervisor.
#[derive(Debug, Clone, PartialEq)]
pub enum Up {
    /// First: the child has read its spawn frame and lives; sent before servers and models are dialled (S9.1).
    Ready(Ready),
    /// Answers a `ping` by number.
    Pong(Pong),
    /// Progress and log, for people.
    Event(Event),
    /// What the run waits on from now on (S17.1c).
    State(State),
    /// What one model call used; sent after every call.
    Usage(Usage),
    /// What one server offers, once connected (S3.6).
    Tools(Tools),
    /// A call of a tool that the supervisor owns.
    ToolRequest(ToolRequest),
    /// A `message` or a `steer` has been taken: it is in the history.
    Ack(Ack),
    /// How an endpoint of the model was when it was last asked, so that other runs know (S15.4).
    ModelHealth(ModelHealth),
    /// A warm child's turn has ended; it waits for the next message.
    Turn(Turn),
    /// Terminal: the loop ended with this.
    Result(RunResult),
    /// Terminal: the child could not end in a result.
    Failed(Failed),
    /// Asks whether a model call may be made (S15.6). Only of a child whose first frame has `budget`.
    BudgetRequest(BudgetRequest),
}

/// What a child is handed: the whole trust boundary (S3.1, S3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawn {
    /// [`VERSION`] of the supervisor.
    #[serde(deserialize_with = "exact::version")]
    pub v: [u16; 2],
    /// The run's name for ever.
    pub run_id: RunId,
    /// The run's short name; a conversation's worker has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// Depth in the run tree; the root is 0 (S4.4).
    pub depth: u32,
    /// Process life of the run, from 1.
    pub attempt: u32,
    /// What kind of child this is.
    pub role: Role,
    /// How it was asked for.
    pub mode: Mode,
    /// W3C trace context (S11.4).
    pub trace: Trace,
    /// The agent's system text; empty for none.
    #[serde(default)]
    pub system: String,
    /// What is to be done.
    pub instruction: String,
    /// Messages the caller chose to pass, in order.
    #[serde(default)]
    pub context: Vec<ContextMessage>,
    /// What the answer should look like, in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<String>,
    /// JSON Schema that the answer must fit (S7.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// The servers it connects to itself.
    #[serde(default)]
    pub servers: Vec<Server>,
    /// Patterns over the registry's tool names; `None` is every tool of the servers, `[]` is none (S3.6).
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Registry names that are known already: server, the server's own name of the tool, the registry's name.
    #[serde(default)]
    pub names: Vec<ToolName>,
    /// Tools that the supervisor answers (`tool_request`).
    #[serde(default)]
    pub own_tools: Vec<ToolDecl>,
    /// The model connection.
    pub model: Model,
    /// The loop's budgets.
    pub limits: RunLimits,
    /// Present: every model call is asked for first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CallBudget>,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
}

/// What kind of child a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs a conversation's turns.
    Worker,
    /// Runs delegated work.
    Subagent,
}

/// How a run was asked for (S6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The caller waits for the result.
    Sync,
    /// The caller has a handle and collects later.
    Async,
    /// Nobody waits.
    Detached,
    /// Stays between turns, one for each message (S6.3).
    Warm,
}

/// W3C trace context: lower-case hex, 32 digits for the trace and 16 for a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// One for a run tree.
    pub trace_id: String,
    /// This run's.
    pub span_id: String,
    /// The delegating tool call's; `None` at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
}

/// One message of the seed transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextMessage {
    /// `user` or `assistant`.
    pub role: ContextRole,
    /// Its text.
    pub content: String,
}

/// Who a seed message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextRole {
    /// The one who asks.
    User,
    /// The one who answers.
    Assistant,
}

/// A server the child connects to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// Prefix of its tools' registry names, when the configuration gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<String>,
    /// How to reach it.
    #[serde(deserialize_with = "exact::variant")]
    pub transport: Transport,
    /// Patterns over the server's own tool names; `None` allows all.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// Patterns over the server's own tool names; wins over `allow`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// A call's time limit in milliseconds.
    pub timeout_ms: u64,
    /// Time limit for start and handshake in milliseconds.
    pub start_timeout_ms: u64,
    /// `true`: the child fails without it. `false`: it goes on and the model is told.
    pub required: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A program that speaks MCP on stdin and stdout, under a keeper.
    Stdio(Stdio),
    /// The built-in file server, also under a keeper.
    Files(Files),
    /// A server at an address, over streamable HTTP.
    Http(HttpServer),
}

/// A stdio server's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stdio {
    /// Program: a path, or a name looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its own variables, on top of the baseline of S3.3. Values travel only in this frame.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its working directory; the child's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// The built-in file server's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Absolute path of the folder it serves.
    pub root: String,
    /// Whether `write` and `edit` are offered.
    pub write: bool,
}

/// Where a server answers over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpServer {
    /// Its address: https, or http on this machine.
    pub url: String,
    /// Headers of each request. Values travel only in this frame.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Absolute path of a file of certificates, in PEM, to trust in place of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// One registry name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolName {
    /// The server's name.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// Its one name everywhere else (S14.4).
    pub name: String,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDecl {
    /// Registry name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Json,
}

/// A model connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The reference the configuration knows it by.
    pub name: String,
    /// How it is spoken to.
    #[serde(deserialize_with = "exact::variant")]
    pub dialect: Dialect,
}

/// Model dialects built so far (S15.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// A scripted playbook: its YAML text, already read.
    Mock(Bytes),
    /// Chat completions.
    Openai(Remote),
    /// Responses.
    OpenaiResponses(Remote),
    /// Messages.
    Anthropic(Remote),
}

impl Dialect {
    /// The endpoints behind it; a playbook has none.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Dialect::Mock(_) => None,
            Dialect::Openai(remote) | Dialect::OpenaiResponses(remote) | Dialect::Anthropic(remote) => {
                Some(remote)
            }
        }
    }

    /// The same, to be changed.
    pub fn remote_mut(&mut self) -> Option<&mut Remote> {
        match self {
            Dialect::Mock(_) => None,
            Dialect::Openai(remote) | Dialect::OpenaiResponses(remote) | Dialect::Anthropic(remote) => {
                Some(remote)
            }
        }
    }
}

/// A provider's endpoints. Values that spell a secret reference are put in by the host when it encodes the frame
/// (S3.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// The provider's own name of the model.
    pub model: String,
    /// In the order they are tried; never empty.
    pub endpoints: Vec<Endpoint>,
    /// Sent with every request, on top of the dialect's own.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Silence on a stream that makes it dead, in milliseconds: since the last event that means something.
    pub timeout_ms: u64,
    /// Most tokens of one reply; `None` is the dialect's own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// One base address of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `https://…`, or `http://` on loopback; the dialect appends its own path (S17.0).
    pub url: String,
    /// The key, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// How model calls are asked for (S15.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The model that a call may be told to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Model>,
}

/// The loop's budgets (S7.1, S7.6, S7.7). All are positive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Model calls.
    pub steps: u32,
    /// Input and output tokens together.
    pub tokens: u64,
    /// From `ready` to the end, in milliseconds.
    pub deadline_ms: u64,
    /// Same call, same arguments, same result this often in a row ends the run; 0 is off.
    pub repeats: u32,
    /// Bytes of one tool result that enter the window.
    pub tool_result_bytes: u64,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        let (deadline_ms, tool_result_bytes) = (3_600_000, 64 * 1024);
        RunLimits { steps: 500, tokens: 2_000_000, deadline_ms, repeats: 5, tool_result_bytes }
    }
}

/// See [`Down::Ping`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Number to echo.
    pub seq: u64,
}

/// See [`Down::Cancel`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Why, for the log.
    pub reason: String,
    /// Only this turn of a warm child ends, if it is the one in hand; the child stays. Absent: the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// See [`Down::Message`] and [`Down::Steer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Minted by the supervisor for one child, rising over both kinds; a warm child's instruction is 1.
    pub id: u64,
    /// What is said.
    pub text: String,
}

/// See [`Down::Finish`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// Why, for the model and the log.
    pub reason: String,
}

/// See [`Down::Pause`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pause {}

/// See [`Down::Resume`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resume {}

/// See [`Down::Throttle`]. The last one about an endpoint stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// The endpoint's base address, as the spawn frame has it.
    pub endpoint: String,
    /// No attempt at it begins for so long, in milliseconds; 0 when it may be asked again.
    pub for_ms: u64,
}

/// See [`Down::ToolResult`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The request's id.
    pub id: u64,
    /// Whether `value` is an error for the model to read.
    pub error: bool,
    /// The answer.
    pub value: Json,
}

/// See [`Up::Ready`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// [`VERSION`] of the child.
    #[serde(deserialize_with = "exact::version")]
    pub v: [u16; 2],
}

/// See [`Up::Pong`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The ping's number.
    pub seq: u64,
}

/// See [`Up::Event`].
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

/// See [`Up::State`].
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

/// See [`Up::Usage`]: what one model call used, not a running sum.
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
    /// The call was cut off: what it truly cost nobody may ever say.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// See [`Up::BudgetRequest`]. The worst case in tokens; what that costs is the supervisor's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRequest {
    /// Rising, never used twice by a child.
    pub id: u64,
    /// Most that is read.
    pub input: u64,
    /// Most that is written.
    pub output: u64,
}

/// See [`Down::BudgetGrant`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetGrant {
    /// Of the request.
    pub id: u64,
    /// Whether it may be made.
    #[serde(deserialize_with = "exact::variant")]
    pub verdict: BudgetVerdict,
}

/// What becomes of a model call that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetVerdict {
    /// It is made with the run's model.
    Own,
    /// It is made with the cheaper one.
    Degraded,
    /// It is not made, and the run ends `exhausted_tokens` for this reason.
    Refused(String),
    /// It is not made, and the run ends `failed` for this reason.
    Failed(String),
}

/// See [`Up::Tools`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// The server's name.
    pub server: String,
    /// The server's own names, after its `allow` and `exclude`, in the server's order.
    pub tools: Vec<String>,
}

/// See [`Up::ToolRequest`].
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

/// See [`Up::Ack`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The message's or steer's.
    pub id: u64,
}

/// See [`Up::ModelHealth`].
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

/// See [`Up::Turn`].
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

/// See [`Up::Result`].
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

/// See [`Up::Failed`].
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
    /// The model gave neither text nor calls, twice.
    EmptyReply,
    /// The answer did not fit `output_schema`, twice (S7.8).
    Schema,
    /// A budget is used up, and that is a failure by `on_exhausted: fail` (S15.6).
    Budget,
    /// Something inside the child; a bug.
    Internal,
}

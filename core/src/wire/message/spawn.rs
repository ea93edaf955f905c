//! What a child is handed in its first frame (S3): task, context, servers, model, limits.

use crate::bytes::{Bytes, Json};
use crate::id::{Handle, RunId};
use crate::wire::exact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a child is handed: the whole trust boundary (S3.1, S3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawn {
    /// [`VERSION`](super::VERSION) of the supervisor.
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
    /// Where it writes what it says and does; absent where nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Transcript>,
}

/// A run's transcript (S11), and what the runtime knows of the run that the child does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// Absolute path of the file.
    pub path: String,
    /// Name of the template or surface; else `general-purpose`.
    pub agent_type: String,
    /// The model's id of the delegating call, if one asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The run that asked, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The conversation it belongs to.
    pub session: RunId,
    /// The number under which the file has the turn of the instruction, or will have it.
    pub turn: u64,
    /// What to make of what the file holds already.
    #[serde(deserialize_with = "exact::variant")]
    pub begins: Begins,
}

/// How a run stands to what its transcript holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begins {
    /// It begins with its instruction, whatever was before.
    Anew,
    /// It goes on where it was; with its instruction where the file holds nothing of use.
    Again,
    /// It knows what was said, and its instruction is what is asked next.
    After,
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

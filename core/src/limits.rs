//! Every bound that is not a configuration key, with what happens at it.

use std::time::Duration;

/// Bytes in one frame's body. A longer length prefix is a protocol error before anything is allocated (S2.1).
pub const FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Nesting of one frame's CBOR (the top map is 1). Deeper is a protocol error (S2.1).
pub const FRAME_DEPTH: usize = 64;

/// Data items of one frame, keys and values each counted. More is a protocol error: an item of one byte can stand
/// for a string or an element of two dozen bytes in memory, so bytes alone would not bound what a frame costs.
pub const FRAME_ITEMS: usize = 256 * 1024;

/// Bytes of one protocol error; the rest is cut and marked, for it may quote the peer.
pub const PROTOCOL_ERROR_BYTES: usize = 600;

/// Least `limits.memory` of a run: a child needs about 8 MiB to begin, and room for what it reads.
pub const MEMORY_FLOOR: u64 = 32 * 1024 * 1024;

/// Bytes queued towards one child. What would not fit is refused; a tool result that does not fit ends the
/// child `failed: does not read` (S2.7).
pub const CHILD_QUEUE_BYTES: u64 = 16 * 1024 * 1024;

/// Tool requests of one child that may be open at once. One more is a protocol error: a loop never has more
/// than one message's calls open.
pub const OPEN_REQUESTS: usize = 256;

/// Calls of operators that may be open at once. One more is refused.
pub const OPERATOR_CALLS: usize = 4_096;

/// Tool calls of one model message that are run; the rest are answered with an error that says so.
pub const CALLS_PER_MESSAGE: usize = 128;

/// Bytes of a string result that are kept; longer text is cut at a character boundary and marked (S8.1).
pub const RESULT_TEXT_BYTES: usize = 8_000;

/// Nesting of a result that is kept as a JSON value; deeper ones stay text. A result is carried inside other
/// JSON (result objects, lists of them), and a reader that stops at 128 levels must still take the whole.
pub const RESULT_DEPTH: usize = 96;

/// Bytes of one tool call's arguments; longer ones are an observation, not a call (S7.3).
pub const ARGUMENT_BYTES: usize = 1024 * 1024;

/// Nesting of one tool call's arguments; deeper ones are an observation, not a call (S7.3).
pub const ARGUMENT_DEPTH: usize = 64;

/// Bytes of one line of a provider's event stream; a longer one fails the model call.
pub const SSE_LINE_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of one event of a provider's stream, over all its lines; a longer one fails the model call.
pub const SSE_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of an event's `id` that are kept to take a stream up again; a longer one counts as none.
pub const SSE_ID_BYTES: usize = 1024;

/// Bytes that one reply of a model may hold in text and calls, and that a reply in one piece may have; a longer one
/// fails the model call.
pub const REPLY_BYTES: usize = 6 * 1024 * 1024;

/// Tool calls of one reply that are read; one with more fails the model call.
pub const REPLY_CALLS: usize = 1_024;

/// Bytes of a provider's error that are read; the rest is left.
pub const REFUSAL_BYTES: usize = 64 * 1024;

/// Bytes of a provider's own message in an error; the rest is cut and marked.
pub const REFUSAL_QUOTE_BYTES: usize = 400;

/// How long a provider's host name may take to resolve; then the attempt has failed.
pub const MODEL_RESOLVE: Duration = Duration::from_secs(10);

/// How long a connection to a provider may take, TLS included; then the attempt has failed.
pub const MODEL_CONNECT: Duration = Duration::from_secs(15);

/// Attempts at one endpoint in a row before the next endpoint's turn (S15.4).
pub const ENDPOINT_ATTEMPTS: u32 = 3;

/// First wait between attempts at one endpoint; it doubles.
pub const ENDPOINT_BACKOFF: Duration = Duration::from_millis(250);

/// A provider's `Retry-After` is obeyed up to this; a longer one counts as this, or gives the next endpoint its turn.
pub const RETRY_AFTER: Duration = Duration::from_secs(30);

/// How often a run that rides it out tries all endpoints again after each of them gave out (S7.10).
pub const PATIENT_ROUNDS: u32 = 8;

/// First and longest wait before such a round; it doubles.
pub const PATIENT_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long an endpoint that gave out is left alone, by the run itself while another one serves, and by all runs while
/// its breaker is open: at first, and at most.
pub const ENDPOINT_REST: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Failures of one endpoint in a row, over all runs, that open its breaker: then nobody asks it for
/// [`ENDPOINT_REST`].
pub const ENDPOINT_FAILURES: u32 = 3;

/// Endpoints of which it is kept that they are to be left alone; beyond, runs have their own patience only.
pub const ENDPOINTS: usize = 256;

/// Bytes of the record that a model is asked to condense when a history no longer fits; a longer one keeps its head and
/// tail. It must fit a small window itself.
pub const SUMMARY_INPUT_BYTES: usize = 64 * 1024;

/// Bytes of a summary that stand for what was condensed; a longer one keeps its head and tail.
pub const SUMMARY_BYTES: usize = 16 * 1024;

/// Bytes of one run's `output_schema`; a longer one is refused at the gate. It is part of every request of the run.
pub const OUTPUT_SCHEMA_BYTES: usize = 64 * 1024;

/// Schemas inside one `output_schema`, itself included; one with more is refused.
pub const OUTPUT_SCHEMA_PLACES: usize = 4_096;

/// Regular expressions in one `output_schema`; one with more is refused.
pub const OUTPUT_SCHEMA_PATTERNS: usize = 64;

/// Steps that holding one answer against its schema may take, a step being one rule or one byte that is looked at;
/// an answer that takes more does not fit.
pub const OUTPUT_SCHEMA_STEPS: u64 = 2_000_000;

/// Schemas inside one another that one value is held against, over all levels of the value; an answer that takes
/// more does not fit. Each takes some stack.
pub const OUTPUT_SCHEMA_NESTING: usize = 512;

/// Misfits of one answer that the model is told; the rest shows once these are mended.
pub const OUTPUT_SCHEMA_ERRORS: usize = 5;

/// Messages and steers that may wait in a child; a supervisor that sends more ahead ends the run.
pub const MESSAGES_WAITING: usize = 1_024;

/// Models that a run was sent by reloads and has not taken yet, of which it takes the last it has read; the oldest is
/// forgotten first.
pub const SWAPS_WAITING: usize = 64;

/// Messages that wait for a warm run's turns; one more is refused (S6.3).
pub const WARM_QUEUE: usize = 64;

/// Bytes of one message or steer; longer ones are refused (S6.3).
pub const MESSAGE_BYTES: usize = 1024 * 1024;

/// Results of a warm run's turns that are kept for await; the oldest are forgotten first.
pub const TURN_RESULTS: usize = 64;

/// Steers of one run that it has not taken yet; one more is refused.
pub const STEERS: usize = 16;

/// Prompts that wait for their turn; one more is answered `refused` at once.
pub const WAITING_PROMPTS: usize = 64;

/// Bytes of past turns that a new worker of a conversation is told; the oldest turns are left out first.
pub const PAST_BYTES: usize = 256 * 1024;

/// Characters of a note to the conversation, all in all (S8.4).
pub const NOTE_CHARS: usize = 400;

/// Items of a plan; more are refused (S6.10).
pub const PLAN_ITEMS: usize = 32;

/// Characters of a plan's goal, a title, a detail or a note; longer ones are refused.
pub const PLAN_TEXT_CHARS: usize = 2_000;

/// Characters of a run's title, which is the beginning of its instruction.
pub const TITLE_CHARS: usize = 120;

/// Bytes of a preview inside an error; the rest is cut and marked.
pub const PREVIEW_BYTES: usize = 200;

/// Bytes of one message from a server. A longer line closes a stdio server, for what follows cannot be told apart; a
/// longer answer over HTTP fails that exchange alone (S14.5).
pub const MCP_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Tool calls open at one server; one more is answered with an error at once.
pub const MCP_OPEN_CALLS: usize = 256;

/// Tools of one server that are offered; the rest is left out with a warning.
pub const MCP_TOOLS: usize = 2_048;

/// Pages of one server's tool list that are read; the list is cut there with a warning.
pub const MCP_TOOL_PAGES: usize = 256;

/// Bytes of names, descriptions and schemas kept of one server; the tools after that are left out with a warning.
pub const MCP_TOOL_BYTES: usize = 8 * 1024 * 1024;

/// Characters of a tool's name, as many as a grant can spell; a tool with a longer one is left out.
pub const MCP_TOOL_NAME_CHARS: usize = 256;

/// Bytes of a tool's description that are kept; the rest is cut and marked.
pub const MCP_DESCRIPTION_BYTES: usize = 16 * 1024;

/// Bytes of one tool's schema; a tool with a longer one is left out.
pub const MCP_SCHEMA_BYTES: usize = 256 * 1024;

/// Bytes of a page cursor; a longer one ends the list with a warning.
pub const MCP_CURSOR_BYTES: usize = 4 * 1024;

/// Content parts of one tool result that are read; the rest is named by count.
pub const MCP_PARTS: usize = 4_096;

/// Messages of one batch (only protocol 2025-03-26 has them) that are read; the rest is counted as junk.
pub const MCP_BATCH: usize = 1_024;

/// Bytes of a server's own error message that reach the model; the rest is cut and marked.
pub const MCP_ERROR_BYTES: usize = 4 * 1024;

/// Bytes of the id of a server's request; a request with a longer one is not answered.
pub const MCP_REQUEST_ID_BYTES: usize = 256;

/// Answers to a server's own requests in one second; further requests are dropped and counted, so a server that
/// asks without reading cannot grow the queue towards it.
pub const MCP_REPLIES_PER_SECOND: u32 = 256;

/// Log messages of one server passed on in one second; further ones are dropped and counted.
pub const MCP_MESSAGES_PER_SECOND: u32 = 16;

/// Progress of one call is reported at most this often.
pub const MCP_PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How long a server may be silent on `server/discover`, over pipes and over HTTP, before it is taken for one that wants
/// `initialize`.
pub const MCP_DISCOVER_WAIT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// How often progress may put off one call's time limit: to this many times the limit since it began, and no further.
pub const MCP_PROGRESS_STRETCH: u32 = 10;

/// Times that a server may ask for input before it answers one call; a call that takes more fails.
pub const MCP_INPUT_ROUNDS: u32 = 8;

/// Questions of one server to a person that may be open at once; a further one is answered `cancel` at once.
pub const MCP_ELICITATIONS: usize = 16;

/// Bytes of one question to a person, its schema included; a longer one is answered `cancel`.
pub const MCP_ELICITATION_BYTES: usize = 64 * 1024;

/// Resources and templates of one server that are kept, each; the rest is left out with a warning.
pub const MCP_RESOURCES: usize = 1_024;

/// Bytes of a resource's address, the longest that is read or offered.
pub const MCP_URI_BYTES: usize = 4 * 1024;

/// Bytes of resources named in the description of `resource.read`; the rest is counted there.
pub const MCP_RESOURCES_SHOWN_BYTES: usize = 8 * 1024;

/// Between two readings of a server's lists that it says have changed; changes in between share the next one.
pub const MCP_RELIST_EVERY: Duration = Duration::from_secs(1);

/// How long a server over HTTP is not yet ready because it does not answer whether it has a stream for what it says unasked;
/// then it is ready without.
pub const MCP_LISTEN_WAIT: Duration = Duration::from_secs(1);

/// HTTP exchanges with one server that are open at once; further ones wait for one to end.
pub const MCP_EXCHANGES: usize = 32;

/// Wait before an HTTP stream is taken up again when the server names none, and the longest it may name.
pub const MCP_RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Times in a row that an HTTP stream is taken up again without an event on it; then it is given up.
pub const MCP_RESUMES: u32 = 5;

/// How long the end of a session may take to be told to an HTTP server; then the child ends without it.
pub const MCP_FAREWELL: Duration = Duration::from_secs(2);

/// Bytes of a session's id, and of a mirrored header's value; a longer session id is none, a longer value fails the
/// call.
pub const MCP_HEADER_BYTES: usize = 8 * 1024;

/// Bytes of the head of a client's request, and of the trailers of its chunks; a longer one is answered 431.
pub const HTTP_HEAD_BYTES: usize = 16 * 1024;

/// Bytes of a request's first line; a longer one is answered 414.
pub const HTTP_LINE_BYTES: usize = 8 * 1024;

/// Headers of one request; one with more is answered 431.
pub const HTTP_HEADERS: usize = 64;

/// Empty lines before a request; more are answered 400.
pub const HTTP_BLANK_LINES: u8 = 2;

/// Bytes of a request's content, which has room for a message of `MESSAGE_BYTES` as it is usually escaped; a longer one is
/// answered 413.
pub const HTTP_BODY_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of the line that begins a chunk, extensions included; a longer one is answered 400.
pub const HTTP_CHUNK_LINE_BYTES: usize = 256;

/// Bytes of the names that a client gives: of a call, a message, a task; longer ones are refused.
pub const RPC_ID_BYTES: usize = 256;

/// Parts of one message of a client; one with more is refused.
pub const MESSAGE_PARTS: usize = 64;

/// Connections open at each door: the control socket, TCP, metrics. One more is answered 503 and closed.
pub const CONNECTIONS: usize = 64;

/// Requests that one connection may send ahead of their answers; one more, or more than `HTTP_BODY_BYTES` of content ahead,
/// is answered 429 after them and closes it.
pub const REQUESTS_AHEAD: usize = 8;

/// Bytes queued towards one client, and towards all. An answer that would not fit closes its connection; a client that
/// reads a stream too slowly loses the stream and can subscribe anew.
pub const CONN_QUEUE_BYTES: (u64, u64) = (16 * 1024 * 1024, 64 * 1024 * 1024);

/// Bytes that a stream may be behind; then it is cut.
pub const STREAM_BEHIND_BYTES: u64 = 1024 * 1024;

/// How long a connection may be without a request; then it is closed.
pub const CONN_IDLE: Duration = Duration::from_secs(60);

/// How long a request may take to come, from its first byte; then it is answered 408.
pub const REQUEST_WAIT: Duration = Duration::from_secs(30);

/// How long a client may take nothing of what is queued for it; then the connection is closed.
pub const CONN_STALL: Duration = Duration::from_secs(30);

/// How long a connection that is being shut may take to be read to its end; then it is closed.
pub const CONN_LINGER: Duration = Duration::from_secs(2);

/// How often a stream that has nothing to tell says so, and notices that nobody reads it.
pub const STREAM_COMMENT: Duration = Duration::from_secs(15);

/// Series of one family of metrics; what would be one more is counted under `other`.
pub const METRIC_SERIES: usize = 128;

/// Tasks that are kept once they have ended, and bytes of what all of them asked and gave; the oldest are forgotten first
/// and read as unknown.
pub const TASKS: (usize, usize) = (1_024, 32 * 1024 * 1024);

/// Log events that are kept for `logs`; the oldest are forgotten first.
pub const KEPT_NOTES: usize = 4_096;

/// Log events that one `logs` answers.
pub const SHOWN_NOTES: usize = 1_000;

/// Requests that wait for what is logged next, at all doors; one more is refused and can ask again without waiting. Half of
/// the connections of one door, so that followers leave room for commands.
pub const LOG_FOLLOWERS: usize = 32;

/// How long such a request may ask to wait; longer is refused.
pub const LOG_WAIT: Duration = Duration::from_secs(60);

/// How long what is logged may be gathered before those who follow it are told, so that a burst goes in one answer.
pub const LOG_GATHER: Duration = Duration::from_millis(20);

/// Bytes of the end of a server's stderr that are kept for its error message.
pub const STDERR_TAIL_BYTES: usize = 4 * 1024;

/// Bytes of one child's stderr that reach the log in one second; the rest is dropped and counted.
pub const CHILD_STDERR_BYTES_PER_SECOND: usize = 64 * 1024;

/// Bytes of one stderr line; a longer line is logged in pieces of this size.
pub const STDERR_LINE_BYTES: usize = 4 * 1024;

/// Ended runs kept in memory for await and status; the oldest are forgotten first and read as unknown.
pub const ENDED_RUNS: usize = 4_096;

/// Handles in one await call; more are refused.
pub const AWAIT_HANDLES: usize = 256;

/// How long a dead child's output may stay open before nobody waits for its end of file any longer (S2.6).
pub const END_OF_FILE_WAIT: Duration = Duration::from_secs(1);

/// How long the sweep of a dead run's processes goes on before what is left is reported and given up (S5.5).
pub const SWEEP_WAIT: Duration = Duration::from_secs(3);

/// When keepers that still clean up after a dead child are killed with everything below them.
pub const SWEEP_KEEPER_GRACE: Duration = Duration::from_millis(500);

/// Pauses between sweep passes, the last repeating.
pub const SWEEP_PAUSES: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
];

/// Waits before a fork that failed with EAGAIN is tried again; then the spawn fails (S5.10).
pub const FORK_RETRIES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// A timer that is overdue by more than this is a stop of the daemon or of the machine, and is told. Nobody is
/// judged by it, nor by shorter ones that could spoil a wait (S9.3).
pub const STALL_GAP: Duration = Duration::from_secs(1);

/// Who waits for a window of a budget looks at the wall clock this often at least, for it may be set.
pub const BUDGET_LOOK: Duration = Duration::from_secs(60);

/// Most tokens of one reply where the configuration does not say; with a budget the provider is told so.
pub const MODEL_OUTPUT: u64 = 16_384;

/// How long a spawn counts towards a daemon's `limits.subagents.total` (S4.3).
pub const TOTAL_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// Values that are to be taken out of the store and could not be yet; the oldest are forgotten first, and a later start
/// finds and takes them out.
pub const STORE_LITTER: usize = 1_024;

/// How long the end of a drain waits for what could not be saved; then the daemon ends without it.
pub const LAST_SAVES: Duration = Duration::from_secs(2);

/// Between the beginnings of two runs that a start takes up, so that they do not all begin at once.
pub const RESTORE_STAGGER: Duration = Duration::from_millis(100);

/// First wait before a run that did not get anywhere after a restart is taken up once more; it doubles with each restart,
/// up to the last.
pub const RESTORE_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// First wait before a save that failed is tried again; it doubles up to the last.
pub const STORE_RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// How often orphans that ended on the supervisor are reaped while it has children or is PID 1.
pub const ORPHAN_SWEEP: Duration = Duration::from_secs(3);

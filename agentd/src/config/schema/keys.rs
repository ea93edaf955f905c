//! The tables: every key of every section. Whoever adds a key writes it here and nowhere else; `schema` says what
//! its shape means.

use super::Shape::{
    Duration, EnvNames, Headers, Items, Later, Maps, Name, Number, OffOrPath, OneOf, Path, Patterns, Rate,
    Secret, Section, Size, Switch, Tags, Text, Texts, Variables, Whole, Words,
};
use super::{I64, Key, Keys, Shape, U32};

/// The keys of the whole configuration.
pub(crate) const ROOT: &[Key] = &[
    key("agent", Section(AGENT), "", ""),
    key("intelligence", Section(INTELLIGENCE), "", ""),
    key(
        "mcp",
        Section(&[key("servers", Items(SERVER), "[]", "The servers whose tools the agent has.")]),
        "",
        "",
    ),
    key("limits", Section(LIMITS), "", ""),
    key("subagents", Section(SUBAGENTS), "", ""),
    key("spawn", Section(SPAWN), "", ""),
    later("security"),
    key("store", Section(STORE), "", ""),
    key("lifecycle", Section(LIFECYCLE), "", ""),
    key("a2a", Section(A2A), "", ""),
    key("observability", Section(OBSERVABILITY), "", ""),
    later("streams"),
    later("workflows"),
];

const AGENT: &[Key] = &[
    key("name", Name { dots: true }, "", "The agent's name; by default the stem of the first file."),
    key("instruction", Text, "", "System text of the root conversation."),
    key(
        "workspace",
        Path,
        "",
        "Working folder of the agent's servers: `root` of `builtin: files` and `cwd` of a `command` start here.",
    ),
    key(
        "wake_on",
        Words(&WAKES),
        "[a2a_message, human_reply, workflow_failed]",
        "What begins a turn or is told in one without being asked for: `subagent_result` tells the conversation of \
         ended runs.",
    ),
    key("worker_idle", Duration, "60s", "How long a conversation's worker stays warm between turns."),
    later("max_parallel_turns"),
];

const INTELLIGENCE: &[Key] = &[
    key("dialect", DIALECTS, "", "How the model is spoken to. Required. `mock` follows a scripted playbook."),
    key(
        "endpoints",
        Texts,
        "",
        "Base addresses in failover order: `https`, or `http` on loopback; by default the provider's own. Of `mock`, and \
         required there: one playbook, a path or `mock:builtin` for that of `demo`.",
    ),
    key(
        "model",
        Text,
        "",
        "The model, as its provider names it. Required, but with `mock`, where it is `mock`.",
    ),
    key(
        "token",
        Secret,
        "",
        "The provider's key, by reference: `{{secret:NAME}}`. By default from the environment (see Secrets).",
    ),
    key("token_file", Path, "", "A file with the key, instead of `token`."),
    key(
        "headers",
        Headers,
        "{}",
        "Sent with every request, on top of the dialect's own; values may refer to secrets.",
    ),
    key("timeout", Duration, "2m", "Silence on a reply that makes its connection count as dead."),
    key(
        "max_output",
        Whole { min: 1, max: U32 },
        "",
        "Most tokens of one reply. By default the dialect decides (`anthropic` always has to name a number).",
    ),
    key(
        "models",
        Maps { names: Keys::Names, each: MODEL },
        "{}",
        "Other models that a run can be given, by the name it asks for.",
    ),
    key(
        "prices",
        Maps { names: Keys::Any, each: PRICE },
        "{}",
        "What a million tokens cost in dollars, by the model as its provider names it.",
    ),
    key(
        "swap_policy",
        OneOf(&["finish-on-old", "restart-turn"]),
        "finish-on-old",
        "When a run that works takes the model that a reload gives it: with its next turn, or at once.",
    ),
    key("budget", Section(BUDGET), "", ""),
];

const BUDGET: &[Key] = &[
    key("lifetime", Section(CAPS), "", ""),
    key("windows", Items(WINDOW), "[]", "Caps for each minute, hour or day of UTC."),
    key(
        "on_exhausted",
        OneOf(&["wait", "slow", "degrade", "refuse", "fail"]),
        "wait",
        "What happens to a call that does not fit.",
    ),
    key(
        "degrade",
        Section(&[key("model", Text, "", "One of `intelligence.models`, a cheaper one.")]),
        "",
        "",
    ),
];

const CAPS: &[Key] = &[
    key("tokens", Whole { min: 1, max: I64 }, "", "Tokens in and out, of all calls together."),
    key("usd", Number, "", "Dollars, at `intelligence.prices`."),
];

const WINDOW: &[Key] = &[
    key("per", OneOf(&["minute", "hour", "day"]), "", "Required."),
    key("tokens", Whole { min: 1, max: I64 }, "", "Tokens in and out, of all calls in it together."),
    key("usd", Number, "", "Dollars, at `intelligence.prices`."),
];

/// One of `intelligence.models`: what is missing comes from `intelligence` as far as it is the same connection.
const MODEL: &[Key] = &[
    key("dialect", DIALECTS, "", "By default that of `intelligence`."),
    key(
        "endpoints",
        Texts,
        "",
        "By default those of `intelligence`; with another dialect its provider's own.",
    ),
    key("model", Text, "", "The model, as its provider names it. Required, but with `mock`."),
    key("token", Secret, "", "By default that of `intelligence`, only if the endpoints are the same too."),
    key("token_file", Path, "", "A file with the key, instead of `token`."),
    key(
        "headers",
        Headers,
        "",
        "By default those of `intelligence`, only if the endpoints are the same too.",
    ),
    key("timeout", Duration, "", "By default that of `intelligence`."),
    key("max_output", Whole { min: 1, max: U32 }, "", "Most tokens of one reply."),
];

const PRICE: &[Key] = &[
    key("input", Number, "", "Tokens that the model reads. Required."),
    key("output", Number, "", "Tokens that it writes. Required."),
    key("cached", Number, "", "Tokens that it reads from its cache; by default as `input`."),
];

const DIALECTS: Shape = OneOf(&["anthropic", "openai", "openai-responses", "mock"]);

/// What can begin a turn or be told in one (S8.4).
const WAKES: [&str; 4] = ["a2a_message", "human_reply", "workflow_failed", "subagent_result"];

const SERVER: &[Key] = &[
    key("name", Name { dots: false }, "", "Required, and unique."),
    key(
        "builtin",
        OneOf(&["files"]),
        "",
        "The file server inside agentd. One of `builtin`, `command` and `url` is required.",
    ),
    key("root", Path, "", "Of `builtin: files`: the folder it serves; by default the workspace."),
    key("write", Switch, "false", "Of `builtin: files`: whether `write` and `edit` are offered."),
    key(
        "command",
        Text,
        "",
        "A program that speaks MCP on stdin and stdout: a name looked up in `PATH`, or a path.",
    ),
    key("args", Texts, "[]", "Of `command`: its arguments."),
    key(
        "env",
        Variables,
        "{}",
        "Of `command`: its variables, on top of the baseline every child has; values may refer to secrets.",
    ),
    key(
        "cwd",
        Path,
        "",
        "Of `command`: its working folder; by default the workspace, else where agentd was started.",
    ),
    key(
        "url",
        Text,
        "",
        "A server that speaks MCP over streamable HTTP: the address of its endpoint, `https`, or `http` on loopback.",
    ),
    key("headers", Headers, "{}", "Of `url`: sent with every request; values may refer to secrets."),
    key("ca", Path, "", "Of `url`: a file of certificates, in PEM, to trust in place of the system's."),
    key("ns", Name { dots: false }, "", "Prefix of its tools' names: `ns.tool`."),
    key(
        "allow",
        Patterns,
        "",
        "Its tools that exist for the agent: `name`, `prefix*` or `*`; by default all.",
    ),
    key("exclude", Patterns, "[]", "Its tools that do not exist for the agent; wins over `allow`."),
    key("tags", Tags, "{}", "What its tools are, by pattern. Checked and kept; nothing acts on it yet."),
    key("timeout", Duration, "60s", "Time limit of one call."),
    key("required", Switch, "true", "`false`: a run goes on without it, and the model is told."),
    later("sandbox"),
];

const LIMITS: &[Key] =
    &[key("run", Section(RUN), "", ""), key("subagents", Section(SUBAGENT_LIMITS), "", "")];

const RUN: &[Key] = &[
    key("steps", Whole { min: 1, max: U32 }, "500", "Model calls of one run."),
    key("tokens", Whole { min: 1, max: I64 }, "2000000", "Input and output tokens of one run together."),
    key("deadline", Duration, "1h", "Time from a run's start to its end."),
    key(
        "repeats",
        Whole { min: 0, max: U32 },
        "5",
        "The same call with the same result this often in a row ends a run; 0 is off.",
    ),
    key(
        "tool_result_bytes",
        Size,
        "64KiB",
        "What of one tool result the model reads; head and tail are kept.",
    ),
    key("usd", Number, "", "Dollars of one run and all that it delegates; of a warm one in each turn."),
];

const SUBAGENT_LIMITS: &[Key] = &[
    key("breadth", Whole { min: 1, max: U32 }, "8", "Subagents that live at the same time."),
    key(
        "total",
        Whole { min: 1, max: U32 },
        "64",
        "Subagents of one `agentd run`, or of the last 24 hours of a supervisor that goes on.",
    ),
    key("depth", Whole { min: 0, max: U32 }, "1", "Levels of delegation; 0 forbids it."),
    key("rate", Rate, "8/2s", "Spawns: so many at once, refilled in this time."),
    key(
        "queue",
        Whole { min: 0, max: U32 },
        "0",
        "Spawns of a conversation that wait when `breadth` or `rate` is reached; 0 refuses them at once.",
    ),
    later("instances"),
];

const SUBAGENTS: &[Key] = &[
    key("defaults", Section(DEFAULTS), "", ""),
    later("allow_freeform"),
    key(
        "max_attempts",
        Whole { min: 1, max: U32 },
        "5",
        "Attempts of a run that restarts of the daemon cut off before it got anywhere; then it has failed.",
    ),
    later("pool"),
    later("agents_dirs"),
    later("surfaces"),
    later("templates"),
];

const DEFAULTS: &[Key] = &[
    key("mode", OneOf(&["sync", "async", "detached", "warm"]), "sync", "Mode of a spawn that names none."),
    key("priority", OneOf(&["low", "normal", "high"]), "normal", "Priority of a spawn that names none."),
    key("limits", Section(DEFAULT_LIMITS), "", ""),
    key(
        "model",
        Text,
        "",
        "One of `intelligence.models` for a spawn that names none, or `inherit`; by default the agent's own model.",
    ),
    key(
        "durable",
        Switch,
        "",
        "Whether a restart of the daemon takes up a run whose spawn does not say; by default as \
         `store.durability.work`.",
    ),
];

const DEFAULT_LIMITS: &[Key] = &[
    key("steps", Whole { min: 1, max: U32 }, "", "Model calls of a subagent; by default as `limits.run`."),
    key("tokens", Whole { min: 1, max: I64 }, "", "Tokens of a subagent; by default as `limits.run`."),
    key("deadline", Duration, "", "Time of a subagent; by default as `limits.run`."),
    key("memory", Size, "", "Data memory of each process of a subagent; 32MiB or more."),
    key("cpu", Duration, "", "Processor time of each process of a subagent, in whole seconds."),
    key("usd", Number, "", "Dollars of a subagent and all that it delegates; by default as `limits.run`."),
    later("pids"),
    later("fds"),
    later("file_size"),
];

const SPAWN: &[Key] = &[
    key(
        "env_passthrough",
        EnvNames,
        "[]",
        "Variables that children get besides the baseline: names, or `PREFIX*`.",
    ),
    later("uid"),
    later("gid"),
    later("instance_uid"),
    later("instance_gid"),
];

const STORE: &[Key] = &[
    key(
        "kind",
        OneOf(&["sqlite", "memory", "none"]),
        "sqlite",
        "Where a daemon keeps its runs, its plan, its conversation and its budgets: in the state directory, or as long \
         as it lives. `agentd run` keeps them in memory.",
    ),
    key(
        "path",
        Path,
        "",
        "The state directory; by default `$STATE_DIRECTORY`, else `$XDG_STATE_HOME/agentd/NAME` with the agent's name.",
    ),
    key(
        "min_free",
        Size,
        "256MiB",
        "Free disk in the state directory below which no new run is taken; running ones go on.",
    ),
    key("durability", Section(DURABILITY), "", ""),
];

const DURABILITY: &[Key] = &[
    key(
        "commit",
        OneOf(&["strict", "relaxed"]),
        "strict",
        "Whether a run's end is told no sooner than it is on disk. A kill's always is.",
    ),
    key(
        "work",
        OneOf(&["durable", "ephemeral"]),
        "durable",
        "Whether a restart takes up a run of which neither its spawn nor `subagents.defaults.durable` says.",
    ),
];

const LIFECYCLE: &[Key] = &[
    key(
        "drain_timeout",
        Duration,
        "25s",
        "After SIGTERM or SIGINT: how long runs may go on before they are killed.",
    ),
    key("liveness", Section(LIVENESS), "", ""),
    key("kill", Section(KILL), "", ""),
    key(
        "journal",
        OffOrPath,
        "off",
        "A file that every event and every decision is recorded in, for `agentd replay`: 0600, 256 MiB, four older ones \
         are kept.",
    ),
];

const LIVENESS: &[Key] = &[
    key("ping", Duration, "3s", "Between two pings of a child."),
    key(
        "pong",
        Duration,
        "10s",
        "A silent child that has not answered for this long is stuck; longer than `ping`.",
    ),
    key("progress", Duration, "120s", "A child that said anything within this time is healthy."),
    key("ready", Duration, "30s", "From a child's spawn to its first word."),
    key("hard_deadline_grace", Duration, "60s", "Beyond a run's deadline: then it is ended from outside."),
];

const KILL: &[Key] = &[
    key("term_after", Duration, "5s", "From `cancel` to SIGTERM."),
    key("kill_after", Duration, "2s", "From SIGTERM to SIGKILL."),
    key("exit_after_result", Duration, "5s", "From a run's result to SIGTERM."),
];

const A2A: &[Key] = &[
    key(
        "listen",
        Texts,
        "[unix]",
        "Of `serve`: `unix` (the usual control socket), `unix:///PATH`, `https://IP:PORT`, or `http://127.0.0.1:PORT`.",
    ),
    key(
        "tls",
        Section(&[
            key("cert", Path, "", "The certificate and its chain, in PEM."),
            key("key", Path, "", "Its private key, in PEM."),
        ]),
        "",
        "",
    ),
    key("principals", Items(PRINCIPAL), "[]", "Who may come by TCP."),
];

const PRINCIPAL: &[Key] = &[
    key("id", Name { dots: true }, "", "Required, and unique."),
    key(
        "match",
        Section(&[key(
            "token",
            Secret,
            "",
            "Required: its token, by reference; 16 to 256 letters, digits and `-._~+/=`, and nobody else's.",
        )]),
        "",
        "",
    ),
    key("role", OneOf(&["operator", "user"]), "user", "`user` asks, and sees and cancels what it asked."),
];

const OBSERVABILITY: &[Key] = &[
    key("log_level", OneOf(&["error", "warn", "info", "debug", "trace"]), "info", "What is logged."),
    key("log_format", OneOf(&["json", "text"]), "", "By default `text` on a terminal, else `json`."),
    later("log_content"),
    key(
        "metrics_addr",
        Text,
        "",
        "Of `serve`: `IP:PORT` where `/metrics`, `/healthz` and `/readyz` are, without a token; by default nowhere.",
    ),
    later("otel"),
];

const fn key(name: &'static str, shape: Shape, default: &'static str, about: &'static str) -> Key {
    Key { name, shape, default, about }
}

const fn later(name: &'static str) -> Key {
    Key { name, shape: Later, default: "", about: "" }
}

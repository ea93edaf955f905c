//! Every key there is: its shape, its default and what it means. The one place a key is written down: checking,
//! reading, environment names and `docs/configuration.md` all follow this table.

use Shape::{
    Duration, EnvNames, Items, Later, Name, OffOrPath, OneOf, Path, Patterns, Rate, Section, Size, Switch,
    Tags, Text, Texts, Variables, Whole,
};

/// One key of a map.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// As it would be written; empty when there is none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Any text; a number is taken as it is spelled.
    Text,
    /// Letters, digits, `-` and `_`, with dots when they are allowed.
    Name { dots: bool },
    /// A path; relative ones start from the file that names them.
    Path,
    /// `off` or a path.
    OffOrPath,
    /// `true` or `false`.
    Switch,
    /// A whole number within these bounds.
    Whole { min: u64, max: u64 },
    /// A positive duration.
    Duration,
    /// A positive size.
    Size,
    /// `8/2s`.
    Rate,
    /// One of the first words; the second are not built yet.
    OneOf(&'static [&'static str], &'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of patterns over tool names.
    Patterns,
    /// A map from variable names to texts.
    Variables,
    /// A map from patterns over tool names to lists of [`TAGS`].
    Tags,
    /// A list of variable names, `PREFIX*` included.
    EnvNames,
    /// A map with these keys.
    Section(&'static [Key]),
    /// A list of maps with these keys.
    Items(&'static [Key]),
    /// Not built yet.
    Later,
}

/// What a tool can be tagged with (S16.1).
pub(crate) const TAGS: [&str; 5] = ["untrusted_input", "sensitive", "egress", "trusted", "publishes"];

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
    later("store"),
    key("lifecycle", Section(LIFECYCLE), "", ""),
    later("a2a"),
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
    later("wake_on"),
    later("max_parallel_turns"),
    later("worker_idle"),
];

const INTELLIGENCE: &[Key] = &[
    key(
        "dialect",
        OneOf(&["mock"], &["anthropic", "openai", "openai-responses"]),
        "",
        "How the model is spoken to. Required. `mock` follows a scripted playbook, without a network.",
    ),
    key(
        "endpoints",
        Texts,
        "",
        "Required. For `mock` one playbook: a path, or `mock:builtin` for that of `demo`.",
    ),
    key("model", Text, "mock", "The model's name, as the log and the playbook see it."),
    later("models"),
    later("token"),
    later("token_file"),
    later("headers"),
    later("timeout"),
    later("prices"),
    later("swap_policy"),
    later("budget"),
];

const SERVER: &[Key] = &[
    key("name", Name { dots: false }, "", "Required, and unique."),
    key(
        "builtin",
        OneOf(&["files"], &[]),
        "",
        "The file server inside agentd. One of `builtin` and `command` is required.",
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
    key("env", Variables, "{}", "Of `command`: its variables, on top of the baseline every child has."),
    key(
        "cwd",
        Path,
        "",
        "Of `command`: its working folder; by default the workspace, else where agentd was started.",
    ),
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
    later("url"),
    later("headers"),
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
    later("usd"),
];

const SUBAGENT_LIMITS: &[Key] = &[
    key("breadth", Whole { min: 1, max: U32 }, "8", "Subagents that live at the same time."),
    key("total", Whole { min: 1, max: U32 }, "64", "Subagents of one `agentd run`."),
    key("depth", Whole { min: 0, max: U32 }, "1", "Levels of delegation; 0 forbids it."),
    key("rate", Rate, "8/2s", "Spawns: so many at once, refilled in this time."),
    later("queue"),
    later("instances"),
];

const SUBAGENTS: &[Key] = &[
    key("defaults", Section(DEFAULTS), "", ""),
    later("allow_freeform"),
    later("max_attempts"),
    later("pool"),
    later("agents_dirs"),
    later("surfaces"),
    later("templates"),
];

const DEFAULTS: &[Key] = &[
    key("mode", OneOf(&["sync", "async", "detached"], &["warm"]), "sync", "Mode of a spawn that names none."),
    key("priority", OneOf(&["low", "normal", "high"], &[]), "normal", "Priority of a spawn that names none."),
    key("limits", Section(DEFAULT_LIMITS), "", ""),
    later("model"),
    later("durable"),
];

const DEFAULT_LIMITS: &[Key] = &[
    key("steps", Whole { min: 1, max: U32 }, "", "Model calls of a subagent; by default as `limits.run`."),
    key("tokens", Whole { min: 1, max: I64 }, "", "Tokens of a subagent; by default as `limits.run`."),
    key("deadline", Duration, "", "Time of a subagent; by default as `limits.run`."),
    key("memory", Size, "", "Data memory of each process of a subagent; 32MiB or more."),
    key("cpu", Duration, "", "Processor time of each process of a subagent, in whole seconds."),
    later("usd"),
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
        "A file that every event is recorded in: 0600, 256 MiB, four older ones are kept.",
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

const OBSERVABILITY: &[Key] = &[
    key("log_level", OneOf(&["error", "warn", "info", "debug", "trace"], &[]), "info", "What is logged."),
    key("log_format", OneOf(&["json", "text"], &[]), "", "By default `text` on a terminal, else `json`."),
    later("log_content"),
    later("metrics_addr"),
    later("otel"),
];

const U32: u64 = u32::MAX as u64;
const I64: u64 = i64::MAX as u64;

const fn key(name: &'static str, shape: Shape, default: &'static str, about: &'static str) -> Key {
    Key { name, shape, default, about }
}

const fn later(name: &'static str) -> Key {
    Key { name, shape: Later, default: "", about: "" }
}

/// One key that can be set by itself, sections opened.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// `limits.run.steps`.
    pub(crate) path: String,
    pub(crate) key: &'static Key,
}

/// Every key outside lists, in the order of the table, those that are not built included.
pub(crate) fn leaves() -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(ROOT, "", &mut found);
    found
}

fn collect(keys: &'static [Key], under: &str, found: &mut Vec<Leaf>) {
    for key in keys {
        let path = join(under, key.name);
        match key.shape {
            Section(inner) => collect(inner, &path, found),
            _ => found.push(Leaf { path, key }),
        }
    }
}

/// The path of a key inside the map at `under`.
pub(crate) fn join(under: &str, name: &str) -> String {
    if under.is_empty() { name.to_owned() } else { format!("{under}.{name}") }
}

impl Shape {
    /// What is accepted, for people.
    pub(crate) fn accepted(&self) -> String {
        match self {
            Text => "text".to_owned(),
            Name { dots: false } => "1 to 64 letters, digits, - and _".to_owned(),
            Name { dots: true } => {
                "1 to 64 letters, digits, -, _ and dots, not beginning with a dot".to_owned()
            }
            Path => "a path".to_owned(),
            OffOrPath => "off, or the path of a file".to_owned(),
            Switch => "true or false".to_owned(),
            Whole { min, max: U32 | I64 } => format!("a whole number from {min}"),
            Whole { min, max } => format!("a whole number from {min} to {max}"),
            Duration => format!("{}; not zero", agentd_core::units::DURATIONS),
            Size => format!("{}; not zero", agentd_core::units::SIZES),
            Rate => agentd_core::units::RATES.to_owned(),
            OneOf(words, _) => words.join(", "),
            Texts => "a list of texts".to_owned(),
            Patterns => "a list of tool names, each a name, prefix* or *".to_owned(),
            Variables => "a map from variable names to texts".to_owned(),
            Tags => format!("a map from tool names, prefix* or * to lists of {}", TAGS.join(", ")),
            EnvNames => "a list of variable names, or PREFIX*".to_owned(),
            Section(keys) => format!("a map with the keys {}", names(keys)),
            Items(keys) => format!("a list of maps with the keys {}", names(keys)),
            Later => "nothing yet".to_owned(),
        }
    }
}

/// The names of the keys that are built, for people.
pub(crate) fn names(keys: &[Key]) -> String {
    let built = keys.iter().filter(|key| !matches!(key.shape, Later)).map(|key| key.name);
    built.collect::<Vec<_>>().join(", ")
}

/// Every key that is built as one row of a Markdown table, lists opened; `docs/configuration.md` holds it.
pub fn table() -> String {
    let mut rows = String::from("| key | accepted | default | |\n|---|---|---|---|\n");
    add_rows(ROOT, "", &mut rows);
    rows
}

fn add_rows(keys: &[Key], under: &str, rows: &mut String) {
    for key in keys {
        let path = join(under, key.name);
        match key.shape {
            Later => {}
            Section(inner) => add_rows(inner, &path, rows),
            Items(inner) => {
                add_row(&path, "a list of maps", key, rows);
                add_rows(inner, &format!("{path}[]"), rows);
            }
            Duration => add_row(&path, "a duration, not zero", key, rows),
            Size => add_row(&path, "a size, not zero", key, rows),
            Rate => add_row(&path, "a rate", key, rows),
            Patterns => add_row(&path, "a list of tool names", key, rows),
            shape => add_row(&path, &shape.accepted(), key, rows),
        }
    }
}

fn add_row(path: &str, accepted: &str, key: &Key, rows: &mut String) {
    let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
    rows.push_str(&format!("| `{path}` | {} | {default} | {} |\n", accepted.replace('|', "\\|"), key.about));
}

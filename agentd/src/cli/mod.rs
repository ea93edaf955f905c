//! The command line: what a person can ask of agentd and how it answers. Owns the arguments, stdout and the exit
//! code. stdout is the answer and nothing else; everything said about a run goes to stderr.

mod about;
mod answer;
mod check;
mod control;
mod demo;
mod exit;
mod export;
mod headers;
mod logs;
mod mcp_probe;
mod model_probe;
mod reload;
mod replay;
mod run;
mod serve;
mod serve_files;
mod sessions;
mod state;
mod table;
mod top;

use crate::config::{self, LogFormat};
use crate::driver::Driver;
use crate::replay::Who;
use agentd_core::preview::preview;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use state::StateArgs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs LLM agents whose subagents are supervised OS processes.
#[derive(Debug, Parser)]
#[command(name = "agentd", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Bytes of a path in a message.
const SHOWN_BYTES: usize = 4096;

const EXAMPLES: &str = "\
Examples:
  agentd demo                                 delegate over the files here; no key, no network
  agentd demo src --pattern unwrap            another folder, another word
  agentd run \"Summarise the open tickets\"     with ./agentd.yaml
  agentd run --model NAME \"What is in here?\"  with a key in ANTHROPIC_API_KEY or OPENAI_API_KEY alone
  agentd run -c base.yaml -c my.yaml - < task.txt
  agentd serve -c agentd.yaml                 a daemon; ps, top, send, kill, drain and others talk to it
  agentd check -c agentd.yaml                 all mistakes in a configuration at once
  agentd replay --explain sub-1 FILE          what happened to a run, from a journal

Exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 partial, 4 no model to be had, 5 refused,
6 required server, 7 out of steps, tokens or money, or going in circles, 124 deadline, 129, 130 and 143 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one prompt and print its answer.
    Run(RunArgs),
    /// Run the daemon: a conversation that goes on, reached over a control socket, until it is told to drain.
    Serve(ServeArgs),
    /// What runs in a daemon, and what each run waits on.
    Ps(ListArgs),
    /// The same, as the tree of who delegated what.
    Tree(ListArgs),
    /// All that is known of one run, its result included.
    Show(HandleArgs),
    /// What was logged of one run.
    Logs(logs::LogsArgs),
    /// Send a warm run its next message; to `root`, ask the conversation and print its answer.
    Send(TextArgs),
    /// Tell a live run something at its next step.
    Steer(TextArgs),
    /// Ask a run for its result now.
    Finish(HandleArgs),
    /// Have a run stand still from its next step on.
    Pause(HandleArgs),
    /// Let a run go on.
    Resume(HandleArgs),
    /// Wait for runs to end; the exit code is that of the worst.
    Wait(WaitArgs),
    /// Stop a run and what it delegated, and wait until its processes are gone.
    Kill(KillArgs),
    /// End a warm run after the turn in hand.
    Retire(HandleArgs),
    /// Start a subagent.
    Spawn(SpawnArgs),
    /// Watch a daemon's runs on the whole terminal, and act on them.
    Top(top::TopArgs),
    /// End a daemon once its runs have ended, within lifecycle.drain_timeout, and wait for that.
    Drain(DrainArgs),
    /// Have a daemon read its configuration again, and say what counts from now on.
    Reload(reload::ReloadArgs),
    /// Delegate a count over the files of a folder, with a scripted model: no key, no network.
    Demo(DemoArgs),
    /// Check a configuration: every mistake at once, each with its place.
    Check(CheckArgs),
    /// Live through a journal again: every decision with its reason, compared with what was recorded.
    Replay(ReplayArgs),
    /// What runs wrote of their conversations: list them, show one, list what it delegated.
    Sessions(SessionsArgs),
    /// Transcripts as traces, to a collector or into a file (OTLP).
    Export(ExportArgs),
    /// MCP tools of agentd's own.
    Mcp(McpArgs),
    /// The models of a configuration.
    Model(ModelArgs),
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
struct RunArgs {
    /// What to do; `-` reads it from stdin.
    prompt: String,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    model: ModelFlags,
    /// Add a server: a name, and the command that starts it or its address. Repeatable.
    #[arg(long = "mcp", value_name = "NAME=COMMAND|URL")]
    servers: Vec<String>,
    /// Print the whole result object instead of the answer.
    #[arg(long)]
    json: bool,
    /// Record every event and every decision in a file, for `agentd replay` (lifecycle.journal).
    #[arg(long, value_name = "FILE")]
    journal: Option<String>,
    #[command(flatten)]
    driver: DriverArgs,
    /// What is logged: error, warn, info, debug or trace (observability.log_level).
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How it is logged (observability.log_format); by default text on a terminal, else json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  agentd run \"Which of these files are unused?\"
  agentd run -c agentd.yaml --json \"List the risky calls\" | jq .result
  agentd run --mcp \"git=uvx mcp-server-git\" \"What changed this week?\"
  agentd run --mcp wiki=https://mcp.example/mcp \"Who wrote the page on releases?\"
  agentd run --model NAME --endpoint http://127.0.0.1:11434/v1 --dialect openai \"hello\"
  agentd run - < task.txt

The model's key comes from intelligence.token, AGENTD_INTELLIGENCE_TOKEN or AGENTD_INTELLIGENCE_TOKEN_FILE, else from
ANTHROPIC_API_KEY or OPENAI_API_KEY. Without a configuration file one of the last two and --model are enough.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Record every event and every decision in a file, for `agentd replay` (lifecycle.journal).
    #[arg(long, value_name = "FILE")]
    journal: Option<String>,
    #[command(flatten)]
    driver: DriverArgs,
    /// What is logged: error, warn, info, debug or trace (observability.log_level).
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How it is logged (observability.log_format); by default text on a terminal, else json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  agentd serve                            with ./agentd.yaml; the log is on stderr
  agentd serve -c agentd.yaml &
  agentd send root \"What is in here?\"    ask it, and print its answer
  agentd ps                               what runs, and what it waits on
  agentd top                              the same, live, with keys to act on it
  agentd drain                            let runs end, then end the daemon

The control socket is $RUNTIME_DIRECTORY/control.sock, else $XDG_RUNTIME_DIR/agentd/NAME.sock, else in the state directory,
which is $STATE_DIRECTORY, else $XDG_STATE_HOME/agentd/NAME. NAME is agent.name, by default the stem of the file.
A service manager (systemd) is told how it stands (NOTIFY_SOCKET, WATCHDOG_USEC), and its sockets are used (LISTEN_FDS).
SIGTERM and SIGINT drain; a second one ends what is left. Exit codes: 0 drained, 1 it could not begin or go on,
2 usage or configuration, 4 there is no key, 6 another daemon has its place or the store cannot be used.";

/// Which daemon a command is for.
#[derive(Debug, Args)]
struct DaemonArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The daemon's control socket, where it is not the one that the configuration leads to.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The file with the daemon's token, where it is not in the state directory that the configuration leads to.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Which daemon a command is for, and how the answer is printed.
#[derive(Debug, Args)]
struct ControlArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Print JSON, with the names that records have.
    #[arg(long)]
    json: bool,
}

const CONTROL_CODES: &str = "\
Exit codes: 0 done, 1 failed or no such run, 2 usage or configuration, 5 turned down or not permitted, 6 no daemon.";

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
struct ListArgs {
    /// Runs that have ended too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
struct HandleArgs {
    /// A run, such as sub-7; for `show`, `root` is the conversation.
    #[arg(value_name = "HANDLE")]
    handle: String,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
struct TextArgs {
    /// A run, such as sub-7; for `send`, `root` is the conversation.
    #[arg(value_name = "HANDLE")]
    handle: String,
    /// What it is told.
    text: String,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WAIT_CODES)]
struct WaitArgs {
    /// Runs, such as sub-7.
    #[arg(required = true, value_name = "HANDLE")]
    handles: Vec<String>,
    /// Until the first of them has ended, and not all.
    #[arg(long)]
    any: bool,
    /// At most this long, such as 30s.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    #[command(flatten)]
    control: ControlArgs,
}

const WAIT_CODES: &str = "\
Exit codes: as those of `agentd run` for the worst of the runs, 75 when the time is up, and 2, 5, 6 as of other commands.";

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
struct KillArgs {
    /// A run, such as sub-7.
    #[arg(value_name = "HANDLE")]
    handle: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Leave what it delegated running.
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WAIT_CODES)]
struct SpawnArgs {
    /// What it is to do and to return.
    #[arg(value_name = "TEXT")]
    instruction: String,
    /// sync waits for the result and prints it; async, detached and warm print the handle.
    #[arg(long, value_name = "MODE", default_value = "async")]
    mode: String,
    /// A server it may use; by default all. Repeatable.
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// A tool it may use, or a pattern of tools; by default all of its servers. Repeatable.
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// One of intelligence.models.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// low, normal or high.
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<String>,
    /// How long it may take, such as 5m.
    #[arg(long, value_name = "DURATION")]
    deadline: Option<String>,
    /// A daemon that starts again does not take it up.
    #[arg(long)]
    no_durable: bool,
    /// A daemon that starts again begins it anew, whatever it had done.
    #[arg(long)]
    no_resume: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
struct DrainArgs {
    /// Do not wait until the daemon has ended.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// The folder to look through.
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// The text to count, taken literally.
    #[arg(long, value_name = "WORD", default_value = "TODO")]
    pattern: String,
    /// Print the whole result object, with `processes_left`.
    #[arg(long)]
    json: bool,
    /// Record every event and every decision in a file, for `agentd replay`.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    driver: DriverArgs,
}

/// The agent's own model, where the command line says otherwise than the configuration.
#[derive(Debug, Args)]
struct ModelFlags {
    /// The model's name (intelligence.model).
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// A provider's base address instead of its own (intelligence.endpoints). Repeatable: the order is that of failover.
    #[arg(long = "endpoint", value_name = "URL")]
    endpoints: Vec<String>,
    /// How the model is spoken to: anthropic, openai, openai-responses or mock (intelligence.dialect).
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
}

#[derive(Debug, Args)]
struct DriverArgs {
    /// The loop under the supervisor. tokio is in binaries built with `--features tokio`; what a run does is the same.
    #[arg(long, value_name = "DRIVER", default_value = "mio",
        value_parser = PossibleValuesParser::new(Driver::NAMES).try_map(|name| name.parse::<Driver>()))]
    driver: Driver,
}

#[derive(Debug, Args)]
#[command(after_help = SESSIONS_EXAMPLES)]
struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// The conversations, the newest first.
    List {
        #[command(flatten)]
        place: SessionsPlace,
        /// So many at most; 0 is all.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// What was said and done in one run.
    Show {
        /// Its id, or enough of its beginning.
        id: String,
        #[command(flatten)]
        place: SessionsPlace,
    },
    /// The runs that one delegated.
    Children {
        /// Its id, or enough of its beginning.
        id: String,
        #[command(flatten)]
        place: SessionsPlace,
    },
}

#[derive(Debug, Args)]
struct SessionsPlace {
    #[command(flatten)]
    state: StateArgs,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

const SESSIONS_EXAMPLES: &str = "\
Examples:
  agentd sessions list                          of the daemon that ./agentd.yaml makes
  agentd sessions show 01939f3e -c agentd.yaml
  agentd sessions children 01939f3e --state /var/lib/agentd --json | jq .description

Exit codes: 0, 1 something cannot be read, 2 usage, or there is no such session.";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
struct ExportArgs {
    /// Ids of sessions, or enough of their beginnings; each goes with all that it delegated. Without any: all there are.
    ids: Vec<String>,
    #[command(flatten)]
    state: StateArgs,
    /// A collector that takes OTLP over HTTP; without a path, /v1/traces is meant.
    #[arg(long, value_name = "URL", required_unless_present = "out")]
    otlp: Option<String>,
    /// A file to write; `-` is stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "otlp")]
    out: Option<PathBuf>,
    /// OTLP's JSON in place of protobuf.
    #[arg(long)]
    json: bool,
    /// What was said goes along: prompts, answers, arguments and results of tools.
    #[arg(long)]
    content: bool,
    /// Send a header with every request; its value may refer to a secret, as {{secret:NAME}}. Repeatable.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Trust the certificates of this file, in PEM, in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  agentd export --otlp http://127.0.0.1:4318
  agentd export -c agentd.yaml --otlp https://otlp.example --header 'Authorization: Bearer {{secret:OTLP}}'
  agentd export --state /var/lib/agentd --json --out traces.jsonl 01939f3e

Exit codes: 0, 1 something was not read or not taken, 2 usage, or there is no such session.";

#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
struct ReplayArgs {
    /// The journal. FILE.4 to FILE.1 are read before it where they are of the same daemon's life.
    file: PathBuf,
    /// Tell one run's story in plain words: a handle (sub-7), a run id, or root for the conversation.
    #[arg(long, value_name = "RUN")]
    explain: Option<Who>,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// Print only what the comparison came to.
    #[arg(long, conflicts_with = "explain")]
    quiet: bool,
    /// Print from this event on; all are compared.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "explain")]
    from: u64,
    /// Print up to this event.
    #[arg(long, value_name = "N", conflicts_with = "explain")]
    to: Option<u64>,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  agentd demo --journal flight              record something
  agentd replay flight                      every event, what was done about it, and why
  agentd replay --explain sub-1 flight      the story of one run
  agentd replay --quiet flight              only whether this agentd decides the same

Exit codes: 0 every action is as recorded, 1 one is not (the first is named) or the journal is damaged,
2 no journal, or no such run.";

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print a JSON array: each problem with file, line, column, path, code, message, accepted, hint, severity.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ConfigArgs {
    /// A configuration file, YAML or JSON; repeatable, later ones win key by key. Without it: ./agentd.yaml,
    /// $XDG_CONFIG_HOME/agentd/agentd.yaml, /etc/agentd/agentd.yaml.
    #[arg(short, long = "config", value_name = "FILE")]
    config: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Serve the files of one folder over MCP on stdin and stdout.
    ServeFiles(ServeFilesArgs),
    /// Connect to a server as a run would: what it is, what it offers, and what is wrong with it.
    Probe(McpProbeArgs),
}

#[derive(Debug, Args)]
#[command(after_help = MCP_PROBE_EXAMPLES)]
struct McpProbeArgs {
    /// The address of a server, or the command that starts one. Options go before it.
    #[arg(required = true, value_name = "URL|COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    server: Vec<String>,
    /// Call a tool by the server's own name of it, with arguments. Repeatable: one after another.
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    call: Vec<String>,
    /// Read a resource. Repeatable; after the calls.
    #[arg(long, value_name = "URI")]
    read: Vec<String>,
    /// Answer what the server asks a person with these fields, and its own defaults for the others. Without it,
    /// questions are declined.
    #[arg(long, value_name = "JSON")]
    elicit: Option<String>,
    /// Send a header with every request; its value may refer to a secret, as {{secret:NAME}}. Repeatable.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Trust the certificates of this file, in PEM, in place of the system's.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Time limit of the start, and of each call.
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: String,
    /// Take the server to be of this era of the protocol, instead of finding out: stateless is 2026-07-28, initialize all
    /// before.
    #[arg(long, value_enum)]
    era: Option<EraName>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum EraName {
    Initialize,
    Stateless,
}

const MCP_PROBE_EXAMPLES: &str = "\
Examples:
  agentd mcp probe https://mcp.example/mcp
  agentd mcp probe --header 'Authorization: Bearer {{secret:MCP_TOKEN}}' https://mcp.example/mcp
  agentd mcp probe --call read '{\"path\": \"README.md\"}' agentd mcp serve-files --root .
  agentd mcp probe --json npx -y @modelcontextprotocol/server-everything

Exit codes: 0 the server is usable and every call was answered, 1 a call was answered with an error, 2 usage,
6 the server is of no use.";

#[derive(Debug, Args)]
struct ServeFilesArgs {
    /// The folder; nothing outside it can be reached.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Offer `write` and `edit` too.
    #[arg(long)]
    write: bool,
}

#[derive(Debug, Args)]
struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// Ask a model one small thing and say, endpoint by endpoint, what works. It costs a few tokens.
    Probe(ModelProbeArgs),
}

#[derive(Debug, Args)]
#[command(after_help = MODEL_PROBE_EXAMPLES)]
struct ModelProbeArgs {
    /// One of intelligence.models; without it, the agent's own.
    name: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    model: ModelFlags,
    /// Print one JSON object: model, dialect, endpoints, each with what works.
    #[arg(long)]
    json: bool,
}

const MODEL_PROBE_EXAMPLES: &str = "\
Examples:
  agentd model probe                             the agent's own model, with ./agentd.yaml
  agentd model probe fast --json                 one of intelligence.models
  agentd model probe --dialect openai --endpoint http://127.0.0.1:11434/v1 --model llama3.3

Exit codes: 0 every endpoint works, 1 one answers with something else than a reply or does not accept the request,
2 usage or configuration, 4 one cannot be reached or rejects the credential, or there is no key.";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  agentd completions bash > ~/.local/share/bash-completion/completions/agentd
  agentd completions fish > ~/.config/fish/completions/agentd.fish
  agentd completions zsh > ~/.zfunc/_agentd          with ~/.zfunc in fpath";

/// Does what the arguments ask.
pub(crate) fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(shown) => {
            // Help and version are asked for and go to stdout; a mistake goes to stderr, with code 2.
            let code = u8::try_from(shown.exit_code()).unwrap_or(exit::USAGE);
            let printed = shown.print();
            return ExitCode::from(if printed.is_ok() { code } else { exit::FAILED });
        }
    };
    ExitCode::from(match cli.command {
        Command::Run(args) => run::run(args),
        Command::Serve(args) => serve::serve(args),
        Command::Ps(ListArgs { all, control }) => control::ps(control, all),
        Command::Tree(ListArgs { all, control }) => control::tree(control, all),
        Command::Show(args) => control::show(args),
        Command::Logs(args) => logs::logs(args),
        Command::Send(args) => control::send(args),
        Command::Steer(args) => control::steer(args),
        Command::Finish(args) => control::order(args, "subagent.finish"),
        Command::Pause(args) => control::order(args, "subagent.pause"),
        Command::Resume(args) => control::order(args, "subagent.resume"),
        Command::Wait(args) => control::wait(args),
        Command::Kill(args) => control::kill(args),
        Command::Retire(args) => control::order(args, "subagent.retire"),
        Command::Spawn(args) => control::spawn(args),
        Command::Top(args) => top::top(args),
        Command::Drain(DrainArgs { no_wait, control }) => control::drain(control, no_wait),
        Command::Reload(args) => reload::reload(args),
        Command::Demo(args) => demo::demo(&args),
        Command::Check(args) => check::check(args),
        Command::Replay(args) => replay::replay(&args),
        Command::Sessions(args) => sessions::sessions(&args.command),
        Command::Export(args) => export::export(&args),
        Command::Mcp(McpArgs { command: McpCommand::ServeFiles(args) }) => serve_files::serve_files(&args),
        Command::Mcp(McpArgs { command: McpCommand::Probe(args) }) => mcp_probe::probe(&args),
        Command::Model(ModelArgs { command: ModelCommand::Probe(args) }) => model_probe::model_probe(args),
        Command::Schema => answer::only(&config::json_schema(), exit::COMPLETED),
        Command::Completions(args) => answer::only(&about::completions(args.shell), exit::COMPLETED),
        Command::Man => answer::only(&about::manual(), exit::COMPLETED),
    })
}

/// Says why what an argument names cannot be used as a folder.
fn folder(path: &Path) -> Result<(), String> {
    let shown = preview(path.as_os_str().as_encoded_bytes(), SHOWN_BYTES);
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("{shown} is not a folder")),
        Err(error) => Err(format!("{shown} cannot be used: {error}")),
    }
}

#[cfg(test)]
mod tests;

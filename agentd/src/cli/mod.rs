//! The command line: what a person can ask of agentd and how it answers. Owns the commands, stdout and the exit
//! code. Each command has its arguments in its own file, and `args` has those of several.
//! stdout is the answer and nothing else; everything said about a run goes to stderr.

mod about;
mod answer;
mod args;
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

use crate::config;
use about::CompletionsArgs;
use agentd_core::preview::preview;
use check::CheckArgs;
use clap::{Args, Parser, Subcommand};
use control::args::{DrainArgs, HandleArgs, KillArgs, ListArgs, SpawnArgs, TextArgs, WaitArgs};
use demo::DemoArgs;
use export::ExportArgs;
use mcp_probe::McpProbeArgs;
use model_probe::ModelProbeArgs;
use replay::ReplayArgs;
use run::RunArgs;
use serve::ServeArgs;
use serve_files::ServeFilesArgs;
use sessions::SessionsArgs;
use std::ffi::OsString;
use std::path::Path;
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
struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// Ask a model one small thing and say, endpoint by endpoint, what works. It costs a few tokens.
    Probe(ModelProbeArgs),
}

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
        Command::Sessions(args) => sessions::sessions(&args),
        Command::Export(args) => export::export(&args),
        Command::Mcp(McpArgs { command: McpCommand::ServeFiles(args) }) => serve_files::serve_files(&args),
        Command::Mcp(McpArgs { command: McpCommand::Probe(args) }) => mcp_probe::probe(&args),
        Command::Model(ModelArgs { command: ModelCommand::Probe(args) }) => model_probe::model_probe(args),
        Command::Schema => answer::only(&config::json_schema(), exit::COMPLETED),
        Command::Completions(args) => answer::only(&about::completions(&args), exit::COMPLETED),
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

//! The arguments of an operator's commands.

use crate::cli::args::{CONTROL_CODES, ControlArgs};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(in crate::cli) struct ListArgs {
    /// Runs that have ended too.
    #[arg(long)]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(in crate::cli) struct HandleArgs {
    /// A run, such as sub-7; for `show`, `root` is the conversation.
    #[arg(value_name = "HANDLE")]
    pub(in crate::cli) handle: String,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(in crate::cli) struct TextArgs {
    /// A run, such as sub-7; for `send`, `root` is the conversation.
    #[arg(value_name = "HANDLE")]
    pub(in crate::cli) handle: String,
    /// What it is told.
    pub(in crate::cli) text: String,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WAIT_CODES)]
pub(in crate::cli) struct WaitArgs {
    /// Runs, such as sub-7.
    #[arg(required = true, value_name = "HANDLE")]
    pub(in crate::cli) handles: Vec<String>,
    /// Until the first of them has ended, and not all.
    #[arg(long)]
    pub(in crate::cli) any: bool,
    /// At most this long, such as 30s.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) timeout: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

const WAIT_CODES: &str = "\
Exit codes: as those of `agentd run` for the worst of the runs, 75 when the time is up, and 2, 5, 6 as of other commands.";

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(in crate::cli) struct KillArgs {
    /// A run, such as sub-7.
    #[arg(value_name = "HANDLE")]
    pub(in crate::cli) handle: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) reason: Option<String>,
    /// Leave what it delegated running.
    #[arg(long)]
    pub(in crate::cli) only: bool,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WAIT_CODES)]
pub(in crate::cli) struct SpawnArgs {
    /// What it is to do and to return.
    #[arg(value_name = "TEXT")]
    pub(in crate::cli) instruction: String,
    /// sync waits for the result and prints it; async, detached and warm print the handle.
    #[arg(long, value_name = "MODE", default_value = "async")]
    pub(in crate::cli) mode: String,
    /// A server it may use; by default all. Repeatable.
    #[arg(long = "server", value_name = "NAME")]
    pub(in crate::cli) servers: Vec<String>,
    /// A tool it may use, or a pattern of tools; by default all of its servers. Repeatable.
    #[arg(long = "tool", value_name = "NAME")]
    pub(in crate::cli) tools: Vec<String>,
    /// One of intelligence.models.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) model: Option<String>,
    /// low, normal or high.
    #[arg(long, value_name = "PRIORITY")]
    pub(in crate::cli) priority: Option<String>,
    /// How long it may take, such as 5m.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::cli) deadline: Option<String>,
    /// A daemon that starts again does not take it up.
    #[arg(long)]
    pub(in crate::cli) no_durable: bool,
    /// A daemon that starts again begins it anew, whatever it had done.
    #[arg(long)]
    pub(in crate::cli) no_resume: bool,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CONTROL_CODES)]
pub(in crate::cli) struct DrainArgs {
    /// Do not wait until the daemon has ended.
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,
    #[command(flatten)]
    pub(in crate::cli) control: ControlArgs,
}

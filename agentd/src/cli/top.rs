//! `agentd top`: whether there is a terminal to show runs on, and which daemon's.

use super::args::DaemonArgs;
use super::control::{failed, find};
use super::{answer, exit};
use crate::top::{self, TopError};
use clap::Args;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal, Write};

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub(super) struct TopArgs {
    /// Runs that have ended too; the key `a` changes it.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

const TOP_HELP: &str = "\
Keys: arrows move and fold, Enter shows a run's events, s sends, t steers, k kills (and asks first), f finishes, p pauses,
r resumes, R retires, a shows ended runs, / filters, ? explains all keys, q leaves.

Colours are left out with NO_COLOR. Exit codes: 0 left with q, 1 failed, 2 usage, configuration or no terminal, 5 not
permitted, 6 no daemon, 129, 130 and 143 ended by a signal.";

/// `top`.
pub(super) fn top(args: TopArgs) -> u8 {
    let TopArgs { all, daemon } = args;
    if let Err(why) = terminal() {
        eprintln!("agentd: {why}; `agentd ps`, `agentd tree` and `agentd logs -f` need no terminal");
        return exit::USAGE;
    }
    let daemon = match find(daemon) {
        Ok(daemon) => daemon,
        Err(error) => return failed(&error),
    };
    let colors = std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    match top::run(daemon, all, colors) {
        Ok(code) => code,
        Err(TopError::Daemon(error)) => failed(&error),
        Err(error @ (TopError::Terminal(_) | TopError::Part)) => {
            // Where the terminal has gone there may be nobody to tell, and `eprintln` would panic over that.
            let _untold = writeln!(io::stderr(), "agentd: {error}");
            exit::FAILED
        }
    }
}

/// Why there is no terminal to draw on and to read keys from, where there is none.
fn terminal() -> Result<(), String> {
    answer::possible().map_err(|error| format!("top draws on stdout, and {error}"))?;
    if !io::stdout().is_terminal() {
        return Err("top draws on a terminal, and stdout is none".to_owned());
    }
    let term = std::env::var_os("TERM").unwrap_or_default();
    if term.is_empty() || term == OsStr::new("dumb") {
        let shown = term.to_string_lossy().into_owned();
        return Err(format!("top needs a terminal that can move its cursor, and TERM is {shown:?}"));
    }
    if !io::stdin().is_terminal() && File::open("/dev/tty").is_err() {
        return Err("top reads keys from a terminal; stdin is none, and the process has no other".to_owned());
    }
    Ok(())
}

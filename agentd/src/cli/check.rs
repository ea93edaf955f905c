//! `agentd check`: every mistake in a configuration at once.

use super::args::ConfigArgs;
use super::{answer, exit};
use crate::config::{self, Code, Flags, Loaded, Problem, Sources};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print a JSON array: each problem with file, line, column, path, code, message, accepted, hint, severity.
    #[arg(long)]
    json: bool,
}

/// Prints what is wrong, or that nothing is.
pub(super) fn check(args: CheckArgs) -> u8 {
    let loaded = Sources::of_process(args.config.config, Flags::default())
        .map_err(|error| {
            vec![Problem::of_file(
                "",
                Code::Unreadable,
                format!("the current folder cannot be used: {error}"),
            )]
        })
        .and_then(|sources| config::load(&sources));
    let problems = match &loaded {
        Ok(loaded) => loaded.warnings.as_slice(),
        Err(problems) => problems.as_slice(),
    };
    let text = match &loaded {
        _ if args.json => array(problems),
        Ok(loaded) if problems.is_empty() => summary(loaded),
        Ok(_) | Err(_) => config::render(problems),
    };
    let code = if problems.is_empty() { exit::COMPLETED } else { exit::USAGE };
    answer::only(&text, code)
}

/// One JSON array, a problem an item.
fn array(problems: &[Problem]) -> String {
    let mut text = serde_json::to_string(problems).unwrap_or_default();
    text.push('\n');
    text
}

fn summary(loaded: &Loaded) -> String {
    let files = files(loaded);
    let from = if files.is_empty() { "environment".to_owned() } else { files.join(", ") };
    let servers: Vec<&str> = loaded.config.servers.iter().map(|server| server.name.as_str()).collect();
    let servers = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") };
    format!(
        "ok: {from}: agent {}, model {}, servers {servers}\n",
        loaded.config.agent, loaded.config.model.model.name
    )
}

fn files(loaded: &Loaded) -> Vec<String> {
    loaded.settings.files.iter().map(|file| file.display().to_string()).collect()
}

//! `agentd check`: every mistake in a configuration at once.

use super::{CheckArgs, answer, exit};
use crate::config::{self, Code, Flags, Loaded, Problem, Sources};
use serde_json::json;

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
    let (text, code) = match &loaded {
        Ok(loaded) if args.json => (object(Some(loaded), &[]), exit::COMPLETED),
        Ok(loaded) => (summary(loaded), exit::COMPLETED),
        Err(problems) if args.json => (object(None, problems), exit::USAGE),
        Err(problems) => (config::render(problems), exit::USAGE),
    };
    match answer::print(&text) {
        Ok(()) => code,
        Err(error) => {
            eprintln!("agentd: cannot write to stdout: {error}");
            exit::FAILED
        }
    }
}

fn object(loaded: Option<&Loaded>, problems: &[Problem]) -> String {
    let files: Vec<String> = loaded.iter().flat_map(|loaded| files(loaded)).collect();
    let mut text = json!({ "ok": problems.is_empty(), "files": files, "problems": problems }).to_string();
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

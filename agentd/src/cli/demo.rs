//! `agentd demo`: delegation to see, over real files, with the scripted model and the file server inside
//! agentd. Ends by counting the processes that are left, which is how a person sees that none is.

use super::args::DriverArgs;
use super::{answer, exit};
use crate::config::{self, Loaded};
use crate::log::Format;
use crate::supervise::Supervisor;
use crate::tree;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// The folder to look through.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// The text to count, taken literally.
    #[arg(long, value_name = "WORD", default_value = "TODO")]
    pub(super) pattern: String,
    /// Print the whole result object, with `processes_left`.
    #[arg(long)]
    pub(super) json: bool,
    /// Record every event and every decision in a file, for `agentd replay`.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    driver: DriverArgs,
}

/// Runs the demo.
pub(super) fn demo(args: &DemoArgs) -> u8 {
    if args.pattern.is_empty() || args.pattern.contains(['\n', '\r']) {
        eprintln!("agentd: --pattern needs a text within one line");
        return exit::USAGE;
    }
    if let Err(error) = answer::possible() {
        eprintln!("agentd: the answer could not be written to stdout: {error}");
        return exit::FAILED;
    }
    let loaded = match configuration(&args.folder, args.journal.as_deref()) {
        Ok(loaded) => loaded,
        Err(said) => {
            eprintln!("agentd: {said}");
            return exit::USAGE;
        }
    };
    match Supervisor::start(loaded, args.driver.driver, Format::Progress, tree::fits_stderr()) {
        Ok(supervisor) => delegated(supervisor, args),
        Err(error) => answer::not_started(&error),
    }
}

fn delegated(mut supervisor: Supervisor, args: &DemoArgs) -> u8 {
    // The playbook reads both as JSON strings; the folder is for the command that confirms its answer.
    let (word, folder) = (Value::from(args.pattern.as_str()), json!(args.folder.to_string_lossy()));
    let prompt = format!(
        "How many text files, lines, and lines that mention {word} are below each entry of this folder?\nFolder: {folder}"
    );
    // Printed at the end, with the count of what is left: this playbook waits for all it starts.
    let ran = supervisor.run(prompt, &mut |_| {});
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(error) => return answer::failed(supervisor, &error),
    };
    if let Some(result) = &outcome.result {
        if let Some(error) = &result.error {
            supervisor.print(format!("{}: {error}", result.status.name()));
        }
        supervisor.print(answer::cost(result, outcome.costliest));
    }
    let left = match supervisor.processes_left() {
        Ok(left) => left,
        Err(error) => {
            supervisor.print(format!("agentd: the processes that are left cannot be counted: {error}"));
            supervisor.close();
            return exit::FAILED;
        }
    };
    let text = match &outcome.result {
        Some(result) if args.json => answer::object(result, &[("processes_left", left.into())]),
        Some(result) => format!("{}{} left\n", answer::text(result), answer::processes(left)),
        None => format!("{} left\n", answer::processes(left)),
    };
    let code = match exit::code(&outcome) {
        exit::COMPLETED if left > 0 => exit::FAILED,
        code => code,
    };
    answer::end(supervisor, &answer::print(&text), code)
}

/// The demo's configuration, read as any other.
fn configuration(folder: &Path, journal: Option<&Path>) -> Result<Loaded, String> {
    let shown = folder.display();
    let here =
        std::env::current_dir().map_err(|error| format!("the current folder cannot be used: {error}"))?;
    super::folder(folder)?;
    let root = folder.to_str().ok_or_else(|| format!("the path {shown} is not UTF-8"))?;
    let journal =
        journal.map(|file| file.to_str().ok_or_else(|| format!("the path {} is not UTF-8", file.display())));
    let journal = journal.transpose()?.map_or("off", |file| file);
    let text = json!({
        "agent": { "name": "demo", "workspace": root },
        "intelligence": { "dialect": "mock", "endpoints": ["mock:builtin"] },
        "mcp": { "servers": [{ "name": "files", "builtin": "files", "tags": { "*": ["sensitive"] } }] },
        "limits": { "run": { "tool_result_bytes": "1MiB" } },
        "lifecycle": { "journal": journal },
    });
    config::load_text("demo", &text.to_string(), &here).map_err(|problems| config::render(&problems))
}

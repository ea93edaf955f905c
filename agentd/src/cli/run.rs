//! `agentd run`: one prompt, one answer.

use super::answer::{self, Printing};
use super::args::{ConfigArgs, LogArgs, ModelFlags};
use super::exit;
use crate::config::{self, Code, Flags, Loaded, LogFormat, Problem, Severity, Sources};
use crate::log::Format;
use crate::supervise::{Outcome, Supervisor};
use crate::tree;
use agentd_core::note::Level;
use agentd_core::record::{ResultObject, Status};
use clap::Args;
use std::io::{self, IsTerminal, Read};

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunArgs {
    /// What to do; `-` reads it from stdin.
    pub(super) prompt: String,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    #[command(flatten)]
    model: ModelFlags,
    /// Add a server: a name, and the command that starts it or its address. Repeatable.
    #[arg(long = "mcp", value_name = "NAME=COMMAND|URL")]
    pub(super) servers: Vec<String>,
    /// Print the whole result object instead of the answer.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
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

/// Bytes of a prompt from stdin; a longer one is refused.
const PROMPT_BYTES: u64 = 4 * 1024 * 1024;

/// Runs the prompt.
pub(super) fn run(args: RunArgs) -> u8 {
    let RunArgs {
        prompt,
        config,
        model: ModelFlags { model, endpoints, dialect },
        servers,
        json,
        log: LogArgs { journal, driver, log_level, log_format },
    } = args;
    let flags = Flags { dialect, endpoints, model, servers, journal, log_level, log_format };
    if let Err(error) = answer::possible() {
        eprintln!("agentd: the answer could not be written to stdout: {error}");
        return exit::FAILED;
    }
    let loaded = match load(config.config, flags) {
        Ok((_, loaded)) => loaded,
        Err((said, code)) => {
            eprint!("{said}");
            return code;
        }
    };
    let prompt = match read_prompt(prompt) {
        Ok(prompt) => prompt,
        Err(said) => return usage(&format!("agentd: {said}\n")),
    };
    let terminal = io::stderr().is_terminal();
    // Who asks for the log wants the log; anybody else at a terminal gets the tree, and what it does not show.
    let people = loaded.settings.log_format.is_none() && loaded.settings.log_level <= Level::Info;
    let tree = people && tree::fits_stderr();
    let format = match loaded.settings.log_format {
        Some(LogFormat::Json) => Format::Json,
        Some(LogFormat::Text) => Format::Text,
        None if tree => Format::Ends,
        None if terminal && people => Format::Progress,
        None if terminal => Format::Text,
        None => Format::Json,
    };
    match Supervisor::start(loaded, driver.driver, format, tree) {
        Ok(supervisor) => answered(supervisor, prompt, format, json),
        Err(error) => answer::not_started(&error),
    }
}

fn answered(mut supervisor: Supervisor, prompt: String, format: Format, json: bool) -> u8 {
    let mut printing = Printing::beside(supervisor.screen());
    // The object is printed at the end, when its sums are final.
    let ran = supervisor.run(prompt, &mut |result| {
        if !json {
            let terminal = io::stdout().is_terminal();
            printing.begin(if terminal { answer::text_for_terminal(result) } else { answer::text(result) });
        }
    });
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(error) => {
            answer::report(&supervisor, &printing.end());
            return answer::failed(supervisor, &error);
        }
    };
    match format {
        Format::Json => supervisor.log_cost(&outcome),
        Format::Text | Format::Progress | Format::Ends => {
            afterword(&outcome).into_iter().for_each(|line| supervisor.print(line));
        }
    }
    let printed = match &outcome.result {
        Some(result) if json => answer::print(&answer::object(result, &[])),
        Some(_) | None => printing.end(),
    };
    answer::end(supervisor, &printed, exit::code(&outcome))
}

/// The configuration and where it came from, or what is wrong with it and the exit code for that.
pub(super) fn load(files: Vec<std::path::PathBuf>, flags: Flags) -> Result<(Sources, Loaded), (String, u8)> {
    let sources = Sources::of_process(files, flags)
        .map_err(|error| (format!("agentd: the current folder cannot be used: {error}\n"), exit::USAGE))?;
    let loaded = config::load(&sources);
    let loaded = loaded.map_err(|problems| (config::render(&problems), refused(&problems)))?;
    Ok((sources, loaded))
}

/// A configuration that lacks nothing but a key has a code of its own (S15.2).
fn refused(problems: &[Problem]) -> u8 {
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let for_want_of_a_key = |problem: &Problem| match problem.code {
        Code::NoCredential | Code::NoConfiguration => true,
        Code::Unreadable
        | Code::Syntax
        | Code::TooLarge
        | Code::UnknownKey
        | Code::Duplicate
        | Code::WrongType
        | Code::InvalidValue
        | Code::Missing
        | Code::NotBuilt
        | Code::UnknownVariable
        | Code::Playbook
        | Code::Secret
        | Code::NoProgram => false,
    };
    if errors.all(for_want_of_a_key) { exit::MODEL } else { exit::USAGE }
}

/// The prompt, from stdin when it is `-`.
fn read_prompt(argument: String) -> Result<String, String> {
    let prompt = if argument == "-" { read_stdin(io::stdin().lock())? } else { argument };
    if prompt.trim().is_empty() {
        return Err("the prompt is empty; say what to do, or give - and write it to stdin".to_owned());
    }
    Ok(prompt)
}

fn read_stdin(input: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = input.take(PROMPT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the prompt cannot be read from stdin: {error}"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > PROMPT_BYTES {
        return Err(
            "the prompt on stdin is larger than 4 MiB; put the data in files and let a server read them"
                .into(),
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("the prompt on stdin is not UTF-8 (byte {})", error.utf8_error().valid_up_to())
    })
}

/// What a person wants to know besides the answer.
fn afterword(outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(result) = &outcome.result {
        lines.extend(trouble(result));
        lines.push(answer::cost(result, outcome.costliest));
    }
    if outcome.leaked > 0 {
        lines.push(format!(
            "{} could not be killed",
            answer::processes(usize::try_from(outcome.leaked).unwrap_or(usize::MAX))
        ));
    }
    lines
}

/// Why there is no full answer.
fn trouble(result: &ResultObject) -> Option<String> {
    let status = result.status.name();
    match (&result.error, result.status) {
        (Some(error), _) => Some(format!("{status}: {error}")),
        (None, Status::Completed) if result.partial => Some("the answer is not complete".to_owned()),
        (None, _) => None,
    }
}

fn usage(said: &str) -> u8 {
    eprint!("{said}");
    exit::USAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_read_within_bounds() {
        assert_eq!(read_stdin(&b"count\n"[..]), Ok("count\n".to_owned()));
        let big = vec![b'x'; 4 * 1024 * 1024 + 1];
        assert!(read_stdin(big.as_slice()).is_err_and(|said| said.contains("4 MiB")));
        assert!(read_stdin(&big[1..]).is_ok());
        assert!(read_stdin(&b"ab\xff"[..]).is_err_and(|said| said.contains("byte 2")));
        assert!(read_stdin(io::repeat(b'x')).is_err());
        assert!(read_prompt(" \n".into()).is_err_and(|said| said.contains("is empty")));
    }
}

//! What must hold for any configuration, and for any playbook beside it: the body of the fuzz target `config`.

use super::flags::Flags;
use super::load::{Sources, load_by};
use super::playbook;
use super::problem::{Code, Problem, Severity, render};
use super::source::Source;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Ends a section of the input.
const SEPARATOR: char = '\u{1e}';

/// A secret that is in the environment, and belongs in no problem and no configuration.
const CANARY: &str = "canary-5ecre7";

/// What is said of it all.
type Said = Result<(String, String), Vec<Problem>>;

/// Loads a configuration from the texts in `data`: a file, the variables (`NAME=VALUE`, a line each), the flags (the
/// same), and another file; and reads the first as a playbook. Gives the codes of what is wrong, or that it loads.
///
/// # Panics
///
/// When a problem has no place or no words, would move a terminal or tells a secret, or the core does not take what was
/// loaded.
pub fn config(data: &[u8]) -> BTreeSet<&'static str> {
    let text = String::from_utf8_lossy(data);
    let mut sections = text.splitn(4, SEPARATOR);
    let [first, variables, flags, second] = [(); 4].map(|()| sections.next().unwrap_or_default());
    let files = [("a.yaml", first), ("b.yaml", second)];
    let mut reached = of_playbook(first);
    match load(&files, variables, flags) {
        Ok((config, warnings)) => {
            reached.insert(if warnings.is_empty() { "loads" } else { "loads with warnings" });
            assert!(
                text.contains(CANARY) || !config.contains(CANARY),
                "a secret in the core's configuration"
            );
        }
        Err(problems) => {
            assert!(problems.iter().any(|problem| problem.severity == Severity::Error), "{problems:?}");
            judge(&problems, &files, text.contains(CANARY), &mut reached);
        }
    }
    reached
}

fn load(files: &[(&str, &str)], variables: &str, flags: &str) -> Said {
    let given = files.iter().filter(|(_, text)| !text.is_empty());
    let pairs = variables.lines().filter_map(|line| line.split_once('='));
    let own = [("THE_CANARY", CANARY), ("PATH", "/usr/bin"), ("XDG_CONFIG_HOME", "/nowhere")];
    let sources = Sources {
        files: given.clone().map(|(name, _)| PathBuf::from(name)).collect(),
        environment: own.into_iter().chain(pairs).map(|(name, value)| (name.into(), value.into())).collect(),
        here: PathBuf::from("/nowhere"),
        flags: flags_of(flags),
    };
    let read = |path: &Path| {
        let found = given.clone().find(|(name, _)| path == Path::new(name));
        Ok(found.map_or_else(String::new, |(_, text)| (*text).to_owned()))
    };
    let loaded = load_by(&sources, &read)?;
    drop(Core::new(loaded.config.clone(), Now::default()));
    Ok((serde_json::to_string(&loaded.config).unwrap_or_default(), render_some(&loaded.warnings)))
}

fn render_some(problems: &[Problem]) -> String {
    if problems.is_empty() { String::new() } else { render(problems) }
}

fn flags_of(text: &str) -> Flags {
    let mut flags = Flags::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let value = value.to_owned();
        match name {
            "dialect" => flags.dialect = Some(value),
            "endpoint" => flags.endpoints.push(value),
            "model" => flags.model = Some(value),
            "mcp" => flags.servers.push(value),
            "journal" => flags.journal = Some(value),
            "log-level" => flags.log_level = Some(value),
            _ => {}
        }
    }
    flags
}

/// The text as a playbook, which is read from YAML too.
fn of_playbook(text: &str) -> BTreeSet<&'static str> {
    let mut problems = Vec::new();
    let source = Source::file(Path::new("a.yaml"), 0, text.to_owned());
    let read = playbook::translate(&source, &mut problems);
    assert_eq!(read.is_some(), problems.is_empty(), "{problems:?}");
    let mut reached = BTreeSet::new();
    judge(&problems, &[("a.yaml", text)], true, &mut reached);
    if read.is_some() { ["a playbook"].into() } else { reached }
}

/// Every problem can be acted on.
fn judge(problems: &[Problem], files: &[(&str, &str)], tells: bool, reached: &mut BTreeSet<&'static str>) {
    for problem in problems {
        reached.insert(name(problem.code));
        assert!(!problem.message.is_empty(), "{problem:?}");
        let Some((_, text)) = files.iter().find(|(name, _)| *name == problem.file) else { continue };
        if problem.line == 0 {
            // What is not there has no place.
            let nowhere = [Code::Missing, Code::NoCredential, Code::Unreadable, Code::Secret];
            assert!(nowhere.contains(&problem.code), "no place: {problem:?}");
            continue;
        }
        // A break is LF, CRLF or CR; the place after the last character is one too.
        let lines: Vec<&str> = text.split_inclusive(['\n', '\r']).collect();
        let line = usize::try_from(problem.line).unwrap_or(usize::MAX);
        assert!(line <= lines.len() + 1 && problem.column >= 1, "{problem:?} in {} lines", lines.len());
    }
    let rendered = render_some(problems);
    let moves = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!rendered.chars().any(moves), "{rendered:?}");
    assert!(tells || !rendered.contains(CANARY), "a secret is told: {rendered}");
    assert!(serde_json::to_string(problems).is_ok());
}

fn name(code: Code) -> &'static str {
    match code {
        Code::NoConfiguration => "no_configuration",
        Code::Unreadable => "unreadable",
        Code::Syntax => "syntax",
        Code::TooLarge => "too_large",
        Code::UnknownKey => "unknown_key",
        Code::Duplicate => "duplicate",
        Code::WrongType => "wrong_type",
        Code::InvalidValue => "invalid_value",
        Code::Missing => "missing",
        Code::NotBuilt => "not_built",
        Code::UnknownVariable => "unknown_variable",
        Code::Playbook => "playbook",
        Code::NoCredential => "no_credential",
        Code::Secret => "secret",
        Code::NoProgram => "no_program",
    }
}

//! `agentd sessions`: transcripts for people and for programs. Owns what is printed and the exit code.

use super::exit;
use super::state::StateArgs;
use crate::sessions::{self, About, Lines, NotFound, Session, Words};
use agentd_core::preview::preview;
use clap::{Args, Subcommand};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
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
pub(super) struct SessionsPlace {
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

/// Bytes of a description in a listing.
const SHOWN_BYTES: usize = 100;

/// Lists or shows.
pub(super) fn sessions(args: &SessionsArgs) -> u8 {
    let mut out = BufWriter::new(io::stdout().lock());
    let said = match &args.command {
        SessionsCommand::List { place, limit } => list(place, *limit, &mut out),
        SessionsCommand::Show { id, place } => find(place, id).and_then(|path| show(&path, place, &mut out)),
        SessionsCommand::Children { id, place } => {
            find(place, id).and_then(|path| children(&path, place, &mut out))
        }
    };
    match said.and_then(|()| out.flush().map_err(Trouble::Out)) {
        Ok(()) => exit::COMPLETED,
        // Whoever closed the pipe has read what he wanted.
        Err(Trouble::Out(error)) if error.kind() == ErrorKind::BrokenPipe => exit::COMPLETED,
        Err(trouble) => {
            eprintln!("agentd: {trouble}");
            match trouble {
                Trouble::Place(_) | Trouble::Find(NotFound::Unknown(..) | NotFound::Several(..)) => {
                    exit::USAGE
                }
                Trouble::Find(NotFound::System(..)) | Trouble::Read(..) | Trouble::Out(_) => exit::FAILED,
            }
        }
    }
}

/// Why nothing more is printed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Find(#[from] NotFound),
    #[error("{0}")]
    Place(String),
    #[error("{0} cannot be read: {1}")]
    Read(String, io::Error),
    #[error("the answer could not be written to stdout: {0}")]
    Out(io::Error),
}

fn root(place: &SessionsPlace) -> Result<PathBuf, Trouble> {
    place.state.sessions().map_err(Trouble::Place)
}

fn find(place: &SessionsPlace, id: &str) -> Result<PathBuf, Trouble> {
    Ok(sessions::find(&root(place)?, id)?)
}

fn list(place: &SessionsPlace, limit: usize, out: &mut impl Write) -> Result<(), Trouble> {
    let root = root(place)?;
    let all = sessions::list(&root).map_err(|error| Trouble::Read(root.display().to_string(), error))?;
    let shown = if limit == 0 { all.len() } else { limit.min(all.len()) };
    print(&all[..shown], place.json, out)?;
    if all.is_empty() {
        eprintln!("agentd: there are no sessions below {}", root.display());
    } else if shown < all.len() {
        eprintln!("agentd: {} older ones are not shown; --limit 0 shows all", all.len() - shown);
    }
    Ok(())
}

fn children(path: &Path, place: &SessionsPlace, out: &mut impl Write) -> Result<(), Trouble> {
    let all = sessions::children(path).map_err(|error| Trouble::Read(path.display().to_string(), error))?;
    print(&all, place.json, out)
}

fn print(all: &[Session], json: bool, out: &mut impl Write) -> Result<(), Trouble> {
    for session in all {
        let line = if json {
            serde_json::to_string(session).unwrap_or_default()
        } else {
            let (when, what) = match &session.about {
                About::Known(meta) => {
                    let agent = preview(&meta.agent_type, SHOWN_BYTES);
                    let agent = if agent == "general-purpose" { String::new() } else { format!("{agent}: ") };
                    let when = meta.timestamp.get(..19).unwrap_or(&meta.timestamp).replace('T', " ");
                    (when, format!("{agent}{}", preview(&meta.description, SHOWN_BYTES)))
                }
                About::Unreadable { problem } => {
                    (String::new(), format!("cannot be read: {}", preview(problem, SHOWN_BYTES)))
                }
            };
            format!("{}  {when:19}  {:>9}  {what}", session.id, size(session.bytes))
        };
        writeln!(out, "{line}").map_err(Trouble::Out)?;
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn show(path: &Path, place: &SessionsPlace, out: &mut impl Write) -> Result<(), Trouble> {
    let told = if place.json {
        sessions::tell(path, &mut Lines(&mut *out))
    } else {
        sessions::tell(path, &mut Words(&mut *out))
    };
    let damaged = told.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Trouble::Out(error),
        _ => Trouble::Read(path.display().to_string(), error),
    })?;
    if damaged > 0 {
        eprintln!("agentd: {damaged} lines of {} could not be read and are left out", path.display());
    }
    Ok(())
}

//! `agentd export`: traces of what runs wrote. Owns what is said of it and the exit code.

use super::state::StateArgs;
use super::{exit, headers};
use crate::export::{self, Exported, Form};
use crate::http::dial::Trust;
use crate::sessions::{self, NotFound};
use agentd_core::preview::preview;
use clap::Args;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(super) struct ExportArgs {
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

/// Exports.
pub(super) fn export(args: &ExportArgs) -> u8 {
    let transcripts = match transcripts(args) {
        Ok(transcripts) => transcripts,
        Err((error, code)) => {
            eprintln!("agentd: {error}");
            return code;
        }
    };
    let exported = export::export(transcripts, args.content);
    let form = if args.json { Form::Json } else { Form::Protobuf };
    let (gone, usage) = match (&args.otlp, &args.out) {
        (Some(url), _) => match headers::read(&args.header) {
            Ok(headers) => {
                let trust = args.ca.clone().map_or_else(Trust::default, Trust::only);
                let sent = export::post(&exported.requests, form, url, &headers, &trust);
                (sent.map_err(|failure| failure.to_string()), false)
            }
            Err(error) => (Err(error), true),
        },
        (None, out) => {
            let out = out.as_deref().unwrap_or(Path::new("-"));
            let shown = preview(out.as_os_str().as_encoded_bytes(), 200);
            (
                write(&exported, form, out).map_err(|error| format!("{shown} cannot be written: {error}")),
                false,
            )
        }
    };
    for problem in &exported.problems {
        eprintln!("agentd: {problem}");
    }
    if exported.damaged > 0 {
        eprintln!("agentd: {} lines could not be read and are left out", exported.damaged);
    }
    match gone {
        Ok(()) => eprintln!("agentd: {} runs, {} spans", exported.runs, exported.spans),
        Err(error) => {
            eprintln!("agentd: {error}");
            return if usage { exit::USAGE } else { exit::FAILED };
        }
    }
    if exported.problems.is_empty() { exit::COMPLETED } else { exit::FAILED }
}

/// The transcripts that are asked for, or those of all conversations; else why not, and the exit code.
fn transcripts(args: &ExportArgs) -> Result<Vec<PathBuf>, (String, u8)> {
    let root = args.state.sessions().map_err(|error| (error, exit::USAGE))?;
    found(&root, args).map_err(|error| {
        let code = match error {
            NotFound::Unknown(..) | NotFound::Several(..) => exit::USAGE,
            NotFound::System(..) => exit::FAILED,
        };
        (error.to_string(), code)
    })
}

fn found(root: &Path, args: &ExportArgs) -> Result<Vec<PathBuf>, NotFound> {
    if args.ids.is_empty() {
        let all = sessions::list(root).map_err(|e| NotFound::System(root.display().to_string(), e))?;
        return Ok(all.into_iter().map(|session| session.path).collect());
    }
    args.ids.iter().map(|id| sessions::find(root, id)).collect()
}

fn write(exported: &Exported, form: Form, out: &Path) -> io::Result<()> {
    if out == Path::new("-") {
        return export::write(&exported.requests, form, &mut io::stdout().lock());
    }
    // It may hold what was said, so it is for its owner.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(out)?;
    let mut file = BufWriter::new(file);
    export::write(&exported.requests, form, &mut file)?;
    file.flush()
}

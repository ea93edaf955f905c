//! Transcripts as traces (S11.7): what runs wrote, told in OpenTelemetry's terms to whoever collects them.
//!
//! A pure reader: no daemon is asked, no file is changed, and the same files give the same ids each time, so an export can
//! be repeated. Owns which span each line belongs to, and how far content goes along (not at all, unless asked).
//!
//! | file | owns |
//! |---|---|
//! | `run` | one transcript: its processes, model calls and tool calls, with their times |
//! | `spans` | these as spans, with the names of the semantic conventions |
//! | `send` | to a file or to a collector |

mod run;
mod send;
mod spans;

pub(crate) use send::{Form, post, write};

use crate::sessions::{self, Session};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use std::io;
use std::path::{Path, PathBuf};

/// Spans in one request at most: collectors bound what they take.
const SPANS_PER_REQUEST: usize = 2_000;

/// What an export came to.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    pub(crate) requests: Vec<ExportTraceServiceRequest>,
    /// Transcripts that were read.
    pub(crate) runs: usize,
    pub(crate) spans: usize,
    /// Lines that could not be read.
    pub(crate) damaged: u64,
    /// Transcripts of which nothing could be.
    pub(crate) problems: Vec<String>,
}

/// The runs of these transcripts and of all that they delegated.
pub(crate) fn export(transcripts: Vec<PathBuf>, content: bool) -> Exported {
    let mut exported = Exported::default();
    let mut spans = Vec::new();
    let mut open = transcripts;
    while let Some(path) = open.pop() {
        match one(&path, content, &mut exported) {
            Ok((of_run, below)) => {
                spans.extend(of_run);
                open.extend(below.into_iter().map(|session| session.path));
            }
            Err(error) => exported.problems.push(format!("{}: {error}", path.display())),
        }
    }
    exported.spans = spans.len();
    while !spans.is_empty() {
        let rest = spans.split_off(spans.len().min(SPANS_PER_REQUEST));
        exported.requests.push(spans::request(std::mem::replace(&mut spans, rest)));
    }
    exported
}

fn one(path: &Path, content: bool, exported: &mut Exported) -> io::Result<(Vec<Span>, Vec<Session>)> {
    let mut reader = run::Reader::default();
    exported.damaged += sessions::tell(path, &mut reader)?;
    exported.runs += 1;
    let spans = reader.finish().iter().flat_map(|process| spans::of(process, content)).collect();
    Ok((spans, sessions::children(path)?))
}

#[cfg(test)]
mod tests;

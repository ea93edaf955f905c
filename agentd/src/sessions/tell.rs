//! A transcript told to a person, line by line.

use super::open;
use agentd_core::preview::preview;
use agentd_core::transcript::{Entry, Item, ItemRole, Record, read_line};
use agentd_core::wire::message::{FailKind, LoopEnd, TurnOutcome};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// Bytes of arguments and of results that are shown.
const SHOWN_BYTES: usize = 400;

/// Who is told the lines of a transcript.
pub(crate) trait Teller {
    /// A line that says something.
    fn record(&mut self, record: &Record, line: &[u8]) -> io::Result<()>;
}

/// Reads a transcript from its beginning to what is there now; how many of its lines could not be read.
///
/// # Errors
/// It cannot be read, or what is told cannot be written.
pub(crate) fn tell(path: &Path, teller: &mut impl Teller) -> io::Result<u64> {
    let mut lines = BufReader::new(open(path)?);
    let (mut line, mut damaged) = (Vec::new(), 0);
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        match read_line(text) {
            Ok(record) => teller.record(&record, text)?,
            Err(_) if text.is_empty() => {}
            Err(_) => damaged += 1,
        }
        line.clear();
    }
    Ok(damaged)
}

/// The lines as they are in the file.
pub(crate) struct Lines<W>(pub(crate) W);

impl<W: Write> Teller for Lines<W> {
    fn record(&mut self, _: &Record, line: &[u8]) -> io::Result<()> {
        self.0.write_all(line)?;
        self.0.write_all(b"\n")
    }
}

/// What was said, in words.
pub(crate) struct Words<W>(pub(crate) W);

impl<W: Write> Teller for Words<W> {
    fn record(&mut self, record: &Record, _: &[u8]) -> io::Result<()> {
        let clock = record.timestamp.get(11..19).unwrap_or("        ");
        match &record.entry {
            Entry::SessionMeta(head) => {
                let who = head.handle.map_or_else(|| "conversation".to_owned(), |handle| handle.to_string());
                let goes_on = if head.resumed { ", goes on" } else { "" };
                let (attempt, model) = (head.attempt, preview(&head.model, SHOWN_BYTES));
                let (id, agent) = (head.run_id, preview(&head.meta.agent_type, SHOWN_BYTES));
                writeln!(
                    self.0,
                    "{clock}  {who} {id}, {agent}, model {model}, attempt {attempt}{goes_on}, {}",
                    record.timestamp.get(..10).unwrap_or_default()
                )
            }
            Entry::ResponseItem(item) => self.item(clock, item),
            // Of what happened besides, only what a reader would miss.
            Entry::AgentEvent(_) => Ok(()),
        }
    }
}

impl<W: Write> Words<W> {
    fn item(&mut self, clock: &str, item: &Item) -> io::Result<()> {
        match item {
            Item::Context { role: ItemRole::User, text } => self.said(clock, "context", text),
            Item::Context { role: ItemRole::Assistant, text } => self.said(clock, "context, answered", text),
            Item::Turn { turn, text } => self.said(clock, &format!("turn {turn}"), text),
            Item::Told { text } => self.said(clock, "told", text),
            Item::Assistant { text, calls, .. } => {
                if let Some(text) = text {
                    self.said(clock, "answered", text)?;
                }
                for call in calls {
                    let (name, args) =
                        (preview(&call.name, 100), preview(call.args.to_string(), SHOWN_BYTES));
                    writeln!(self.0, "{clock}  call {}: {name} {args}", preview(&call.id, 100))?;
                }
                Ok(())
            }
            Item::ToolResult(result) => {
                let what = if result.error { "error" } else { "result" };
                let text = preview(result.text.trim(), SHOWN_BYTES);
                writeln!(self.0, "{clock}  {what} of {}: {text}", preview(&result.id, 100))
            }
            Item::Compacted { history } => {
                writeln!(self.0, "{clock}  the history was made shorter: {} messages are left", history.len())
            }
            Item::Ended { turn, outcome, stopped } => {
                let how = preview(ending(outcome), SHOWN_BYTES);
                match stopped {
                    true => writeln!(self.0, "{clock}  its process was ended in turn {turn}: {how}"),
                    false => writeln!(self.0, "{clock}  turn {turn} ended: {how}"),
                }
            }
        }
    }

    /// A text of several lines, each of them under its own.
    fn said(&mut self, clock: &str, who: &str, text: &str) -> io::Result<()> {
        writeln!(self.0, "{clock}  {who}:")?;
        text.lines().try_for_each(|line| writeln!(self.0, "            {}", preview(line, usize::MAX)))
    }
}

fn ending(outcome: &TurnOutcome) -> String {
    let (how, error) = match outcome {
        TurnOutcome::Result(result) => {
            let how = match result.end {
                LoopEnd::Completed if result.partial => "completed, in part",
                LoopEnd::Completed => "completed",
                LoopEnd::Refused => "refused",
                LoopEnd::ExhaustedSteps => "out of steps",
                LoopEnd::ExhaustedTokens => "out of tokens",
                LoopEnd::Deadline => "out of time",
                LoopEnd::LoopDetected => "going in circles",
                LoopEnd::Cancelled => "cancelled",
            };
            (how, result.error.as_deref())
        }
        TurnOutcome::Failed(failed) => {
            let how = match failed.kind {
                FailKind::Model => "failed, the model",
                FailKind::Server => "failed, a server",
                FailKind::Schema => "failed, the schema",
                FailKind::Budget => "failed, a budget",
                FailKind::Spawn | FailKind::Reply | FailKind::EmptyReply | FailKind::Internal => "failed",
            };
            (how, Some(failed.error.as_str()))
        }
    };
    error.map_or_else(|| how.to_owned(), |error| format!("{how}: {error}"))
}

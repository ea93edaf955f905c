//! `agentd replay`: a journal lived through again, for people and for programs. Owns what is printed and the exit
//! code: 0 when every action is as recorded, 1 when one is not or the journal is damaged, 2 when there is none.

use super::exit;
use crate::journal::{ReadError, Recording};
use crate::replay::{self, Audience, Cast, Line, Step, Story, Verdict, Who, speech, words};
use agentd_core::supervisor::Core;
use agentd_core::time::Instant;
use agentd_core::wire::Up;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(super) struct ReplayArgs {
    /// The journal. FILE.4 to FILE.1 are read before it where they are of the same daemon's life.
    file: PathBuf,
    /// Tell one run's story in plain words: a handle (sub-7), a run id, or root for the conversation.
    #[arg(long, value_name = "RUN")]
    explain: Option<Who>,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// Print only what the comparison came to.
    #[arg(long, conflicts_with = "explain")]
    quiet: bool,
    /// Print from this event on; all are compared.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "explain")]
    from: u64,
    /// Print up to this event.
    #[arg(long, value_name = "N", conflicts_with = "explain")]
    to: Option<u64>,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  agentd demo --journal flight              record something
  agentd replay flight                      every event, what was done about it, and why
  agentd replay --explain sub-1 flight      the story of one run
  agentd replay --quiet flight              only whether this agentd decides the same

Exit codes: 0 every action is as recorded, 1 one is not (the first is named) or the journal is damaged,
2 no journal, or no such run.";

/// Replays a journal.
pub(super) fn replay(args: &ReplayArgs) -> u8 {
    let recording = match Recording::open(&args.file) {
        Ok(recording) => recording,
        Err(error) => {
            eprintln!("agentd: {error}");
            return match error.why {
                ReadError::Cut { .. } | ReadError::Damaged { .. } => exit::FAILED,
                ReadError::System(_)
                | ReadError::Irregular
                | ReadError::Foreign
                | ReadError::Empty
                | ReadError::Version(_) => exit::USAGE,
            };
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = match args.explain {
        Some(who) => explain(&recording, Story::of(who), args, &mut out),
        None => decisions(&recording, args, &mut out),
    };
    match printed.and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => code,
        // Whoever closed the pipe has read what he wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit::COMPLETED,
        Err(error) => {
            eprintln!("agentd: the replay could not be written to stdout: {error}");
            exit::FAILED
        }
    }
}

fn decisions(recording: &Recording, args: &ReplayArgs, out: &mut impl Write) -> io::Result<u8> {
    if !args.json {
        beginning(recording, out)?;
    }
    let mut printer = Printer { args, cast: Cast::default(), out, failed: None };
    let verdict = replay::replay(recording, &mut printer);
    let Printer { cast, failed, .. } = printer;
    if let Some(error) = failed {
        return Err(error);
    }
    ending(recording, &verdict, &cast, args.json, out)
}

fn explain(
    recording: &Recording,
    mut story: Story,
    args: &ReplayArgs,
    out: &mut impl Write,
) -> io::Result<u8> {
    let verdict = replay::replay(recording, &mut story);
    if story.lines().is_empty() {
        let whole = verdict.damaged.is_empty() && verdict.torn.is_none();
        eprintln!("agentd: there is no such run in this journal; there are {}", story.known().join(", "));
        for line in trouble(recording, &verdict, &Cast::default()) {
            eprintln!("{line}");
        }
        // It may be in what is lost.
        return Ok(if whole { exit::USAGE } else { exit::FAILED });
    }
    if args.json {
        for line in story.lines() {
            writeln!(out, "{}", json!({ "at_ms": line.at_ms, "event": line.event, "text": line.text }))?;
        }
    } else {
        beginning(recording, out)?;
        let mut before = None;
        for Line { at_ms, text, .. } in story.lines() {
            let at = words::time(Instant::from_millis(*at_ms));
            let shown = if before == Some(*at_ms) { "" } else { at.as_str() };
            writeln!(out, "{shown:>11}  {text}")?;
            before = Some(*at_ms);
        }
        if let Some(open) = story.open_end() {
            writeln!(out, "{:>11}  {open}", "")?;
        }
    }
    // What cannot be relied upon is said beside the story, not in it.
    for line in trouble(recording, &verdict, &Cast::default()) {
        eprintln!("{line}");
    }
    Ok(code(&verdict))
}

/// Which journal it is.
fn beginning(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    let header = recording.header();
    let files: Vec<String> = recording.files().iter().map(|file| file.display().to_string()).collect();
    writeln!(out, "{}: of agentd {}, begun {}", files.join(", "), header.agentd, header.began())?;
    if header.segment > 0 {
        writeln!(out, "the oldest kept file begins after event {}", header.events)?;
    }
    Ok(())
}

/// What the replay came to.
fn ending(
    recording: &Recording,
    verdict: &Verdict,
    cast: &Cast,
    json: bool,
    out: &mut impl Write,
) -> io::Result<u8> {
    let trouble = trouble(recording, verdict, cast);
    if json {
        let end = json!({
            "end": if verdict.is_same() { "same" } else { "not_same" },
            "events": verdict.events,
            "actions": verdict.same,
            "said": trouble,
        });
        writeln!(out, "{end}")?;
    } else {
        trouble.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let (events, actions) = (verdict.events, verdict.same);
        let same = match (&verdict.difference, verdict.damaged.is_empty()) {
            (Some(_), _) => "not every action is as recorded",
            (None, false) => "every action that could be read is as recorded; what is damaged is lost",
            (None, true) => "every action is as recorded",
        };
        writeln!(out, "{events} events, {actions} actions compared: {same}")?;
    }
    Ok(code(verdict))
}

fn code(verdict: &Verdict) -> u8 {
    if verdict.is_same() { exit::COMPLETED } else { exit::FAILED }
}

/// All that a reader has to know of the journal besides its events.
fn trouble(recording: &Recording, verdict: &Verdict, cast: &Cast) -> Vec<String> {
    let mut lines = Vec::new();
    for (file, why) in &verdict.damaged {
        lines.push(format!("{}: {why}; what follows in it is lost", file.display()));
    }
    if let Some((file, why)) = &verdict.torn {
        lines.push(format!(
            "{}: {why}, as after a crash; everything before that was replayed",
            file.display()
        ));
    }
    if verdict.unanswered && verdict.damaged.is_empty() {
        lines.push(
            "the last event has no recorded answer: the daemon ended before it could be written".to_owned(),
        );
    }
    if verdict.is_same() && verdict.torn.is_none() && !verdict.unanswered && !verdict.ended {
        let ends = "the journal ends here and the daemon had not: it went on, was killed, or told of \
                    journal.stopped in its log";
        lines.push(ends.to_owned());
    }
    if let Some(difference) = &verdict.difference {
        lines.extend(words::difference(difference, cast));
        let (theirs, ours) = (&recording.header().agentd, env!("CARGO_PKG_VERSION"));
        if !recording.header().is_of_this_version() {
            lines.push(format!(
                "the journal is of agentd {theirs} and this is {ours}: another version may decide otherwise, so a difference is to be expected; replay it with {theirs}"
            ));
        }
    }
    lines
}

/// Prints each decision as it is made again.
struct Printer<'a, W> {
    args: &'a ReplayArgs,
    cast: Cast,
    out: &'a mut W,
    failed: Option<io::Error>,
}

impl<W: Write> Printer<'_, W> {
    fn print(&mut self, step: &Step<'_>, heard: &[String]) -> io::Result<()> {
        let event = words::event(step, heard, &self.cast);
        let actions: Vec<String> =
            step.actions.iter().map(|action| words::action(action, &self.cast)).collect();
        if self.args.json {
            let wall = step.now.wall.to_string();
            let at_ms = step.now.mono.millis();
            let actions: Vec<Value> = actions.into_iter().map(Value::from).collect();
            let line =
                json!({ "n": step.number, "at_ms": at_ms, "ts": wall, "event": event, "actions": actions });
            return writeln!(self.out, "{line}");
        }
        writeln!(self.out, "#{} {} {event}", step.number, words::time(step.now.mono))?;
        actions.iter().try_for_each(|action| writeln!(self.out, "      {action}"))
    }
}

impl<W: Write> Audience for Printer<'_, W> {
    fn begins(&mut self, _header: &crate::journal::Header, core: &Core) {
        self.cast.begin(core);
    }

    fn step(&mut self, step: &Step<'_>) -> bool {
        self.cast.learn(step.actions);
        let heard: Vec<String> = self
            .cast
            .hear(step.event)
            .into_iter()
            .map(|message: Result<Up, _>| match message {
                Ok(message) => speech::up(&message),
                Err(error) => format!("something that breaks the protocol: {error}"),
            })
            .collect();
        let wanted = step.number >= self.args.from && self.args.to.is_none_or(|to| step.number <= to);
        if wanted && !self.args.quiet {
            self.failed = self.print(step, &heard).err();
        }
        self.failed.is_none()
    }
}

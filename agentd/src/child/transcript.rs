//! The run's transcript on disk (S11.2, S11.3): opened before there is a thread, read where the run goes on with what an
//! earlier process wrote, and written line by line, each in one write, before what follows from it is done.
//!
//! Owns the file, its lock and the small file beside it. Refuses a file that another process still writes. A disk that
//! takes no more ends the transcript and not the run: that is told once.

use super::catalogue::event;
use agentd_core::time::Wall;
use agentd_core::transcript::{AgentEvent, Entry, Item, Meta, Past, Reader, SessionMeta, line, place};
use agentd_core::wire::Up;
use agentd_core::wire::message::{Begins, Event, Spawn, Transcript, Usage};
use serde_json::{Map, Value, json};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an earlier process of the run, which is being killed, may hold the file.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Of the form of a transcript, in its first line.
const FORM: u32 = 1;

/// A transcript that takes lines.
pub(super) struct Tape {
    /// Absent once a line could not be written.
    file: Option<File>,
    path: String,
}

/// A transcript and what it held.
pub(super) struct Opened {
    pub(super) tape: Tape,
    /// What is taken up.
    pub(super) past: Option<Past>,
}

/// Opens the transcript that a run was given, if it was given one.
///
/// # Errors
/// It cannot be opened, for people.
pub(super) fn open(spawn: &Spawn, now: Wall) -> Result<Option<Opened>, String> {
    let Some(given) = &spawn.transcript else { return Ok(None) };
    let problem = |error: io::Error| {
        format!("the transcript {} cannot be opened: {error}; see that its folder can be written", given.path)
    };
    let (file, past) = open_file(given).map_err(problem)?;
    let past = past.filter(|past| past.turn > 0);
    let mut tape = Tape { file: Some(file), path: given.path.clone() };
    let head = head(spawn, given, now, past.is_some());
    if given.parent.is_some() {
        write_meta(given, &head.meta).map_err(problem)?;
    }
    if let Some(failed) = tape.write(now, &Entry::SessionMeta(Box::new(head))) {
        return Err(failed);
    }
    Ok(Some(Opened { tape, past }))
}

fn open_file(given: &Transcript) -> io::Result<(File, Option<Past>)> {
    let path = Path::new(&given.path);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    lock(&file)?;
    let past = match given.begins {
        Begins::Anew => None,
        Begins::Again | Begins::After => Some(read(&file)?),
    };
    // A line that death cut short stays alone, so that the next one is whole.
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok((file, past))
}

fn lock(file: &File) -> io::Result<()> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                let why = "another process still writes it";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn read(file: &File) -> io::Result<Past> {
    let mut reader = Reader::default();
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        reader.take(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    Ok(reader.finish())
}

fn head(spawn: &Spawn, given: &Transcript, now: Wall, resumed: bool) -> SessionMeta {
    let meta = Meta {
        agent_id: spawn.run_id,
        agent_type: given.agent_type.clone(),
        description: Meta::description(&spawn.instruction),
        tool_call_id: given.tool_call_id.clone(),
        parent_session_id: given.parent,
        root_session_id: given.session,
        spawn_depth: spawn.depth,
        timestamp: now.to_string(),
    };
    SessionMeta {
        meta,
        version: FORM,
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: spawn.run_id,
        handle: spawn.handle,
        attempt: spawn.attempt,
        role: spawn.role,
        mode: spawn.mode,
        model: spawn.model.name.clone(),
        trace_id: spawn.trace.trace_id.clone(),
        span_id: spawn.trace.span_id.clone(),
        parent_span_id: spawn.trace.parent_span_id.clone(),
        resumed,
    }
}

/// Whole or not at all, for whoever lists children meanwhile. The one of an earlier process stands.
fn write_meta(given: &Transcript, meta: &Meta) -> io::Result<()> {
    let path = place::meta(&given.path);
    if Path::new(&path).exists() {
        return Ok(());
    }
    let new = format!("{path}.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(meta)?)?;
    fs::rename(new, path)
}

impl Tape {
    /// Writes a part of the history. `Some` is why the transcript ends here.
    pub(super) fn item(&mut self, now: Wall, item: Item) -> Option<Event> {
        self.write(now, &Entry::ResponseItem(item)).map(|why| event("warn", "agent.transcript", why))
    }

    /// Writes what a frame to the supervisor tells of the run, if it is something that happened.
    pub(super) fn told(&mut self, now: Wall, up: &Up) -> Option<Event> {
        let entry = match up {
            Up::Usage(usage) => used(usage),
            Up::Event(event) => happened(event),
            _ => return None,
        };
        self.write(now, &Entry::AgentEvent(entry)).map(|why| event("warn", "agent.transcript", why))
    }

    fn write(&mut self, now: Wall, entry: &Entry) -> Option<String> {
        let file = self.file.as_mut()?;
        let error = file.write_all(&line(now, entry)).err()?;
        self.file = None;
        Some(format!(
            "the transcript {} ends here: {error}; the run goes on, and cannot be resumed from later than this",
            self.path
        ))
    }
}

fn used(usage: &Usage) -> AgentEvent {
    let Usage { input, output, cached, estimated, model } = usage;
    let fields = json!({
        "input": input, "output": output, "cached": cached, "estimated": estimated, "model": model,
    });
    AgentEvent { event: "usage".to_owned(), fields: fields.as_object().cloned().unwrap_or_default() }
}

fn happened(event: &Event) -> AgentEvent {
    let mut fields = Map::from_iter([("level".to_owned(), Value::from(event.level.as_str()))]);
    fields.extend(event.fields.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
    AgentEvent { event: event.name.clone(), fields }
}

#[cfg(test)]
mod tests;

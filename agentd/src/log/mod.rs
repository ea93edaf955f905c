//! The log (S17.2): notes become lines on a sink, written by a thread of its own, so that a reader of stderr
//! that stops reading stops the log and nothing else. Owns the queue, its bounds and the count of what was
//! dropped. It never blocks the caller and never writes to stdout.

mod line;
mod sink;

pub use line::Format;
pub use sink::stderr;

use agentd_core::note::{Level, Note};
use agentd_core::time::{Duration, Wall};
use sink::Sink;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;

/// Lines that wait to be written; one more is dropped and counted.
const QUEUE_LINES: usize = 8_192;

/// Bytes that wait to be written; a note that does not fit is dropped and counted.
const QUEUE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that are written in one go.
const BATCH_BYTES: usize = 64 * 1024;

/// A running log. Cheap to use from one thread; closing it is bounded.
#[derive(Debug)]
pub struct Log {
    level: Cell<Level>,
    queue: SyncSender<Queued>,
    shared: Arc<Shared>,
    ended: Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bytes in the queue.
    waiting: AtomicUsize,
    /// Lines dropped since the last report.
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Queued {
    content: Content,
    cost: usize,
}

#[derive(Debug)]
enum Content {
    /// Lines look like this from here on.
    Format(Format),
    Note(Wall, Box<Note>),
    /// For people, as it is.
    Text(String),
}

impl Log {
    /// Starts the thread. `level` is the least important one that is written.
    pub fn start(format: Format, level: Level, sink: impl Write + Send + 'static) -> io::Result<Log> {
        let (queue, incoming) = mpsc::sync_channel(QUEUE_LINES);
        let (end, ended) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("agentd:log".into()).spawn(move || {
            Writer { format, sink: Sink::new(sink), shared: theirs, now: Wall(0) }.run(&incoming);
            // Nobody listens when the log was closed before it was empty.
            let _ = end.send(());
        })?;
        Ok(Log { level: Cell::new(level), queue, shared, ended })
    }

    /// Queues a note, or drops and counts it. Never blocks.
    pub fn note(&self, now: Wall, note: Note) {
        if note.level <= self.level.get() {
            let cost = cost(&note);
            self.push(Queued { content: Content::Note(now, Box::new(note)), cost });
        }
    }

    /// Queues a note that has no run.
    pub fn say(&self, now: Wall, level: Level, event: &str, fields: &[(&str, serde_json::Value)]) {
        let fields = fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        self.note(now, Note { fields: fields.collect(), ..Note::of_daemon(level, event) });
    }

    /// From now on notes up to this level are written.
    pub fn set_level(&self, level: Level) {
        self.level.set(level);
    }

    /// What is queued from now on looks like this. Where the queue is full, it looks as before.
    pub fn set_format(&self, format: Format) {
        self.push(Queued { content: Content::Format(format), cost: 0 });
    }

    /// Queues a line for people, whatever the level and format.
    pub fn print(&self, line: String) {
        let cost = line.len();
        self.push(Queued { content: Content::Text(line), cost });
    }

    /// Writes what is queued, for at most this long; what is left then is lost. Says whether all was written.
    pub fn close(self, within: Duration) -> bool {
        let Log { queue, ended, .. } = self;
        drop(queue);
        match ended.recv_timeout(within) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    fn push(&self, queued: Queued) {
        let cost = queued.cost;
        let waiting = self.shared.waiting.fetch_add(cost, Ordering::Relaxed);
        let sent = if waiting.saturating_add(cost) > QUEUE_BYTES {
            Err(())
        } else {
            self.queue.try_send(queued).map_err(|refused| match refused {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => (),
            })
        };
        if sent.is_err() {
            self.shared.waiting.fetch_sub(cost, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Bytes a note takes in the queue, near enough.
fn cost(note: &Note) -> usize {
    let value = |value: &serde_json::Value| value.as_str().map_or(16, str::len);
    let fields: usize = note.fields.iter().map(|(key, v)| 64 + key.len() + value(v)).sum();
    256 + note.event.len() + fields
}

/// What the thread owns.
struct Writer<W> {
    format: Format,
    sink: Sink<W>,
    shared: Arc<Shared>,
    /// Of the last note, for the report of drops.
    now: Wall,
}

impl<W: Write> Writer<W> {
    fn run(mut self, incoming: &Receiver<Queued>) {
        let mut batch = Vec::new();
        while let Ok(first) = incoming.recv() {
            self.add(first, &mut batch);
            while batch.len() < BATCH_BYTES {
                let Ok(next) = incoming.try_recv() else { break };
                self.add(next, &mut batch);
            }
            self.report_drops(&mut batch);
            self.sink.write(&batch);
            batch.clear();
        }
        self.report_drops(&mut batch);
        self.sink.write(&batch);
    }

    fn add(&mut self, queued: Queued, batch: &mut Vec<u8>) {
        self.shared.waiting.fetch_sub(queued.cost, Ordering::Relaxed);
        match queued.content {
            Content::Format(format) => self.format = format,
            Content::Note(now, note) => {
                self.now = now;
                line::write(self.format, now, &note, batch);
            }
            Content::Text(text) => {
                batch.extend_from_slice(text.as_bytes());
                batch.push(b'\n');
            }
        }
    }

    fn report_drops(&mut self, batch: &mut Vec<u8>) {
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let fields = BTreeMap::from([("lines".to_owned(), dropped.into())]);
            let note = Note {
                level: Level::Warn,
                event: "log.dropped".to_owned(),
                run_id: None,
                handle: None,
                node: None,
                attempt: None,
                trace_id: None,
                fields,
            };
            line::write(self.format, self.now, &note, batch);
        }
    }
}

#[cfg(test)]
mod tests;

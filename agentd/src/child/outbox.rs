//! Frames on their way out: a queue, and the one thread that writes stdout.
//!
//! Owns frame numbers, the order (pongs before frames, frames as queued, each whole) and the bound on what waits.
//! Refuses everything after the terminal frame. A pipe that nobody empties stops this thread and no other: the
//! control thread and the loop only ever append to a queue, without a lock that is held while frames are built
//! or written (S2.8).

use super::inbox::Inbox;
use agentd_core::limits;
use agentd_core::wire::message::{Event, FailKind, Failed, Pong, Turn, TurnOutcome};
use agentd_core::wire::{Encoder, Up};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of frames that may wait. Beyond, events are dropped and counted and the loop begins nothing new until
/// there is room; what answers something already begun is always taken.
const FRAME_BYTES_WAITING: usize = 1024 * 1024;

/// Pongs that may wait. Beyond, they are dropped: a supervisor that has not read for that many pings will judge
/// by the next one.
const PONGS_WAITING: usize = 4_096;

/// Bytes that are put together before they are written.
const BATCH_BYTES: usize = 64 * 1024;

/// The sending side, for the main thread.
pub(super) struct Outbox {
    queue: Sender<Item>,
    waiting: Arc<Waiting>,
    dropped_events: u64,
    closed: bool,
}

/// The sending side, for the control thread.
pub(super) struct Pongs {
    queue: Sender<Item>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    frame_bytes: AtomicUsize,
    pongs: AtomicUsize,
}

enum Item {
    Pong(u64),
    Frame { up: Up, weight: usize },
}

/// Makes the queue; the writer is to be run on a thread of its own.
pub(super) fn outbox<W: Write>(to: W, encoder: Encoder, inbox: Sender<Inbox>) -> (Outbox, Pongs, Writer<W>) {
    let (queue, items) = channel();
    let waiting = Arc::new(Waiting::default());
    let pongs = Pongs { queue: queue.clone(), waiting: Arc::clone(&waiting) };
    let outbox = Outbox { queue, waiting: Arc::clone(&waiting), dropped_events: 0, closed: false };
    let writer = Writer {
        to,
        inbox,
        items,
        waiting,
        encoder,
        pongs: VecDeque::new(),
        frames: VecDeque::new(),
        batch: Vec::new(),
    };
    (outbox, pongs, writer)
}

impl Outbox {
    /// Queues a frame. An event that finds the queue full is dropped; the count goes out with the next one.
    pub(super) fn push(&mut self, up: Up) {
        if self.closed {
            return;
        }
        if matches!(up, Up::Event(_)) {
            if self.is_full() {
                self.dropped_events += 1;
                return;
            }
            self.tell_of_drops();
        }
        self.closed = is_terminal(&up);
        let weight = weight(&up);
        self.waiting.frame_bytes.fetch_add(weight, Ordering::Relaxed);
        // The writer ends early only when nobody can read any more, and has said so.
        let _unread = self.queue.send(Item::Frame { up, weight });
    }

    /// Whether the loop should begin nothing new. [`Inbox::Writable`] follows once it is not.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.frame_bytes.load(Ordering::Relaxed) >= FRAME_BYTES_WAITING
    }

    fn tell_of_drops(&mut self) {
        if self.dropped_events == 0 {
            return;
        }
        let fields =
            BTreeMap::from([("count".to_owned(), std::mem::take(&mut self.dropped_events).to_string())]);
        let up = Up::Event(Event { level: "warn".into(), name: "agent.events_dropped".into(), fields });
        self.waiting.frame_bytes.fetch_add(SMALL, Ordering::Relaxed);
        let _unread = self.queue.send(Item::Frame { up, weight: SMALL });
    }
}

impl Pongs {
    /// Answers a ping. Never waits.
    pub(super) fn push(&self, seq: u64) {
        if self.waiting.pongs.fetch_add(1, Ordering::Relaxed) >= PONGS_WAITING {
            self.waiting.pongs.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let _unread = self.queue.send(Item::Pong(seq));
    }
}

/// The writing side.
pub(super) struct Writer<W> {
    to: W,
    inbox: Sender<Inbox>,
    items: Receiver<Item>,
    waiting: Arc<Waiting>,
    encoder: Encoder,
    pongs: VecDeque<u64>,
    frames: VecDeque<(Up, usize)>,
    batch: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes until the terminal frame is out, both senders are gone, or nobody can read.
    pub(super) fn run(mut self) {
        while self.fill() {
            let terminal = self.build();
            if self.to.write_all(&self.batch).and_then(|()| self.to.flush()).is_err() {
                let _ended = self.inbox.send(Inbox::OutputGone);
                return;
            }
            self.batch.clear();
            if terminal {
                let _ended = self.inbox.send(Inbox::TerminalWritten);
                return;
            }
        }
    }

    /// Takes over all that is queued, waiting when there is nothing. `false`: nothing will ever come.
    fn fill(&mut self) -> bool {
        if self.pongs.is_empty() && self.frames.is_empty() {
            let Ok(first) = self.items.recv() else { return false };
            self.sort(first);
        }
        while let Ok(item) = self.items.try_recv() {
            self.sort(item);
        }
        true
    }

    fn sort(&mut self, item: Item) {
        match item {
            Item::Pong(seq) => self.pongs.push_back(seq),
            Item::Frame { up, weight } => self.frames.push_back((up, weight)),
        }
    }

    /// Encodes every pong and as many frames as make a batch. Whether the terminal frame is among them.
    fn build(&mut self) -> bool {
        let pongs = self.pongs.len();
        while let Some(seq) = self.pongs.pop_front() {
            self.encode(Up::Pong(Pong { seq }));
        }
        self.waiting.pongs.fetch_sub(pongs, Ordering::Relaxed);
        while self.batch.len() < BATCH_BYTES {
            let Some((up, weight)) = self.frames.pop_front() else { break };
            let terminal = is_terminal(&up);
            self.encode(up);
            self.release(weight);
            if terminal {
                return true;
            }
        }
        false
    }

    /// Appends one frame. One that is too large is replaced by word of that, if a run depends on it.
    fn encode(&mut self, up: Up) {
        let Err(error) = self.encoder.append(&up, &mut self.batch) else { return };
        if let Some(word) = instead_of(up, &error.to_string()) {
            // Bounded by itself, so this one fits.
            let _fits = self.encoder.append(&word, &mut self.batch);
        }
    }

    fn release(&self, weight: usize) {
        let before = self.waiting.frame_bytes.fetch_sub(weight, Ordering::Relaxed);
        if before >= FRAME_BYTES_WAITING && before - weight < FRAME_BYTES_WAITING {
            let _ended = self.inbox.send(Inbox::Writable);
        }
    }
}

/// What to send in place of a frame that is too large.
fn instead_of(up: Up, error: &str) -> Option<Up> {
    match up {
        Up::Result(result) => Some(Up::Failed(Failed {
            kind: FailKind::Internal,
            error: format!("the result cannot be sent: {error}"),
            text: result.text.map(head),
            evidence: result.evidence,
        })),
        Up::Failed(failed) => {
            Some(Up::Failed(Failed { error: head(failed.error), text: failed.text.map(head), ..failed }))
        }
        Up::Tools(tools) => Some(Up::Event(Event {
            level: "error".into(),
            name: "mcp.tools".into(),
            fields: BTreeMap::from([
                ("server".to_owned(), tools.server),
                (
                    "error".to_owned(),
                    format!("its list of {} tools cannot be sent: {error}", tools.tools.len()),
                ),
            ]),
        })),
        Up::Turn(turn) => {
            let outcome = match turn.outcome {
                TurnOutcome::Result(result) => Up::Result(result),
                TurnOutcome::Failed(failed) => Up::Failed(failed),
            };
            match instead_of(outcome, error)? {
                Up::Failed(failed) => {
                    Some(Up::Turn(Turn { id: turn.id, outcome: TurnOutcome::Failed(failed) }))
                }
                _ => None,
            }
        }
        Up::Ready(_)
        | Up::Pong(_)
        | Up::Event(_)
        | Up::State(_)
        | Up::Usage(_)
        | Up::ToolRequest(_)
        | Up::BudgetRequest(_)
        | Up::Ack(_)
        | Up::ModelHealth(_) => None,
    }
}

fn head(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(limits::RESULT_TEXT_BYTES));
    text
}

fn is_terminal(up: &Up) -> bool {
    matches!(up, Up::Result(_) | Up::Failed(_))
}

/// Weight of a frame without large parts.
const SMALL: usize = 256;

/// About the bytes a frame holds while it waits.
fn weight(up: &Up) -> usize {
    let large = match up {
        Up::Ready(_) | Up::Pong(_) | Up::Usage(_) | Up::State(_) | Up::BudgetRequest(_) | Up::Ack(_) => 0,
        Up::ModelHealth(report) => report.endpoint.len(),
        Up::Event(event) => event.fields.iter().map(|(k, v)| k.len() + v.len()).sum(),
        Up::Tools(tools) => tools.tools.iter().map(|name| name.len() + 24).sum(),
        Up::ToolRequest(request) => request.args.0.len() + request.name.len() + request.call_id.len(),
        Up::Turn(Turn { outcome: TurnOutcome::Result(result), .. }) | Up::Result(result) => {
            result.text.as_ref().map_or(0, String::len)
        }
        Up::Turn(Turn { outcome: TurnOutcome::Failed(failed), .. }) | Up::Failed(failed) => {
            failed.error.len() + failed.text.as_ref().map_or(0, String::len)
        }
    };
    SMALL + large
}

#[cfg(test)]
mod tests;

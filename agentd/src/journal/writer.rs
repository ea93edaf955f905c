//! The thread that writes a journal, and what waits for it. The core's thread appends encoded records and never
//! waits for a disk; this one takes all that waits at once. Refuses to skip: what cannot wait any more, or cannot be
//! written, ends the journal.

use super::files::{self, JournalError};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that wait to be written; with more the journal ends.
pub(super) const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// How long records are gathered before they are written together: what a killed daemon's journal may lack.
const GATHER: Duration = Duration::from_millis(2);

/// A written piece's room is used again when it is no larger than this.
const KEPT_BYTES: usize = 1024 * 1024;

/// What waits to be written, shared by both threads.
#[derive(Debug, Default)]
pub(super) struct Desk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// No more is to come.
    closed: bool,
    /// The thread's last word.
    outcome: Option<Result<(), JournalError>>,
    /// Its last word was heard, or there is none to come.
    ended: bool,
    /// Room of a piece that was written.
    spare: Vec<u8>,
}

#[derive(Debug)]
enum Piece {
    /// More of the file.
    More(Vec<u8>),
    /// The next file, with its head.
    Next(Vec<u8>),
}

impl Desk {
    /// Lets `append` add to what waits.
    pub(super) fn append(
        &self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<usize, JournalError> {
        let mut waiting = self.lock();
        waiting.is_open()?;
        let idle = waiting.pieces.is_empty();
        let spare = match waiting.pieces.back() {
            Some(Piece::More(_)) => None,
            Some(Piece::Next(_)) | None => Some(std::mem::take(&mut waiting.spare)),
        };
        waiting.pieces.extend(spare.map(Piece::More));
        let Some(Piece::More(piece)) = waiting.pieces.back_mut() else { return Err(JournalError::Lost) };
        let before = piece.len();
        if let Err(why) = append(piece) {
            piece.truncate(before);
            return Err(JournalError::Encoding(why));
        }
        let added = piece.len() - before;
        // Alone a record is always taken: it is bounded by itself.
        if waiting.bytes > 0 && waiting.bytes + added > QUEUE_BYTES {
            if let Some(Piece::More(piece)) = waiting.pieces.back_mut() {
                piece.truncate(before);
            }
            return Err(JournalError::TooSlow);
        }
        waiting.bytes += added;
        drop(waiting);
        if idle {
            self.changed.notify_all();
        }
        Ok(added)
    }

    /// Lets the next file begin, with this head.
    pub(super) fn next_file(&self, head: Vec<u8>) -> Result<(), JournalError> {
        let mut waiting = self.lock();
        waiting.is_open()?;
        // The state is bounded by itself, and counts for no event's room.
        waiting.pieces.push_back(Piece::Next(head));
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// No more is to come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The thread's last word, once; waits for it for at most this long.
    pub(super) fn outcome(&self, within: Duration) -> Result<(), JournalError> {
        let until = Instant::now() + within;
        let mut waiting = self.lock();
        loop {
            if let Some(outcome) = waiting.outcome.take() {
                return outcome;
            }
            let left = until.saturating_duration_since(Instant::now());
            if waiting.ended {
                return Ok(());
            }
            if left.is_zero() {
                return Err(JournalError::TooSlow);
            }
            waiting = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What is next to be written, once there is something; `None` when no more is to come.
    fn take(&self) -> Option<VecDeque<Piece>> {
        let mut waiting = self.lock();
        while waiting.pieces.is_empty() && !waiting.closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.bytes = 0;
        let taken = std::mem::take(&mut waiting.pieces);
        (!taken.is_empty()).then_some(taken)
    }

    /// Lets records gather.
    fn gather(&self) {
        let waiting = self.lock();
        let gathered = self.changed.wait_timeout_while(waiting, GATHER, |waiting| !waiting.closed);
        drop(gathered.unwrap_or_else(PoisonError::into_inner));
    }

    fn give_back(&self, mut room: Vec<u8>) {
        if room.capacity() <= KEPT_BYTES {
            room.clear();
            self.lock().spare = room;
        }
    }

    fn end(&self, outcome: Result<(), JournalError>) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.pieces = VecDeque::new();
        waiting.outcome = Some(outcome);
        waiting.ended = true;
        drop(waiting);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds it can leave it half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Why nothing more is taken, if so.
    fn is_open(&mut self) -> Result<(), JournalError> {
        if !self.closed {
            return Ok(());
        }
        Err(self.outcome.take().and_then(Result::err).unwrap_or(JournalError::Lost))
    }
}

/// What the thread owns.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Begins the first file.
    pub(super) fn create(path: &Path, head: &[u8]) -> Result<Writer, JournalError> {
        files::begin(path, head).map(|file| Writer::on(path, file))
    }

    /// Goes on with a file that is open.
    pub(super) fn on(path: &Path, file: File) -> Writer {
        Writer { path: path.to_owned(), file }
    }

    /// Writes, on a thread of its own, what is laid on the desk.
    pub(super) fn start(mut self, desk: Arc<Desk>) -> Result<(), JournalError> {
        let path = self.path.clone();
        let thread = thread::Builder::new().name("agentd:journal".into());
        let spawned = thread.spawn(move || {
            let outcome = self.run(&desk);
            // The file is unlocked before anybody hears of the end.
            drop(self);
            desk.end(outcome);
        });
        spawned.map(drop).map_err(|error| JournalError::system("start a thread for", &path, error))
    }

    fn run(&mut self, desk: &Desk) -> Result<(), JournalError> {
        while let Some(pieces) = desk.take() {
            for piece in pieces {
                match piece {
                    Piece::More(bytes) => {
                        self.write(&bytes)?;
                        desk.give_back(bytes);
                    }
                    Piece::Next(head) => {
                        self.file = files::begin_after(&self.path, &head)?;
                    }
                }
            }
            desk.gather();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(|error| JournalError::system("write to", &self.path, error))
    }
}

//! The thread that writes. All that waits for it goes into one transaction (group commit), and is answered in order.

use super::database::{Database, Fault, entry_of};
use super::{FILE, Options, StoreError, place};
use crate::lock::{Lock, LockError};
use agentd_core::event::Event;
use agentd_core::store::{Class, Entry, Saved, Write};
use agentd_host::mailbox::Poster;
use agentd_host::outside::StoreAnswer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Saves that may wait for the thread. The supervisor has one on its way for each thing that it keeps, so that only
/// thousands of runs at once come near it; one more fails, and is tried again.
const WAITING: usize = 8_192;

/// Bytes of values that go into one transaction, about; the rest waits for the next.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The lock's file in the state directory.
const LOCK: &str = "lock";

/// A store that is open and that nothing is written to yet. It has no thread: one that begins before its process blocks the
/// signals it waits for would be where the kernel delivers them, and a SIGTERM would end the daemon in place of draining it.
pub struct Opened {
    writer: Writer,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("directory", &self.writer.directory).finish_non_exhaustive()
    }
}

/// A store that is written to.
#[derive(Debug)]
pub struct Store {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    directory: PathBuf,
}

/// One save.
#[derive(Debug)]
struct Job {
    seq: u64,
    class: Class,
    writes: Vec<Write>,
}

/// What the thread has.
struct Writer {
    database: Database,
    min_free: u64,
    directory: PathBuf,
    /// Held until the last save is made.
    _lock: Lock,
    /// Before each transaction, for tests.
    #[cfg(test)]
    before: Box<dyn FnMut(&Database) + Send>,
}

impl Opened {
    /// Takes the directory, opens or makes the file and reads what it holds.
    ///
    /// # Errors
    /// Another daemon has it, it is not agentd's, or the system said no. Nothing was changed.
    pub fn open(options: &Options) -> Result<(Opened, Saved), StoreError> {
        let directory = options.directory.clone();
        place::prepare(&directory)?;
        let lock = Lock::take(&directory.join(LOCK)).map_err(|error| match error {
            LockError::Held(holder) => StoreError::InUse { directory: directory.clone(), holder },
            LockError::System { action, error } => {
                StoreError::System { action, path: directory.join(LOCK), error }
            }
        })?;
        let mut database = Database::open(&directory)?;
        let saved = database.load(&directory.join(FILE))?;
        let writer = Writer {
            database,
            min_free: options.min_free,
            directory,
            _lock: lock,
            #[cfg(test)]
            before: Box::new(|_| {}),
        };
        Ok((Opened { writer }, saved))
    }

    /// Has this done before each transaction.
    #[cfg(test)]
    pub(super) fn before(mut self, before: impl FnMut(&Database) + Send + 'static) -> Opened {
        self.writer.before = Box::new(before);
        self
    }

    /// Starts the thread, which answers saves to this supervisor.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn answer_to(self, poster: Poster) -> Result<Store, StoreError> {
        let Opened { writer } = self;
        let directory = writer.directory.clone();
        let (jobs, waiting) = sync_channel(WAITING);
        let run = move || writer.run(&waiting, &poster);
        let thread = std::thread::Builder::new().name("store".into()).spawn(run);
        let thread = thread.map_err(|error| StoreError::System {
            action: "start its thread",
            path: directory.clone(),
            error,
        })?;
        Ok(Store { jobs: Some(jobs), thread: Some(thread), directory })
    }
}

impl Store {
    /// The state directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins a save. Never waits.
    pub fn persist(&self, seq: u64, class: Class, writes: Vec<Write>) -> StoreAnswer {
        let sent = self.jobs.as_ref().map(|jobs| jobs.try_send(Job { seq, class, writes }));
        let error = match sent {
            Some(Ok(())) => return StoreAnswer::Later,
            Some(Err(TrySendError::Full(_))) => format!("{WAITING} saves wait for the disk already"),
            Some(Err(TrySendError::Disconnected(_))) | None => "the store's thread has ended".to_owned(),
        };
        StoreAnswer::Failed { error, retryable: true }
    }

    /// Waits for what is on its way, and gives the directory free.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It never unwinds with anything to tell.
            let _ended = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end();
    }
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Job>, poster: &Poster) {
        while let Ok(first) = waiting.recv() {
            let batch = batch(first, waiting);
            self.save(batch).into_iter().for_each(|event| poster.post_when_taken(event));
        }
        self.database.close();
    }

    /// Saves a batch, and gives its answers in order.
    fn save(&mut self, batch: Vec<(Job, Result<Vec<Entry>, Fault>)>) -> Vec<Event> {
        let full = self.is_short_of_space();
        let refused = |job: &Job| match job.class {
            Class::Spawn | Class::Held => full.clone(),
            Class::Ending | Class::Progress => None,
        };
        let verdicts: Vec<(u64, Result<Vec<Entry>, Fault>)> =
            batch.into_iter().map(|(job, entries)| (job.seq, refused(&job).map_or(entries, Err))).collect();
        let all: Vec<Entry> =
            verdicts.iter().filter_map(|(_, entries)| entries.as_ref().ok()).flatten().cloned().collect();
        #[cfg(test)]
        (self.before)(&self.database);
        let made = if all.is_empty() { Ok(()) } else { self.database.apply(&all) };
        let answer = |(seq, entries): (u64, Result<Vec<Entry>, Fault>)| match entries.and(made.clone()) {
            Ok(()) => Event::Stored { seq },
            Err(Fault { error, retryable }) => Event::StoreFailed { seq, error, retryable },
        };
        verdicts.into_iter().map(answer).collect()
    }

    /// Why no new run is recorded, where the disk is nearly full (S4.6).
    fn is_short_of_space(&self) -> Option<Fault> {
        let found = rustix::fs::statvfs(&self.directory).ok()?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        (free < self.min_free).then(|| {
            let mib = |bytes: u64| bytes >> 20;
            let (free, least) = (mib(free), mib(self.min_free));
            let error = format!("{free} MiB of disk are free and store.min_free is {least} MiB");
            Fault { error, retryable: true }
        })
    }
}

/// The first save and all that wait behind it, as far as one transaction takes them.
fn batch(first: Job, waiting: &Receiver<Job>) -> Vec<(Job, Result<Vec<Entry>, Fault>)> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(job) = next {
        let entries: Result<Vec<Entry>, Fault> = job.writes.iter().map(entry_of).collect();
        let size = |entry: &Entry| entry.value.as_ref().map_or(0, Vec::len);
        bytes += entries.iter().flatten().map(size).sum::<usize>();
        batch.push((job, entries));
        next = if bytes < BATCH_BYTES { waiting.try_recv().ok() } else { None };
    }
    batch
}

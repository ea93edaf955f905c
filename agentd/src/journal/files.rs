//! The files of a journal: `FILE` is being written, `FILE.1` to `FILE.4` are older ones. Only journals are ever
//! renamed or replaced, and only one process writes to a journal at a time.

use super::format::MAGIC_OF_ANY_VERSION;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of one file; then the next is begun.
pub const SEGMENT_BYTES: u64 = 256 * 1024 * 1024;

/// How long a lock that looks taken is tried again.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);

/// Older files that are kept.
pub const KEPT: u32 = 4;

/// Why a journal could not be begun, or ended.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system said no.
    #[error("cannot {action} {}: {error}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The answer.
        error: io::Error,
    },
    /// Something else stands where a journal would go.
    #[error("{} exists and is not a journal; name a file that does not exist, or a journal", .0.display())]
    Foreign(PathBuf),
    /// Another process writes to it.
    #[error("{} is being written by another agentd; name another file", .0.display())]
    Busy(PathBuf),
    /// A record that cannot be written down.
    #[error("a record cannot be made: {0}")]
    Encoding(String),
    /// Events come faster than the disk takes them.
    #[error("the disk is too slow for the events")]
    TooSlow,
    /// The writing thread is gone; a bug.
    #[error("its writer ended")]
    Lost,
}

impl JournalError {
    pub(super) fn system(action: &'static str, path: &Path, error: io::Error) -> JournalError {
        JournalError::System { action, path: path.to_owned(), error }
    }
}

/// Makes a new, empty, locked `path`; a journal that is there is moved out of the way.
pub(super) fn begin(path: &Path) -> Result<File, JournalError> {
    if exists_as_journal(path)? {
        let old = File::open(path).map_err(|error| JournalError::system("open", path, error))?;
        lock(&old, path)?;
    }
    begin_after(path)
}

/// Begins the next file; the one at `path` is this process's own.
pub(super) fn begin_after(path: &Path) -> Result<File, JournalError> {
    shift(path)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| JournalError::system("create", path, error))?;
    lock(&file, path)?;
    Ok(file)
}

/// Moves `FILE` to `FILE.1` and so on; the oldest is lost.
fn shift(path: &Path) -> Result<(), JournalError> {
    let mut chain = vec![path.to_owned()];
    chain.extend((1..=KEPT).map(|n| numbered(path, n)));
    let mut there = 0;
    for file in &chain {
        if !exists_as_journal(file)? {
            break;
        }
        there += 1;
    }
    for n in (1..=there.min(chain.len() - 1)).rev() {
        let (from, to) = (&chain[n - 1], &chain[n]);
        fs::rename(from, to).map_err(|error| JournalError::system("rename", from, error))?;
    }
    Ok(())
}

/// `FILE.n`.
pub(super) fn numbered(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

/// Whether a journal stands there; anything else that does is an error.
fn exists_as_journal(path: &Path) -> Result<bool, JournalError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(JournalError::system("look at", path, error)),
    };
    if !found.is_file() {
        return Err(JournalError::Foreign(path.to_owned()));
    }
    let mut head = Vec::new();
    let length = u64::try_from(MAGIC_OF_ANY_VERSION.len()).unwrap_or(u64::MAX);
    let read = File::open(path).and_then(|file| file.take(length).read_to_end(&mut head));
    read.map_err(|error| JournalError::system("read", path, error))?;
    // A journal whose first line was cut by a crash is one too; so is an empty file.
    if MAGIC_OF_ANY_VERSION.starts_with(&head) {
        Ok(true)
    } else {
        Err(JournalError::Foreign(path.to_owned()))
    }
}

/// Takes the lock that says whose the file is. A process that this one is just making shares every open file until
/// it executes its program, so a lock that was given up a moment ago may look taken for as long.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(JournalError::system("lock", path, error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(JournalError::Busy(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PATIENCE / 20),
        }
    }
}

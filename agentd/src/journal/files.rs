//! The files of a journal: `FILE` is being written, `FILE.1` to `FILE.4` are older ones. Only journals are ever
//! renamed or replaced, and only one process writes to a journal at a time.

use super::format::MAGIC_OF_ANY_VERSION;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
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

/// Makes a new, locked `path` that begins with `head`; a journal that is there is moved out of the way. Nothing is moved
/// for a file that cannot be written.
pub(super) fn begin(path: &Path, head: &[u8]) -> Result<File, JournalError> {
    if exists_as_journal(path)? {
        let old = File::open(path).map_err(|error| JournalError::system("open", path, error))?;
        lock(&old, path)?;
    }
    begin_after(path, head)
}

/// Begins the next file; the one at `path` is this process's own.
pub(super) fn begin_after(path: &Path, head: &[u8]) -> Result<File, JournalError> {
    let new = beside(path, "new");
    let file = create(&new)?;
    let begun = lock(&file, path)
        .and_then(|()| (&file).write_all(head).map_err(|error| JournalError::system("write to", path, error)))
        .and_then(|()| shift(path))
        .and_then(|()| fs::rename(&new, path).map_err(|error| JournalError::system("create", path, error)));
    if let Err(why) = begun {
        // It is this process's own, and of no use to anybody.
        let _ = fs::remove_file(&new);
        return Err(why);
    }
    Ok(file)
}

/// A new file. One that a killed process left half begun is nobody's.
fn create(new: &Path) -> Result<File, JournalError> {
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(new);
    let failed = |error| JournalError::system("create", new, error);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && exists_as_journal(new)? => {
            let left = File::open(new).map_err(failed)?;
            lock(&left, new)?;
            fs::remove_file(new).and_then(|()| open()).map_err(failed)
        }
        opened => opened.map_err(failed),
    }
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
    beside(path, &n.to_string())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
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

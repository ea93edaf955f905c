//! The right to something that one daemon has at a time: a lock on a file that says who holds it. The kernel lets go of it
//! when the holder ends, however it ends, so what it guards is stale exactly when the lock can be had. Called by the store
//! for its directory and by `serve` for its socket.

use agentd_core::time::Wall;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a holder's words that are shown.
const SHOWN: u64 = 200;

/// A lock that is held until it is dropped. Its file stays: removing it would let two hold a lock of one name.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why a lock cannot be had.
#[derive(Debug)]
pub(crate) enum LockError {
    /// By whom it is held, as far as its file says.
    Held(String),
    /// The system said no.
    System {
        /// What was tried, as in "cannot open its lock".
        action: &'static str,
        /// The answer.
        error: io::Error,
    },
}

impl Lock {
    /// Takes the lock, and says so in its file.
    pub(crate) fn take(path: &Path) -> Result<Lock, LockError> {
        let system = |action| move |error| LockError::System { action, error };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(system("open its lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(system("lock it")(error)),
        }
        // Who holds it is for people; a full disk takes nobody's right away.
        let _unwritten = introduce(&mut file);
        Ok(Lock { _file: file })
    }
}

fn introduce(file: &mut File) -> io::Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "pid {} since {}", std::process::id(), Wall(since * 1_000))?;
    file.flush()
}

/// What the holder says of itself.
fn holder(file: &mut File) -> String {
    let mut words = String::new();
    let read = file.take(SHOWN).read_to_string(&mut words);
    let words = words.trim();
    match read {
        Ok(_) if !words.is_empty() => words.chars().filter(|c| !c.is_control()).collect(),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_holder_and_is_free_once_that_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let held = Lock::take(&path).expect("free");
        let Err(LockError::Held(holder)) = Lock::take(&path) else { panic!("it is held") };
        assert!(holder.starts_with(&format!("pid {} since 20", std::process::id())), "{holder}");
        drop(held);
        Lock::take(&path).expect("free again");
    }
}

//! One daemon per state directory: a lock file that the kernel frees with its holder, and that says who it is.

use super::StoreError;
use agentd_core::time::Wall;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The lock's file in the state directory.
const FILE: &str = "lock";

/// Bytes of a holder's words that are shown.
const SHOWN: u64 = 200;

/// The right to the directory, as long as it is held.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it, and says so in the file.
    pub(super) fn take(directory: &Path) -> Result<Lock, StoreError> {
        let path = directory.join(FILE);
        let system = |action| {
            let path = path.clone();
            move |error| StoreError::System { action, path, error }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(system("open its lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { directory: directory.to_owned(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(system("lock it")(error)),
        }
        // Who holds it is for people; a full disk takes nobody's right away.
        let _unwritten = introduce(&mut file);
        Ok(Lock { _file: file })
    }
}

fn introduce(file: &mut File) -> std::io::Result<()> {
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

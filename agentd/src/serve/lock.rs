//! One daemon for one state directory and one socket: an advisory lock on a file that names its holder. The kernel lets go
//! of it when the holder ends, however it ends, so what it guards is stale exactly when the lock can be had.

use super::{OpenError, system};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A lock that is held until it is dropped. Its file stays: removing it would let two hold a lock of one name.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock and writes this process's pid into its file.
    pub(super) fn take(path: &Path) -> Result<Lock, OpenError> {
        let shown = path.display();
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let mut file = opened.map_err(system(format!("{shown} cannot be opened")))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _unread = file.read_to_string(&mut holder);
                let holder = holder.trim();
                let who = if holder.is_empty() { "another process" } else { &format!("pid {holder}") };
                let fault = format!(
                    "an agentd of this name runs already ({who} holds {shown}); stop it, or give this one a name of its own \
                     (agent.name)"
                );
                return Err(OpenError::Taken(fault));
            }
            Err(error) => return Err(system(format!("{shown} cannot be locked"))(error.into())),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(system(format!("{shown} cannot be written")))?;
        Ok(Lock { _file: file })
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
        let said = Lock::take(&path).expect_err("taken").to_string();
        assert!(said.contains(&format!("pid {}", std::process::id())), "{said}");
        drop(held);
        Lock::take(&path).expect("free again");
    }
}

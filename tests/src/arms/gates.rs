//! Gates between processes: a folder in which a file is an open gate. Programs wait at them (`Step::Until`), whoever
//! stages the scenario opens them.

use rustix::fs::inotify;
use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A watch on a folder of gates.
pub(super) struct Gates {
    folder: PathBuf,
    changes: OwnedFd,
    known: BTreeSet<String>,
}

impl Gates {
    /// Begins to look. Gates that are open already are found by the first [`Gates::open`].
    pub(super) fn watch(folder: PathBuf) -> io::Result<Gates> {
        let changes = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&changes, &folder, inotify::WatchFlags::CREATE)?;
        Ok(Gates { folder, changes, known: BTreeSet::new() })
    }

    /// Gates that were opened since the last call.
    pub(super) fn open(&mut self) -> io::Result<Vec<String>> {
        // What is reported is only that something changed; the folder says what is.
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut reports = inotify::Reader::new(&self.changes, &mut buffer);
        loop {
            match reports.next() {
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(e) => return Err(e.into()),
            }
        }
        let mut new = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if self.known.insert(name.clone()) {
                new.push(name);
            }
        }
        Ok(new)
    }
}

impl AsFd for Gates {
    /// Readable when a gate was opened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

/// Opens a gate, for ever.
pub(super) fn open(folder: &Path, name: &str) -> io::Result<()> {
    std::fs::File::create(folder.join(name)).map(drop)
}

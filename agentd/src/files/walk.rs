//! Every regular file below a folder, in the order of names, without following links: what `grep -r` visits. A
//! folder named `.git` met on the way is left out; everything else is visited, hidden or not. Depth costs no
//! file descriptors and no stack: only the deepest few folders stay open, those above are opened again through
//! `..` and known by their identity.

use super::report::{FOLDER_ENTRIES, Failure};
use super::root::{bytes, open_folder};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The deepest folders that stay open at once.
const OPEN_FOLDERS: usize = 16;

/// A file on the way.
pub(super) struct Visited<'a> {
    /// The folder it is in.
    pub(super) folder: BorrowedFd<'a>,
    /// Its name there.
    pub(super) name: &'a OsStr,
    /// Its path from where the walk began.
    pub(super) path: &'a Path,
}

/// Why the names in a folder are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoNames {
    /// The system says so.
    System(Errno),
    /// There are more than [`FOLDER_ENTRIES`].
    TooMany,
}

impl NoNames {
    /// In words, for the folder at `path`.
    pub(super) fn tell(self, path: &Path) -> Failure {
        match self {
            NoNames::System(e) => Failure::system(&path.to_string_lossy(), "read", e),
            NoNames::TooMany => Failure::new(format!(
                "{path:?} holds more than {FOLDER_ENTRIES} names; give a path that leaves it out"
            )),
        }
    }
}

/// Names in a folder with what they stand for, in the order of their bytes.
pub(super) fn entries(dir: &OwnedFd) -> Result<Vec<(OsString, FileType)>, NoNames> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir).map_err(NoNames::System)? {
        let entry = entry.map_err(NoNames::System)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if found.len() == FOLDER_ENTRIES {
            return Err(NoNames::TooMany);
        }
        found.push((OsString::from_vec(name.to_vec()), kind(dir, &entry)));
    }
    found.sort_unstable_by(|a, b| bytes(&a.0).cmp(bytes(&b.0)));
    Ok(found)
}

/// Walks everything below `start`, whose path from the root is `shown`. Gives back how many folders could not be
/// read; a failure of `visit` ends the walk.
pub(super) fn walk(
    start: OwnedFd,
    shown: &Path,
    visit: &mut dyn FnMut(Visited<'_>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut walk = Walk { levels: Vec::new(), path: PathBuf::new(), shown, unreadable: 0 };
    walk.enter(start).map_err(|e| e.tell(shown))?;
    while let Some(level) = walk.levels.last_mut() {
        match level.ahead.next() {
            Some((name, FileType::RegularFile)) => {
                walk.path.push(&name);
                let folder = walk.here()?;
                visit(Visited { folder, name: &name, path: &walk.path })?;
                walk.path.pop();
            }
            Some((name, FileType::Directory)) if name != ".git" => walk.descend(&name)?,
            Some(_) => {}
            None => walk.ascend()?,
        }
    }
    Ok(walk.unreadable)
}

struct Walk<'a> {
    levels: Vec<Level>,
    path: PathBuf,
    shown: &'a Path,
    unreadable: u64,
}

struct Level {
    /// Closed while the walk is far below.
    dir: Option<OwnedFd>,
    /// Device and inode, to know it by.
    id: (u64, u64),
    ahead: std::vec::IntoIter<(OsString, FileType)>,
}

impl Walk<'_> {
    fn here(&self) -> Result<BorrowedFd<'_>, Failure> {
        self.levels.last().and_then(|level| level.dir.as_ref()).map(AsFd::as_fd).ok_or_else(|| self.moved())
    }

    fn enter(&mut self, dir: OwnedFd) -> Result<(), NoNames> {
        let ahead = entries(&dir)?.into_iter();
        let id = identity(&dir).map_err(NoNames::System)?;
        if let Some(far) = self.levels.len().checked_sub(OPEN_FOLDERS) {
            self.levels[far].dir = None;
        }
        self.levels.push(Level { dir: Some(dir), id, ahead });
        Ok(())
    }

    /// Goes into a folder; one that cannot be read is counted and left out.
    fn descend(&mut self, name: &OsStr) -> Result<(), Failure> {
        let opened = open_folder(self.here()?, name).map_err(NoNames::System);
        self.path.push(name);
        match opened.and_then(|dir| self.enter(dir)) {
            Ok(()) => return Ok(()),
            Err(NoNames::TooMany) => return Err(NoNames::TooMany.tell(&self.shown.join(&self.path))),
            Err(NoNames::System(Errno::NOENT)) => {}
            Err(NoNames::System(_)) => self.unreadable += 1,
        }
        self.path.pop();
        Ok(())
    }

    /// Leaves the deepest folder and opens the one above again if it was closed.
    fn ascend(&mut self) -> Result<(), Failure> {
        let below = self.levels.pop();
        self.path.pop();
        let Some(level) = self.levels.last_mut().filter(|level| level.dir.is_none()) else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = below
            .and_then(|below| below.dir)
            .and_then(|dir| rustix::fs::openat(&dir, "..", flags, Mode::empty()).ok())
            .filter(|dir| identity(dir) == Ok(level.id));
        level.dir = above;
        if level.dir.is_some() { Ok(()) } else { Err(self.moved()) }
    }

    fn moved(&self) -> Failure {
        let path = self.shown.join(&self.path);
        Failure::new(format!("{path:?} was moved while it was being read; call again"))
    }
}

fn identity(dir: &OwnedFd) -> Result<(u64, u64), Errno> {
    rustix::fs::fstat(dir).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Most file systems say it with the name; for the others each name is looked at.
fn kind(dir: &OwnedFd, entry: &rustix::fs::DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
        known => known,
    }
}

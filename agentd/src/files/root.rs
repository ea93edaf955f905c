//! From a path that was asked for to an opened thing below the root. Each name is opened relative to the folder
//! before it without following links; links are read and walked by the same rule. So `..`, links and renames
//! under our feet can only ever lead to something below the root or to a refusal, and what is judged is the
//! opened file itself, never a name that may have changed meanwhile.

use super::report::Failure;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Links walked through for one path; more are taken for a loop, as the kernel does.
const LINKS: usize = 40;

/// Bytes of a path that is asked for, as the kernel's own bound.
const PATH_BYTES: usize = 4_096;

/// The served folder, opened once.
#[derive(Debug)]
pub(super) struct Root {
    dir: OwnedFd,
    /// How people name it; an absolute path or link below either of these is walked from the root.
    names: Vec<PathBuf>,
}

/// A name in a folder below the root, links resolved.
#[derive(Debug)]
pub(super) struct Place {
    /// The folder that holds it; the root itself for `.`.
    pub(super) folder: OwnedFd,
    /// Its name there.
    pub(super) name: OsString,
    /// Names from the root.
    names: Vec<OsString>,
    /// What is there; `None` when nothing is.
    pub(super) kind: Option<FileType>,
}

impl Place {
    /// As tools print it and take it back: relative to the root, `.` for the root.
    pub(super) fn path(&self) -> PathBuf {
        if self.names.is_empty() { PathBuf::from(".") } else { self.names.iter().collect() }
    }

    /// [`Place::path`] as text; bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

impl Root {
    /// Opens the folder to serve.
    pub(super) fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let told = |e: io::Error| io::Error::new(e.kind(), format!("cannot serve {path:?}: {e}"));
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| told(e.into()))?;
        let mut names = vec![std::fs::canonicalize(path).map_err(told)?];
        if path.is_absolute() && path != names[0] {
            names.push(path.to_owned());
        }
        Ok(Root { dir, names })
    }

    /// Where `asked` leads. Its last name need not exist.
    pub(super) fn place(&self, asked: &str) -> Result<Place, Failure> {
        Walker::new(self, asked)?.run(false)
    }

    /// Like [`Root::place`], making the folders on the way that do not exist.
    pub(super) fn place_making_folders(&self, asked: &str) -> Result<Place, Failure> {
        Walker::new(self, asked)?.run(true)
    }

    /// A regular file, opened for reading.
    pub(super) fn file(&self, asked: &str) -> Result<(std::fs::File, Stat, Place), Failure> {
        let place = self.place(asked)?;
        match place.kind {
            Some(FileType::Directory) => Err(Failure::new(format!(
                "{asked:?} is a folder; list shows what is in it, grep searches it"
            ))),
            Some(FileType::RegularFile) | None => {
                let (file, stat) = open_file(place.folder.as_fd(), &place.name)
                    .map_err(|e| Failure::system(asked, "open", e))?
                    .ok_or_else(|| special(asked, "something else by now"))?;
                Ok((file, stat, place))
            }
            Some(kind) => Err(special(asked, named(kind))),
        }
    }

    /// A folder, opened for reading.
    pub(super) fn folder(&self, asked: &str) -> Result<(OwnedFd, Place), Failure> {
        let place = self.place(asked)?;
        match place.kind {
            Some(FileType::Directory) | None => {
                let dir = open_folder(place.folder.as_fd(), &place.name)
                    .map_err(|e| Failure::system(asked, "open", e))?;
                Ok((dir, place))
            }
            Some(FileType::RegularFile) => {
                Err(Failure::new(format!("{asked:?} is a file; give the path of a folder")))
            }
            Some(kind) => Err(special(asked, named(kind))),
        }
    }

    /// The names of an absolute path below the root.
    fn below(&self, path: &Path) -> Option<Vec<OsString>> {
        let rest = self.names.iter().find_map(|root| path.strip_prefix(root).ok())?;
        Some(names_of(rest))
    }
}

/// Opens `name` in `folder` for reading if it is a regular file; `None` when it is anything else. It is looked
/// at first, since opening a device can do something, and again once it is open, since it can have been swapped;
/// not to block on a pipe costs no more than a flag.
pub(super) fn open_file(
    folder: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<Option<(std::fs::File, Stat)>, Errno> {
    let seen = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(regular.then(|| (std::fs::File::from(file), stat)))
}

/// Opens the folder `name` in `folder` for reading, never through a link.
pub(super) fn open_folder(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// One path on its way down.
struct Walker<'a> {
    root: &'a Root,
    asked: &'a str,
    /// Names still to walk.
    ahead: VecDeque<OsString>,
    /// Names walked, none of them a link.
    names: Vec<OsString>,
    links: usize,
}

impl<'a> Walker<'a> {
    fn new(root: &'a Root, asked: &'a str) -> Result<Walker<'a>, Failure> {
        if asked.is_empty() || asked.len() > PATH_BYTES || asked.contains('\0') {
            return Err(Failure::new(format!(
                "a path is 1 to {PATH_BYTES} bytes without NUL, relative to the served folder (\".\" is the folder itself)"
            )));
        }
        let path = Path::new(asked);
        let ahead =
            if path.is_absolute() { root.below(path).ok_or_else(|| outside(asked))? } else { names_of(path) };
        Ok(Walker { root, asked, ahead: ahead.into(), names: Vec::new(), links: 0 })
    }

    fn run(mut self, make: bool) -> Result<Place, Failure> {
        let mut here = self.reopen()?;
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.names.pop().ok_or_else(|| outside(self.asked))?;
                here = self.reopen()?;
                continue;
            }
            let last = self.ahead.is_empty();
            let thing = match look(here.as_fd(), &name) {
                Ok(thing) => thing,
                Err(Errno::NOENT) if last => return Ok(self.place(here, name, None)),
                Err(Errno::NOENT) if make => {
                    rustix::fs::mkdirat(&here, &name, Mode::from(0o777))
                        .map_err(|e| self.system("make", e))?;
                    look(here.as_fd(), &name).map_err(|e| self.system("open", e))?
                }
                Err(e) => return Err(self.system("open", e)),
            };
            match kind_of(&thing).map_err(|e| self.system("look at", e))? {
                FileType::Symlink => {
                    if self.follow(&thing)? {
                        here = self.reopen()?;
                    }
                }
                kind if last => return Ok(self.place(here, name, Some(kind))),
                FileType::Directory => {
                    here = thing;
                    self.names.push(name);
                }
                _ => return Err(self.system("open", Errno::NOTDIR)),
            }
        }
        self.at_folder()
    }

    /// Puts a link's target ahead. `true`: it is walked from the root.
    fn follow(&mut self, link: &OwnedFd) -> Result<bool, Failure> {
        self.links += 1;
        if self.links > LINKS {
            return Err(self.system("open", Errno::LOOP));
        }
        let target =
            rustix::fs::readlinkat(link, "", Vec::new()).map_err(|e| self.system("read the link", e))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let absolute = target.is_absolute();
        let names = if absolute {
            let names = self.root.below(&target).ok_or_else(|| outside(self.asked))?;
            self.names.clear();
            names
        } else {
            names_of(&target)
        };
        for name in names.into_iter().rev() {
            self.ahead.push_front(name);
        }
        Ok(absolute)
    }

    /// The folder that the walked names lead to, from the root again: `..` is taken back by name, for the
    /// folder's own idea of its parent may be elsewhere by now.
    fn reopen(&self) -> Result<OwnedFd, Failure> {
        let mut here = self
            .root
            .dir
            .try_clone()
            .map_err(|e| Failure::new(format!("cannot open the served folder: {e}")))?;
        for name in &self.names {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            here =
                rustix::fs::openat(&here, name, flags, Mode::empty()).map_err(|e| self.system("open", e))?;
        }
        Ok(here)
    }

    /// The path ended at a folder (it was `.`, ended in `..`, or a link's target did).
    fn at_folder(mut self) -> Result<Place, Failure> {
        let names = self.names.clone();
        let name = self.names.pop().unwrap_or_else(|| OsString::from("."));
        let folder = self.reopen()?;
        Ok(Place { folder, name, names, kind: Some(FileType::Directory) })
    }

    fn place(mut self, folder: OwnedFd, name: OsString, kind: Option<FileType>) -> Place {
        self.names.push(name.clone());
        Place { folder, name, names: self.names, kind }
    }

    fn system(&self, doing: &str, e: Errno) -> Failure {
        Failure::system(self.asked, doing, e)
    }
}

/// A handle on whatever `name` is, a link included; opening it this way does nothing to it.
fn look(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn kind_of(thing: &OwnedFd) -> Result<FileType, Errno> {
    rustix::fs::fstat(thing).map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// The names of a path in order; `..` stays, what stands for nothing goes.
fn names_of(path: &Path) -> Vec<OsString> {
    path.components()
        .filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir))
        .map(|c| c.as_os_str().to_owned())
        .collect()
}

fn outside(asked: &str) -> Failure {
    Failure::new(format!(
        "{asked:?} leads out of the served folder; give a path relative to it that stays inside (links out of it \
         are not followed)"
    ))
}

fn special(asked: &str, kind: &str) -> Failure {
    Failure::new(format!("{asked:?} is {kind}; only files and folders are served"))
}

fn named(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Unknown => "of a kind that is not known",
    }
}

/// The bytes of a name, for sorting and matching.
pub(super) fn bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}

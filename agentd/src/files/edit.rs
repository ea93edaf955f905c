//! `write` and `edit`. An edit needs a read of the same file in this session, and the file must still be what
//! was read: a fingerprint of its content says so. A file changes in one step, by a rename over it, so no reader
//! ever sees half of it; it keeps its permissions, and becomes a file of its own where it was a hard link.

use super::params::Args;
use super::report::{EDIT_BYTES, Failure};
use super::root::{Place, open_file};
use super::rpc::Server;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::PathBuf;

/// Files whose read is remembered; when there are more, the one read longest ago has to be read again.
const READS: usize = 10_000;

/// A file's content at one moment.
#[derive(Debug)]
pub(super) struct Print {
    hash: DefaultHasher,
    /// Its length.
    pub(super) bytes: u64,
}

impl Print {
    /// Of nothing yet.
    pub(super) fn new() -> Print {
        Print { hash: DefaultHasher::new(), bytes: 0 }
    }

    /// The content goes on with `bytes`.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hash.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn of(bytes: &[u8]) -> Print {
        let mut print = Print::new();
        print.add(bytes);
        print
    }

    fn key(&self) -> (u64, u64) {
        (self.bytes, self.hash.finish())
    }
}

/// What was read in this session, by path with links resolved.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// When, and length and hash of the content.
    prints: BTreeMap<PathBuf, (u64, (u64, u64))>,
    clock: u64,
}

impl Reads {
    /// The file at `path` was seen whole, like this.
    pub(super) fn remember(&mut self, path: PathBuf, print: &Print) {
        self.clock += 1;
        self.prints.insert(path, (self.clock, print.key()));
        if self.prints.len() > READS
            && let Some(oldest) =
                self.prints.iter().min_by_key(|(_, (at, _))| *at).map(|(path, _)| path.clone())
        {
            self.prints.remove(&oldest);
        }
    }

    fn check(&self, path: &PathBuf, asked: &str, now: &Print) -> Result<(), Failure> {
        match self.prints.get(path) {
            Some((_, then)) if *then == now.key() => Ok(()),
            Some(_) => Err(Failure::new(format!(
                "{asked:?} has changed since it was read; read it again, then edit"
            ))),
            None => {
                Err(Failure::new(format!("{asked:?} was not read in this session; read it first, then edit")))
            }
        }
    }
}

/// Writes a whole file.
pub(super) fn write(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let (asked, text) = (args.text("path"), args.text("text").as_bytes());
    let place = server.root.place_making_folders(asked)?;
    let created = match place.kind {
        None => true,
        Some(FileType::RegularFile) => false,
        Some(_) => {
            return Err(Failure::new(format!("{asked:?} is not a file and cannot be replaced by one")));
        }
    };
    replace(&place, text).map_err(|e| Failure::system(asked, "write", e))?;
    server.reads.remember(place.path(), &Print::of(text));
    Ok(json!({"path": place.text(), "bytes": text.len(), "created": created}))
}

/// Replaces text in a file.
pub(super) fn edit(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let asked = args.text("path");
    let (old, new) = (args.text("old"), args.text("new"));
    if old.is_empty() || old == new {
        return Err(Failure::new(
            "old must be some text that differs from new; to write a whole file use write",
        ));
    }
    let (file, stat, place) = server.root.file(asked)?;
    let before = content(file, asked)?;
    server.reads.check(&place.path(), asked, &Print::of(&before))?;
    // Left to right, without overlap.
    let at: Vec<usize> = memchr::memmem::find_iter(&before, old).collect();
    match at.len() {
        0 => {
            return Err(Failure::new(format!(
                "old does not occur in {asked:?}; it must be exactly as in the file, white space included"
            )));
        }
        1 => {}
        n if !args.flag("all") => {
            return Err(Failure::new(format!(
                "old occurs {n} times in {asked:?}; give more of the text around the one you mean, or set all"
            )));
        }
        _ => {}
    }
    let after = replaced(&before, &at, old.len(), new.as_bytes());
    // The last look: whoever changed the file while we worked keeps what they wrote.
    let same = open_file(place.folder.as_fd(), &place.name).ok().flatten().is_some_and(|(_, now)| {
        (now.st_ino, now.st_mtime, now.st_mtime_nsec, now.st_size)
            == (stat.st_ino, stat.st_mtime, stat.st_mtime_nsec, stat.st_size)
    });
    if !same {
        return Err(Failure::new(format!(
            "{asked:?} changed while it was being edited; read it again, then edit"
        )));
    }
    replace(&place, &after).map_err(|e| Failure::system(asked, "write", e))?;
    server.reads.remember(place.path(), &Print::of(&after));
    Ok(json!({"path": place.text(), "replaced": at.len(), "bytes": after.len()}))
}

fn content(file: File, asked: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    file.take(EDIT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::new(format!("cannot read {asked:?}: {e}")))?;
    if bytes.len() as u64 > EDIT_BYTES {
        return Err(Failure::new(format!("{asked:?} is over {EDIT_BYTES} bytes, more than edit takes")));
    }
    Ok(bytes)
}

fn replaced(text: &[u8], at: &[usize], old_len: usize, new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for &start in at {
        out.extend_from_slice(&text[from..start]);
        out.extend_from_slice(new);
        from = start + old_len;
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// Puts a new file over whatever file is there, keeping its permissions.
fn replace(place: &Place, bytes: &[u8]) -> Result<(), Errno> {
    let folder = place.folder.as_fd();
    let mode = match rustix::fs::statat(folder, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(Mode::from_raw_mode(stat.st_mode & 0o7777)),
        Err(Errno::NOENT) => None,
        Err(e) => return Err(e),
    };
    let (name, file) = scratch(place)?;
    let done =
        fill(file, bytes, mode).and_then(|()| rustix::fs::renameat(folder, &name, folder, &place.name));
    if done.is_err() {
        // The first error is the one to tell; a scratch file that cannot be removed either is left behind.
        let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
    }
    done
}

/// A new file beside the one to replace, under a name that is free.
fn scratch(place: &Place) -> Result<(String, File), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut last = Errno::EXIST;
    for n in 0..100 {
        let name = format!(".agentd-{}-{n}.tmp", std::process::id());
        match rustix::fs::openat(&place.folder, &name, flags, Mode::from(0o666)) {
            Ok(fd) => return Ok((name, File::from(fd))),
            Err(Errno::EXIST) => last = Errno::EXIST,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

fn fill(mut file: File, bytes: &[u8], mode: Option<Mode>) -> Result<(), Errno> {
    let system = |e: std::io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
    if let Some(mode) = mode {
        rustix::fs::fchmod(&file, mode)?;
    }
    file.write_all(bytes).map_err(system)?;
    file.sync_data().map_err(system)
}

//! Transcripts as their files are found by whoever reads them: `agentd sessions` (S11.5). They are read in the client's
//! own process, so a daemon need not run and is not disturbed.
//!
//! Owns how a folder of sessions is walked. A listing of conversations opens no child's file, and a listing of children
//! opens only the small file beside each. Refuses nothing for being damaged: what cannot be read is listed as such. It
//! writes nothing, and follows no link out of the folder.

mod tell;

pub(crate) use tell::{Lines, Teller, Words, tell};

use agentd_core::id::RunId;
use agentd_core::store::Work;
use agentd_core::transcript::{Entry, META_BYTES, Meta, place, read_line};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes of a first line at most; a longer one is no session's.
const HEAD_BYTES: u64 = 64 * 1024;

/// A run's transcript.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Session {
    /// By the file's name.
    pub(crate) id: RunId,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What is known of it, from its first line or the small file beside it.
    #[serde(flatten)]
    pub(crate) about: About,
    /// Of the transcript.
    pub(crate) bytes: u64,
}

/// What is known of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum About {
    Known(Box<Meta>),
    /// Why nothing is.
    Unreadable {
        problem: String,
    },
}

/// Why a session is not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotFound {
    #[error("there is no session {0:?} below {1}; agentd sessions list shows those that there are")]
    Unknown(String, String),
    #[error("{0:?} is the beginning of several sessions: {1}; give more of it")]
    Several(String, String),
    #[error("the sessions below {0} cannot be read: {1}")]
    System(String, io::Error),
}

/// Of runs that may be begun again, those whose transcript is there.
pub(crate) fn written(root: &Path, work: &[Work]) -> BTreeSet<RunId> {
    let is_there =
        |work: &&Work| work.transcript.as_ref().is_some_and(|place| root.join(&place.path).is_file());
    work.iter().filter(is_there).map(|work| work.run_id).collect()
}

/// The conversations below a folder, the newest first.
///
/// # Errors
/// The folder itself cannot be read. One that is not there has none.
pub(crate) fn list(root: &Path) -> io::Result<Vec<Session>> {
    let mut found = Vec::new();
    for day in days(root)? {
        for (id, path) in transcripts(&day)? {
            found.push(Session { id, bytes: size(&path), about: head(&path), path });
        }
    }
    found.sort_by(|a, b| b.path.file_name().cmp(&a.path.file_name()));
    Ok(found)
}

/// The runs that one delegated, in the order in which they began.
///
/// # Errors
/// Their folder cannot be read.
pub(crate) fn children(transcript: &Path) -> io::Result<Vec<Session>> {
    let folder = folder_of(transcript);
    let mut found = Vec::new();
    for (id, path) in transcripts(&folder)? {
        found.push(Session { id, bytes: size(&path), about: beside(&path), path });
    }
    // Ids rise with time.
    found.sort_by_key(|session| session.id);
    Ok(found)
}

/// The transcript of which `wanted` is the id or its beginning, however deep in the tree it is.
///
/// # Errors
/// None is, or several are.
pub(crate) fn find(root: &Path, wanted: &str) -> Result<PathBuf, NotFound> {
    let shown = root.display().to_string();
    let all = every(root).map_err(|error| NotFound::System(shown.clone(), error))?;
    let starts: Vec<&(RunId, PathBuf)> =
        all.iter().filter(|(id, _)| !wanted.is_empty() && id.to_string().starts_with(wanted)).collect();
    match starts.as_slice() {
        [] => Err(NotFound::Unknown(wanted.chars().take(64).collect(), shown)),
        [(_, path)] => Ok(path.clone()),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(|(id, _)| id.to_string()).collect();
            let more = if several.len() > 5 { ", …" } else { "" };
            Err(NotFound::Several(wanted.to_owned(), ids.join(", ") + more))
        }
    }
}

/// Every transcript there is, by names alone.
fn every(root: &Path) -> io::Result<Vec<(RunId, PathBuf)>> {
    let mut all = Vec::new();
    let mut open = days(root)?;
    while let Some(folder) = open.pop() {
        for (id, path) in transcripts(&folder)? {
            open.push(folder_of(&path));
            all.push((id, path));
        }
    }
    Ok(all)
}

/// Folders `YYYY/MM/DD`.
fn days(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    for digits in [4, 2, 2] {
        let mut below = Vec::new();
        for folder in folders {
            for (name, path) in entries(&folder)? {
                let is_part = name.len() == digits && name.bytes().all(|byte| byte.is_ascii_digit());
                if is_part && is_folder(&path) {
                    below.push(path);
                }
            }
        }
        folders = below;
    }
    Ok(folders)
}

/// The transcripts right in a folder, by their names.
fn transcripts(folder: &Path) -> io::Result<Vec<(RunId, PathBuf)>> {
    let named = entries(folder)?.into_iter();
    Ok(named.filter_map(|(name, path)| Some((place::run_of(&name)?, path))).collect())
}

/// What is in a folder; nothing where there is none, or where it has gone meanwhile.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in listed {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            all.push((name, entry.path()));
        }
    }
    Ok(all)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn size(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.len())
}

/// The folder of what a run delegated.
fn folder_of(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join(place::CHILDREN)
}

/// Opens a regular file; a pipe or a device of that name would be waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    File::open(path)
}

/// What the first line of a transcript says.
fn head(path: &Path) -> About {
    let line = || -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        BufReader::new(open(path)?).take(HEAD_BYTES).read_until(b'\n', &mut line)?;
        Ok(line)
    };
    let read = line().map_err(|error| error.to_string()).and_then(|line| {
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err("its first line is not whole".to_owned());
        };
        match read_line(line)?.entry {
            Entry::SessionMeta(head) => Ok(head.meta),
            Entry::ResponseItem(_) | Entry::AgentEvent(_) => {
                Err("its first line does not say whose it is".to_owned())
            }
        }
    });
    match read {
        Ok(meta) => About::Known(Box::new(meta)),
        Err(problem) => About::Unreadable { problem },
    }
}

/// What the small file beside a child's transcript says; where it is of no use, the transcript's first line.
fn beside(path: &Path) -> About {
    let meta = place::meta(&path.to_string_lossy());
    let read = || -> io::Result<Meta> {
        let mut bytes = Vec::new();
        open(Path::new(&meta))?.take(META_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    };
    read().map_or_else(|_| head(path), |meta| About::Known(Box::new(meta)))
}

#[cfg(test)]
mod tests;

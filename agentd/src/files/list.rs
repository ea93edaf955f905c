//! `list` and `stat`: what there is.

use super::params::Args;
use super::report::{Budget, Failure};
use super::rpc::Server;
use super::walk::entries;
use agentd_core::time::Wall;
use rustix::fs::{AtFlags, FileType};
use serde::Serialize;
use serde_json::{Value, json};

/// Entries of one list; the rest is counted.
const ENTRIES: usize = 1_000;

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    bytes: u64,
}

/// What is directly in a folder.
pub(super) fn list(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let (dir, place) = server.root.folder(args.text("path"))?;
    let names = entries(&dir).map_err(|e| e.tell(&place.path()))?;
    let (total, mut budget, mut shown) = (names.len(), Budget::new(), Vec::new());
    for (name, kind) in names.into_iter().take(ENTRIES) {
        let bytes = match kind {
            FileType::RegularFile => rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)),
            _ => 0,
        };
        let entry = Entry { name: name.to_string_lossy().into_owned(), kind: word(kind), bytes };
        if !budget.take(&entry) {
            break;
        }
        shown.push(entry);
    }
    let truncated = shown.len() < total;
    Ok(json!({"path": place.text(), "entries": shown, "total": total, "truncated": truncated}))
}

/// What one path is.
pub(super) fn stat(server: &mut Server, args: &Args) -> Result<Value, Failure> {
    let asked = args.text("path");
    let place = server.root.place(asked)?;
    let stat = rustix::fs::statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|e| Failure::system(asked, "look at", e))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(Failure::new(format!(
            "{asked:?} is neither a file nor a folder (a pipe, a socket, a device); only those two are served"
        )));
    }
    let millis = u64::try_from(stat.st_mtime)
        .unwrap_or(0)
        .saturating_mul(1_000)
        .saturating_add(stat.st_mtime_nsec / 1_000_000);
    Ok(json!({
        "path": place.text(),
        "kind": word(kind),
        "bytes": if kind == FileType::RegularFile { stat.st_size } else { 0 },
        "modified": Wall(millis).to_string(),
    }))
}

fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "dir",
        FileType::Symlink => "link",
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => "other",
    }
}

//! What a tool gives back: how much a result may hold, and failures as sentences a model can act on.

use rustix::io::Errno;
use serde::Serialize;

/// JSON bytes of the variable part of one result. With the fixed part it stays under the 64 KiB that enter a
/// model's window by default, so a result arrives whole or says itself that it was cut.
pub(super) const RESULT_BYTES: usize = 48 * 1024;

/// Bytes of one line of text in a list of matches; the rest is cut and marked.
pub(super) const MATCH_TEXT_BYTES: usize = 400;

/// Bytes of one line of a file that is searched; a file with a longer one is skipped and counted.
pub(super) const LINE_BYTES: usize = 16 * 1024 * 1024;

/// Names in one folder that are read; a folder with more is a failure that names it.
pub(super) const FOLDER_ENTRIES: usize = 1_000_000;

/// Bytes of a file that `edit` takes.
pub(super) const EDIT_BYTES: u64 = 16 * 1024 * 1024;

/// A tool call that did not do what it was asked: one or two sentences that say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure(pub(super) String);

impl Failure {
    /// A failure in these words.
    pub(super) fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// What the system said about `path`, and what can be done.
    pub(super) fn system(path: &str, doing: &str, e: Errno) -> Failure {
        let what = match e {
            Errno::NOENT | Errno::NOTDIR if path.contains('\u{fffd}') => {
                "if this came from list, glob or grep, the real name holds bytes that are not UTF-8, shown as \u{fffd}; no \
                 path can spell such a name, so this tool cannot reach it until it is renamed"
                    .to_owned()
            }
            Errno::NOENT => "it does not exist; list its folder to see what is there".to_owned(),
            Errno::ACCESS | Errno::PERM => "permission denied; this server's user may not do that".to_owned(),
            Errno::NOTDIR => "a part of the path is not a folder".to_owned(),
            Errno::ISDIR => "it is a folder".to_owned(),
            Errno::NAMETOOLONG => "a name in the path is too long".to_owned(),
            Errno::NOSPC | Errno::DQUOT => "no space is left".to_owned(),
            Errno::ROFS => "it is on a read-only file system".to_owned(),
            other => std::io::Error::from(other).to_string(),
        };
        Failure(format!("cannot {doing} {path:?}: {what}"))
    }
}

/// Counts what a result's list may still hold.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// A whole result's worth.
    pub(super) fn new() -> Budget {
        Budget(RESULT_BYTES)
    }

    /// Whether `item` still fits, as JSON; if so it is taken off.
    pub(super) fn take(&mut self, item: &impl Serialize) -> bool {
        let bytes = serde_json::to_string(item).map_or(usize::MAX, |json| json.len().saturating_add(1));
        let fits = bytes <= self.0;
        if fits {
            self.0 -= bytes;
        } else {
            self.0 = 0;
        }
        fits
    }
}

/// The longest beginning of `text` that fits in `bytes` as the inside of a JSON string.
pub(super) fn fitting(text: &str, bytes: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if used > bytes {
            return &text[..at];
        }
    }
    text
}

//! Reads a file that people wrote: within bounds, and as UTF-8.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of one file at most.
pub(crate) const FILE_BYTES: u64 = 1024 * 1024;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The system's answer.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// More than [`FILE_BYTES`].
    #[error("it is larger than 1 MiB")]
    TooLarge,
    /// Not UTF-8 from this line on.
    #[error("it is not UTF-8 text (line {line}, byte {byte} of the file)")]
    NotText { line: usize, byte: usize },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        Unreadable::NotText { line, byte }
    })
}

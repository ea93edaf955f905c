//! Reads a journal back, one file at a time. Trusts nothing: a file may be cut anywhere, damaged or foreign.

use super::format::{Header, MAGIC, MAGIC_OF_ANY_VERSION, RECORD_BYTES};
use agentd_core::machine::Traced;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// A journal file that is being read: its events in order.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    /// Bytes read, for messages.
    at: u64,
    ended: bool,
}

/// Why a journal cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system said no.
    #[error("cannot read it: {0}")]
    System(#[from] io::Error),
    /// The file is something else.
    #[error("it is not a journal")]
    Foreign,
    /// The file's format is not this one.
    #[error("its format is {0:?}; this agentd reads \"agentd journal 1\"")]
    Version(String),
    /// The file ends in the middle of a record, as after a crash; everything before is whole.
    #[error("it is cut in the middle of a record, at byte {at}")]
    Cut {
        /// Where the record begins.
        at: u64,
    },
    /// A record that is none.
    #[error("it is damaged at byte {at}: {why}")]
    Damaged {
        /// Where the record begins.
        at: u64,
        /// What is wrong.
        why: String,
    },
}

impl Reader<BufReader<File>> {
    /// Opens a journal file.
    pub fn open(path: &Path) -> Result<Reader<BufReader<File>>, ReadError> {
        Reader::new(BufReader::new(File::open(path)?))
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header of a journal.
    pub fn new(mut input: R) -> Result<Reader<R>, ReadError> {
        let mut head = Vec::new();
        let length = u64::try_from(MAGIC.len()).unwrap_or(u64::MAX);
        input.by_ref().take(length).read_to_end(&mut head)?;
        if head != MAGIC {
            return Err(if head.len() < MAGIC.len() && MAGIC.starts_with(&head) {
                ReadError::Cut { at: 0 }
            } else if head.starts_with(MAGIC_OF_ANY_VERSION) {
                ReadError::Version(String::from_utf8_lossy(&head).trim_end().to_owned())
            } else {
                ReadError::Foreign
            });
        }
        let mut at = length;
        let header = record(&mut input, &mut at)?.ok_or(ReadError::Cut { at })?;
        Ok(Reader { input, header, at, ended: false })
    }

    /// What the file begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Traced, ReadError>;

    /// Nothing comes after an error.
    fn next(&mut self) -> Option<Result<Traced, ReadError>> {
        if self.ended {
            return None;
        }
        let next = record(&mut self.input, &mut self.at).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The next record; `None` at the end of the file.
fn record<T: DeserializeOwned>(input: &mut impl Read, at: &mut u64) -> Result<Option<T>, ReadError> {
    let begin = *at;
    let mut length = Vec::new();
    input.by_ref().take(4).read_to_end(&mut length)?;
    let Ok(prefix) = <[u8; 4]>::try_from(length.as_slice()) else {
        return if length.is_empty() { Ok(None) } else { Err(ReadError::Cut { at: begin }) };
    };
    let length = u32::from_be_bytes(prefix);
    if length > RECORD_BYTES {
        return Err(ReadError::Damaged { at: begin, why: format!("a record of {length} bytes") });
    }
    let mut body = Vec::new();
    input.by_ref().take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() < usize::try_from(length).unwrap_or(usize::MAX) {
        return Err(ReadError::Cut { at: begin });
    }
    *at += 4 + u64::from(length);
    let mut rest = body.as_slice();
    let decoded = ciborium::from_reader(&mut rest)
        .map_err(|error| ReadError::Damaged { at: begin, why: error.to_string() })?;
    if rest.is_empty() {
        Ok(Some(decoded))
    } else {
        Err(ReadError::Damaged { at: begin, why: "bytes after the record".into() })
    }
}

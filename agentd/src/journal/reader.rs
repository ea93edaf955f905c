//! Reads a journal back, one file at a time. Trusts nothing: a file may be cut anywhere, damaged or foreign.

use super::format::{Header, Kind, MAGIC, MAGIC_OF_ANY_VERSION, RECORD_BYTES};
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::time::Now;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

/// A journal file that is being read: its events in order, each with what it was answered with.
#[derive(Debug)]
pub struct Reader<R> {
    records: Records<R>,
    header: Header,
    state: Option<Vec<u8>>,
    /// Why nothing more comes, once it is known.
    end: Option<Result<(), ReadError>>,
}

/// One event and what the core answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The driver's clocks.
    pub now: Now,
    /// What happened.
    pub event: Event,
    /// The actions, as they are written down; `None` where the journal ends between an event and its answer.
    pub actions: Option<Vec<u8>>,
}

impl Decision {
    /// The actions that are written down, if this version can read them.
    pub fn actions(&self) -> Option<Vec<Action>> {
        ciborium::from_reader(self.actions.as_deref()?).ok()
    }
}

/// Why a journal cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system said no.
    #[error("cannot read it: {0}")]
    System(#[from] io::Error),
    /// A folder, a pipe or a device.
    #[error("it is no regular file; a journal is read more than once")]
    Irregular,
    /// The file is something else.
    #[error("it is not a journal")]
    Foreign,
    /// The file ends before its header does.
    #[error("it ends before its header does: nothing was recorded in it")]
    Empty,
    /// The file's format is not this one.
    #[error("its format is {0:?}; this agentd reads \"agentd journal 2\"")]
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
        // Asked before it is opened: a pipe that nobody writes would hold this up for ever.
        if !fs::metadata(path)?.is_file() {
            return Err(ReadError::Irregular);
        }
        Reader::new(BufReader::new(File::open(path)?))
    }
}

impl<R: Read> Reader<R> {
    /// Reads what stands before a journal's first event.
    pub fn new(mut input: R) -> Result<Reader<R>, ReadError> {
        let mut head = Vec::new();
        let length = u64::try_from(MAGIC.len()).unwrap_or(u64::MAX);
        input.by_ref().take(length).read_to_end(&mut head)?;
        if head != MAGIC {
            return Err(if head.len() < MAGIC.len() && MAGIC.starts_with(&head) {
                ReadError::Empty
            } else if head.starts_with(MAGIC_OF_ANY_VERSION) {
                ReadError::Version(String::from_utf8_lossy(&head).trim_end().to_owned())
            } else {
                ReadError::Foreign
            });
        }
        let mut records = Records { input, at: length, begin: length };
        let header: Header = match records.next() {
            Ok(Some((Kind::Header, body))) => records.decode(&body)?,
            Ok(Some((Kind::Event | Kind::Actions, _))) => {
                return Err(records.damaged("it does not begin with a header"));
            }
            Ok(None) | Err(ReadError::Cut { .. }) => return Err(ReadError::Empty),
            Err(why) => return Err(why),
        };
        let state = header.state.map(|bytes| records.state(bytes)).transpose()?;
        Ok(Reader { records, header, state, end: None })
    }

    /// What the file begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The core's state before the file's first event; none in a journal's first file.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }

    fn decision(&mut self) -> Result<Option<Decision>, ReadError> {
        let (now, event) = match self.records.next()? {
            None => return Ok(None),
            Some((Kind::Event, body)) => self.records.decode(&body)?,
            Some((Kind::Header | Kind::Actions, _)) => {
                return Err(self.records.damaged("an event is due here"));
            }
        };
        let actions = match self.records.next() {
            Ok(Some((Kind::Actions, body))) => Some(body),
            Ok(Some((Kind::Header | Kind::Event, _))) => {
                self.end = Some(Err(self.records.damaged("the answer to an event is due here")));
                None
            }
            Ok(None) => {
                self.end = Some(Ok(()));
                None
            }
            // The event is whole, and may be the one that matters.
            Err(why) => {
                self.end = Some(Err(why));
                None
            }
        };
        Ok(Some(Decision { now, event, actions }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Decision, ReadError>;

    /// Nothing comes after an error.
    fn next(&mut self) -> Option<Result<Decision, ReadError>> {
        if let Some(end) = &mut self.end {
            return std::mem::replace(end, Ok(())).err().map(Err);
        }
        let next = self.decision().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.end = Some(Ok(()));
        }
        next
    }
}

/// The records of a file.
#[derive(Debug)]
struct Records<R> {
    input: R,
    /// Bytes read, for messages.
    at: u64,
    /// Where the record in hand begins.
    begin: u64,
}

impl<R: Read> Records<R> {
    /// The next record; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<(Kind, Vec<u8>)>, ReadError> {
        self.begin = self.at;
        let mut length = Vec::new();
        self.input.by_ref().take(4).read_to_end(&mut length)?;
        let Ok(prefix) = <[u8; 4]>::try_from(length.as_slice()) else {
            return if length.is_empty() { Ok(None) } else { Err(self.cut()) };
        };
        let length = u32::from_be_bytes(prefix);
        if !(1..=RECORD_BYTES).contains(&length) {
            return Err(self.damaged(&format!("a record of {length} bytes")));
        }
        let mut body = self.bytes(u64::from(length))?;
        self.at += 4 + u64::from(length);
        let kind = body.remove(0);
        match Kind::of(kind) {
            Some(kind) => Ok(Some((kind, body))),
            None => Err(self.damaged(&format!("a record of the unknown kind {kind:#04x}"))),
        }
    }

    /// The state behind a header.
    fn state(&mut self, length: u64) -> Result<Vec<u8>, ReadError> {
        self.begin = self.at;
        let state = self.bytes(length)?;
        self.at = self.at.saturating_add(length);
        Ok(state)
    }

    /// So many bytes; never more memory than the file has.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|read| read == length) { Ok(bytes) } else { Err(self.cut()) }
    }

    fn decode<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ReadError> {
        let mut rest = body;
        let decoded = ciborium::from_reader(&mut rest).map_err(|error| self.damaged(&not_cbor(&error)))?;
        if rest.is_empty() { Ok(decoded) } else { Err(self.damaged("bytes after the record")) }
    }

    fn cut(&self) -> ReadError {
        ReadError::Cut { at: self.begin }
    }

    fn damaged(&self, why: &str) -> ReadError {
        ReadError::Damaged { at: self.begin, why: why.to_owned() }
    }
}

/// What is wrong with a record's content. The library's own words are for programmers.
fn not_cbor(error: &ciborium::de::Error<io::Error>) -> String {
    use ciborium::de::Error;
    match error {
        Error::Io(_) => "the record ends within a value".to_owned(),
        Error::Syntax(at) => format!("what stands at byte {at} of the record is no CBOR"),
        Error::Semantic(_, why) => format!("the record is not what it should be: {why}"),
        Error::RecursionLimitExceeded => "the record is nested too deeply".to_owned(),
    }
}

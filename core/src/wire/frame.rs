//! Bytes to messages, as they arrive. Bytes are copied once, into the buffer, and read where they lie; a frame is
//! judged when it is whole, an over-long one when its length is. After the first error there is nothing more: the
//! borders of later frames are not to be trusted.

use super::cbor::{Body, Cursor, Fault, Item, Marks, Scanner};
use super::codec::{Message, PREFIX_BYTES};
use super::exact;
use super::message::{Down, Up};
use crate::error::ProtocolError;
use crate::limits;
use crate::preview::preview;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// What a supervisor reads its children with.
pub type UpDecoder = Decoder<Up>;

/// What a child reads its supervisor with.
pub type DownDecoder = Decoder<Down>;

/// `t` and `n`: no message has a key of these names, so each is passed over once.
const ENVELOPE_KEYS: u64 = 2;

/// An empty buffer larger than this is given back, so that a thousand quiet channels cost little.
const KEPT_BYTES: usize = 8 * 1024;

/// Finds the frames of one direction of one channel. Give it bytes with [`Decoder::push`], then take frames from
/// it as an iterator until it has none; more bytes may give more.
pub struct Decoder<M> {
    buffer: Vec<u8>,
    /// Where in `buffer` the first frame not yet taken begins.
    at: usize,
    /// The number that the next frame must have.
    due: u64,
    ignored: Ignored,
    failed: bool,
    scanner: Scanner,
    messages: PhantomData<fn() -> M>,
}

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded<M> {
    /// A message.
    Message(M),
    /// A well-formed frame of a type that this version does not know.
    Ignored,
}

/// What a newer peer sent that this version does not know (S2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ignored {
    /// Frames of unknown types.
    pub types: u64,
    /// Unknown keys of known types, at any level of a message.
    pub keys: u64,
}

/// The version in a whole frame that is a `spawn`, whatever else it holds: that of another major version need not be
/// readable any further. Its structure is held to all rules; `None` for any other frame.
pub fn spawn_version(frame: &[u8]) -> Option<[u16; 2]> {
    #[derive(Deserialize)]
    struct Versioned {
        #[serde(deserialize_with = "exact::version")]
        v: [u16; 2],
    }
    let (length, after) = split_prefix(frame)?;
    let body = after.get(..length).filter(|_| (1..=limits::FRAME_BYTES).contains(&length))?;
    let (frame_type, body) = open(body, &mut Scanner::default(), 1).ok()?;
    let (Versioned { v }, _ignored) = body.read().ok()?;
    (frame_type == "spawn").then_some(v)
}

/// What a whole frame to a child says, whatever its number; `None` when it is no such frame. For those who look at a
/// conversation and take no part in it.
pub fn down_of(frame: &[u8]) -> Option<Down> {
    let (length, after) = split_prefix(frame)?;
    let body = after.get(..length).filter(|_| (1..=limits::FRAME_BYTES).contains(&length))?;
    let marks = Scanner::default().scan(body).ok()?;
    let read = Down::read(frame_type(body, marks).ok()?, Body::new(body, marks.longest_key))?;
    read.ok().map(|(message, _ignored)| message)
}

impl<M> Clone for Decoder<M> {
    fn clone(&self) -> Decoder<M> {
        Decoder {
            buffer: self.buffer[self.at..].to_vec(),
            at: 0,
            due: self.due,
            ignored: self.ignored,
            failed: self.failed,
            scanner: Scanner::default(),
            messages: PhantomData,
        }
    }
}

impl<M: Message> Default for Decoder<M> {
    fn default() -> Decoder<M> {
        Decoder::new()
    }
}

impl<M: Message> Decoder<M> {
    /// For a new channel: the first frame must have number 1.
    pub fn new() -> Decoder<M> {
        Decoder {
            buffer: Vec::new(),
            at: 0,
            due: 1,
            ignored: Ignored::default(),
            failed: false,
            scanner: Scanner::default(),
            messages: PhantomData,
        }
    }

    /// Takes what was read. After an error it is dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        // What was taken makes room only when that moves no more bytes than it frees: over any sequence of
        // pushes a byte is moved once, not once a frame.
        if self.at > 0 && self.buffer.len() - self.at <= self.at {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Judges the end of the stream: an error when it cuts a frame.
    pub fn finish(&self) -> Result<(), ProtocolError> {
        let mut rest = &self.buffer[self.at..];
        while let Some((length, after)) = split_prefix(rest) {
            match after.get(length..) {
                Some(next) => rest = next,
                None => {
                    let seen = after.len();
                    return Err(self.error(&format!("the stream ends after {seen} of its {length} bytes")));
                }
            }
        }
        match rest.len() {
            0 => Ok(()),
            seen => Err(self.error(&format!("the stream ends after {seen} of the 4 bytes of its length"))),
        }
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> Ignored {
        self.ignored
    }

    /// Memory that is held between calls, for tests of its bound.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn held_bytes(&self) -> usize {
        self.buffer.capacity() + self.scanner.held_bytes()
    }

    /// Takes the next whole frame.
    fn take(&mut self) -> Result<Option<Decoded<M>>, String> {
        let Some((length, after)) = split_prefix(&self.buffer[self.at..]) else {
            return Ok(None);
        };
        check_length(length, &self.buffer[self.at..self.at + PREFIX_BYTES])?;
        let Some(body) = after.get(..length) else {
            return Ok(None);
        };
        let (frame_type, body) = open(body, &mut self.scanner, self.due)?;
        let decoded = match M::read(frame_type, body) {
            None => {
                self.ignored.types += 1;
                Decoded::Ignored
            }
            Some(Ok((message, ignored))) => {
                self.ignored.keys += ignored.saturating_sub(ENVELOPE_KEYS);
                Decoded::Message(message)
            }
            Some(Err(error)) => return Err(format!("`{frame_type}`: {error}")),
        };
        self.at += PREFIX_BYTES + length;
        self.due += 1;
        Ok(Some(decoded))
    }

    /// Gives memory back once every byte is taken.
    fn rest(&mut self) {
        if self.at == self.buffer.len() {
            self.at = 0;
            self.buffer.clear();
            if self.buffer.capacity() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
        }
    }

    #[cold]
    fn error(&self, what: &str) -> ProtocolError {
        ProtocolError(preview(format!("frame {}: {what}", self.due), limits::PROTOCOL_ERROR_BYTES))
    }
}

/// A decoder between two pushes, as it is written into a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Decoder")]
struct Paused<B> {
    waiting: B,
    due: u64,
    ignored: Ignored,
    failed: bool,
}

impl<M> Serialize for Decoder<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let waiting = serde_bytes::Bytes::new(&self.buffer[self.at..]);
        Paused { waiting, due: self.due, ignored: self.ignored, failed: self.failed }.serialize(serializer)
    }
}

impl<'de, M: Message> Deserialize<'de> for Decoder<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decoder<M>, D::Error> {
        let Paused { waiting, due, ignored, failed } =
            Paused::<serde_bytes::ByteBuf>::deserialize(deserializer)?;
        Ok(Decoder { buffer: waiting.into_vec(), due, ignored, failed, ..Decoder::new() })
    }
}

impl<M: Message> Iterator for Decoder<M> {
    type Item = Result<Decoded<M>, ProtocolError>;

    /// The next whole frame; `None` until more bytes make one, and for ever after an error.
    fn next(&mut self) -> Option<Self::Item> {
        match self.take() {
            Ok(Some(decoded)) => Some(Ok(decoded)),
            Ok(None) => {
                self.rest();
                None
            }
            Err(what) => {
                let error = self.error(&what);
                self.failed = true;
                self.at = 0;
                self.buffer = Vec::new();
                self.scanner = Scanner::default();
                Some(Err(error))
            }
        }
    }
}

impl<M> fmt::Debug for Decoder<M> {
    /// Without the bytes: they are a child's, and may be megabytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("waiting_bytes", &(self.buffer.len() - self.at))
            .field("due", &self.due)
            .field("ignored", &self.ignored)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// A frame's length and what follows it.
fn split_prefix(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (prefix, after) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    Some((usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX), after))
}

/// Only the four bytes are looked at: what is said must not depend on how the rest arrives.
fn check_length(length: usize, prefix: &[u8]) -> Result<(), String> {
    match length {
        0 => Err("length 0; a frame's body is at least one byte".into()),
        1..=limits::FRAME_BYTES => Ok(()),
        _ => {
            let hint = if prefix.iter().all(|byte| matches!(byte, b' '..=b'~')) {
                format!(" (\"{}\" as text: does something print into the channel?)", preview(prefix, 8))
            } else {
                String::new()
            };
            Err(format!("length {length}{hint}, at most {} bytes are accepted", limits::FRAME_BYTES))
        }
    }
}

/// Judges a body's structure and its envelope, and tells its type.
fn open<'a>(body: &'a [u8], scanner: &mut Scanner, due: u64) -> Result<(&'a str, Body<'a>), String> {
    let marks = scanner.scan(body).map_err(|fault: Fault| fault.to_string())?;
    let frame_type = frame_type(body, marks)?;
    match number(body, marks).map_err(|what| format!("`{}`: {what}", preview(frame_type, 64)))? {
        n if n == due => Ok((frame_type, Body::new(body, marks.longest_key))),
        n if n > due => Err(format!("number {n} where {due} is due: {} frames are missing", n - due)),
        n => Err(format!("number {n} where {due} is due: it was there before")),
    }
}

fn frame_type(body: &[u8], marks: Marks) -> Result<&str, String> {
    match value_at(body, marks.t) {
        Some(Item::Text(frame_type)) => Ok(frame_type),
        Some(other) => Err(format!("`t` is {}; the frame's type as text is expected", other.shown())),
        None => Err(no_envelope(body, "t", "the frame's type")),
    }
}

fn number(body: &[u8], marks: Marks) -> Result<u64, String> {
    match value_at(body, marks.n) {
        Some(Item::Unsigned(number)) => Ok(number),
        Some(other) => Err(format!("`n` is {}; the frame's number is expected", other.shown())),
        None => Err(no_envelope(body, "n", "the frame's number")),
    }
}

fn value_at(body: &[u8], mark: Option<usize>) -> Option<Item<'_>> {
    mark.and_then(|at| Cursor::at(body, at).item().ok())
}

#[cold]
fn no_envelope(body: &[u8], key: &str, what: &str) -> String {
    match Cursor::new(body).item() {
        Ok(Item::Map(_)) => format!("the key \"{key}\" is missing; it holds {what}"),
        Ok(other) => format!("{} as the body; a map is expected", other.shown()),
        Err(fault) => fault.to_string(),
    }
}

#[cfg(test)]
mod tests;

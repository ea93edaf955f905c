//! Server-sent events, byte by byte: the stream that providers and MCP servers answer in.
//!
//! Owns the lines, the event that is not complete yet, and what a reader needs to take a stream up again. Any split of
//! the bytes gives the same events. Refuses lines and events over their bounds, for good. Called by the model dialects'
//! readers and by the MCP client.

use crate::limits::{SSE_EVENT_BYTES, SSE_ID_BYTES, SSE_LINE_BYTES};
use crate::time::Duration;
use std::mem;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its `event` field; empty when it has none.
    pub name: String,
    /// Its `data` lines, joined by line feeds. Bytes that are not UTF-8 read as U+FFFD.
    pub data: String,
}

/// What no stream may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line over its bound.
    #[error("a line of the stream is longer than {0} bytes")]
    LineTooLong(usize),
    /// An event over its bound.
    #[error("an event of the stream is longer than {0} bytes")]
    EventTooLong(usize),
}

/// The decoder of one stream.
#[derive(Debug)]
pub struct Decoder {
    line_bytes: usize,
    event_bytes: usize,
    line: Vec<u8>,
    /// The byte before was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// A line was read: a byte order mark can come no more.
    begun: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// The `id` of the event that is not complete yet.
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    broken: Option<SseError>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::bounded(SSE_LINE_BYTES, SSE_EVENT_BYTES)
    }
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The same, with other bounds on a line and on an event's data, in bytes.
    pub fn bounded(line_bytes: usize, event_bytes: usize) -> Decoder {
        Decoder {
            line_bytes,
            event_bytes,
            line: Vec::new(),
            after_return: false,
            begun: false,
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
            broken: None,
        }
    }

    /// Where a stream that is taken up again goes on: the `id` of the last complete event that had one. An empty one
    /// takes back those before it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long to wait before the stream is taken up again, where it says so.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next bytes and appends the events that are complete.
    ///
    /// # Errors
    /// A bound is passed. The events before that are appended, and every later call fails the same.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        while !bytes.is_empty() {
            if mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            self.append(&bytes[..end.unwrap_or(bytes.len())])?;
            let Some(end) = end else { return Ok(()) };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line()?);
        }
        Ok(())
    }

    /// The stream has ended. An event whose closing blank line did not come is given out as well: whoever reads it
    /// must tell a cut one by what it holds.
    ///
    /// # Errors
    /// A bound was passed before, or is now.
    pub fn finish(mut self) -> Result<Option<Event>, SseError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let last = if self.line.is_empty() { None } else { self.end_line()? };
        Ok(last.or_else(|| self.dispatch()))
    }

    fn append(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.line.len() + piece.len() > self.line_bytes {
            return Err(self.fail(SseError::LineTooLong(self.line_bytes)));
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Event>, SseError> {
        let mut line = mem::take(&mut self.line);
        if !mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        let event = if line.is_empty() { self.dispatch() } else { self.field(&line).map(|()| None)? };
        // The allocation serves the next line.
        line.clear();
        self.line = line;
        Ok(event)
    }

    /// A line that is not blank. One that begins with a colon is a comment: a field without a name.
    fn field(&mut self, line: &[u8]) -> Result<(), SseError> {
        let colon = line.iter().position(|b| *b == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &line[line.len()..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() + 1 > self.event_bytes {
                    return Err(self.fail(SseError::EventTooLong(self.event_bytes)));
                }
                if mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // It goes out in a header again: one that could not is none.
            b"id" if value.len() <= SSE_ID_BYTES && value.iter().all(|b| (b' '..=b'~').contains(b)) => {
                self.id = String::from_utf8(value.to_vec()).ok();
            }
            b"retry" if value.len() <= 9 && value.iter().all(u8::is_ascii_digit) => {
                let ms = String::from_utf8_lossy(value).parse().ok();
                self.retry = ms.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    /// A blank line: the event is complete. One without data is none.
    fn dispatch(&mut self) -> Option<Event> {
        self.last_id = self.id.take().or(self.last_id.take());
        let name = mem::take(&mut self.name);
        let data = String::from_utf8_lossy(&self.data).into_owned();
        self.data.clear();
        mem::take(&mut self.has_data).then_some(Event { name, data })
    }

    fn fail(&mut self, error: SseError) -> SseError {
        self.line = Vec::new();
        self.data = Vec::new();
        *self.broken.insert(error)
    }
}

#[cfg(test)]
mod tests;

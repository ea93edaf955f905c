//! One connection's bytes as requests: incremental, so that any split of the bytes reads the same.
//!
//! Lines are looked at byte by byte as they come, so a fault is found at the byte that makes it one, however the bytes
//! were cut.

use super::request::{self, Content, Head, Request};
use crate::bytes::Bytes;
use crate::limits;
use serde::{Deserialize, Serialize};

/// One connection, as far as its bytes have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    at: At,
    /// The head, or the line of a chunk or of a trailer, that is being read.
    line: Vec<u8>,
    /// Empty lines before the next head.
    blank: u8,
    /// The request whose content is being read.
    open: Option<Request>,
    body: Vec<u8>,
    /// Bytes of trailers, which are read and dropped.
    trailers: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    Head,
    /// So many bytes of the content are to come.
    Body(usize),
    ChunkLine,
    /// So many bytes of the chunk are to come.
    Chunk(usize),
    /// The CRLF behind a chunk; whether its CR is there.
    ChunkEnd(bool),
    Trailers,
    Failed,
}

/// What bytes came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A whole request.
    Request(Box<Request>),
    /// The client of the next request waits for `100 Continue`.
    Continue,
    /// The bytes are not HTTP as it is spoken here. The last thing that is heard.
    Fault(Fault),
}

/// What a client did wrong, and the status that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// 4xx or 5xx.
    pub status: u16,
    /// A plain sentence for whoever wrote the client.
    pub reason: String,
}

/// What a connection waits for, for the clocks of whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The next request; nothing of it has come.
    Idle,
    /// The rest of a request.
    Reading,
    /// Nothing any more: it has failed.
    Failed,
}

impl Default for Server {
    fn default() -> Server {
        Server { at: At::Head, line: Vec::new(), blank: 0, open: None, body: Vec::new(), trailers: 0 }
    }
}

impl Server {
    /// What it waits for.
    pub fn phase(&self) -> Phase {
        match self.at {
            At::Failed => Phase::Failed,
            At::Head if self.line.is_empty() => Phase::Idle,
            At::Head | At::Body(_) | At::ChunkLine | At::Chunk(_) | At::ChunkEnd(_) | At::Trailers => {
                Phase::Reading
            }
        }
    }

    /// Reads what came. Requests before a fault stand.
    pub fn take(&mut self, mut bytes: &[u8], heard: &mut Vec<Heard>) {
        while !bytes.is_empty() && self.at != At::Failed {
            match self.some(bytes, heard) {
                Ok(read) => bytes = &bytes[read..],
                Err(fault) => {
                    *self = Server { at: At::Failed, ..Server::default() };
                    heard.push(Heard::Fault(fault));
                }
            }
        }
    }

    /// Reads at least one byte and says how many.
    fn some(&mut self, bytes: &[u8], heard: &mut Vec<Heard>) -> Result<usize, Fault> {
        match self.at {
            At::Failed => Ok(bytes.len()),
            At::Body(left) => Ok(self.content(bytes, left, heard)),
            At::Chunk(left) => {
                let taken = left.min(bytes.len());
                self.body.extend_from_slice(&bytes[..taken]);
                self.at = if taken == left { At::ChunkEnd(false) } else { At::Chunk(left - taken) };
                Ok(taken)
            }
            At::ChunkEnd(cr) => {
                self.at = match (cr, bytes[0]) {
                    (false, b'\r') => At::ChunkEnd(true),
                    (true, b'\n') => At::ChunkLine,
                    _ => return Err(Fault::bad("a chunk does not end where its size says")),
                };
                Ok(1)
            }
            At::Head => self.head(bytes[0], heard).map(|()| 1),
            At::ChunkLine => self.chunk_line(bytes[0]).map(|()| 1),
            At::Trailers => self.trailer(bytes[0], heard).map(|()| 1),
        }
    }

    fn content(&mut self, bytes: &[u8], left: usize, heard: &mut Vec<Heard>) -> usize {
        let taken = left.min(bytes.len());
        self.body.extend_from_slice(&bytes[..taken]);
        self.at = At::Body(left - taken);
        if taken == left {
            self.whole(heard);
        }
        taken
    }

    fn whole(&mut self, heard: &mut Vec<Heard>) {
        self.at = At::Head;
        self.trailers = 0;
        let body = Bytes::from(std::mem::take(&mut self.body));
        if let Some(request) = self.open.take() {
            heard.push(Heard::Request(Box::new(Request { body, ..request })));
        }
    }

    fn head(&mut self, byte: u8, heard: &mut Vec<Heard>) -> Result<(), Fault> {
        self.push(byte)?;
        if self.line == b"\r\n" {
            // A careless client ends its content with a line of its own.
            self.blank += 1;
            self.line.clear();
            return if self.blank > limits::HTTP_BLANK_LINES {
                Err(Fault::bad("empty lines where a request should begin"))
            } else {
                Ok(())
            };
        }
        if self.line.len() > limits::HTTP_LINE_BYTES && !self.line.contains(&b'\n') {
            return Err(Fault::of(
                414,
                format!("a first line of more than {} bytes", limits::HTTP_LINE_BYTES),
            ));
        }
        if self.line.len() > limits::HTTP_HEAD_BYTES {
            return Err(Fault::of(431, format!("a head of more than {} bytes", limits::HTTP_HEAD_BYTES)));
        }
        if !self.line.ends_with(b"\r\n\r\n") {
            return Ok(());
        }
        let Head { request, content, expects } = request::read(&self.line)?;
        self.line.clear();
        self.blank = 0;
        self.open = Some(request);
        if expects {
            heard.push(Heard::Continue);
        }
        match content {
            Content::Sized(0) => self.whole(heard),
            Content::Sized(length) => self.at = At::Body(length),
            Content::Chunked => self.at = At::ChunkLine,
        }
        Ok(())
    }

    fn chunk_line(&mut self, byte: u8) -> Result<(), Fault> {
        self.push(byte)?;
        if self.line.len() > limits::HTTP_CHUNK_LINE_BYTES {
            return Err(Fault::bad("a chunk's size does not end"));
        }
        let Some(line) = self.line.strip_suffix(b"\r\n") else { return Ok(()) };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, extension) = line.split_at(digits);
        if !(1..=8).contains(&digits) || !matches!(extension.first(), None | Some(b';')) {
            return Err(Fault::bad("a chunk's size is not a hexadecimal number"));
        }
        let size = std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| Fault::bad("a chunk's size is not a hexadecimal number"))?;
        if size > limits::HTTP_BODY_BYTES - self.body.len() {
            return Err(Fault::large());
        }
        self.line.clear();
        self.at = if size == 0 { At::Trailers } else { At::Chunk(size) };
        Ok(())
    }

    fn trailer(&mut self, byte: u8, heard: &mut Vec<Heard>) -> Result<(), Fault> {
        self.push(byte)?;
        self.trailers += 1;
        if self.trailers > limits::HTTP_HEAD_BYTES {
            return Err(Fault::of(431, format!("trailers of more than {} bytes", limits::HTTP_HEAD_BYTES)));
        }
        if self.line.ends_with(b"\r\n") {
            let last = self.line.len() == 2;
            self.line.clear();
            if last {
                self.whole(heard);
            }
        }
        Ok(())
    }

    /// One more byte of a line: its end is CRLF and nothing else, and the next line is not a part of it.
    fn push(&mut self, byte: u8) -> Result<(), Fault> {
        let before = self.line.last().copied();
        let fault = match (before, byte) {
            (_, 0) => "a NUL",
            (Some(b'\r'), b'\n') => return self.keep(byte),
            (Some(b'\r'), _) => "a CR without its LF",
            (_, b'\n') => "an LF without its CR",
            (Some(b'\n') | None, b' ' | b'\t') => "a line that begins with a blank",
            _ => return self.keep(byte),
        };
        Err(Fault::of(400, format!("{fault} where a line is read")))
    }

    fn keep(&mut self, byte: u8) -> Result<(), Fault> {
        self.line.push(byte);
        Ok(())
    }
}

impl Fault {
    pub(super) fn of(status: u16, reason: String) -> Fault {
        Fault { status, reason }
    }

    pub(super) fn bad(reason: &str) -> Fault {
        Fault::of(400, reason.to_owned())
    }

    pub(super) fn large() -> Fault {
        Fault::of(413, format!("content of more than {} bytes", limits::HTTP_BODY_BYTES))
    }
}

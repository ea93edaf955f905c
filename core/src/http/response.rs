//! The bytes of responses: whole ones, and streams of server-sent events.

use crate::bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The content's type; empty when there is no content.
    pub content_type: &'static str,
    /// Further headers, as they are sent. Values are this program's own and hold no line break.
    pub headers: Vec<(&'static str, String)>,
    /// The content.
    pub body: Vec<u8>,
}

/// How a response ends, which depends on who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Another one may follow on the connection.
    pub keep_alive: bool,
    /// The client understands chunks.
    pub chunks: bool,
    /// The answer to HEAD: what it would be, without its content.
    pub head_only: bool,
}

impl Response {
    /// One with content of this type.
    pub fn of(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into() }
    }

    /// A sentence for people.
    pub fn text(status: u16, sentence: &str) -> Response {
        Response::of(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
    }

    /// With one more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }

    /// Its bytes.
    pub fn bytes(&self, framing: Framing) -> Bytes {
        let mut bytes = begin(self.status, self.content_type, &self.headers);
        line(&mut bytes, "Content-Length", &self.body.len().to_string());
        if !framing.keep_alive {
            line(&mut bytes, "Connection", "close");
        }
        bytes.extend_from_slice(b"\r\n");
        if !framing.head_only {
            bytes.extend_from_slice(&self.body);
        }
        Bytes::from(bytes)
    }
}

/// The head of a stream of server-sent events. A client that knows no chunks sees its end by the connection's.
pub fn stream_head(framing: Framing) -> Bytes {
    let headers = [("Cache-Control", "no-store".to_owned())];
    let mut bytes = begin(200, "text/event-stream", &headers);
    if framing.chunks {
        line(&mut bytes, "Transfer-Encoding", "chunked");
    }
    if !framing.keep_alive || !framing.chunks {
        line(&mut bytes, "Connection", "close");
    }
    bytes.extend_from_slice(b"\r\n");
    Bytes::from(bytes)
}

/// A piece of a stream.
pub fn chunk(framing: Framing, piece: &[u8]) -> Bytes {
    if !framing.chunks {
        return Bytes::from(piece);
    }
    let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
    bytes.extend_from_slice(piece);
    bytes.extend_from_slice(b"\r\n");
    Bytes::from(bytes)
}

/// The end of a stream; empty where the connection's end is the stream's.
pub fn last_chunk(framing: Framing) -> Bytes {
    Bytes::from(if framing.chunks { b"0\r\n\r\n".as_slice() } else { b"" })
}

fn begin(status: u16, content_type: &str, headers: &[(&str, String)]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} {}\r\n", phrase(status)).into_bytes();
    if !content_type.is_empty() {
        line(&mut bytes, "Content-Type", content_type);
    }
    headers.iter().for_each(|(name, value)| line(&mut bytes, name, value));
    bytes
}

fn line(bytes: &mut Vec<u8>, name: &str, value: &str) {
    debug_assert!(!value.contains(['\r', '\n']), "a header of one line");
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

//! A request's head: read with `httparse` once it is whole, and held against what this server takes.

use super::server::Fault;
use crate::bytes::Bytes;
use crate::limits;
use serde::{Deserialize, Serialize};

/// One whole request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// As it was sent; methods are case-sensitive.
    pub method: String,
    /// The target's path; begins with `/`, or is `*`. Not decoded.
    pub path: String,
    /// What follows the first `?`, if there is one. Not decoded.
    pub query: Option<String>,
    /// In the order sent, names in lower case, values without the blanks around them.
    pub headers: Vec<(String, Bytes)>,
    /// The content, chunks joined.
    pub body: Bytes,
    /// The client takes another response on this connection.
    pub keep_alive: bool,
    /// The client is of HTTP/1.1, so a response may be in chunks.
    pub chunks: bool,
}

impl Request {
    /// The value of the only header of this name; `None` when there is none or more than one.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| &**value)?;
        found.next().is_none().then_some(value)
    }

    /// How many headers of this name there are.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(known, _)| known == name).count()
    }
}

/// How much content follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Sized(usize),
    Chunked,
}

/// A head, and what it says of what follows.
pub(super) struct Head {
    pub(super) request: Request,
    pub(super) content: Content,
    /// The client waits for `100 Continue` before it sends its content.
    pub(super) expects: bool,
}

/// Reads a whole head, the empty line included. Its lines are known to end in CRLF and not to be folded.
pub(super) fn read(bytes: &[u8]) -> Result<Head, Fault> {
    let mut room = [httparse::EMPTY_HEADER; limits::HTTP_HEADERS];
    let mut parsed = httparse::Request::new(&mut room);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(read)) if read == bytes.len() => {}
        Ok(_) => return Err(Fault::bad("the head does not end where its empty line is")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Fault::of(431, format!("more than {} headers", limits::HTTP_HEADERS)));
        }
        Err(httparse::Error::Version) => {
            return Err(Fault::of(505, "only HTTP/1.1 and HTTP/1.0 are spoken here".to_owned()));
        }
        Err(error) => return Err(Fault::of(400, format!("the head cannot be read: {error}"))),
    }
    let chunks = parsed.version == Some(1);
    let headers: Vec<(String, Bytes)> = parsed
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), Bytes::from(header.value.trim_ascii())))
        .collect();
    let (path, query) = target(parsed.path.unwrap_or_default())?;
    let method = parsed.method.unwrap_or_default().to_owned();
    let mut request =
        Request { method, path, query, headers, body: Bytes::default(), keep_alive: false, chunks };
    match request.count("host") {
        1 => {}
        0 if !chunks => {}
        0 => return Err(Fault::bad("there is no Host header, which HTTP/1.1 requires")),
        _ => return Err(Fault::bad("there is more than one Host header")),
    }
    let content = content(&request)?;
    let expects = expects(&request)?;
    request.keep_alive = chunks && !has_token(&request, "connection", "close");
    Ok(Head { request, content, expects: expects && content != Content::Sized(0) })
}

/// Path and query of a target in origin form, or in absolute form, which a proxy may send.
fn target(target: &str) -> Result<(String, Option<String>), Fault> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Fault::bad("the target has a character in it that is not visible ASCII"));
    }
    let scheme = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    let local = match scheme {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None if target.starts_with('/') || target == "*" => target,
        None => return Err(Fault::bad("the target does not begin with /")),
    };
    Ok(match local.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (local.to_owned(), None),
    })
}

/// How long the content is. Whatever two readers could count differently is refused.
fn content(request: &Request) -> Result<Content, Fault> {
    let (sized, coded) = (request.count("content-length"), request.count("transfer-encoding"));
    match (sized, coded) {
        (0, 0) => Ok(Content::Sized(0)),
        (_, 1..) if sized > 0 => Err(Fault::bad("both Content-Length and Transfer-Encoding are given")),
        (0, _) if !request.chunks => Err(Fault::bad("HTTP/1.0 has no Transfer-Encoding")),
        (0, _) => match request.header("transfer-encoding") {
            Some(value) if value.eq_ignore_ascii_case(b"chunked") => Ok(Content::Chunked),
            Some(_) | None => {
                Err(Fault::of(501, "of all transfer codings only one `chunked` is understood".to_owned()))
            }
        },
        _ => {
            let digits = request.header("content-length").filter(|value| {
                !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit)
            });
            let length = digits
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| digits.parse::<usize>().ok())
                .ok_or_else(|| Fault::bad("Content-Length is not one number"))?;
            if length > limits::HTTP_BODY_BYTES { Err(Fault::large()) } else { Ok(Content::Sized(length)) }
        }
    }
}

fn expects(request: &Request) -> Result<bool, Fault> {
    match request.count("expect") {
        0 => Ok(false),
        _ if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue")) => {
            Ok(request.chunks)
        }
        _ => Err(Fault::of(417, "of all expectations only `100-continue` is met".to_owned())),
    }
}

/// Whether one of the headers of this name lists this word.
fn has_token(request: &Request, name: &str, token: &str) -> bool {
    let mut values = request.headers.iter().filter(|(known, _)| known == name);
    values.any(|(_, value)| {
        value.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    })
}

//! From the bytes of an answer to a reply, whichever dialect it is in.
//!
//! Owns what is common: telling an event stream from one JSON text (servers that ignore `stream` send that), when
//! the reply is complete, and that nothing half-received is one (S7.4). Refuses a stream that ends without its
//! terminal event or with an error in it. Called by the child's model connection through [`crate::model::api`].

use crate::limits::{PREVIEW_BYTES, REPLY_BYTES};
use crate::model::{ModelError, ModelErrorKind, Partial, Reply};
use crate::preview::preview;
use crate::sse::{Decoder, Event};
use serde_json::Value;

/// What a dialect makes of the events.
pub trait Events: Default {
    /// What the terminal event is called, for the error when it is missing.
    const END: &'static str;

    /// Takes one event.
    ///
    /// # Errors
    /// The provider reports one, or sends what no reply can hold.
    fn take(&mut self, name: &str, data: &Value) -> Result<Seen, ModelError>;

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// The same, or it is not a reply at all.
    fn whole(&mut self, body: &Value) -> Result<(), ModelError>;

    /// Whether this is the terminal event, when that is not JSON.
    fn is_end(_data: &str) -> bool {
        false
    }

    /// Whether the model has said that it is done, so that a body that ends properly may end here, although the
    /// terminal event never came.
    fn may_end(&self) -> bool {
        false
    }

    /// What came so far.
    fn came(&self) -> Partial;

    /// The reply.
    fn reply(self) -> Reply;
}

/// What an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Nothing: a sign of life at most.
    Nothing,
    /// The reply has grown.
    Something,
    /// The reply is complete.
    End,
}

/// Reads one answer.
#[derive(Debug)]
pub struct Reader<E> {
    body: Body,
    events: E,
    /// How the answer begins, for errors.
    head: Vec<u8>,
    done: bool,
    failed: Option<ModelError>,
}

#[derive(Debug)]
enum Body {
    /// Nothing but white space so far.
    Unknown,
    Stream(Decoder),
    Json(Vec<u8>),
}

impl<E: Events> Reader<E> {
    /// A reader for an answer of which nothing has come yet.
    #[expect(clippy::new_without_default, reason = "a reader is made for an answer, not by default")]
    pub fn new() -> Reader<E> {
        Reader { body: Body::Unknown, events: E::default(), head: Vec::new(), done: false, failed: None }
    }

    /// Takes the next bytes. How many events in them mean something: comments, pings and keep-alives do not.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        if self.is_done() {
            return 0;
        }
        let room = (PREVIEW_BYTES + 1).saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        match self.read(bytes) {
            Ok(seen) => seen,
            Err(error) => {
                self.failed = Some(error);
                1
            }
        }
    }

    /// Whether what came is a stream of events and not one JSON text.
    pub fn is_stream(&self) -> bool {
        matches!(self.body, Body::Stream(_))
    }

    /// Whether nothing that could still come would change the outcome: the connection need not be read on.
    pub fn is_done(&self) -> bool {
        self.done || self.failed.is_some()
    }

    /// What came so far of a reply, if anything: for one that will not be whole.
    pub fn came(&self) -> Option<Partial> {
        match &self.body {
            Body::Unknown => None,
            Body::Stream(_) => self.events.came().some(),
            // Whether it is a reply is not known before its end.
            Body::Json(text) => Partial { bytes: text.len(), ..Partial::default() }.some(),
        }
    }

    /// The answer has ended, and properly: a connection that broke is for the caller to report.
    ///
    /// # Errors
    /// What came is not a whole reply, or the provider reported an error in it. The error says what came of one.
    pub fn finish(self) -> Result<Reply, ModelError> {
        let came = self.came();
        self.whole().map_err(|(error, of_a_reply)| ModelError { came: came.filter(|_| of_a_reply), ..error })
    }

    /// The reply; or the error, and whether what came may have been a part of one.
    fn whole(mut self) -> Result<Reply, (ModelError, bool)> {
        if let Some(error) = self.failed {
            return Err((error, true));
        }
        let cut_off = |error| (error, true);
        match std::mem::replace(&mut self.body, Body::Unknown) {
            Body::Unknown => Err((malformed("the answer is empty".to_owned()), false)),
            Body::Json(text) => {
                let body = json(&text).map_err(|what| (malformed(format!("the answer is {what}")), true))?;
                // What is whole, and is no reply, is no part of one.
                self.events.whole(&body).map_err(|error| (error, false))?;
                Ok(self.events.reply())
            }
            Body::Stream(decoder) => {
                let last = decoder.finish().map_err(|e| cut_off(malformed(e.to_string())))?;
                if let Some(event) = last.filter(|_| !self.done) {
                    self.done = self.event(&event).map_err(cut_off)? == Seen::End;
                }
                let whole = self.done || self.events.may_end();
                if whole { Ok(self.events.reply()) } else { Err((cut::<E>(&self.head), true)) }
            }
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<usize, ModelError> {
        if matches!(self.body, Body::Unknown) {
            let blank = |b: &u8| b.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(b);
            let Some(at) = bytes.iter().position(|b| !blank(b)) else { return Ok(0) };
            bytes = &bytes[at..];
            let stream = bytes[0] != b'{';
            self.body = if stream { Body::Stream(Decoder::new()) } else { Body::Json(Vec::new()) };
        }
        let mut events = Vec::new();
        let read = match &mut self.body {
            Body::Unknown => Ok(()),
            Body::Json(text) => {
                if text.len() + bytes.len() > REPLY_BYTES {
                    return Err(malformed(format!("the answer is longer than {REPLY_BYTES} bytes")));
                }
                text.extend_from_slice(bytes);
                // White space is what some servers keep a waiting connection alive with.
                return Ok(usize::from(bytes.iter().any(|b| !b.is_ascii_whitespace())));
            }
            Body::Stream(decoder) => decoder.push(bytes, &mut events),
        };
        let mut meaningful = 0;
        for event in events {
            match self.event(&event)? {
                Seen::Nothing => {}
                Seen::Something => meaningful += 1,
                Seen::End => {
                    self.done = true;
                    return Ok(meaningful + 1);
                }
            }
        }
        read.map(|()| meaningful).map_err(|e| malformed(e.to_string()))
    }

    fn event(&mut self, event: &Event) -> Result<Seen, ModelError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Seen::Nothing);
        }
        if E::is_end(data) {
            return Ok(Seen::End);
        }
        let value =
            json(data.as_bytes()).map_err(|what| malformed(format!("an event of the stream is {what}")))?;
        self.events.take(&event.name, &value)
    }
}

fn json(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text)
        .map_err(|e| format!("not valid JSON ({e}): `{}`", preview(text, PREVIEW_BYTES / 2)))
}

/// The stream ended early. What it began with tells a proxy's page from a provider's stream.
fn cut<E: Events>(head: &[u8]) -> ModelError {
    malformed(format!(
        "the stream ended without its terminal event ({}), so the reply is not whole; it began with `{}`",
        E::END,
        preview(head, PREVIEW_BYTES / 2)
    ))
}

fn malformed(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, message)
}

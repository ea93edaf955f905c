//! One JSON-RPC 2.0 message: read tolerantly, written strictly. Reading never builds a tree of what a server
//! sent: parts that are not needed stay text, so a line costs a small multiple of its own length.

use super::preview::{preview, words};
use crate::limits;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A message from a server.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// Answers one of our requests, or nobody's.
    Response {
        /// The number of the request, when it is a number we could have used.
        id: Option<u64>,
        /// The answer.
        answer: Answer<'a>,
    },
    /// Wants an answer.
    Request {
        /// To be echoed as it is.
        id: &'a RawValue,
        /// What it wants.
        method: Cow<'a, str>,
        /// With which parameters.
        params: Option<&'a RawValue>,
    },
    /// Wants nothing.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// How.
        params: Option<&'a RawValue>,
    },
}

/// What a response says.
#[derive(Debug)]
pub(super) enum Answer<'a> {
    /// It worked.
    Result(&'a RawValue),
    /// It did not: the server's own words, bounded.
    Error(RpcError),
}

/// A server's error, fit for a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RpcError {
    /// As it was written; usually a number.
    pub(super) code: String,
    /// What the server says.
    pub(super) message: String,
    /// What it adds, as it was written; left out when it is longer than an error may be.
    pub(super) data: Option<String>,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

/// Reads one message, or says why the text is none.
pub(super) fn read(text: &str) -> Result<Incoming<'_>, &'static str> {
    let envelope: Envelope<'_> = match object(text) {
        Ok(envelope) => envelope,
        Err(e) if e.is_data() => return Err("JSON, but not one JSON-RPC message"),
        Err(_) => return Err("not JSON"),
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err("JSON without \"jsonrpc\": \"2.0\"");
    }
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) if is_id(id) => {
            Ok(Incoming::Request { id, method, params: envelope.params })
        }
        (Some(_), Some(_)) => Err("a request whose id is neither a string nor a number"),
        (Some(method), None) => Ok(Incoming::Notification { method, params: envelope.params }),
        (None, None) if envelope.error.is_none() => Err("neither a request nor a response"),
        (None, id) => Ok(Incoming::Response {
            id: id.and_then(own_id),
            answer: answer(envelope.result, envelope.error),
        }),
    }
}

/// Decodes a JSON object. A derived decoder alone would take an array too, field by field.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    match text.trim_start().as_bytes().first() {
        Some(b'[') => Err(serde::de::Error::custom("expected a JSON object, found an array")),
        Some(_) | None => serde_json::from_str(text),
    }
}

/// A request. Every message is one line without its end.
pub(super) fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    text(&Message { jsonrpc: "2.0", id: Some(id), method, params })
}

/// A notification.
pub(super) fn notification(method: &str, params: impl Serialize) -> Vec<u8> {
    text(&Message { jsonrpc: "2.0", id: None::<u64>, method, params })
}

/// The answer to a server's request.
pub(super) fn result(id: &RawValue, result: &serde_json::Value) -> Vec<u8> {
    text(&Reply { jsonrpc: "2.0", id, result: Some(result), error: None })
}

/// The answer to a request we do not serve.
pub(super) fn method_not_found(id: &RawValue, method: &str) -> Vec<u8> {
    let error = ReplyError { code: -32601, message: format!("method not found: {}", preview(method)) };
    text(&Reply { jsonrpc: "2.0", id, result: None, error: Some(error) })
}

/// The answer to a request whose parameters are not what we said that we take.
pub(super) fn invalid_params(id: &RawValue, why: &str) -> Vec<u8> {
    let error = ReplyError { code: -32602, message: why.to_owned() };
    text(&Reply { jsonrpc: "2.0", id, result: None, error: Some(error) })
}

/// The first `N` items of a JSON array as text, and how many more there were.
#[derive(Debug, Default)]
pub(super) struct First<'a, const N: usize> {
    /// In order.
    pub(super) items: Vec<&'a RawValue>,
    /// Beyond `N`; read past, not kept.
    pub(super) more: usize,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    /// Kept where it is null too.
    #[serde(default, borrow, deserialize_with = "said")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// What stands there, whatever it is.
fn said<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(d).map(Some)
}

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// The id is written as the server wrote it, never through a number type of ours.
#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReplyError>,
}

#[derive(Serialize)]
struct ReplyError {
    code: i32,
    message: String,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    #[serde(default, borrow)]
    code: Option<&'a RawValue>,
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

impl<'de: 'a, 'a, const N: usize> Deserialize<'de> for First<'a, N> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Items<'a, const N: usize>(First<'a, N>);
        impl<'de: 'a, 'a, const N: usize> Visitor<'de> for Items<'a, N> {
            type Value = First<'a, N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<First<'a, N>, A::Error> {
                while self.0.items.len() < N {
                    match seq.next_element()? {
                        Some(item) => self.0.items.push(item),
                        None => return Ok(self.0),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    self.0.more += 1;
                }
                Ok(self.0)
            }
        }
        d.deserialize_seq(Items(First { items: Vec::new(), more: 0 }))
    }
}

/// `error` counts when it is there and not null, whatever stands beside it; an answer with neither, or with a null result, is
/// an error of its own, so that the call it belongs to is answered now and not by its time limit.
fn answer<'a>(result: Option<&'a RawValue>, error: Option<&'a RawValue>) -> Answer<'a> {
    match (result, error) {
        (_, Some(error)) => Answer::Error(rpc_error(error)),
        (Some(result), None) if result.get() == "null" => {
            Answer::Error(unusable("the server's answer has a null result"))
        }
        (Some(result), None) => Answer::Result(result),
        (None, None) => Answer::Error(unusable("the server's answer has neither a result nor an error")),
    }
}

fn unusable(why: &str) -> RpcError {
    RpcError { code: "none".into(), message: why.into(), data: None }
}

fn rpc_error(raw: &RawValue) -> RpcError {
    let unnamed = || "none".to_owned();
    match object::<ErrorObject<'_>>(raw.get()) {
        Ok(e) => {
            let code = e.code.map_or_else(unnamed, |c| words(c, 32));
            let mut message = e.message.map_or_else(String::new, |m| words(m, limits::MCP_ERROR_BYTES));
            let data = e.data.map(RawValue::get);
            if let Some(data) = e.data {
                message.push_str(&format!(" (data: {})", words(data, limits::PREVIEW_BYTES)));
            }
            let data = data.filter(|data| data.len() <= limits::MCP_ERROR_BYTES).map(str::to_owned);
            RpcError { code, message, data }
        }
        Err(_) => RpcError { code: unnamed(), message: words(raw, limits::MCP_ERROR_BYTES), data: None },
    }
}

fn is_id(raw: &RawValue) -> bool {
    matches!(raw.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

/// Our ids are numbers from 1. Some servers give them back as a string or with a fraction of zero; that still
/// names exactly one request, for no id is used twice.
pub(super) fn own_id(raw: &RawValue) -> Option<u64> {
    let text = raw.get();
    if text.len() > 24 {
        return None;
    }
    let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    let whole = text.split_once('.').map_or(text, |(whole, rest)| {
        if !rest.is_empty() && rest.bytes().all(|b| b == b'0') { whole } else { text }
    });
    whole.bytes().all(|b| b.is_ascii_digit()).then(|| whole.parse().ok()).flatten()
}

fn text(message: &impl Serialize) -> Vec<u8> {
    // Only string-keyed maps are ever passed, and writing to memory cannot fail.
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests;

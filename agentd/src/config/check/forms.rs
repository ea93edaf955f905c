//! What a text must look like to be a name, a variable, a header. Called by `check`; knows nothing of places.

use super::super::tree::clip;
use crate::secrets::{header_fault, reference};
use agentd_core::money::Usd;

/// Headers that the connection sets itself: one of ours would break it.
const OF_THE_CONNECTION: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What names of headers that carry a credential have in them, and how they end.
const SECRET_PARTS: [&str; 6] = ["authorization", "cookie", "api-key", "apikey", "password", "secret"];
const SECRET_ENDS: [&str; 2] = ["key", "token"];

pub(super) fn is_name(text: &str, dots: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || (dots && c == '.');
    (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with('.')
}

pub(super) fn is_variable(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Why a name or `PREFIX*` cannot be passed through.
pub(super) fn passthrough_fault(text: &str) -> Option<String> {
    let name = text.strip_suffix('*').unwrap_or(text);
    if text == "*" {
        Some("* alone would pass every variable, secrets included".to_owned())
    } else if !is_variable(name) {
        Some(format!("{:?} is not a variable's name", clip(text)))
    } else if name.starts_with("AGENTD_") {
        Some(format!("{} is a name that agentd keeps for itself", clip(text)))
    } else {
        None
    }
}

/// Whether a header of this name carries a credential.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part)) || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// Why a text is no name of a header that can be added.
pub(super) fn header_name_fault(name: &str) -> Option<String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(fits) {
        Some(format!("{:?} is not a header's name", clip(name)))
    } else if OF_THE_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        Some(format!("{} is set by the connection itself", clip(name)))
    } else {
        None
    }
}

/// Why a text cannot be a header's value. Never quotes it.
pub(super) fn header_value_fault(name: &str, value: &str) -> Option<String> {
    match reference::parts(value) {
        Err(fault) => Some(fault.to_string()),
        Ok(_) if is_secret_header(name) && !reference::refers(value) => {
            Some("holds a credential as it is; refer to one".to_owned())
        }
        Ok(_) => header_fault(value).map(str::to_owned),
    }
}

/// Why a text cannot stand where a secret is needed. Never quotes it.
pub(super) fn secret_fault(text: &str) -> Option<String> {
    match reference::parts(text) {
        Err(fault) => Some(fault.to_string()),
        Ok(_) if !reference::refers(text) => {
            Some("is not a reference; a key does not belong in a configuration".to_owned())
        }
        Ok(_) => header_fault(text).map(str::to_owned),
    }
}

/// Dollars as they are written: digits and a point.
pub(crate) fn dollars(text: &str) -> Option<Usd> {
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain).and_then(Usd::from_dollars)
}

//! Errors of the typed pass, bounded before they are built: a peer that sends megabytes where a number belongs
//! gets a short answer.

use super::item::{Fault, Item};
use crate::limits;
use crate::preview::preview;
use serde::de::{Error, Expected, Unexpected};

/// Why a value is not what its type says: where, what was expected and what was seen, in bounded words.
#[derive(Debug, thiserror::Error)]
#[error("{}{}{}", .0.path, if .0.path.is_empty() { "" } else { ": " }, .0.what)]
pub struct ReadError(Box<Problem>);

#[derive(Debug)]
struct Problem {
    /// As `servers[2].name`; empty at the top.
    path: String,
    what: String,
}

impl ReadError {
    #[cold]
    pub(in crate::wire) fn new(what: impl AsRef<str>) -> ReadError {
        let what = preview(what.as_ref(), 2 * limits::PREVIEW_BYTES);
        ReadError(Box::new(Problem { path: String::new(), what }))
    }

    /// The same, seen from one level further up.
    #[cold]
    pub(in crate::wire) fn under(mut self, step: impl AsRef<[u8]>) -> ReadError {
        let path = &self.0.path;
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        self.0.path = format!("{}{dot}{path}", preview(step, limits::PREVIEW_BYTES / 2));
        self
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> ReadError {
        ReadError::new(fault.to_string())
    }
}

impl Error for ReadError {
    fn custom<T: std::fmt::Display>(what: T) -> ReadError {
        ReadError::new(what.to_string())
    }

    fn invalid_type(seen: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::new(format!("expected {expected}, saw {}", shown(seen)))
    }

    fn invalid_value(seen: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::new(format!("expected {expected}, saw {}", shown(seen)))
    }

    fn unknown_variant(seen: &str, accepted: &'static [&'static str]) -> ReadError {
        let seen = preview(seen, limits::PREVIEW_BYTES / 2);
        ReadError::new(format!("expected one of {}, saw \"{seen}\"", accepted.join(", ")))
    }

    fn unknown_field(seen: &str, accepted: &'static [&'static str]) -> ReadError {
        let seen = preview(seen, limits::PREVIEW_BYTES / 2);
        ReadError::new(format!("unknown key \"{seen}\", accepted are {}", accepted.join(", ")))
    }

    fn missing_field(field: &'static str) -> ReadError {
        ReadError::new(format!("the key \"{field}\" is missing"))
    }
}

/// `seen` is there where `expected` should be.
#[cold]
pub(super) fn wrong(seen: Item<'_>, expected: &dyn Expected) -> ReadError {
    Error::invalid_type(seen.unexpected(), expected)
}

impl Item<'_> {
    /// What it is, for a message.
    pub(in crate::wire) fn shown(self) -> String {
        shown(self.unexpected())
    }
}

/// What was seen, never more of it than a message can carry.
fn shown(seen: Unexpected<'_>) -> String {
    match seen {
        Unexpected::Str(text) => format!("text \"{}\"", preview(text, limits::PREVIEW_BYTES / 2)),
        Unexpected::Bytes(bytes) => format!("a byte string of {} bytes", bytes.len()),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unit => "null".into(),
        Unexpected::Seq => "an array".into(),
        Unexpected::Map => "a map".into(),
        Unexpected::Char(_) | Unexpected::Option | Unexpected::NewtypeStruct | Unexpected::Enum => {
            seen.to_string()
        }
        Unexpected::UnitVariant | Unexpected::NewtypeVariant => seen.to_string(),
        Unexpected::TupleVariant | Unexpected::StructVariant | Unexpected::Other(_) => seen.to_string(),
    }
}

//! JSON from models, within bounds: the arguments of a tool call (S7.3) and answers that a schema describes (S7.8). Refuses what is too long, too
//! deep, not an object, not JSON (`NaN` is not), or names a key twice. Called by the agent loop and by the
//! supervisor's own tools before anything acts on an argument.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod schema;
mod unique;

pub use crate::preview::preview;

use crate::limits;
use serde_json::{Map, Value};

/// Deepest nesting that the parser below follows; a higher `max_depth` is taken as this.
const PARSER_DEPTH: usize = 127;

/// Reads `bytes` as one JSON object of at most `max_bytes` bytes, nested at most `max_depth` deep (the object
/// itself is 1). Length and depth are judged before anything is parsed or allocated.
pub fn object(bytes: &[u8], max_bytes: usize, max_depth: usize) -> Result<Map<String, Value>, JsonProblem> {
    match value(bytes, max_bytes, max_depth)? {
        Value::Object(map) => Ok(map),
        Value::Null => Err(JsonProblem::NotAnObject { seen: "null" }),
        Value::Bool(_) => Err(JsonProblem::NotAnObject { seen: "a boolean" }),
        Value::Number(_) => Err(JsonProblem::NotAnObject { seen: "a number" }),
        Value::String(_) => Err(JsonProblem::NotAnObject { seen: "a string" }),
        Value::Array(_) => Err(JsonProblem::NotAnObject { seen: "an array" }),
    }
}

/// Reads `bytes` as one JSON value of any kind, within the same bounds.
///
/// # Errors
/// All of [`JsonProblem`] but [`JsonProblem::NotAnObject`].
pub fn value(bytes: &[u8], max_bytes: usize, max_depth: usize) -> Result<Value, JsonProblem> {
    if bytes.len() > max_bytes {
        return Err(JsonProblem::TooLong { bytes: bytes.len(), max: max_bytes });
    }
    let max = max_depth.min(PARSER_DEPTH);
    if let Some(at) = first_deeper_than(bytes, max) {
        return Err(JsonProblem::TooDeep { max, at });
    }
    unique::parse(bytes)
}

/// Why a text is not an object that can be used. The model reads it as the call's result, so each says what
/// was seen and what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// Longer than accepted.
    #[error("{bytes} bytes of JSON, at most {max} are accepted: send less in one call")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// What is accepted.
        max: usize,
    },
    /// Nested deeper than accepted.
    #[error("nested deeper than {max} levels (at byte {at}): send a flatter object")]
    TooDeep {
        /// What is accepted.
        max: usize,
        /// Offset of the bracket that goes too deep.
        at: usize,
    },
    /// JSON, but not an object.
    #[error("{seen} where an object is expected: send {{\"name\": value, …}}, or {{}} for none")]
    NotAnObject {
        /// What it is.
        seen: &'static str,
    },
    /// One object names a key twice, so which value is meant cannot be known.
    #[error("the key \"{key}\" is there twice in one object: send each key once")]
    RepeatedKey {
        /// A preview of the key.
        key: String,
    },
    /// Not JSON.
    #[error("not valid JSON: {what}: send one complete JSON object")]
    Syntax {
        /// What the parser met, and where.
        what: String,
    },
}

/// Offset of the first bracket that opens level `max` + 1. Reads strings as the parser does, so for the part
/// of a text that is valid both see the same levels; past the first error the parser does not go.
fn first_deeper_than(bytes: &[u8], max: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' if depth == max => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// What the parser says of `bytes`, with a look at the place.
fn syntax(bytes: &[u8], error: &serde_json::Error) -> JsonProblem {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return JsonProblem::Syntax { what: "the text is empty".into() };
    }
    if error.is_eof() {
        return JsonProblem::Syntax { what: format!("{error}; the text was cut or never finished") };
    }
    let before = bytes.split_inclusive(|b| *b == b'\n').take(error.line().saturating_sub(1));
    let line_start: usize = before.map(<[u8]>::len).sum();
    let at = (line_start + error.column().saturating_sub(1)).min(bytes.len());
    let near = preview(&bytes[at..], limits::PREVIEW_BYTES / 4);
    JsonProblem::Syntax { what: format!("{error}, near `{near}`") }
}

#[cfg(test)]
mod tests;

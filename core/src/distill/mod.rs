//! What is kept of a run's answer (S8.1): a value, never the transcript.
//!
//! Owns the one rule that turns the last text of a run into the value its caller reads. Called by the
//! supervisor before it stores a result; nothing else shortens or reads a result.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use crate::limits::{RESULT_DEPTH, RESULT_TEXT_BYTES};
use serde_json::Value;

/// What follows a text that was cut.
pub const CUT_MARK: &str = "… [truncated]";

/// The value of an answer: a JSON object or array as that value, whole however large; any other text as text,
/// cut to [`RESULT_TEXT_BYTES`] and marked with [`CUT_MARK`].
///
/// A scalar (`42`, `"yes"`, `null`) stays text, since a model that writes it writes prose. Where JSON leaves
/// room: of a repeated key the last value stands; an integer beyond 64 bits becomes the nearest double; what
/// nests deeper than [`RESULT_DEPTH`], or holds a number beyond a double, is text.
///
/// ```
/// use agentd_core::distill::distill;
/// use serde_json::json;
/// assert_eq!(distill(" {\"lines\": 3}\n"), json!({"lines": 3}));
/// assert_eq!(distill("42"), json!("42"));
/// ```
pub fn distill(text: &str) -> Value {
    match structured(text) {
        Some(value) => value,
        None => Value::String(bounded(text)),
    }
}

/// As [`distill`], but text of any length stays whole: for an answer that a person reads.
pub fn undistilled(text: &str) -> Value {
    structured(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn structured(text: &str) -> Option<Value> {
    // Most answers are prose: look before parsing, so that a long one is not read for nothing.
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    // serde_json refuses at 128 levels, so neither this nor the recursion below can run away.
    let value: Value = serde_json::from_str(text).ok()?;
    (depth(&value) <= RESULT_DEPTH).then_some(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn bounded(text: &str) -> String {
    if text.len() <= RESULT_TEXT_BYTES {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(RESULT_TEXT_BYTES)];
    format!("{head}{CUT_MARK}")
}

#[cfg(test)]
mod tests;

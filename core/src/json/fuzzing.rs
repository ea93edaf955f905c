//! What must hold for any JSON of a model: the body of the fuzz target `json_schema`.

use super::schema::Schema;
use super::{JsonProblem, object, value};
use crate::limits::{OUTPUT_SCHEMA_ERRORS, PREVIEW_BYTES};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Bounds of the bare readings here.
const BYTES: usize = 64 * 1024;
const DEPTH: usize = 32;

/// Work on one value here: that it is bounded is seen without waiting for the whole of it.
const STEPS: u64 = 20_000;

/// What the check of a value says that would take too long.
const TOO_COSTLY: &str = "the value cannot be held against this schema in bounded time";

/// Reads `data` as a schema and, after the first NUL byte, the value that is held against it. Gives what came of it.
///
/// # Panics
///
/// When the bounded reading and the parser below it disagree, an error is without end, or a verdict changes when the
/// schema is put inside another that means the same or the opposite.
pub fn json_schema(data: &[u8]) -> BTreeSet<&'static str> {
    let (text, rest) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let mut reached = BTreeSet::from([read(text), read(rest)]);
    let Ok(held) = value(rest, BYTES, DEPTH) else { return reached };
    match Schema::read(text) {
        Err(problem) => {
            assert!(problem.to_string().len() < 8 * PREVIEW_BYTES, "{problem}");
            reached.insert("no schema");
        }
        Ok(schema) => {
            let told = schema.check_within(&held, STEPS);
            reached.insert(verdict(&told));
            wrapped(text, &held, &told);
        }
    }
    reached
}

/// Reads text within the bounds and without; the two say the same.
fn read(text: &[u8]) -> &'static str {
    let bounded = value(text, BYTES, DEPTH);
    let plain = serde_json::from_slice::<Value>(text);
    if let Ok(value) = &bounded {
        assert_eq!(plain.as_ref().ok(), Some(value), "the parser reads what is accepted");
        assert_eq!(object(text, BYTES, DEPTH).is_ok(), value.is_object());
    }
    match bounded {
        Ok(_) => "a value",
        Err(problem) => {
            assert!(problem.to_string().len() < 4 * PREVIEW_BYTES, "{problem}");
            match problem {
                JsonProblem::TooLong { .. } => "too long",
                JsonProblem::TooDeep { .. } => "too deep",
                // What comes after the second key may be anything.
                JsonProblem::RepeatedKey { .. } => "a repeated key",
                JsonProblem::Syntax { .. } => {
                    assert!(plain.is_err(), "what is no JSON is refused below too: {problem}");
                    "no JSON"
                }
                JsonProblem::NotAnObject { .. } => "no object",
            }
        }
    }
}

fn verdict(told: &Result<(), Vec<String>>) -> &'static str {
    match told {
        Ok(()) => "fits",
        Err(told) => {
            assert!(!told.is_empty() && told.len() <= OUTPUT_SCHEMA_ERRORS, "{told:?}");
            assert!(told.iter().all(|line| line.len() < 4 * PREVIEW_BYTES), "{told:?}");
            if told[0].starts_with(TOO_COSTLY) { "too costly" } else { "does not fit" }
        }
    }
}

/// The verdict on the same value by schemas around this one. References are to places that have moved there.
fn wrapped(text: &[u8], held: &Value, told: &Result<(), Vec<String>>) {
    if text.windows(4).any(|word| word == b"$ref") || verdict(told) == "too costly" {
        return;
    }
    let Ok(inner) = serde_json::from_slice::<Value>(text) else { return };
    for (around, opposite) in [
        (json!({"allOf": [inner]}), false),
        (json!({"anyOf": [false, inner]}), false),
        (json!({"not": inner}), true),
        (json!({"if": inner, "then": false}), true),
    ] {
        let Ok(schema) = Schema::read(around.to_string().as_bytes()) else { continue };
        let said = schema.check_within(held, STEPS);
        if verdict(&said) != "too costly" {
            assert_eq!(said.is_ok() != opposite, told.is_ok(), "{around} on {held}");
        }
    }
}

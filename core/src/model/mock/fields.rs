//! Paths into a playbook, and what is said of a key or a value that does not belong there.

use crate::model::mock::Problem;
use crate::preview::preview;
use crate::time::Duration;
use serde_json::{Map, Value};

/// An object of the playbook.
pub(super) type Fields = Map<String, Value>;

/// A problem for each key that means nothing here.
pub(super) fn unknown_keys(path: &str, fields: &Fields, accepted: &[&str]) -> Vec<Problem> {
    let unknown = fields.keys().filter(|key| !accepted.contains(&key.as_str()));
    unknown
        .map(|key| Problem {
            path: join(path, key),
            message: format!("there is no such key; accepted are {}", accepted.join(", ")),
        })
        .collect()
}

/// A problem for a value of the wrong kind.
pub(super) fn wrong_type(path: &str, seen: &Value, accepted: &str) -> Problem {
    let seen = preview(seen.to_string(), 60);
    Problem { path: path.to_owned(), message: format!("it is {seen}; accepted is {accepted}") }
}

/// The path of a key. A key that is no plain word is quoted, so that two paths never read the same.
pub(super) fn join(path: &str, key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c));
    match (path.is_empty(), is_plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

/// Reads a number and one of the units ms, s, m, h.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let ms = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

//! Paths into a playbook, and what is said of a key or a value that does not belong there.

use crate::model::mock::Problem;
use crate::preview::preview;
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

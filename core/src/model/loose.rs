//! Tolerant reading of what providers send (S15.5): null, missing, of another type, numbers as strings. What cannot
//! be read counts as absent. Called by the dialects' readers.

use serde_json::Value;

/// A text that is there and says something; empty for anything else.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A whole number, also as a float or a string.
pub(super) fn number(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    if let Some(text) = value.as_str() {
        return text.trim().parse().ok();
    }
    // The cast saturates, and what is beyond a float's exact range is no count of anything.
    value.as_f64().filter(|f| *f >= 0.0 && f.fract() == 0.0).map(|f| f as u64)
}

/// A list; a single object stands for a list of one.
pub(super) fn list(value: &Value) -> &[Value] {
    match value.as_array() {
        Some(list) => list,
        None if value.is_object() => std::slice::from_ref(value),
        None => &[],
    }
}

/// The texts in a message's content: a string, or parts of which some are text.
pub(super) fn parts(content: &Value) -> impl Iterator<Item = &str> {
    let alone = content.as_str();
    let parts = list(content).iter().map(|part| part.as_str().unwrap_or_else(|| text(&part["text"])));
    alone.into_iter().chain(parts).filter(|text| !text.is_empty())
}

/// Whether a field holds anything.
pub(super) fn is_something(value: &Value) -> bool {
    let empty = value.is_null()
        || value.as_str().is_some_and(str::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty);
    !empty
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_in_every_dress() {
        for (value, want) in [
            (json!(7), Some(7)),
            (json!("7"), Some(7)),
            (json!(" 7 "), Some(7)),
            (json!(7.0), Some(7)),
            (json!(7.5), None),
            (json!(-7), None),
            (json!("seven"), None),
            (json!(null), None),
            (json!([7]), None),
            (json!(u64::MAX), Some(u64::MAX)),
        ] {
            assert_eq!(number(&value), want, "{value}");
        }
    }

    #[test]
    fn content_in_every_dress() {
        for (value, want) in [
            (json!("a"), "a"),
            (json!(null), ""),
            (json!([]), ""),
            (json!(""), ""),
            (json!(["a", "b"]), "ab"),
            (
                json!([{"type": "text", "text": "a"}, {"type": "image"}, null, {"text": null}, {"text": "b"}]),
                "ab",
            ),
            (json!({"type": "text", "text": "a"}), "a"),
            (json!(7), ""),
        ] {
            assert_eq!(parts(&value).collect::<String>(), want, "{value}");
        }
    }
}

//! What the stateless era repeats of a message in HTTP headers: method, name, and the arguments that a tool's schema
//! marks with `x-mcp-header`.
//!
//! Owns the encoding of a value that no header can hold as it is. Refuses a tool whose marks are not what the protocol
//! allows: its calls would be refused by whatever stands in between. Called by the catalogue and by the HTTP side.

use crate::limits;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// One argument that goes out as a header too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    /// Where it stands in the arguments: a key for each level.
    at: Vec<String>,
    /// The header's name after `Mcp-Param-`.
    name: String,
}

/// Levels of a schema's properties that are looked through for marks.
const DEPTH: usize = 16;

/// The marks of a tool's schema.
///
/// # Errors
/// A mark that the protocol does not allow: words that follow "its inputSchema".
pub(super) fn mirrors(schema: &Value) -> Result<Vec<Mirror>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut seen = BTreeSet::new();
    match found.iter().find(|mirror| !seen.insert(mirror.name.to_ascii_lowercase())) {
        Some(twice) => Err(format!("uses the x-mcp-header {:?} twice", twice.name)),
        None => Ok(found),
    }
}

fn collect(schema: &Value, at: &mut Vec<String>, found: &mut Vec<Mirror>) -> Result<(), String> {
    if at.len() >= DEPTH {
        return Ok(());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        at.push(key.clone());
        if let Some(mark) = property.get("x-mcp-header") {
            found.push(Mirror { at: at.clone(), name: marked(property, mark)? });
        }
        collect(property, at, found)?;
        at.pop();
    }
    Ok(())
}

fn marked(property: &Value, mark: &Value) -> Result<String, String> {
    let Some(name) = mark.as_str() else {
        return Err("has an x-mcp-header that is no text".to_owned());
    };
    // The characters of a header's name (RFC 9110, 5.6.2).
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > 128 || !name.bytes().all(fits) {
        return Err(format!(
            "has the x-mcp-header {:?}, which no header's name can end in",
            super::preview::one_line(name, 80)
        ));
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        Some(_) | None => {
            Err(format!("has the x-mcp-header {name:?} on something that is no string, integer or boolean"))
        }
    }
}

/// The headers of a call with these arguments. What is absent or null has none.
///
/// # Errors
/// A value that is longer than a header may be: a sentence.
pub(super) fn mirrored(
    mirrors: &[Mirror],
    args: &Map<String, Value>,
) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for Mirror { at, name } in mirrors {
        let mut levels = at.iter();
        let first = levels.next().and_then(|key| args.get(key));
        let value = levels.fold(first, |value, key| value.and_then(|value| value.get(key)));
        let text = match value {
            Some(Value::String(text)) => encoded(text),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(switch)) => switch.to_string(),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => continue,
        };
        if text.len() > limits::MCP_HEADER_BYTES {
            return Err(format!(
                "the argument {:?} goes out as a header and is over {} bytes",
                at.join("."),
                limits::MCP_HEADER_BYTES
            ));
        }
        headers.push((format!("mcp-param-{}", name.to_ascii_lowercase()), text));
    }
    Ok(headers)
}

/// A text as the value of a header: itself, or behind the sentinel where it could not go or would be changed.
pub(super) fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|b| (b' '..=b'~').contains(&b)) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !looks_encoded { text.to_owned() } else { format!("=?base64?{}?=", base64(text.as_bytes())) }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(properties: Value) -> Result<Vec<Mirror>, String> {
        mirrors(&json!({"type": "object", "properties": properties}))
    }

    #[test]
    fn base64_of_every_length() {
        for (text, want) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(text.as_bytes()), want);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn only_what_a_header_cannot_hold_is_encoded() {
        for text in ["", "us-west1", "us west 1", "a=b?c", "=?base64?x"] {
            assert_eq!(encoded(text), text);
        }
        for text in [" padded ", "a ", "\tx", "line1\nline2", "Hello, \u{4e16}", "=?base64?eA==?=", "\u{7f}"]
        {
            let shown = encoded(text);
            assert!(shown.starts_with("=?base64?") && shown.ends_with("?="), "{text:?}: {shown}");
        }
        assert_eq!(encoded("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }

    #[test]
    fn marked_arguments_become_headers() {
        let mirrors = of(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "nothing": {"type": "string", "x-mcp-header": "Nothing"},
            "in": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
            "plain": {"type": "string"},
        }))
        .unwrap();
        let args = json!({"region": " a", "n": 42, "dry": false, "nothing": null, "in": {"deep": "d"}, "plain": "p"});
        let mut headers = mirrored(&mirrors, args.as_object().unwrap()).unwrap();
        headers.sort();
        let want = [("deep", "d"), ("dry", "false"), ("n", "42"), ("region", "=?base64?IGE=?=")];
        assert_eq!(headers, want.map(|(k, v)| (format!("mcp-param-{k}"), v.to_owned())));
        assert_eq!(mirrored(&mirrors, &Map::new()).unwrap(), []);
        let long = json!({"region": "x".repeat(limits::MCP_HEADER_BYTES + 1)});
        assert!(mirrored(&mirrors, long.as_object().unwrap()).unwrap_err().contains("\"region\""));
    }

    #[test]
    fn marks_that_are_not_allowed_are_named() {
        for (property, says) in [
            (json!({"type": "string", "x-mcp-header": ""}), "no header's name"),
            (json!({"type": "string", "x-mcp-header": "a b"}), "no header's name"),
            (json!({"type": "string", "x-mcp-header": "a:b"}), "no header's name"),
            (json!({"type": "string", "x-mcp-header": "\u{e9}"}), "no header's name"),
            (json!({"type": "string", "x-mcp-header": 7}), "no text"),
            (json!({"type": "number", "x-mcp-header": "N"}), "no string, integer or boolean"),
            (json!({"type": "object", "x-mcp-header": "N"}), "no string, integer or boolean"),
            (json!({"x-mcp-header": "N"}), "no string, integer or boolean"),
        ] {
            let error = of(json!({"p": property})).unwrap_err();
            assert!(error.contains(says), "{property}: {error}");
        }
        let twice = json!({"a": {"type": "string", "x-mcp-header": "R"}, "b": {"type": "string", "x-mcp-header": "r"}});
        assert!(of(twice).unwrap_err().contains("twice"));
    }
}

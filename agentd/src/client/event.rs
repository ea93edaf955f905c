//! A log event of a run, as `logs` answers it, on one line for people.

use crate::cells::one_line;
use serde_json::Value;

/// Time of day, level, name, fields. Nothing in it acts on a terminal, whoever wrote it.
pub(crate) fn line(event: &Value) -> String {
    let text = |key: &str| one_line(event[key].as_str().unwrap_or_default());
    let ts = text("ts");
    // The day is in the JSON.
    let time = ts.get(11..19).unwrap_or(&ts);
    let mut line = format!("{time} {:<5} {}", text("level"), text("event"));
    for (key, value) in event["fields"].as_object().into_iter().flatten() {
        let value = match value {
            Value::String(text) => one_line(text),
            other => other.to_string(),
        };
        line.push_str(&format!(" {}={value}", one_line(key)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let event = json!({"ts": "2026-12-01T12:03:04.567Z", "level": "info", "event": "tool.call", "seq": 3,
            "fields": {"line": "a\nb\u{1b}[2J\u{202e}", "ms": 3}});
        assert_eq!(line(&event), "12:03:04 info  tool.call line=a\\nb\\u{1b}[2J\\u{202e} ms=3");
        assert_eq!(line(&json!({})), "       ");
    }
}

//! Filters that playbooks have beyond minijinja's own.

use crate::preview::preview;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value};

/// Adds them to an engine.
pub(super) fn add(env: &mut Environment<'static>) {
    env.add_filter("fromjson", from_json);
    env.add_filter("shell_quote", shell_quote);
}

/// The value of a JSON text.
fn from_json(text: &str) -> Result<Value, Error> {
    serde_json::from_str::<serde_json::Value>(text).map(|value| Value::from(Serde(value))).map_err(|error| {
        let seen = preview(text, 60);
        Error::new(ErrorKind::InvalidOperation, format!("`{seen}` is not JSON: {error}"))
    })
}

/// The text as one word of a POSIX shell; unchanged where it needs no quotes. Control characters, and those
/// that change a terminal's reading order, are written as escapes in the `$'…'` form.
fn shell_quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c) || (c.is_alphanumeric());
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(needs_escape) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            _ if needs_escape(c) => {
                // Bytes in octal: at most three digits, so that the next character cannot join them.
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    quoted.push_str(&format!("\\{byte:03o}"));
                }
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        for (text, want) in [
            ("src", "src"),
            ("größe/a-b_1.rs", "größe/a-b_1.rs"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(rm)", "'$(rm)'"),
            ("~", "'~'"),
            ("a\nb'\\", r"$'a\nb\'\\'"),
            ("\u{1b}[2J1", r"$'\033[2J1'"),
            ("\u{202e}x", r"$'\342\200\256x'"),
        ] {
            assert_eq!(shell_quote(text), want);
        }
    }

    #[test]
    fn broken_json_says_what_was_seen() {
        let error = from_json("{\"a\":").unwrap_err().to_string();
        assert!(error.contains("is not JSON") && error.contains("{\"a\":"), "{error}");
    }
}

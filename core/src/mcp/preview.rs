//! Foreign text inside our own sentences: one line, without control characters, cut at a bound and marked.

use crate::limits;
use crate::preview::misleads;
use serde_json::value::RawValue;

/// At most [`limits::PREVIEW_BYTES`] of `text` on one line.
pub(super) fn preview(text: &str) -> String {
    one_line(text, limits::PREVIEW_BYTES)
}

/// At most `max` bytes of `text`, control and misleading characters as spaces, and `…` where it was cut.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let kept = head(text.trim(), max);
    let mut line: String =
        kept.chars().map(|c| if c.is_control() || misleads(c) { ' ' } else { c }).collect();
    if kept.len() < text.trim().len() {
        line.push('…');
    }
    line
}

/// The longest beginning of `text` of at most `max` bytes that ends at a character boundary.
pub(super) fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A JSON string's characters, any other JSON as it is written; bounded like [`one_line`].
pub(super) fn words(raw: &RawValue, max: usize) -> String {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => one_line(&text, max),
        Err(_) => one_line(raw.get(), max),
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_server_cannot_turn_a_message_around() {
        assert_eq!(one_line("gone\u{202e}txt.exe\n\u{200b}x", 80), "gone txt.exe  x");
    }
}

//! A bounded, printable look at text that somebody else wrote, for errors and logs. Whoever quotes a peer, a
//! model or a file in a message goes through here, so that a message is never a flood and never moves a terminal.

/// At most `max` bytes of `text` for a message. Control and direction-changing characters and bytes that are
/// not UTF-8 are escaped; a cut falls between characters and is marked with the size of the whole, on top of
/// `max`.
pub fn preview(text: impl AsRef<[u8]>, max: usize) -> String {
    let text = text.as_ref();
    // A character of the output stands for at least one byte of the input: no more of it needs a look.
    let head = &text[..text.len().min(max)];
    let mut out = String::with_capacity(head.len());
    let mut seen = 0;
    'cut: {
        for chunk in head.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !push(&mut out, max, escaped(c)) {
                    break 'cut;
                }
                seen += c.len_utf8();
            }
            let cut_character = seen + chunk.invalid().len() == head.len() && head.len() < text.len();
            if cut_character {
                break 'cut;
            }
            for byte in chunk.invalid() {
                if !push(&mut out, max, Err(format!("\\x{byte:02x}"))) {
                    break 'cut;
                }
                seen += 1;
            }
        }
    }
    if seen < text.len() {
        out.push_str(&format!("… [{} bytes in all]", text.len()));
    }
    out
}

/// Zero-width, direction and line-separator characters: they make a message read as what it is not.
pub fn misleads(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A character as it may be shown: itself, or its escape.
fn escaped(c: char) -> Result<char, String> {
    match c {
        c if misleads(c) => Err(c.escape_unicode().to_string()),
        c if c.is_control() => Err(c.escape_default().to_string()),
        c => Ok(c),
    }
}

/// Appends `piece` if it fits; pieces are not cut.
fn push(out: &mut String, max: usize, piece: Result<char, String>) -> bool {
    let bytes = piece.as_ref().map_or_else(String::len, |c| c.len_utf8());
    if out.len() + bytes > max {
        return false;
    }
    match piece {
        Ok(c) => out.push(c),
        Err(escape) => out.push_str(&escape),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::preview;
    use proptest::prelude::*;

    #[test]
    fn short_text_is_shown_as_it_is() {
        assert_eq!(preview("", 10), "");
        assert_eq!(preview("grep \"x\" C:\\src\\é", 200), "grep \"x\" C:\\src\\é");
        assert_eq!(preview("0123456789", 10), "0123456789");
        assert_eq!(preview(b"bytes".as_slice(), 10), "bytes");
    }

    #[test]
    fn a_cut_falls_between_characters_and_tells_the_whole_size() {
        assert_eq!(preview("0123456789a", 10), "0123456789… [11 bytes in all]");
        assert_eq!(preview("ééé", 5), "éé… [6 bytes in all]");
        assert_eq!(preview("a\u{1F980}", 4), "a… [5 bytes in all]");
        assert_eq!(preview("x", 0), "… [1 bytes in all]");
    }

    #[test]
    fn what_would_move_a_terminal_is_escaped() {
        assert_eq!(preview("a\u{1b}[2Jb\r\n\0\u{7f}", 200), "a\\u{1b}[2Jb\\r\\n\\u{0}\\u{7f}");
        assert_eq!(preview("\u{202e}gnp.exe", 200), "\\u{202e}gnp.exe");
        assert_eq!(preview(b"\xff\xfeok\xe9", 200), "\\xff\\xfeok\\xe9");
        assert_eq!(preview("ab\u{1b}", 5), "ab… [3 bytes in all]", "an escape is never cut");
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_printable_for_any_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..400), max in 0usize..300,
        ) {
            let shown = preview(&bytes, max);
            let kept = shown.split('…').next().unwrap_or_default();
            prop_assert!(kept.len() <= max || !shown.contains("bytes in all]"));
            prop_assert!(shown.len() <= max + "… [400 bytes in all]".len());
            prop_assert!(!shown.chars().any(char::is_control));
        }
    }
}

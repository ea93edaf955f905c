//! What of a tool result enters the window (S7.7).

/// `text` in at most `max` bytes: its head and its tail, with the cut marked and counted. A `max` too small for
/// the mark gives the mark alone.
pub(super) fn bounded(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    // The number of bytes cut is at most the whole, so this mark is the longest there can be.
    let keep = max.saturating_sub(mark(text.len(), text.len()).len());
    let head = text.floor_char_boundary(keep - keep / 2);
    let tail = text.ceil_char_boundary(text.len() - keep / 2);
    format!("{}{}{}", &text[..head], mark(tail - head, text.len()), &text[tail..])
}

fn mark(cut: usize, whole: usize) -> String {
    format!("\n… [{cut} of {whole} bytes cut here] …\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_result_within_the_bound_is_whole() {
        let text = "x".repeat(100);
        assert_eq!(bounded(text.clone(), 100), text);
        assert_eq!(bounded(String::new(), 0), "");
    }

    #[test]
    fn a_longer_one_keeps_head_and_tail() {
        let text = format!("{}{}", "a".repeat(500), "z".repeat(500));
        let cut = bounded(text, 200);
        assert!(cut.starts_with("aaaa") && cut.ends_with("zzzz"), "{cut}");
        assert!(cut.contains("of 1000 bytes cut here"), "{cut}");
        assert!(cut.len() <= 200);
    }

    proptest! {
        #[test]
        fn it_holds_for_any_text_and_bound(text in "[aé🙂\\n]{0,300}", max in 0usize..400) {
            let whole = text.len();
            let cut = bounded(text.clone(), max);
            prop_assert!(cut.len() <= max.max(mark(whole, whole).len()));
            if whole <= max {
                prop_assert_eq!(cut, text);
            } else {
                let (head, rest) = cut.split_once("\n… [").unwrap();
                let (told, tail) = rest.split_once("] …\n").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                let cut = whole - head.len() - tail.len();
                let want = format!("{cut} of {whole} ");
                prop_assert!(told.starts_with(&want));
            }
        }
    }
}

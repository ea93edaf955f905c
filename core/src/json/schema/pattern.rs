//! Regular expressions in a schema: read as JavaScript means them as far as an engine goes whose time is linear.

use crate::limits::PREVIEW_BYTES;
use crate::preview::preview;
use regex::{Regex, RegexBuilder};

/// Compiled size up to which one byte of text costs one step, and the cost of a byte beyond it. The engine's worst
/// case is text times program.
const SMALL: (usize, u64) = (16 * 1024, 1);
const LARGE: (usize, u64) = (256 * 1024, 16);

/// One expression.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Steps that each byte of a text costs.
    pub(super) cost: u64,
    /// As the schema has it, bounded.
    pub(super) shown: String,
}

impl Pattern {
    pub(super) fn read(text: &str) -> Result<Pattern, String> {
        let shown = preview(text, PREVIEW_BYTES);
        let translated = ascii_classes(text);
        let mut why = String::new();
        for (size, cost) in [SMALL, LARGE] {
            match RegexBuilder::new(&translated).size_limit(size).nest_limit(50).build() {
                Ok(regex) => return Ok(Pattern { regex, cost, shown }),
                Err(regex::Error::CompiledTooBig(_)) => {
                    why = "it is too large: use fewer or smaller repetitions".to_owned();
                }
                Err(error) => {
                    // The last line of the engine's message says what; those before draw the place.
                    let error = error.to_string();
                    why = preview(error.lines().last().unwrap_or_default().trim(), PREVIEW_BYTES);
                    break;
                }
            }
        }
        Err(format!(
            "the pattern `{shown}` cannot be used: {why} (accepted are regular expressions without look-around and \
             back-references)"
        ))
    }

    /// Whether it is found in `text`.
    pub(super) fn is_found(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// JavaScript's `\d` and `\w` are ASCII, the engine's are not.
fn ascii_classes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

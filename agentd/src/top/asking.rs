//! What the person is being asked: a text for a command, a filter, a yes or no, or nothing but to read the help.

use std::fmt;

/// Bytes of a text that is typed or pasted, as many as a message may have.
const TEXT_BYTES: usize = agentd_core::limits::MESSAGE_BYTES;

/// What is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asking {
    /// The text of a command for this run.
    Text { verb: Verb, name: String, line: Line },
    /// What rows have to hold; and what it was before.
    Filter { line: Line, before: String },
    /// Whether to kill this run, with so many below it.
    Kill { name: String, below: usize },
    /// All keys.
    Help,
}

/// What is done with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Send,
    Steer,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Send => "send",
            Verb::Steer => "steer",
        })
    }
}

/// A text that is being typed, at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(String);

impl Line {
    pub(super) fn of(text: &str) -> Line {
        Line(text.to_owned())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Appends what was typed or pasted, as far as there is room.
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars().map(|c| if c == '\r' { '\n' } else { c }) {
            let kept = !c.is_control() || matches!(c, '\n' | '\t');
            if kept && self.0.len() + c.len_utf8() <= TEXT_BYTES {
                self.0.push(c);
            }
        }
    }

    /// Takes back the last character.
    pub(super) fn backspace(&mut self) {
        self.0.pop();
    }

    /// Takes back the last word, and the blanks behind it.
    pub(super) fn erase_word(&mut self) {
        let text = self.0.trim_end();
        let keep = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.0.truncate(keep);
    }

    /// Takes back all.
    pub(super) fn erase(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_text_and_gives_it_back_piece_by_piece() {
        let mut line = Line::default();
        line.push("only the\r tests\u{1b}[2J ");
        assert_eq!(line.text(), "only the\n tests[2J ");
        line.erase_word();
        assert_eq!(line.text(), "only the\n ");
        line.push("日");
        line.backspace();
        line.erase_word();
        assert_eq!(line.text(), "only ");
        line.erase();
        line.push(&"x".repeat(TEXT_BYTES + 5));
        assert_eq!(line.text().len(), TEXT_BYTES);
    }
}

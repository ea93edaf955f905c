//! What is wrong with a configuration, for the person who must mend it: where, what was seen, what is accepted
//! and what to do. Collected, never thrown: a load reports every problem it can find in one go.

use super::source::Place;
use agentd_core::preview::preview;
use serde::Serialize;
use std::fmt;

/// Problems printed as text before the rest is only counted.
const SHOWN: usize = 100;

/// Characters of a source line that are shown before and from a place; a longer line is cut.
const AROUND: (usize, usize) = (60, 80);

/// Bytes that the escape of one byte can take: `\u{202e}` stands for three, `\u{7f}` for one.
const ESCAPED: usize = 8;

/// One problem. `line` and `column` count from 1; both are 0 when it has no place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file; `$NAME` for a variable, `--name` for a flag.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Path of the key, `limits.run.steps`; empty for the whole.
    pub path: String,
    /// A stable name of the kind of problem.
    pub code: Code,
    /// One sentence: what was seen.
    pub message: String,
    /// What is accepted there.
    pub accepted: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Whether anything can be run with it.
    pub severity: Severity,
    #[serde(skip)]
    shown: Option<Shown>,
    #[serde(skip)]
    order: u32,
}

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing can be run with the configuration.
    Error,
    /// A part of it cannot be used; the rest can.
    Warning,
}

/// Kinds of problems; the names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// No configuration was named and none was found.
    NoConfiguration,
    /// A file or folder cannot be read.
    Unreadable,
    /// The text is not YAML or JSON.
    Syntax,
    /// The text is larger than what is read.
    TooLarge,
    /// A key that does not exist.
    UnknownKey,
    /// A key that stands twice in one map, or a name that is used twice.
    Duplicate,
    /// A list where a map is needed, and the like.
    WrongType,
    /// A value that is not accepted.
    InvalidValue,
    /// A key that must be there.
    Missing,
    /// A part of agentd that does not exist yet.
    NotBuilt,
    /// An `AGENTD_` variable that names no key.
    UnknownVariable,
    /// A playbook that cannot be used.
    Playbook,
    /// The model's provider needs a key, and none can be found.
    NoCredential,
    /// A secret that is referred to cannot be had.
    Secret,
    /// A program that cannot be found or started.
    NoProgram,
}

/// The line a problem is on, cut to what is shown, and what stands under it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    text: String,
    carets: String,
}

impl Problem {
    /// A problem at a place in a text.
    pub(crate) fn at(place: &Place, path: &str, code: Code, message: impl Into<String>) -> Problem {
        Problem {
            file: place.source.to_string(),
            line: place.line,
            column: place.column,
            path: path.to_owned(),
            code,
            message: message.into(),
            accepted: None,
            hint: None,
            severity: Severity::Error,
            shown: Some(Shown::of(place)),
            order: place.source.order(),
        }
    }

    /// A problem with a file as a whole, or with none.
    pub(crate) fn of_file(file: impl fmt::Display, code: Code, message: impl Into<String>) -> Problem {
        Problem {
            file: file.to_string(),
            line: 0,
            column: 0,
            path: String::new(),
            code,
            message: message.into(),
            accepted: None,
            hint: None,
            severity: Severity::Error,
            shown: None,
            order: 0,
        }
    }

    /// Says that it keeps nobody from using the rest.
    pub(crate) fn warning(mut self) -> Problem {
        self.severity = Severity::Warning;
        self
    }

    /// Says which key it is about.
    pub(crate) fn key(mut self, path: &str) -> Problem {
        path.clone_into(&mut self.path);
        self
    }

    /// Says what is accepted.
    pub(crate) fn accepted(mut self, accepted: impl Into<String>) -> Problem {
        self.accepted = Some(accepted.into());
        self
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: path: message`, `agentd` where there is no file, the line, a caret, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.file.is_empty() { "agentd".to_owned() } else { printable(&self.file) })?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        f.write_str(": ")?;
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", printable(&self.path))?;
        }
        writeln!(f, "{}", lines(&self.message))?;
        if let Some(shown) = &self.shown {
            let gutter = self.line.to_string();
            writeln!(f, "  {gutter} | {}", shown.text)?;
            writeln!(f, "  {:1$} | {2}", "", gutter.len(), shown.carets)?;
        }
        if let Some(accepted) = &self.accepted {
            writeln!(f, "  accepted: {}", lines(accepted))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "  hint: {}", lines(hint))?;
        }
        Ok(())
    }
}

/// A text of somebody's in one line, without anything a terminal would act on.
fn printable(text: &str) -> String {
    preview(text, text.len().saturating_mul(ESCAPED))
}

/// What agentd says, which may have several lines, with what it quotes.
fn lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

impl Shown {
    /// Control characters do not reach a terminal. A tab stays a tab in both lines, so that the carets stand
    /// under the place whatever a tab's width is.
    fn of(place: &Place) -> Shown {
        let (before, from) = place.around(AROUND.0, AROUND.1);
        let visible = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
        let mut text: String = before.text.chars().chain(from.text.chars()).map(visible).collect();
        let mut carets: String = before.text.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let width = usize::try_from(place.width).unwrap_or(usize::MAX);
        carets.push_str(&"^".repeat(width.clamp(1, from.text.chars().count().max(1))));
        if before.cut {
            text.insert(0, '…');
            carets.insert(0, ' ');
        }
        if from.cut {
            text.push('…');
        }
        Shown { text, carets }
    }
}

/// Sorts problems by source, line and column, and drops exact repetitions.
pub(crate) fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by(|a, b| {
        (a.order, a.line, a.column, &a.path, &a.message)
            .cmp(&(b.order, b.line, b.column, &b.path, &b.message))
    });
    problems.dedup();
    problems
}

/// All problems as text, the first hundred in full, then how many there are.
pub fn render(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems.iter().take(SHOWN) {
        text.push_str(&problem.to_string());
        text.push('\n');
    }
    if problems.len() > SHOWN {
        text.push_str(&format!("… and {} more\n", problems.len() - SHOWN));
    }
    text.push_str(&match problems.len() {
        1 => "1 problem\n".to_owned(),
        n => format!("{n} problems\n"),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;
    use std::path::Path;

    fn problem(text: &str, line: u32, column: u32, width: u32) -> Problem {
        let source = Source::file(Path::new("a.yaml"), 0, text.to_owned());
        let before: usize = text.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
        let offset = before + column as usize - 1;
        let place = Place { line, column, width, offset, ..Place::start(&source) };
        Problem::at(&place, "limits.stesp", Code::UnknownKey, "there is no such key")
    }

    #[test]
    fn shows_the_line_with_a_caret_under_the_place() {
        let text = problem("limits:\n\tstesp: 5\n", 2, 2, 5).hint("did you mean steps?").to_string();
        assert_eq!(
            text,
            "a.yaml:2:2: limits.stesp: there is no such key\n  2 | \tstesp: 5\n    | \t^^^^^\n  hint: did you mean steps?\n"
        );
    }

    #[test]
    fn a_place_past_the_end_and_a_very_long_line_are_shown_within_bounds() {
        let past = problem("a: 1", 9, 70, 3).to_string();
        assert!(past.contains("  9 | a: 1\n    |     ^\n"), "{past}");
        let long = problem(&"x".repeat(10_000), 1, 5_000, 9_000).to_string();
        assert!(long.lines().all(|line| line.chars().count() < 160), "{long}");
        assert!(long.contains("| …xxx"), "{long}");
    }

    #[test]
    fn control_characters_of_a_line_do_not_reach_the_terminal() {
        let text = problem("a\u{1b}[31m: 1", 1, 1, 1).to_string();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let place = Place::start(&Source::file(Path::new("a\u{1b}[2J"), 0, String::new()));
        let text =
            Problem::at(&place, "agent.\u{1b}[1m\n", Code::UnknownKey, "a \u{7f} line\nand \u{202e} more")
                .accepted("\u{1}")
                .hint("\0");
        assert_eq!(
            text.to_string(),
            "a\\u{1b}[2J:1:1: agent.\\u{1b}[1m\\n: a \\u{7f} line\nand \\u{202e} more\n  1 | \n    | ^\n  \
             accepted: \\u{1}\n  hint: \\u{0}\n"
        );
    }

    #[test]
    fn many_problems_are_counted_not_printed() {
        let many = vec![problem("a: 1", 1, 1, 1); 250];
        let text = render(&many);
        assert!(text.contains("… and 150 more\n250 problems\n"), "{text}");
        assert_eq!(text.matches("a.yaml:1:1").count(), 100);
    }
}

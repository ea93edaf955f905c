//! Where a configuration value came from: a file, a variable or a flag, with its text kept so that a problem
//! can show the line. Owns positions; knows nothing of what the values mean.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One text that holds configuration.
#[derive(Debug)]
pub(crate) struct Source {
    origin: Origin,
    /// Position in the order of loading: later wins, and problems are listed in this order.
    order: u32,
    text: String,
    /// Bytes that no problem may show: a key that somebody wrote down.
    hidden: Mutex<Vec<Range<usize>>>,
}

/// What kind of text it is.
#[derive(Debug)]
enum Origin {
    File(PathBuf),
    Variable(String),
    Flag(String),
}

impl Source {
    /// The text of a file, as it was named by whoever asked for it.
    pub(crate) fn file(path: &Path, order: u32, text: String) -> Arc<Source> {
        Source::of(Origin::File(path.to_owned()), order, text)
    }

    /// The value of an environment variable.
    pub(crate) fn variable(name: &str, order: u32, value: String) -> Arc<Source> {
        Source::of(Origin::Variable(name.to_owned()), order, value)
    }

    /// The value of a command-line flag.
    pub(crate) fn flag(name: &str, order: u32, value: String) -> Arc<Source> {
        Source::of(Origin::Flag(name.to_owned()), order, value)
    }

    fn of(origin: Origin, order: u32, text: String) -> Arc<Source> {
        Arc::new(Source { origin, order, text, hidden: Mutex::default() })
    }

    /// Whether it is a file, which has lines to show.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.origin, Origin::File(_))
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A part of the text, with stars for what is hidden.
    fn shown(&self, range: Range<usize>) -> String {
        let hidden = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        let chars = self.text[range.clone()].char_indices();
        chars
            .map(|(at, c)| if hidden.iter().any(|h| h.contains(&(range.start + at))) { '*' } else { c })
            .collect()
    }

    /// Position in the order of loading.
    pub(crate) fn order(&self) -> u32 {
        self.order
    }

    /// The folder that relative paths in it start from; empty is the current directory.
    pub(crate) fn folder(&self) -> &Path {
        match &self.origin {
            Origin::File(path) => path.parent().unwrap_or(Path::new("")),
            Origin::Variable(_) | Origin::Flag(_) => Path::new(""),
        }
    }
}

impl fmt::Display for Source {
    /// The name people know it by: the file's path, `$AGENTD_LIMITS_RUN_STEPS` or `--model`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => write!(f, "${name}"),
            Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// A stretch of one line of a source. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) source: Arc<Source>,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// Characters; at least 1.
    pub(crate) width: u32,
    /// Bytes from the beginning of the source.
    pub(crate) offset: usize,
    /// Bytes from there to where the value ends, which may be lines below.
    pub(crate) end: usize,
}

impl Place {
    /// The beginning of a source.
    pub(crate) fn start(source: &Arc<Source>) -> Place {
        Place { source: Arc::clone(source), line: 1, column: 1, width: 1, offset: 0, end: source.text.len() }
    }

    /// Keeps what stands here out of every problem that is made from now on.
    pub(crate) fn hide(&self) {
        let mut hidden = self.source.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        hidden.push(self.offset..self.end);
    }

    /// Its line before and after it: at most `before` and `after` characters. Costs that much, not the line.
    pub(crate) fn around(&self, before: usize, after: usize) -> (Around, Around) {
        let text = self.source.text();
        let at = if text.is_char_boundary(self.offset) { self.offset } else { text.len() };
        let start = text[..at].char_indices().rev().take_while(|(_, c)| !is_break(*c)).take(before).last();
        let start = start.map_or(at, |(index, _)| index);
        let end = text[at..].char_indices().take_while(|(_, c)| !is_break(*c)).take(after).last();
        let end = end.map_or(at, |(index, c)| at + index + c.len_utf8());
        let cut_before = text[..start].chars().next_back().is_some_and(|c| !is_break(c) && c != '\u{feff}');
        let cut_after = text[end..].chars().next().is_some_and(|c| !is_break(c));
        (
            Around { text: self.source.shown(start..at), cut: cut_before },
            Around { text: self.source.shown(at..end), cut: cut_after },
        )
    }

    /// `path` as the source means it: relative ones start from the source's folder.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.source.folder().join(path)
    }
}

/// A part of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) text: String,
    /// The line goes on beyond it.
    pub(crate) cut: bool,
}

/// Line breaks of YAML: LF, CRLF and a lone CR.
fn is_break(c: char) -> bool {
    c == '\n' || c == '\r'
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

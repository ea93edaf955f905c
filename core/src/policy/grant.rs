//! Tool grants (S3.6): patterns over registry names, and the one operation on them, narrowing.
//!
//! Owns what a pattern is, what it matches, and how two grants meet. It refuses whatever is not plainly a
//! pattern: a caller's list with a malformed entry is a refusal that names the entry, and a minted list that
//! cannot be read grants nothing. Called by admission (narrowing, before any process exists) and by the child
//! (at dispatch, again).

use crate::preview::preview;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Characters of a pattern or a tool's name at most.
pub const NAME_CHARS: usize = 256;

/// Bytes of a foreign name that an error shows.
pub(crate) const SEEN_BYTES: usize = 64;

/// A pattern over names: exact (`files.read`), a prefix (`files.*`) or everything (`*`).
///
/// ```
/// use agentd_core::policy::Pattern;
/// let pattern = Pattern::parse("files.*").unwrap();
/// assert!(pattern.matches("files.read"));
/// assert!(!pattern.matches("web.read"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Exact(String),
    /// The text before the `*`; empty matches every name.
    Prefix(String),
}

impl Pattern {
    /// Reads a pattern: 1 to [`NAME_CHARS`] characters, none of them white space or a control character, and
    /// a `*` only as the last one.
    pub fn parse(text: &str) -> Result<Pattern, InvalidPattern> {
        let fault = if text.is_empty() {
            Some("it is empty")
        } else if text.chars().count() > NAME_CHARS {
            Some("it is longer than 256 characters")
        } else if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            Some("it holds white space or a control character")
        } else if text.find('*').is_some_and(|at| at + 1 != text.len()) {
            Some("it has a `*` before its end")
        } else {
            None
        };
        match fault {
            Some(fault) => Err(InvalidPattern { seen: preview(text, SEEN_BYTES), fault }),
            None => Ok(Pattern(match text.strip_suffix('*') {
                Some(prefix) => Kind::Prefix(prefix.to_owned()),
                None => Kind::Exact(text.to_owned()),
            })),
        }
    }

    /// Whether `name` is one of the names it stands for.
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Exact(exact) => exact == name,
            Kind::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    /// Whether it is a plain name, so that it stands for at most one tool.
    pub fn is_exact(&self) -> bool {
        match &self.0 {
            Kind::Exact(_) => true,
            Kind::Prefix(_) => false,
        }
    }

    /// The pattern that matches exactly what both match; `None` when no name can match both.
    pub fn meet(&self, other: &Pattern) -> Option<Pattern> {
        if self.covers(other) {
            Some(other.clone())
        } else if other.covers(self) {
            Some(self.clone())
        } else {
            None
        }
    }

    /// Whether it matches every name that `other` matches. Two patterns either nest or share no name.
    fn covers(&self, other: &Pattern) -> bool {
        match (&self.0, &other.0) {
            (Kind::Exact(a), Kind::Exact(b)) => a == b,
            (Kind::Exact(_), Kind::Prefix(_)) => false,
            (Kind::Prefix(a), Kind::Exact(b) | Kind::Prefix(b)) => b.starts_with(a.as_str()),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = InvalidPattern;
    fn try_from(text: String) -> Result<Pattern, InvalidPattern> {
        Pattern::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(exact) => f.write_str(exact),
            Kind::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

impl fmt::Debug for Pattern {
    /// As it is written, quoted: what an error shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{seen}` is not a tool pattern: {fault}; accepted are a tool's name (files.read), a prefix (files.*) and *, \
     of 1 to 256 characters without white space"
)]
pub struct InvalidPattern {
    /// A preview of what was given.
    pub seen: String,
    /// What is wrong with it.
    pub fault: &'static str,
}

/// An [`InvalidPattern`] and where it stood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PatternProblem {
    /// The entry, as in `tools[2]`.
    pub field: String,
    /// What is wrong with it.
    pub problem: InvalidPattern,
}

/// Which tools of the granted servers a run may call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grant {
    /// `None` is every tool of the granted servers; an empty list is none.
    pub tools: Option<Vec<Pattern>>,
}

impl Grant {
    /// Every tool of the granted servers.
    pub const ALL: Grant = Grant { tools: None };

    /// No tool.
    pub const NOTHING: Grant = Grant { tools: Some(Vec::new()) };

    /// Reads a caller's list. Every malformed entry is reported, under `field` (`tools[2]`), and then there is
    /// no grant: the caller is refused and told what is accepted (S4.5).
    pub fn parse(field: &str, patterns: Option<&[String]>) -> Result<Grant, Vec<PatternProblem>> {
        let Some(patterns) = patterns else { return Ok(Grant::ALL) };
        let mut read = Vec::with_capacity(patterns.len());
        let mut problems = Vec::new();
        for (index, text) in patterns.iter().enumerate() {
            match Pattern::parse(text) {
                Ok(pattern) => read.push(pattern),
                Err(problem) => problems.push(PatternProblem { field: format!("{field}[{index}]"), problem }),
            }
        }
        if problems.is_empty() { Ok(Grant { tools: Some(read) }) } else { Err(problems) }
    }

    /// Reads a list that the supervisor minted. One that cannot be read means that nothing is granted; the
    /// problems are for the log.
    pub fn minted(patterns: Option<&[String]>) -> (Grant, Vec<PatternProblem>) {
        match Grant::parse("tools", patterns) {
            Ok(grant) => (grant, Vec::new()),
            Err(problems) => (Grant::NOTHING, problems),
        }
    }

    /// Whether the tool of this registry name may be called.
    pub fn allows(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| patterns.iter().any(|p| p.matches(name)))
    }

    /// The grant of a child that asked for `child`, spawned by a requester that has `self`: exactly the names
    /// that both allow. It never widens either.
    pub fn narrow(&self, child: &Grant) -> Grant {
        let (own, asked) = match (&self.tools, &child.tools) {
            (None, _) => return child.clone(),
            (Some(_), None) => return self.clone(),
            (Some(own), Some(asked)) => (own, asked),
        };
        let mut met: Vec<Pattern> =
            asked.iter().flat_map(|a| own.iter().filter_map(move |o| o.meet(a))).collect();
        met.sort();
        met.dedup();
        Grant { tools: Some(met) }
    }

    /// Those of `child`'s patterns that share no name with this grant: asking for them grants nothing, and
    /// the asker is told so.
    pub fn misses<'c>(&self, child: &'c Grant) -> Vec<&'c Pattern> {
        let (Some(own), Some(asked)) = (&self.tools, &child.tools) else { return Vec::new() };
        asked.iter().filter(|a| own.iter().all(|o| o.meet(a).is_none())).collect()
    }

    /// Those of its patterns that match none of `names`.
    pub fn unmatched<'n>(&self, names: impl IntoIterator<Item = &'n str> + Clone) -> Vec<&Pattern> {
        let patterns = self.tools.as_deref().unwrap_or_default();
        patterns.iter().filter(|p| !names.clone().into_iter().any(|name| p.matches(name))).collect()
    }

    /// The list as it travels in a spawn frame.
    pub fn to_patterns(&self) -> Option<Vec<String>> {
        self.tools.as_ref().map(|patterns| patterns.iter().map(Pattern::to_string).collect())
    }
}

#[cfg(test)]
mod tests;

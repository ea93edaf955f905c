//! A list over its pages: which one is next, where it ends, and what is to be said about what was left out.
//!
//! Owns the bounds on pages and cursors. Refuses a cursor that came before, so no server can keep a client turning.
//! Used by the lists of tools and of resources.

use super::preview::{preview, words};
use crate::limits;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// What to do after a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask for the page with this cursor.
    Page(String),
    /// The list is whole, or as whole as it gets.
    Done,
}

/// Where a list stands.
#[derive(Debug, Default)]
pub(super) struct Pages {
    cursors: BTreeSet<String>,
    pages: usize,
}

impl Pages {
    /// After a page with this `nextCursor`.
    pub(super) fn next(&mut self, cursor: Option<&RawValue>, notes: &mut Notes) -> Next {
        self.pages += 1;
        let Some(raw) = cursor else { return Next::Done };
        let cursor = match serde_json::from_str::<String>(raw.get()) {
            Ok(cursor) if cursor.is_empty() => return Next::Done,
            Ok(cursor) if cursor.len() <= limits::MCP_CURSOR_BYTES => cursor,
            Ok(_) | Err(_) => {
                notes.add(|| format!("the list ends at a cursor that is no short text: {}", words(raw, 80)));
                return Next::Done;
            }
        };
        if self.pages >= limits::MCP_TOOL_PAGES {
            notes.add(|| format!("the list is cut after {} pages", limits::MCP_TOOL_PAGES));
            return Next::Done;
        }
        if !self.cursors.insert(cursor.clone()) {
            notes.add(|| format!("the list ends at a cursor that came before: {:?}", preview(&cursor)));
            return Next::Done;
        }
        Next::Page(cursor)
    }
}

/// What was left out or repaired: the first few in words, then a count.
#[derive(Debug, Default)]
pub(super) struct Notes {
    told: Vec<String>,
    more: u64,
}

impl Notes {
    pub(super) fn add(&mut self, text: impl FnOnce() -> String) {
        const TOLD: usize = 8;
        if self.told.len() < TOLD {
            self.told.push(text());
        } else {
            self.more += 1;
        }
    }

    /// Before all others, even when there are many.
    pub(super) fn first(&mut self, text: String) {
        self.told.insert(0, text);
    }

    /// One sentence each.
    pub(super) fn finish(self) -> Vec<String> {
        let mut notes = self.told;
        if self.more > 0 {
            notes.push(format!("{} more such entries", self.more));
        }
        notes
    }
}

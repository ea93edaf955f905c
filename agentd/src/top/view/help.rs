//! The keys: as many as fit on the last row, and all of them when they are asked for.

use super::look::Look;
use super::write;
use crate::top::keys::KEYS;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};
use unicode_width::UnicodeWidthStr;

/// What each key does, for the page of keys.
const MORE: [&str; 15] = [
    "select the row above or below; PgUp, PgDn, Home, End",
    "the selected run's events, as they come; again or Esc closes",
    "send a warm run its next message; root is asked a question",
    "tell a live run something at its next step",
    "stop a run and all it delegated; asks first",
    "ask a run for its result now",
    "have a run stand still from its next step on",
    "let it go on",
    "end a warm run after the turn in hand",
    "ended runs too, or not",
    "only rows that hold this text; Esc takes it away",
    "hide or show what a run delegated",
    "older or newer events",
    "this page",
    "leave; Ctrl-Z stops, Ctrl-L draws anew",
];

/// The last row. The way to all keys and the way out are always on it.
pub(super) fn draw_keys(buffer: &mut Buffer, area: Rect, look: Look) {
    let width = |(key, word): &(&str, &str)| key.width() + 1 + word.width() + 2;
    let (first, always) = KEYS.split_at(KEYS.len() - 2);
    let mut left = usize::from(area.width).saturating_sub(always.iter().map(width).sum());
    let fitting = first.iter().take_while(|key| {
        let fits = width(key) <= left;
        left = left.saturating_sub(width(key));
        fits
    });
    let mut pieces = Vec::new();
    for (key, word) in fitting.chain(always) {
        pieces.push(((*key).to_owned(), look.key()));
        pieces.push((format!(" {word}  "), look.dim()));
    }
    write(buffer, area, 0, pieces);
}

/// All keys, over everything.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, look: Look) {
    Clear.render(area, buffer);
    write(buffer, area, 0, vec![("keys of agentd top (any key closes this)".to_owned(), look.head())]);
    for (row, ((key, _), more)) in (1..).zip(KEYS.iter().zip(MORE)) {
        write(
            buffer,
            area,
            row,
            vec![(crate::cells::fit(key, 4), look.key()), (more.to_owned(), Style::new())],
        );
    }
}

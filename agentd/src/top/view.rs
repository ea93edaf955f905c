//! The state as a frame: a headline, the runs, the events of one, what is asked or said, and the keys. Pure, so that what a
//! person sees is tested without a terminal.

mod events;
mod head;
mod help;
mod look;
mod prompt;
mod table;

use super::state::State;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Draws everything. What does not fit is left out, the rows of runs last.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, colors: bool) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let look = look::Look::new(colors);
    let heights = heights(area.height, state);
    let [head, table, events, prompt, keys] = Layout::vertical(heights).areas(area);
    let buffer = frame.buffer_mut();
    head::draw(buffer, head, state, look);
    table::draw(buffer, table, state, look);
    if let Some(pane) = &state.pane {
        events::draw(buffer, events, pane, look);
    }
    let cursor = prompt::draw(buffer, prompt, state, look);
    help::draw_keys(buffer, keys, look);
    if matches!(state.asking, Some(super::asking::Asking::Help)) {
        help::draw(buffer, area, look);
    }
    if let Some(at) = cursor {
        frame.set_cursor_position(at);
    }
}

/// Heights of headline, table, events, prompt and keys. A screen of one row has only the table.
fn heights(rows: u16, state: &State) -> [Constraint; 5] {
    let head = u16::from(rows >= 3);
    let prompt = u16::from(rows >= 2 && (state.asking.is_some() || state.said.is_some()));
    let keys = u16::from(rows >= 4);
    let rest = rows - head - prompt - keys;
    let events = if state.pane.is_some() && rest >= 4 { rest / 2 } else { 0 };
    let lengths = [head, rest - events, events, prompt, keys];
    lengths.map(Constraint::Length)
}

/// Writes pieces of text on one row, cut at its end.
fn write(buffer: &mut Buffer, area: Rect, row: u16, pieces: Vec<(String, Style)>) {
    if row < area.height {
        let spans: Vec<Span<'_>> =
            pieces.into_iter().map(|(text, style)| Span::styled(text, style)).collect();
        buffer.set_line(area.x, area.y + row, &Line::from(spans), area.width);
    }
}

#[cfg(test)]
mod tests;

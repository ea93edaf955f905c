//! The events of one run, below the table.

use super::look::Look;
use super::write;
use crate::top::pane::Pane;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, pane: &Pane, look: Look) {
    if area.is_empty() {
        return;
    }
    let how = match (pane.heard, pane.back, pane.ended) {
        (false, ..) => "…".to_owned(),
        (true, 0, false) => "following".to_owned(),
        (true, 0, true) => "all there is".to_owned(),
        (true, back, _) => format!("{back} lines further down; ] goes there"),
    };
    let title = format!("── events of {} · {how} ", pane.name);
    let rule = "─".repeat(usize::from(area.width));
    write(buffer, area, 0, vec![(title, look.head()), (rule, look.dim())]);
    let rows = usize::from(area.height - 1);
    for (row, line) in (1..).zip(pane.shown(rows)) {
        let style = if line.contains(" warn ") { look.trouble() } else { Style::new() };
        write(buffer, area, row, vec![(line.to_owned(), style)]);
    }
}

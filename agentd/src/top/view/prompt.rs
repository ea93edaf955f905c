//! The line that asks or says something.

use super::look::Look;
use super::write;
use crate::top::asking::{Asking, Line};
use crate::top::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Draws it, and says where the cursor belongs while something is typed.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, look: Look) -> Option<Position> {
    if area.is_empty() {
        return None;
    }
    match &state.asking {
        Some(Asking::Text { verb, name, line }) => {
            typed(buffer, area, &format!("{verb} to {name} (⏎ sends, Esc does not): "), line, look)
        }
        Some(Asking::Filter { line, .. }) => typed(buffer, area, "filter: ", line, look),
        Some(Asking::Kill { name, below }) => {
            let more = match below {
                0 => String::new(),
                1 => " and the run below it".to_owned(),
                count => format!(" and the {count} runs below it"),
            };
            write(
                buffer,
                area,
                0,
                vec![(format!("kill {name}{more}? y kills, any other key does not"), look.trouble())],
            );
            None
        }
        Some(Asking::Help) => None,
        None => {
            if let Some((words, trouble)) = &state.said {
                let style = if *trouble { look.trouble() } else { look.head() };
                write(buffer, area, 0, vec![(words.clone(), style)]);
            }
            None
        }
    }
}

/// A text with its label. Its end is what is seen where it does not fit; line breaks are shown as a sign.
fn typed(buffer: &mut Buffer, area: Rect, label: &str, line: &Line, look: Look) -> Option<Position> {
    let room = usize::from(area.width).saturating_sub(1);
    // On a narrow screen the text has the room, and the label what is left.
    let label_room = label.width().min(room / 2);
    let label = crate::cells::fit(label, label_room);
    let mut used = 0;
    let mut shown = Vec::new();
    for c in line.text().chars().rev() {
        let c = match c {
            '\n' => '⏎',
            '\t' => ' ',
            c => c,
        };
        let wide = c.width().unwrap_or(0);
        if used + wide > room - label_room {
            break;
        }
        used += wide;
        shown.push(c);
    }
    let text: String = shown.into_iter().rev().filter(|c| !agentd_core::preview::misleads(*c)).collect();
    let end = u16::try_from(label_room + text.width()).unwrap_or(u16::MAX).min(area.width - 1);
    write(buffer, area, 0, vec![(label, look.head()), (text, Style::new())]);
    Some(Position { x: area.x + end, y: area.y })
}

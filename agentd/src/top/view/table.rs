//! The runs: one row each, below the run that asked for it. Columns that do not fit go, the least needed first; the row that
//! is selected is always shown.

use super::look::Look;
use super::write;
use crate::cells::{amount, cost, fit};
use crate::top::run::{Run, Used};
use crate::top::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Status,
    Mode,
    Waits,
    Step,
    Tokens,
    Cost,
    Title,
}

/// In the order of the screen: heading and least width.
const COLUMNS: [(Column, &str, usize); 8] = [
    (Column::Name, "RUN", 13),
    (Column::Status, "STATUS", 10),
    (Column::Mode, "MODE", 8),
    (Column::Waits, "WAITS ON", 14),
    (Column::Step, "STEP", 4),
    (Column::Tokens, "TOKENS", 6),
    (Column::Cost, "COST", 8),
    (Column::Title, "TITLE", 12),
];

/// In the order of need: a column stands where all before it do.
const NEED: [Column; 8] = [
    Column::Name,
    Column::Waits,
    Column::Status,
    Column::Tokens,
    Column::Title,
    Column::Cost,
    Column::Step,
    Column::Mode,
];

/// The longest that a run can wait on: `silent 130s, no pong 8s (stuck at 10s)`.
const WHOLE_WAITS: usize = 38;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State, look: Look) {
    if area.is_empty() {
        return;
    }
    let columns = columns(usize::from(area.width), state.sums.used.usd.nanos() > 0);
    let heads = u16::from(area.height >= 3);
    if heads == 1 {
        let text =
            columns.iter().map(|(column, name, width)| heading(*column, name, *width)).collect::<String>();
        write(buffer, area, 0, vec![(text, look.dim())]);
    }
    let room = usize::from(area.height - heads);
    let place = state.place().unwrap_or(0);
    let count = state.rows().len();
    // The selected row is in sight, and no row is left empty while there are more.
    state.top = state.top.clamp((place + 1).saturating_sub(room), place).min(count.saturating_sub(room));
    if count == 0 {
        write(buffer, area, heads, vec![(nothing(state).to_owned(), look.dim())]);
    }
    let rows = state.rows();
    for (row, (at, run)) in (heads..).zip(rows.iter().enumerate().skip(state.top).take(room)) {
        let style = if at == place { look.selected() } else { Style::new() };
        let pieces = columns.iter().map(|column| piece(state, run, column, look, style)).collect();
        write(buffer, area, row, pieces);
        if at == place {
            buffer.set_style(Rect { y: area.y + row, height: 1, ..area }, style);
        }
    }
}

fn nothing(state: &State) -> &'static str {
    match (state.filter.is_empty(), state.all) {
        (false, _) => "no run fits the filter; Esc takes it away",
        (true, false) => {
            "nothing runs; a shows runs that have ended, agentd send root TEXT asks the conversation"
        }
        (true, true) => "nothing has run yet; agentd send root TEXT asks the conversation",
    }
}

/// The columns that fit, each with its width.
fn columns(width: usize, priced: bool) -> Vec<(Column, &'static str, usize)> {
    let least =
        |column: Column| COLUMNS.iter().find(|(one, ..)| *one == column).map_or(0, |(_, _, width)| *width);
    let mut left = width;
    let mut kept = Vec::new();
    for column in NEED.into_iter().filter(|column| priced || *column != Column::Cost) {
        let wanted = least(column) + usize::from(!kept.is_empty());
        if wanted > left && !kept.is_empty() {
            break;
        }
        left = left.saturating_sub(wanted);
        kept.push(column);
    }
    let mut columns: Vec<(Column, &str, usize)> =
        COLUMNS.into_iter().filter(|(column, ..)| kept.contains(column)).collect();
    for (column, _, width) in &mut columns {
        *width = least(*column);
    }
    // What is left over goes where it helps most: first so much to what runs wait on, then to titles, and so on.
    for (which, most) in
        [(Column::Waits, 25), (Column::Title, 32), (Column::Waits, WHOLE_WAITS), (Column::Title, usize::MAX)]
    {
        if let Some((_, _, width)) = columns.iter_mut().find(|(column, ..)| *column == which) {
            let more = left.min(most.saturating_sub(*width));
            *width += more;
            left -= more;
        }
    }
    columns
}

/// Numbers stand on the right, and so do their headings.
fn heading(column: Column, name: &str, width: usize) -> String {
    match column {
        Column::Tokens | Column::Cost => cell(&format!("{name:>width$}"), width),
        _ => cell(name, width),
    }
}

fn cell(text: &str, width: usize) -> String {
    format!("{} ", fit(text, width))
}

fn piece(
    state: &State,
    run: &Run,
    (column, _, width): &(Column, &'static str, usize),
    look: Look,
    row: Style,
) -> (String, Style) {
    // A folded row stands for what it hides.
    let used = if state.is_folded(run) { run.subtree } else { run.own };
    let text = match column {
        Column::Name => name(state, run),
        Column::Status => run.status.clone(),
        Column::Mode => run.mode.clone(),
        Column::Waits => run.about.clone(),
        Column::Step => run.step.filter(|step| *step > 0).map(|step| format!("#{step}")).unwrap_or_default(),
        Column::Tokens => format!("{:>width$}", amount(used.tokens)),
        Column::Cost => format!("{:>width$}", paid(used)),
        Column::Title => run.title.clone(),
    };
    let style = match column {
        Column::Waits => look.waits(&run.about, run.is_live),
        _ if !run.is_live => look.dim(),
        _ => Style::new(),
    };
    (cell(&text, *width), style.patch(row))
}

fn paid(used: Used) -> String {
    if used.usd.nanos() > 0 || used.unpriced { cost(used.usd, used.unpriced) } else { String::new() }
}

fn name(state: &State, run: &Run) -> String {
    let mark = match (run.has_children, state.is_folded(run)) {
        (_, true) => "▸ ",
        (true, false) => "▾ ",
        (false, _) => "  ",
    };
    format!("{}{mark}{}", " ".repeat(run.depth.min(4)), run.name)
}

//! The live tree as lines of text: one a run, below its parent, cut to the terminal's size. Pure, so that what a person
//! sees is tested without a terminal.

use crate::cells::{amount, cost, fit, plain};
use agentd_core::snapshot::{Age, RunView, Snapshot, Waits};
use agentd_core::time::{Instant, Wall};
use anstyle::{AnsiColor, Style};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// Columns of a run's name, its indent included.
const NAME: usize = 14;
/// Columns of what it waits on.
const WAITS: usize = 27;
/// Columns of its step.
const STEP: usize = 4;
/// Columns of its tokens.
const TOKENS: usize = 6;
/// Columns of its cost.
const COST: usize = 8;

/// How much there is to draw on, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Canvas {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) colors: bool,
}

/// The tree as of `now`: a headline, a line a run, and one that counts those without room. Never more lines than
/// the canvas has rows, less one for the cursor; never a line as wide as the canvas, so that none wraps.
pub(super) fn frame(snapshot: &Snapshot, now: Instant, canvas: Canvas) -> Vec<String> {
    let room = canvas.rows.saturating_sub(2);
    if room == 0 || canvas.columns < 20 {
        return Vec::new();
    }
    let mut lines = vec![headline(snapshot, now, canvas)];
    let rows = ordered(snapshot);
    let shown = if rows.len() < room { rows.len() } else { room.saturating_sub(2) };
    let priced = snapshot.total.usd.nanos() > 0;
    for (depth, run) in rows.iter().take(shown) {
        lines.push(line(*depth, run, now, priced, canvas));
    }
    if shown < rows.len() {
        let rest = format!("… and {} more", rows.len() - shown);
        lines.push(styled(&fit(&rest, canvas.columns - 1), Style::new().dimmed(), canvas));
    }
    lines
}

fn headline(snapshot: &Snapshot, now: Instant, canvas: Canvas) -> String {
    let live = snapshot.runs.iter().filter(|run| run.handle.is_some()).count();
    let (ended, completed) = snapshot.ended;
    let mut parts = vec![format!("{live} live"), format!("{completed} done")];
    if ended > completed {
        parts.push(format!("{} not completed", ended - completed));
    }
    parts.push(format!("{} tokens", amount(snapshot.total.input.saturating_add(snapshot.total.output))));
    if snapshot.total.usd.nanos() > 0 {
        parts.push(cost(snapshot.total.usd, snapshot.total.unpriced));
    }
    parts.push(Age(now.since(Instant::ZERO)).to_string());
    if snapshot.draining {
        parts.push("stopping".to_owned());
    }
    let text = fit(&format!("agentd · {}", parts.join(" · ")), canvas.columns - 1);
    styled(text.trim_end(), Style::new().bold(), canvas)
}

fn line(depth: usize, run: &RunView, now: Instant, priced: bool, canvas: Canvas) -> String {
    let indent = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth.min(4) - 1)) };
    let name = run.handle.map_or_else(|| "worker".to_owned(), |handle| handle.to_string());
    let waits = fit(&plain(&run.words(now, clock)), WAITS);
    let step = if run.step > 0 { format!("#{}", run.step) } else { String::new() };
    let tokens = amount(run.own.input.saturating_add(run.own.output));
    let before = fit(&format!("{indent}{name}"), NAME);
    let mut after = format!("{step:>STEP$} {tokens:>TOKENS$}");
    if priced {
        after.push_str(&format!(" {:>COST$}", cost(run.own.usd, run.own.unpriced)));
    }
    let used = NAME + 1 + WAITS + 1 + after.width() + 1;
    if used > canvas.columns {
        // On a narrow terminal the end goes, and with it the color that would be cut.
        return fit(&format!("{before} {waits} {after}"), canvas.columns - 1).trim_end().to_owned();
    }
    let title = fit(&plain(&run.title), (canvas.columns - 1).saturating_sub(used));
    let waits = styled(&waits, look(run), canvas);
    format!("{before} {waits} {after} {title}").trim_end().to_owned()
}

/// Trouble stands out, and what needs nobody's look steps back.
fn look(run: &RunView) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match run.waits {
        Waits::NoPong { .. } => color(AnsiColor::Red),
        Waits::Silent | Waits::Throttled { .. } => color(AnsiColor::Yellow),
        Waits::Queued { .. } | Waits::Ending | Waits::Message | Waits::Paused | Waits::Budget => {
            Style::new().dimmed()
        }
        Waits::Model | Waits::Tools(_) => color(AnsiColor::Green),
        Waits::Start | Waits::Servers | Waits::Children(_) => Style::new(),
    }
}

/// Every run below the one that asked for it, with its depth; those whose parent is over stand on the left.
fn ordered(snapshot: &Snapshot) -> Vec<(usize, &RunView)> {
    let mut below: BTreeMap<_, Vec<&RunView>> = BTreeMap::new();
    let known = |node| snapshot.runs.iter().any(|run| run.node == node);
    for run in &snapshot.runs {
        below.entry(run.parent.filter(|parent| known(*parent))).or_default().push(run);
    }
    let mut rows = Vec::new();
    let mut open: Vec<(usize, &RunView)> =
        below.get(&None).into_iter().flatten().rev().map(|r| (0, *r)).collect();
    while let Some((depth, run)) = open.pop() {
        rows.push((depth, run));
        let children = below.get(&Some(run.node)).into_iter().flatten().rev();
        open.extend(children.map(|child| (depth + 1, *child)));
    }
    rows
}

/// Hours and minutes, in UTC as everywhere in the log.
fn clock(wall: Wall) -> String {
    let text = wall.to_string();
    text.get(11..16).map_or_else(|| text.clone(), |time| format!("{time}Z"))
}

fn styled(text: &str, style: Style, canvas: Canvas) -> String {
    if canvas.colors && style != Style::new() { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests;

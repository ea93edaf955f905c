//! The headline: how things stand in all, or that the daemon does not answer.

use super::look::Look;
use super::write;
use crate::cells::{amount, cost};
use crate::top::state::State;
use agentd_core::snapshot::Age;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Duration;

/// A daemon that has not answered for so long is said to be silent.
const SILENT: Duration = Duration::from_secs(5);

pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, look: Look) {
    let since = state.now.saturating_sub(state.heard);
    let name = format!("agentd {}", state.name);
    let trouble = match &state.gone {
        Some(why) => Some(format!(" · gone for {}, looked for again: {why}", Age(since))),
        None if since >= SILENT => Some(format!(" · no answer for {}", Age(since))),
        None => None,
    };
    let pieces = match trouble {
        Some(words) => vec![(name, look.head()), (words, look.trouble())],
        None => vec![(format!("{name} · {}", sums(state)), look.head())],
    };
    write(buffer, area, 0, pieces);
}

fn sums(state: &State) -> String {
    let sums = &state.sums;
    let mut parts = vec![format!("{} live", sums.live)];
    if sums.held > 0 {
        parts.push(format!("{} held", sums.held));
    }
    if sums.prompts_waiting > 0 {
        parts.push(format!("{} prompts waiting", sums.prompts_waiting));
    }
    if sums.draining {
        parts.push("draining".to_owned());
    }
    parts.push(format!("{} tokens", amount(sums.used.tokens)));
    if sums.used.usd.nanos() > 0 {
        parts.push(cost(sums.used.usd, sums.used.unpriced));
    }
    parts.extend(state.budget.clone());
    if state.all {
        parts.push("ended ones too".to_owned());
    }
    if !state.filter.is_empty() {
        parts.push(format!("filter {:?}", state.filter));
    }
    parts.join(" · ")
}

//! What each key does: to the state, and what is to be done beyond it.

use super::asking::{Asking, Line, Verb};
use super::state::State;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};

/// Keys and what they do, as the screen shows them. The first are shown where there is little room.
pub(super) const KEYS: [(&str, &str); 15] = [
    ("↑↓", "move"),
    ("⏎", "events"),
    ("s", "send"),
    ("t", "steer"),
    ("k", "kill"),
    ("f", "finish"),
    ("p", "pause"),
    ("r", "resume"),
    ("R", "retire"),
    ("a", "all"),
    ("/", "filter"),
    ("←→", "fold"),
    ("[ ]", "scroll"),
    ("?", "help"),
    ("q", "quit"),
];

/// Rows of a page, for PgUp and PgDn.
const PAGE: isize = 10;

/// What is to be done beyond the state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Nothing,
    Quit,
    /// Stop, until the shell lets it go on.
    Suspend,
    /// Draw everything anew.
    Redraw,
    Order(Order),
}

/// Something that the daemon is to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// A command for a run.
    Op { op: &'static str, args: Value },
    /// A turn of the conversation.
    Ask(String),
}

/// A key was pressed.
pub(super) fn pressed(state: &mut State, key: KeyEvent) -> Effect {
    if key.kind == KeyEventKind::Release {
        return Effect::Nothing;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if ctrl => return Effect::Quit,
        KeyCode::Char('z') if ctrl => return Effect::Suspend,
        KeyCode::Char('l') if ctrl => return Effect::Redraw,
        _ => {}
    }
    match state.asking.take() {
        None => free(state, key.code, ctrl),
        Some(asking) => answered(state, asking, key.code, ctrl),
    }
}

/// Text was pasted. It is text and never keys: what stands in a clipboard kills nobody.
pub(super) fn pasted(state: &mut State, text: &str) {
    match &mut state.asking {
        Some(Asking::Text { line, .. }) => line.push(text),
        Some(Asking::Filter { line, .. }) => {
            line.push(&text.replace(['\r', '\n', '\t'], " "));
            state.filter = line.text().to_owned();
        }
        Some(Asking::Kill { .. } | Asking::Help) | None => {}
    }
}

/// A key while nothing is asked.
fn free(state: &mut State, code: KeyCode, ctrl: bool) -> Effect {
    if ctrl {
        return Effect::Nothing;
    }
    state.said = None;
    match code {
        KeyCode::Char('q') => return Effect::Quit,
        KeyCode::Char('?') => state.asking = Some(Asking::Help),
        KeyCode::Esc if state.pane.is_some() => state.pane = None,
        KeyCode::Esc => state.filter.clear(),
        KeyCode::Up => state.step(-1),
        KeyCode::Down => state.step(1),
        KeyCode::PageUp => state.step(-PAGE),
        KeyCode::PageDown => state.step(PAGE),
        KeyCode::Home => state.step(isize::MIN),
        KeyCode::End => state.step(isize::MAX),
        KeyCode::Left => state.fold(),
        KeyCode::Right => state.unfold(),
        KeyCode::Enter => state.toggle_pane(),
        KeyCode::Char('[') => scroll(state, PAGE / 2),
        KeyCode::Char(']') => scroll(state, -PAGE / 2),
        KeyCode::Char('a') => state.all = !state.all,
        KeyCode::Char('/') => {
            let before = state.filter.clone();
            state.asking = Some(Asking::Filter { line: Line::of(&before), before });
        }
        KeyCode::Char('s') => state.ask_text(Verb::Send),
        KeyCode::Char('t') => state.ask_text(Verb::Steer),
        KeyCode::Char('f') => return order(state, "subagent.finish"),
        KeyCode::Char('p') => return order(state, "subagent.pause"),
        KeyCode::Char('r') => return order(state, "subagent.resume"),
        KeyCode::Char('R') => return order(state, "subagent.retire"),
        KeyCode::Char('k') => {
            if let Some(name) = state.selected_for(false) {
                let below = state.below_selected();
                state.asking = Some(Asking::Kill { name, below });
            }
        }
        _ => {}
    }
    Effect::Nothing
}

fn scroll(state: &mut State, back: isize) {
    if let Some(pane) = &mut state.pane {
        pane.scroll(back);
    }
}

/// A command that is only a handle.
fn order(state: &mut State, op: &'static str) -> Effect {
    match state.selected_for(false) {
        Some(name) => Effect::Order(Order::Op { op, args: json!({ "handle": name }) }),
        None => Effect::Nothing,
    }
}

/// A key while something is asked, which stays open unless the key closes it.
fn answered(state: &mut State, asking: Asking, code: KeyCode, ctrl: bool) -> Effect {
    match asking {
        Asking::Help => Effect::Nothing,
        Asking::Kill { name, .. } => match code {
            KeyCode::Char('y') if !ctrl => {
                let args = json!({ "handle": name, "reason": "by the operator, in top" });
                Effect::Order(Order::Op { op: "subagent.kill", args })
            }
            _ => {
                state.say(&format!("{name} is not killed"), false);
                Effect::Nothing
            }
        },
        Asking::Filter { mut line, before } => {
            match code {
                KeyCode::Esc => state.filter = before,
                KeyCode::Enter => {}
                _ => {
                    edit(&mut line, code, ctrl);
                    state.filter = line.text().to_owned();
                    state.asking = Some(Asking::Filter { line, before });
                }
            }
            Effect::Nothing
        }
        Asking::Text { verb, name, mut line } => match code {
            KeyCode::Esc => Effect::Nothing,
            KeyCode::Enter if line.text().trim().is_empty() => {
                state.say("nothing was written, so nothing is sent", true);
                Effect::Nothing
            }
            KeyCode::Enter => Effect::Order(said(verb, name, line.text())),
            _ => {
                edit(&mut line, code, ctrl);
                state.asking = Some(Asking::Text { verb, name, line });
                Effect::Nothing
            }
        },
    }
}

fn edit(line: &mut Line, code: KeyCode, ctrl: bool) {
    match code {
        KeyCode::Backspace => line.backspace(),
        KeyCode::Char('h') if ctrl => line.backspace(),
        KeyCode::Char('u') if ctrl => line.erase(),
        KeyCode::Char('w') if ctrl => line.erase_word(),
        KeyCode::Char(c) if !ctrl => line.push(c.encode_utf8(&mut [0; 4])),
        _ => {}
    }
}

/// What a text becomes.
fn said(verb: Verb, name: String, text: &str) -> Order {
    if name == crate::client::ROOT {
        return Order::Ask(text.to_owned());
    }
    let op = match verb {
        Verb::Send => "subagent.send",
        Verb::Steer => "subagent.steer",
    };
    Order::Op { op, args: json!({ "handle": name, "text": text }) }
}

#[cfg(test)]
mod tests;

use super::*;
use crate::top::keys;
use crate::top::stage::{page, ps, row, runs, state};
use agentd_core::preview::misleads;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

const DOCS: &str = include_str!("../../../../docs/top.md");

fn drawn(state: &mut State, columns: u16, rows: u16, colors: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal.draw(|frame| draw(frame, state, colors)).expect("drawn");
    terminal.backend().buffer().clone()
}

/// The rows as text. What a wide character covers is no cell of its own.
fn text(buffer: &Buffer) -> Vec<String> {
    let row = |y: u16| {
        let (mut row, mut x) = (String::new(), 0);
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).expect("narrow");
        }
        row.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

fn screen(state: &mut State, columns: u16, rows: u16) -> Vec<String> {
    text(&drawn(state, columns, rows, false))
}

fn press(state: &mut State, code: KeyCode) {
    keys::pressed(state, KeyEvent::new(code, KeyModifiers::NONE));
}

/// What docs/top.md shows.
fn shown() -> State {
    let mut state = state(runs());
    state.budget = Some("left this hour 1.2M tokens and $3.10".into());
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    state.events("sub-1", &page(), true);
    state
}

#[test]
fn the_page_shows_what_is_drawn() {
    let mut blocks = DOCS.split("```text\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let (there, _) = blocks.next().expect("a capture");
    let wanted = screen(&mut shown(), 110, 18).join("\n") + "\n";
    assert!(there == wanted, "docs/top.md is stale; its first capture is:\n{wanted}");
    let (there, _) = blocks.next().expect("a small one");
    let wanted = screen(&mut shown(), 40, 10).join("\n") + "\n";
    assert!(there == wanted, "docs/top.md is stale; its second capture is:\n{wanted}");
}

#[test]
fn the_page_names_every_key() {
    for (key, word) in keys::KEYS {
        let row = DOCS.lines().find(|line| line.starts_with(&format!("| `{key}` ")));
        assert!(row.is_some(), "`{key}` ({word}) has no row in docs/top.md");
    }
}

#[test]
fn the_selected_row_is_in_sight_on_any_screen() {
    let many: Vec<_> =
        (1..=50).map(|n| row(&format!("sub-{n}"), "", "running", "model 1s", "look")).collect();
    let mut state = state(many);
    for rows in [40, 10, 5, 3, 2, 1] {
        press(&mut state, KeyCode::Home);
        assert!(screen(&mut state, 80, rows).iter().any(|row| row.contains("sub-1 ")), "{rows}");
        press(&mut state, KeyCode::End);
        assert!(screen(&mut state, 80, rows).iter().any(|row| row.contains("sub-50 ")), "{rows}");
    }
    // Fewer runs than were scrolled past leave no empty rows.
    state.told(&ps(runs()));
    assert!(screen(&mut state, 80, 24)[2].contains("root"), "{:?}", screen(&mut state, 80, 24));
}

#[test]
fn nothing_that_runs_say_acts_on_the_terminal() {
    let evil = "a\u{1b}[2Jb\r\n\u{7}\u{202e}c\u{200b}d";
    let mut state = state(vec![row(evil, "", "running", evil, evil)]);
    press(&mut state, KeyCode::Enter);
    let name = state.pane.as_ref().expect("open").name.clone();
    let page =
        serde_json::json!({"events": [{"event": evil, "ts": evil, "level": evil, "fields": {evil: evil}}]});
    state.events(&name, &page, true);
    state.lost(evil);
    state.say(evil, true);
    keys::pressed(&mut state, KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE));
    keys::pasted(&mut state, evil);
    for line in screen(&mut state, 200, 24) {
        assert!(line.chars().all(|c| !c.is_control() && !misleads(c)), "{line:?}");
    }
}

#[test]
fn a_daemon_that_is_gone_or_silent_is_told_in_the_first_row() {
    let mut state = state(runs());
    state.now = Duration::from_secs(4);
    assert!(
        screen(&mut state, 110, 9)[0].starts_with("agentd panics · 4 live · 1 held · 184k tokens · $0.246")
    );
    state.now = Duration::from_secs(7);
    assert!(screen(&mut state, 110, 9)[0].ends_with("no answer for 7s"));
    state.lost("connection refused");
    let head = screen(&mut state, 110, 9)[0].clone();
    assert!(head.ends_with("gone for 7s, looked for again: connection refused"), "{head}");
    state.told(&ps(runs()));
    assert!(screen(&mut state, 110, 9)[0].contains("4 live"));
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let plain = drawn(&mut shown(), 110, 18, false);
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(
        plain.content().iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)),
        "what is selected is seen"
    );
    let colored = drawn(&mut shown(), 110, 18, true);
    for color in [Color::Red, Color::Green, Color::Cyan] {
        assert!(colored.content().iter().any(|cell| cell.fg == color), "{color}");
    }
    assert_eq!(text(&plain), text(&colored));
}

#[test]
fn what_is_asked_is_seen_on_a_small_screen() {
    let mut state = state(runs());
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Char('k'));
    assert_eq!(
        screen(&mut state, 70, 10)[8],
        "kill sub-2 and the run below it? y kills, any other key does not"
    );
    press(&mut state, KeyCode::Char('n'));
    press(&mut state, KeyCode::Char('t'));
    keys::pasted(&mut state, "a long text about 日本語 that does not fit\nat all");
    let line = screen(&mut state, 40, 10)[8].clone();
    assert!(line.starts_with("steer to sub-2") && line.ends_with("not fit⏎at all"), "{line}");
    press(&mut state, KeyCode::Esc);
    press(&mut state, KeyCode::Char('?'));
    let help = screen(&mut state, 80, 24);
    assert!(help[0].starts_with("keys of agentd top") && help.iter().any(|row| row.contains("asks first")));
    press(&mut state, KeyCode::Char('x'));
    assert!(screen(&mut state, 80, 24)[0].starts_with("agentd panics"));
}

proptest! {
    #[test]
    fn any_text_on_any_screen_is_drawn_within_it(
        titles in proptest::collection::vec("\\PC{0,40}", 0..20),
        pressed in proptest::collection::vec(0usize..16, 0..12),
        columns in 1u16..130,
        rows in 1u16..40,
    ) {
        let runs = titles.iter().enumerate().map(|(n, title)| {
            let parent = if n % 3 == 2 { format!("sub-{}", n - 1) } else { String::new() };
            row(&format!("sub-{n}"), &parent, "running", title, title)
        });
        let mut state = state(runs.collect());
        for key in pressed {
            let codes = [
                KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Enter, KeyCode::Char('/'),
                KeyCode::Char('s'), KeyCode::Char('k'), KeyCode::Char('?'), KeyCode::Char('a'), KeyCode::Esc,
                KeyCode::End, KeyCode::PageUp, KeyCode::Char('['), KeyCode::Char(']'), KeyCode::Char('日'),
            ];
            press(&mut state, codes[key]);
        }
        let buffer = drawn(&mut state, columns, rows, true);
        prop_assert_eq!((buffer.area.width, buffer.area.height), (columns, rows));
        let bare = buffer.content().iter().all(|cell| !cell.symbol().chars().any(|c| c.is_control() || misleads(c)));
        prop_assert!(bare);
        prop_assert_eq!(state.place().is_none(), state.rows().is_empty());
    }
}

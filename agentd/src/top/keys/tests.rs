use super::*;
use crate::top::stage::{ps, row, runs, state};

fn press(state: &mut State, code: KeyCode) -> Effect {
    pressed(state, KeyEvent::new(code, KeyModifiers::NONE))
}

fn with_ctrl(state: &mut State, c: char) -> Effect {
    pressed(state, KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
}

fn type_in(state: &mut State, text: &str) {
    for c in text.chars() {
        assert_eq!(press(state, KeyCode::Char(c)), Effect::Nothing, "{c} of {text}");
    }
}

fn names(state: &State) -> Vec<&str> {
    state.rows().iter().map(|run| run.name.as_str()).collect()
}

/// Goes to this run.
fn select(state: &mut State, name: &str) {
    press(state, KeyCode::Home);
    while state.selected().is_some_and(|run| run.name != name) {
        press(state, KeyCode::Down);
    }
}

#[test]
fn the_selection_stays_with_its_run() {
    let mut state = state(runs());
    assert_eq!(state.selected().expect("one").name, "root");
    select(&mut state, "sub-3");
    // Another comes before it.
    let mut more = runs();
    more.insert(1, row("sub-9", "", "running", "model 1s", "more"));
    state.told(&ps(more));
    assert_eq!(state.selected().expect("one").name, "sub-3");
    // It goes, and its place is another's.
    let less: Vec<Value> = runs().into_iter().filter(|run| run["handle"] != "sub-3").collect();
    state.told(&ps(less));
    assert!(state.selected().is_some_and(|run| run.name != "sub-3"));
    state.told(&ps(Vec::new()));
    assert!(state.selected().is_none());
    press(&mut state, KeyCode::Down);
    assert_eq!(press(&mut state, KeyCode::Char('k')), Effect::Nothing);
    assert_eq!(state.said, Some(("no run is selected".into(), true)));
}

#[test]
fn what_a_run_delegated_is_hidden_and_shown() {
    let mut state = state(runs());
    let all = ["root", "sub-1", "sub-2", "sub-3", "sub-4", "sub-5"];
    assert_eq!(names(&state), all);
    select(&mut state, "sub-3");
    press(&mut state, KeyCode::Left);
    assert_eq!(state.selected().expect("one").name, "sub-2", "nothing to hide below: the one above");
    press(&mut state, KeyCode::Left);
    assert_eq!(names(&state), ["root", "sub-1", "sub-2", "sub-4", "sub-5"]);
    state.told(&ps(runs()));
    assert_eq!(names(&state).len(), 5, "it stays hidden");
    press(&mut state, KeyCode::Right);
    assert_eq!(names(&state), all);
    press(&mut state, KeyCode::Home);
    press(&mut state, KeyCode::Left);
    assert_eq!(names(&state), ["root"]);
}

#[test]
fn a_filter_shows_what_fits_and_what_is_above_it() {
    let mut state = state(runs());
    press(&mut state, KeyCode::Char('/'));
    type_in(&mut state, "IO-MIO");
    assert_eq!(names(&state), ["root", "sub-2", "sub-3"]);
    press(&mut state, KeyCode::Enter);
    assert_eq!((state.asking.clone(), names(&state).len()), (None, 3));
    press(&mut state, KeyCode::Char('/'));
    type_in(&mut state, "q");
    assert_eq!(names(&state), Vec::<&str>::new(), "q is a letter here");
    press(&mut state, KeyCode::Esc);
    assert_eq!(names(&state).len(), 3, "as before it was changed");
    press(&mut state, KeyCode::Esc);
    assert_eq!(names(&state).len(), 6);
}

#[test]
fn a_kill_is_asked_for_and_only_y_does_it() {
    let mut state = state(runs());
    select(&mut state, "sub-2");
    for no in [KeyCode::Char('n'), KeyCode::Esc, KeyCode::Enter, KeyCode::Char('k'), KeyCode::Char('Y')] {
        assert_eq!(press(&mut state, KeyCode::Char('k')), Effect::Nothing);
        assert_eq!(state.asking, Some(Asking::Kill { name: "sub-2".into(), below: 1 }));
        assert_eq!(press(&mut state, no), Effect::Nothing);
        assert_eq!(state.asking, None);
    }
    press(&mut state, KeyCode::Char('k'));
    pasted(&mut state, "y");
    assert!(state.asking.is_some(), "what is pasted answers nothing");
    // The run that was asked about is the one that is killed, whatever is selected by now.
    let less: Vec<Value> = runs().into_iter().filter(|run| run["handle"] != "sub-2").collect();
    state.told(&ps(less));
    let effect = press(&mut state, KeyCode::Char('y'));
    let Effect::Order(Order::Op { op: "subagent.kill", args }) = effect else { panic!("{effect:?}") };
    assert_eq!(args["handle"], "sub-2");
}

#[test]
fn texts_are_sent_whole_or_not_at_all() {
    let mut state = state(runs());
    select(&mut state, "sub-1");
    press(&mut state, KeyCode::Char('s'));
    type_in(&mut state, "only the testz");
    press(&mut state, KeyCode::Backspace);
    pasted(&mut state, "s\nand the docs");
    let effect = press(&mut state, KeyCode::Enter);
    let args = json!({ "handle": "sub-1", "text": "only the tests\nand the docs" });
    assert_eq!(effect, Effect::Order(Order::Op { op: "subagent.send", args }));
    press(&mut state, KeyCode::Char('t'));
    type_in(&mut state, "quick");
    let effect = press(&mut state, KeyCode::Enter);
    assert!(matches!(effect, Effect::Order(Order::Op { op: "subagent.steer", .. })), "{effect:?}");
    press(&mut state, KeyCode::Char('t'));
    type_in(&mut state, "x");
    assert_eq!((press(&mut state, KeyCode::Esc), state.asking.clone()), (Effect::Nothing, None));
    press(&mut state, KeyCode::Char('s'));
    assert_eq!(press(&mut state, KeyCode::Enter), Effect::Nothing);
    assert!(state.said.as_ref().is_some_and(|(words, _)| words.contains("nothing was written")));
}

#[test]
fn the_conversation_is_asked_and_nothing_else() {
    let mut state = state(runs());
    press(&mut state, KeyCode::Char('s'));
    type_in(&mut state, "why?");
    assert_eq!(press(&mut state, KeyCode::Enter), Effect::Order(Order::Ask("why?".into())));
    for key in ['t', 'k', 'f', 'p', 'r', 'R'] {
        assert_eq!(press(&mut state, KeyCode::Char(key)), Effect::Nothing, "{key}");
        assert!(
            state.said.as_ref().is_some_and(|(words, trouble)| *trouble && words.contains("conversation"))
        );
        assert_eq!(state.asking, None);
    }
}

#[test]
fn commands_are_for_live_runs() {
    let mut state =
        state(vec![row("sub-1", "", "completed", "", "look"), row("sub-2", "", "running", "model 1s", "x")]);
    assert_eq!(press(&mut state, KeyCode::Char('p')), Effect::Nothing);
    assert_eq!(state.said, Some(("sub-1 has ended as completed".into(), true)));
    press(&mut state, KeyCode::Down);
    for (key, op) in [
        ('f', "subagent.finish"),
        ('p', "subagent.pause"),
        ('r', "subagent.resume"),
        ('R', "subagent.retire"),
    ] {
        let args = json!({ "handle": "sub-2" });
        assert_eq!(press(&mut state, KeyCode::Char(key)), Effect::Order(Order::Op { op, args }), "{key}");
    }
}

#[test]
fn events_are_of_the_run_that_was_opened() {
    let mut state = state(runs());
    select(&mut state, "sub-1");
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.watch().log, Some("sub-1".into()));
    state.events("sub-2", &crate::top::stage::page(), true);
    assert!(!state.pane.as_ref().expect("open").heard, "another's are not shown here");
    press(&mut state, KeyCode::Down);
    assert_eq!(state.watch().log, Some("sub-1".into()), "it stays while one looks around");
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.watch().log, Some("sub-2".into()));
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.watch().log, None);
    assert!(!state.watch().all);
    press(&mut state, KeyCode::Char('a'));
    assert!(state.watch().all);
}

#[test]
fn the_way_out_is_open_whatever_is_asked() {
    for open in [None, Some('s'), Some('k'), Some('/'), Some('?')] {
        let mut state = state(runs());
        select(&mut state, "sub-1");
        if let Some(key) = open {
            press(&mut state, KeyCode::Char(key));
        }
        assert_eq!(with_ctrl(&mut state, 'l'), Effect::Redraw);
        assert_eq!(with_ctrl(&mut state, 'z'), Effect::Suspend);
        assert_eq!(state.asking.is_some(), open.is_some(), "nothing is closed by that");
        assert_eq!(with_ctrl(&mut state, 'c'), Effect::Quit);
    }
    let mut state = state(runs());
    assert_eq!(press(&mut state, KeyCode::Char('q')), Effect::Quit);
    let released = KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(pressed(&mut state, released), Effect::Nothing);
}

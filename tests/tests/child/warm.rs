//! A child that stays between messages: turns in order over the same servers, and its ends (S6.3, S14.1, F25).

use crate::rig::{Rig, Run};
use agentd_core::wire::Up;
use agentd_core::wire::message::{FailKind, LoopEnd, TurnOutcome, WaitingOn};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// S7.9: noticed within a second, wherever the run stands.
const NOTICED: Duration = Duration::from_secs(1);

/// Looks at what the message names and says it.
fn echoing() -> Value {
    json!([
        {"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "{{ text }}"}}]}},
        {"reply": {"text": "{{ message }}: {{ last.text }}, {{ earlier | length }} before"}}
    ])
}

fn acks(rig: &Rig) -> Vec<u64> {
    rig.seen.iter().filter_map(|up| if let Up::Ack(ack) = up { Some(ack.id) } else { None }).collect()
}

/// The pids of the servers, which a restart would change.
fn servers(rig: &Rig) -> Vec<i32> {
    let mut pids: Vec<i32> = rig.left().into_iter().map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn messages_are_turns_in_order_over_the_same_servers() {
    let run = Run::new(echoing()).warm().fake("s", &["ok"]).change(|spawn| spawn.instruction = "one".into());
    let mut rig = Rig::start(run);
    assert_eq!(rig.turn().1.text.as_deref(), Some("1: one, 0 before"));
    rig.until_waiting_on(&WaitingOn::Message);
    let before = servers(&rig);
    assert_eq!(before.len(), 2, "a keeper and its server");
    // All at once: each waits for its turn.
    for (id, text) in [(2, "two"), (5, "three"), (6, "four")] {
        rig.message(id, text);
    }
    for (id, want) in [(2, "2: two, 1 before"), (5, "3: three, 2 before"), (6, "4: four, 3 before")] {
        let (turn, result) = rig.turn();
        assert_eq!((turn, result.text.as_deref(), result.end), (id, Some(want), LoopEnd::Completed));
        assert_eq!(acks(&rig).last(), Some(&id));
    }
    rig.until_waiting_on(&WaitingOn::Message);
    assert_eq!(acks(&rig), [2, 5, 6]);
    assert_eq!(servers(&rig), before, "no server was restarted");
    rig.ping(1);
    rig.until(|up| matches!(up, Up::Pong(_)).then_some(()));
    rig.cancel();
    let Up::Result(result) = rig.terminal() else { panic!("no result") };
    assert_eq!((result.end, result.text), (LoopEnd::Cancelled, None));
    assert_eq!((result.evidence.model_calls, result.evidence.tool_calls), (8, 4));
    assert!(rig.end().0.success());
}

#[test]
fn fifty_messages_of_one_turn_are_one_turn_each() {
    let rules = json!([
        {"message": 1, "reply": {"text": "slow", "delay": "300ms"}},
        {"reply": {"text": "{{ text }}"}}
    ]);
    let mut rig = Rig::start(Run::new(rules).warm());
    rig.until_model_call();
    for id in 2..52 {
        rig.message(id, &format!("message {id}"));
    }
    assert_eq!(rig.turn().0, 1);
    for id in 2..52 {
        let (turn, result) = rig.turn();
        assert_eq!((turn, result.text), (id, Some(format!("message {id}"))));
    }
    assert_eq!(acks(&rig), (2..52).collect::<Vec<_>>());
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn a_message_of_a_megabyte_is_taken() {
    let rules =
        json!([{"message": 1, "reply": {"text": "ready"}}, {"text": "needle$", "reply": {"text": "found"}}]);
    let run = Run::new(rules).warm().change(|spawn| spawn.limits.tokens = 10_000_000);
    let mut rig = Rig::start_walled(96, run);
    assert_eq!(rig.turn().0, 1);
    rig.message(2, &format!("{}needle", "hay ".repeat(262_000)));
    assert_eq!(rig.turn().1.text.as_deref(), Some("found"));
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn a_message_that_comes_while_servers_start_waits() {
    let run = Run::new(echoing()).warm().fake("s", &["slow-init=300"]);
    let mut rig = Rig::start(run);
    rig.until_waiting_on(&WaitingOn::Servers);
    rig.message(2, "two");
    rig.cancel_turn(1);
    let (turn, result) = rig.turn();
    assert_eq!((turn, result.end), (1, LoopEnd::Cancelled));
    let (turn, result) = rig.turn();
    assert_eq!((turn, result.text.as_deref()), (2, Some("2: two, 0 before")));
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn cancelling_a_turn_ends_its_call_and_keeps_the_child_and_its_servers() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let path = log.path().to_str().expect("text");
    let rules = json!([
        {"message": 1, "reply": {"tool_calls": [{"name": "s_sleep", "args": {"ms": 600_000}}]}},
        {"turn": 1, "message": {"from": 2}, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "{{ text }}"}}]}},
        {"reply": {"text": "{{ last.text }}"}}
    ]);
    let run = Run::new(rules).warm().program("s", &[crate::rig::FAKE, "--log", path]);
    let mut rig = Rig::start(run);
    rig.until_tool_call();
    let before = servers(&rig);
    let asked = Instant::now();
    rig.cancel_turn(1);
    let (turn, result) = rig.turn();
    assert!(asked.elapsed() < NOTICED, "{:?}", asked.elapsed());
    assert_eq!((turn, result.end), (1, LoopEnd::Cancelled));
    rig.until_waiting_on(&WaitingOn::Message);
    // One that is over, and one that never was.
    rig.cancel_turn(1);
    rig.cancel_turn(77);
    rig.message(2, "still here");
    assert_eq!(rig.turn().1.text.as_deref(), Some("still here"));
    assert_eq!(servers(&rig), before);
    assert!(std::fs::read_to_string(path).expect("the log").contains("notifications/cancelled"));
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn cancelling_a_turn_ends_its_model_call() {
    let rules = json!([
        {"message": 1, "reply": {"text": "too late", "delay": "10m"}},
        {"reply": {"text": "at once"}}
    ]);
    let mut rig = Rig::start(Run::new(rules).warm());
    rig.until_model_call();
    rig.cancel_turn(1);
    assert_eq!(rig.turn().1.end, LoopEnd::Cancelled);
    rig.message(2, "on");
    assert_eq!(rig.turn().1.text.as_deref(), Some("at once"));
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn a_child_that_is_idle_ends_at_once_when_told_or_when_its_supervisor_is_gone() {
    for told in [true, false] {
        let run = Run::new(echoing()).warm().fake("s", &["ok"]);
        let mut rig = Rig::start(run);
        rig.turn();
        rig.until_waiting_on(&WaitingOn::Message);
        let asked = Instant::now();
        if told {
            rig.cancel();
            assert!(matches!(rig.terminal(), Up::Result(result) if result.end == LoopEnd::Cancelled));
            assert!(asked.elapsed() < NOTICED, "{:?}", asked.elapsed());
        } else {
            rig.stdin = None;
        }
        let (status, said) = rig.end_within(Duration::from_secs(2));
        assert!(status.success(), "{said}");
    }
}

#[test]
fn a_server_that_dies_between_turns_is_an_error_of_the_next_call() {
    let rules = json!([
        {"message": 1, "reply": {"text": "ready"}},
        {"turn": 1, "reply": {"tool_calls": [{"name": "s_echo", "args": {"text": "x"}}]}},
        {"reply": {"text": "{{ last.error }}: {{ last.text }}"}}
    ]);
    let mut rig = Rig::start(Run::new(rules).warm().fake("s", &["ok"]));
    rig.turn();
    rig.until_waiting_on(&WaitingOn::Message);
    let server =
        rig.left().into_iter().find(|(_, command)| command.contains("fake-mcp")).expect("a server").0;
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(server).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("killed");
    rig.until(|up| matches!(up, Up::Event(event) if event.name == "mcp.exit").then_some(()));
    rig.message(2, "go");
    let text = rig.turn().1.text.expect("a text");
    assert!(text.starts_with("True: ") && text.contains("server s ("), "{text}");
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

#[test]
fn a_turn_that_fails_leaves_the_child_and_a_dead_model_does_not() {
    let rules = json!([
        {"message": 1, "reply": {}},
        {"message": 2, "reply": {"text": "better"}},
        {"message": 3, "reply": {"error": {"kind": "credential", "message": "no such key"}}}
    ]);
    let mut rig = Rig::start(Run::new(rules).warm());
    let outcome = rig.until(|up| if let Up::Turn(turn) = up { Some(turn.outcome.clone()) } else { None });
    assert!(matches!(outcome, TurnOutcome::Failed(failed) if failed.kind == FailKind::EmptyReply));
    rig.message(2, "again");
    assert_eq!(rig.turn().1.text.as_deref(), Some("better"));
    rig.message(3, "again");
    let failed = rig.failed();
    assert_eq!(failed.kind, FailKind::Model);
    assert!(failed.error.contains("no such key"), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn each_turn_has_its_own_deadline() {
    let rules = json!([
        {"message": 2, "reply": {"text": "too late", "delay": "10m"}},
        {"reply": {"text": "in time"}}
    ]);
    let mut rig = Rig::start(Run::new(rules).warm().change(|spawn| spawn.limits.deadline_ms = 1_000));
    assert_eq!(rig.turn().1.end, LoopEnd::Completed);
    rig.message(2, "slow");
    assert_eq!(rig.turn().1.end, LoopEnd::Deadline);
    rig.message(3, "quick");
    assert_eq!(rig.turn().1.text.as_deref(), Some("in time"));
    rig.cancel();
    rig.terminal();
    assert!(rig.end().0.success());
}

//! A conversation of several turns and its warm worker (S14.1, S6.7).

use super::*;
use crate::event::SupervisorSignal;
use crate::wire::message::ContextRole;

fn daemon() -> Desk {
    let mut desk = Desk::new(Config { one_shot: false, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    desk
}

fn prompt(desk: &mut Desk, text: &str) {
    desk.event(Event::PromptSubmitted { text: text.into() });
}

#[test]
fn one_worker_serves_turn_after_turn_in_the_order_asked() {
    let mut desk = daemon();
    for text in ["one", "two", "three"] {
        prompt(&mut desk, text);
    }
    let worker = NodeId(1);
    desk.ready(worker);
    assert_eq!(
        desk.child(worker).spawn.as_ref().map(|s| (s.mode, s.instruction.as_str())),
        Some((Mode::Warm, "one"))
    );
    desk.turn(worker, 1, "a");
    assert_eq!(desk.messages(worker), [(2, "two".to_owned())]);
    desk.turn(worker, 2, "b");
    desk.turn(worker, 3, "c");
    assert_eq!(desk.prompts, [1, 2, 3]);
    let answers: Vec<&Value> = desk.delivered.iter().map(|r| &r.result).collect();
    assert_eq!(answers, ["a", "b", "c"]);
    assert!(desk.exit.is_none(), "a daemon stays");
}

#[test]
fn an_idle_worker_goes_and_the_next_one_knows_what_was_said() {
    let mut desk = daemon();
    prompt(&mut desk, "my name is Ada");
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "hello Ada");
    for s in 1..=60 {
        desk.advance_to(s * 1_000);
        desk.pong(NodeId(1));
    }
    assert_eq!(desk.core.runs[&NodeId(1)].record.status, Status::Completed);
    desk.exit(NodeId(1), Exit::Code(0));
    prompt(&mut desk, "who am I?");
    desk.ready(NodeId(2));
    let spawn = desk.child(NodeId(2)).spawn.clone().expect("spawned");
    let past: Vec<(ContextRole, &str)> = spawn.context.iter().map(|m| (m.role, m.content.as_str())).collect();
    assert_eq!(past, [(ContextRole::User, "my name is Ada"), (ContextRole::Assistant, "hello Ada")]);
    desk.turn(NodeId(2), 1, "Ada");
    assert_eq!(desk.prompts, [1, 2]);
}

#[test]
fn what_is_remembered_has_a_bound_and_drops_whole_turns() {
    let mut desk = daemon();
    prompt(&mut desk, "first");
    let worker = NodeId(1);
    desk.ready(worker);
    desk.turn(worker, 1, &"x".repeat(200_000));
    prompt(&mut desk, "second");
    desk.turn(worker, 2, &"y".repeat(200_000));
    prompt(&mut desk, "third");
    desk.exit(worker, Exit::Signal(9));
    assert_eq!(desk.delivered[2].status, Status::Failed);
    prompt(&mut desk, "fourth");
    let spawn = desk.child(NodeId(2)).spawn.clone().expect("a new worker");
    let asked: Vec<&str> = spawn.context.iter().step_by(2).map(|m| m.content.as_str()).collect();
    assert_eq!(asked, ["second", "third"]);
    assert!(spawn.context[3].content.starts_with("[no answer: exited without a result"));
}

#[test]
fn cancelling_a_turn_ends_its_sync_runs_and_keeps_the_worker() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    let worker = NodeId(1);
    desk.ready(worker);
    desk.call(worker, "subagent.run", json!({"instruction": "sync"}));
    desk.ask(worker, "subagent.run", json!({"instruction": "async", "mode": "async"}));
    desk.ready(NodeId(2));
    desk.ready(NodeId(3));
    desk.event(Event::TurnCancelled { prompt: 1, reason: "changed my mind".into() });
    assert_eq!(desk.core.runs[&NodeId(2)].record.status, Status::Cancelled);
    assert_eq!(desk.core.runs[&NodeId(3)].record.status, Status::Running, "an async run goes on");
    assert!(desk.child(worker).heard.iter().any(|d| matches!(d, Down::Cancel(c) if c.turn == Some(1))));
    assert!(desk.prompts.is_empty());
    let cancelled = RunResult {
        end: LoopEnd::Cancelled,
        text: None,
        partial: true,
        error: Some("cancelled".into()),
        evidence: LoopEvidence::default(),
    };
    desk.up(worker, &Up::Turn(Turn { id: 1, outcome: TurnOutcome::Result(cancelled) }));
    assert_eq!((desk.prompts[0], desk.delivered[0].status), (1, Status::Cancelled));
    prompt(&mut desk, "two");
    assert_eq!(desk.messages(worker), [(2, "two".to_owned())]);
}

#[test]
fn a_worker_that_does_not_end_a_cancelled_turn_is_stopped_and_the_next_prompt_goes_on() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    prompt(&mut desk, "two");
    prompt(&mut desk, "three");
    desk.ready(NodeId(1));
    desk.event(Event::TurnCancelled { prompt: 3, reason: String::new() });
    assert_eq!((desk.prompts.as_slice(), desk.delivered[0].status), (&[3][..], Status::Cancelled));
    desk.event(Event::TurnCancelled { prompt: 1, reason: String::new() });
    desk.advance_to(5_000);
    assert_eq!(desk.child(NodeId(1)).signals, [ChildSignal::TermCont]);
    assert_eq!((desk.prompts.as_slice(), desk.delivered[1].status), (&[3, 1][..], Status::Cancelled));
    let next = desk.child(NodeId(2)).spawn.clone().expect("a new worker for the next prompt");
    assert_eq!(next.instruction, "two");
    desk.event(Event::TurnCancelled { prompt: 1, reason: "again".into() });
    desk.event(Event::TurnCancelled { prompt: 99, reason: "nobody".into() });
}

#[test]
fn a_drain_lets_the_turn_end_and_answers_what_waits() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    prompt(&mut desk, "two");
    let worker = NodeId(1);
    desk.ready(worker);
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    assert_eq!((desk.prompts.as_slice(), desk.delivered[0].status), (&[2][..], Status::Cancelled));
    desk.turn(worker, 1, "whole");
    assert_eq!(desk.delivered[1].result, "whole");
    desk.exit(worker, Exit::Code(0));
    assert!(matches!(desk.exit, Some(Action::Exit { leaked: 0, .. })));
}

#[test]
fn an_idle_daemon_ends_at_once_when_drained() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "a");
    desk.event(Event::Signalled { signal: SupervisorSignal::Int });
    desk.exit(NodeId(1), Exit::Code(0));
    let Some(Action::Exit { usage, .. }) = desk.exit else { panic!("it ends") };
    assert_eq!(usage, UsageSum::default());
}

#[test]
fn prompts_have_a_bound_and_each_has_an_answer() {
    let mut desk = daemon();
    for i in 0..70 {
        prompt(&mut desk, &format!("p{i}"));
    }
    assert_eq!(desk.prompts, [66, 67, 68, 69, 70]);
    assert!(desk.delivered.iter().all(|r| r.status == Status::Refused));
}

#[test]
fn a_one_shot_turn_stops_warm_runs_and_waits_for_the_others() {
    let (mut desk, worker) = Desk::with_worker(config());
    for mode in ["warm", "async", "detached"] {
        desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": mode}));
    }
    for node in 2..=4 {
        desk.ready(NodeId(node));
    }
    desk.turn(NodeId(2), 1, "idle now");
    desk.finish(worker, "answer");
    let statuses: Vec<Status> = desk.core.statuses().into_iter().map(|(_, s)| s).collect();
    assert_eq!(statuses, [Status::Parked, Status::Running, Status::Running]);
    assert!(desk.child(NodeId(2)).heard.iter().any(|d| matches!(d, Down::Cancel(_))));
    for node in 2..=4 {
        desk.finish(NodeId(node), "x");
    }
    assert!(matches!(desk.exit, Some(Action::Exit { interrupted: None, leaked: 0, .. })));
}

#[test]
fn a_turn_that_nobody_asked_for_takes_no_number() {
    let mut desk = Desk::new(Config { one_shot: false, wake_on_results: true, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    prompt(&mut desk, "one");
    let worker = NodeId(1);
    desk.ready(worker);
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.turn(worker, 1, "a");
    desk.ready(NodeId(2));
    desk.finish(NodeId(2), "found it");
    assert_eq!(desk.messages(worker), [(2, "subagent sub-1 completed: found it".to_owned())]);
    desk.turn(worker, 2, "noted");
    prompt(&mut desk, "two");
    desk.turn(worker, 3, "b");
    assert_eq!(desk.prompts, [1, 0, 2]);
}

#[test]
fn a_note_that_crosses_the_end_of_the_turn_wakes_the_worker_or_reaches_the_next_one() {
    let mut desk = Desk::new(Config { one_shot: false, wake_on_results: true, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    prompt(&mut desk, "one");
    let worker = NodeId(1);
    desk.ready(worker);
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.ready(NodeId(2));
    desk.finish(NodeId(2), "found it");
    assert!(desk.messages(worker).is_empty(), "it is told by a steer");
    desk.turn(worker, 1, "ended before it took the steer");
    assert_eq!(desk.messages(worker).len(), 1, "it is woken, and takes the steer in that turn");
    desk.exit(worker, Exit::Signal(9));
    let spawn = desk.child(NodeId(3)).spawn.clone().expect("a new worker");
    assert_eq!(spawn.instruction, "subagent sub-1 completed: found it");
}

#[test]
fn a_prompt_during_a_drain_is_answered() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    desk.ready(NodeId(1));
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    prompt(&mut desk, "two");
    assert_eq!((desk.prompts.as_slice(), desk.delivered[0].status), (&[2][..], Status::Cancelled));
}

#[test]
fn a_prompt_that_a_dying_worker_was_not_handed_goes_to_another() {
    let mut desk = daemon();
    prompt(&mut desk, "one");
    desk.ready(NodeId(1));
    desk.event(Event::ExitObserved { node: NodeId(1), exit: Exit::Code(0) });
    prompt(&mut desk, "two");
    desk.turn(NodeId(1), 1, "last words");
    let next = desk.child(NodeId(2)).spawn.clone().expect("a new worker");
    assert_eq!((desk.prompts.as_slice(), next.instruction.as_str()), (&[1][..], "two"));
}

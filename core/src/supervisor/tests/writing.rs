//! Where runs are told to write (S11.1, S11.3, S11.6).

use super::*;
use crate::transcript::place;
use crate::wire::message::{Begins, Transcript};

fn config() -> Config {
    Config { sessions: Some("/state/sessions".into()), one_shot: false, ..super::config() }
}

fn told(desk: &mut Desk, node: NodeId) -> Transcript {
    desk.child(node).spawn.clone().expect("spawned").transcript.expect("a transcript")
}

#[test]
fn a_conversation_has_one_file_and_what_it_delegates_is_below_it() {
    let (mut desk, worker) = Desk::with_worker(config());
    let root = told(&mut desk, worker);
    let run_id = desk.core.runs[&worker].record.run_id;
    assert_eq!(root.path, format!("/state/sessions/{}", place::session(Wall(1_000_000), run_id)));
    assert_eq!((root.session, root.parent, root.tool_call_id.clone()), (run_id, None, None));
    assert_eq!((root.turn, root.begins), (1, Begins::Anew));

    desk.call(worker, "subagent.run", json!({"instruction": "look", "mode": "async"}));
    let child = told(&mut desk, NodeId(2));
    let child_id = desk.core.runs[&NodeId(2)].record.run_id;
    assert_eq!(child.path, place::child(&root.path, child_id));
    assert_eq!((child.session, child.parent), (run_id, Some(run_id)));
    assert_eq!((child.tool_call_id.as_deref(), child.begins), (Some("call-1"), Begins::Anew));

    // The next worker of the conversation goes on in its file.
    desk.exit(worker, Exit::Code(0));
    desk.event(Event::PromptSubmitted { text: "and now?".into() });
    let next = told(&mut desk, NodeId(3));
    assert_eq!((next.path, next.begins, next.session), (root.path, Begins::After, run_id));
}

#[test]
fn an_operators_run_is_a_session_of_its_own() {
    let (mut desk, _) = Desk::with_worker(config());
    desk.event(Event::OperatorCalled {
        call: 1,
        tool: "subagent.run".into(),
        args: Json::of(&json!({"instruction": "look"})),
    });
    let (told, run_id) = (told(&mut desk, NodeId(2)), desk.core.runs[&NodeId(2)].record.run_id);
    assert_eq!(told.path, format!("/state/sessions/{}", place::session(Wall(1_000_000), run_id)));
    assert_eq!((told.session, told.parent, told.tool_call_id.is_some()), (run_id, None, false));
}

#[test]
fn nothing_is_told_where_nothing_is_kept() {
    let (mut desk, worker) = Desk::with_worker(super::config());
    desk.call(worker, "subagent.run", json!({"instruction": "look"}));
    assert!(
        [worker, NodeId(2)].iter().all(|node| desk.child(*node).spawn.clone().unwrap().transcript.is_none())
    );
}

#[test]
fn a_restart_goes_on_in_the_same_files() {
    let mut config = config();
    config.store.keeps = true;
    let (mut desk, worker) = Desk::with_worker(config);
    desk.call(worker, "subagent.run", json!({"instruction": "look", "mode": "async"}));
    desk.call(worker, "subagent.run", json!({"instruction": "again", "mode": "async", "resume": false}));
    let before: Vec<String> = (1..=3).map(|node| told(&mut desk, NodeId(node)).path).collect();
    let mut desk = desk.reborn();
    for _ in 0..20 {
        desk.advance_to(desk.now_ms + 1_000);
    }
    let nodes: Vec<NodeId> = desk.children.keys().copied().collect();
    let mut after: Vec<(String, Begins, u64)> = nodes
        .into_iter()
        .map(|node| told(&mut desk, node))
        .map(|told| (told.path, told.begins, told.turn))
        .collect();
    after.sort();
    let mut expected = vec![
        (before[0].clone(), Begins::Again, 1),
        (before[1].clone(), Begins::Again, 1),
        (before[2].clone(), Begins::Anew, 1),
    ];
    expected.sort();
    assert_eq!(after, expected);
}

//! What the conversation learns of ended runs: its plan settles, and it is told where it wants to be (S8.4, S6.10).

use super::*;
use crate::limits;

#[test]
fn a_plan_item_settles_with_its_run_also_one_that_has_ended() {
    let (mut desk, worker) = Desk::with_worker(config());
    let no = desk.refused(worker, "subagent.run", json!({"instruction": "x", "plan_item": 1}));
    assert!(no.contains("there is no plan"), "{no}");
    let plan = desk.ask(
        worker,
        "plan.create",
        json!({"goal": "ship", "items": [{"title": "a"}, {"title": "b", "detail": "more"}, {"title": "c"}]}),
    );
    assert_eq!(plan["items"][1], json!({"item": 2, "title": "b", "detail": "more", "status": "pending"}));
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "plan_item": 1}));
    desk.ask(worker, "subagent.run", json!({"instruction": "y", "mode": "async"}));
    let bound = desk.ask(worker, "plan.update", json!({"item": 2, "bind": "sub-2"}));
    assert_eq!((&bound["status"], &bound["bind"]), (&json!("in_progress"), &json!("sub-2")));
    desk.ready(NodeId(2));
    desk.ready(NodeId(3));
    desk.finish(NodeId(2), "done");
    desk.exit(NodeId(3), Exit::Signal(11));
    let plan = desk.ask(worker, "plan.get", json!({}));
    assert_eq!(plan["items"][0]["status"], "done");
    assert_eq!(plan["items"][1]["status"], "blocked");
    assert!(plan["items"][1]["note"].as_str().is_some_and(|n| n.contains("SIGSEGV")), "{plan}");
    let late = desk.ask(worker, "plan.update", json!({"item": 3, "bind": "sub-1"}));
    assert_eq!(late["status"], "done");
}

#[test]
fn plans_are_read_strictly() {
    let (mut desk, worker) = Desk::with_worker(config());
    for (name, args, words) in [
        ("plan.get", json!({}), "there is no plan"),
        ("plan.create", json!({"goal": "g", "items": []}), "items: saw 0, accepted are 1 to 32"),
        (
            "plan.create",
            json!({"goal": "g", "items": [{"title": "a", "done": true}]}),
            "items[0].done: unknown",
        ),
        ("plan.create", json!({"goal": "g", "items": ["a"]}), "items[0]: accepted is {title, detail}"),
        ("plan.create", json!({"items": [{"title": "a"}]}), "goal: it is missing"),
        ("plan.update", json!({"status": "done"}), "item: accepted is an item's number"),
        ("plan.update", json!({"item": 1, "status": "finished"}), "accepted are pending, in_progress"),
        ("plan.update", json!({"item": 1, "bind": "sub-9"}), "unknown handle"),
        ("status", json!({"verbose": true}), "verbose: unknown"),
    ] {
        let no = desk.refused(worker, name, args.clone());
        assert!(no.contains(words), "{name} {args}: {no}");
    }
}

#[test]
fn the_overview_tells_runs_plan_and_what_is_left() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "plan.create", json!({"goal": "ship", "items": [{"title": "a"}]}));
    desk.ask(worker, "subagent.run", json!({"instruction": "look\n around ", "mode": "async"}));
    desk.advance_to(1_000);
    let usage = Usage { input: 1_000, output: 500, cached: 0, estimated: false, model: "mock".into() };
    desk.up(worker, &Up::Usage(usage));
    let value = desk.ask(worker, "status", json!({}));
    assert_eq!(
        (&value["runs"][0]["title"], &value["runs"][0]["waits"]),
        (&json!("look around"), &json!("starting 1s"))
    );
    assert_eq!(value["plan"]["goal"], "ship");
    let budget = &value["budget"];
    assert_eq!(
        (&budget["tokens_left"], &budget["deadline_left_ms"], &budget["spawns_left"], &budget["live"]),
        (&json!(1_998_500), &json!(3_599_000), &json!(63), &json!(1))
    );
}

fn awake() -> (Desk, NodeId) {
    Desk::with_worker(Config { wake_on_results: true, ..config() })
}

fn told(desk: &mut Desk, node: NodeId) -> Vec<String> {
    let heard = &desk.child(node).heard;
    heard
        .iter()
        .filter_map(|d| {
            let Down::Steer(text) = d else { return None };
            Some(text.text.clone())
        })
        .collect()
}

#[test]
fn a_conversation_that_wants_to_know_is_told_in_the_turn_in_hand() {
    let (mut desk, worker) = awake();
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "warm"}));
    desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    for node in 2..=4 {
        desk.ready(NodeId(node));
    }
    desk.finish(NodeId(2), &"long ".repeat(500));
    desk.turn(NodeId(3), 1, "a turn");
    desk.finish(NodeId(4), "its caller has it");
    let told = told(&mut desk, worker);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("subagent sub-1 completed: long long") && told[0].chars().count() == 400);
    assert_eq!(told[1], "subagent sub-2 completed: a turn");
}

#[test]
fn nobody_is_told_by_default() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.ready(NodeId(2));
    desk.finish(NodeId(2), "x");
    assert!(told(&mut desk, worker).is_empty());
}

#[test]
fn an_idle_conversation_wakes_for_a_turn_of_its_own() {
    let mut desk = Desk::new(Config { wake_on_results: true, one_shot: false, ..config() });
    desk.event(Event::Seeded { seed: 7 });
    desk.event(Event::PromptSubmitted { text: "go".into() });
    let worker = NodeId(1);
    desk.ready(worker);
    for _ in 0..3 {
        desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    }
    desk.turn(worker, 1, "they work");
    for node in 2..=4 {
        desk.ready(NodeId(node));
        desk.finish(NodeId(node), "found it");
    }
    assert_eq!(desk.messages(worker), [(2, "subagent sub-1 completed: found it".to_owned())]);
    assert_eq!(told(&mut desk, worker).len(), 2, "the turn it woke for is told of the others");
}

#[test]
fn what_a_turn_cannot_take_any_more_is_one_turn_after_it() {
    let mut config = Config { wake_on_results: true, one_shot: false, ..config() };
    config.subagents.breadth = 64;
    let mut desk = Desk::new(config);
    desk.event(Event::Seeded { seed: 7 });
    desk.event(Event::PromptSubmitted { text: "go".into() });
    let worker = NodeId(1);
    desk.ready(worker);
    for node in 2..=20 {
        desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
        desk.ready(NodeId(node));
    }
    for node in 2..=20 {
        desk.finish(NodeId(node), "found it");
    }
    assert_eq!(told(&mut desk, worker).len(), limits::STEERS);
    desk.turn(worker, 1, "they worked");
    let [(_, text)] = desk.messages(worker).try_into().expect("one turn for the rest");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "subagent sub-17 completed: found it"));
}

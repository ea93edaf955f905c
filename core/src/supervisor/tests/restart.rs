//! What a start takes up of an earlier life (S10.3 to S10.6), rule by rule.

use super::*;
use crate::config::Store;
use crate::event::SupervisorSignal;
use crate::record::Tokens;

fn keeping() -> Config {
    Config { one_shot: false, store: Store { keeps: true, ..Store::default() }, ..config() }
}

/// A daemon whose conversation has one run of this mode, up and at work.
fn with_run(args: Value) -> (Desk, NodeId) {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.call(worker, "subagent.run", args);
    let run = desk.node_of(1);
    desk.ready(run);
    (desk, worker)
}

fn done(desk: &Desk) -> BTreeMap<String, Value> {
    let note = desk.notes.iter().find(|note| note.event == "restore.done").expect("it is told");
    note.fields.clone()
}

/// Lets everything that waits for its turn begin.
fn begin_all(desk: &mut Desk) {
    let until = desk.now_ms + 60_000;
    while let Some(due) = desk.core.poll_timeout().filter(|due| due.at.millis() <= until) {
        let waits = desk.core.runs.values().any(|run| run.process.name() == "restored");
        if !waits {
            return;
        }
        desk.now_ms = desk.now_ms.max(due.at.nanos().div_ceil(1_000_000));
        desk.event(Event::Tick);
    }
}

#[test]
fn each_mode_ends_as_it_should_after_a_crash() {
    for (mode, status, restored) in [
        ("sync", "running", true),
        ("async", "running", true),
        ("warm", "running", true),
        ("detached", "crashed", false),
    ] {
        let (desk, _) = with_run(json!({ "instruction": "look", "mode": mode }));
        let mut desk = desk.reborn();
        begin_all(&mut desk);
        assert_eq!(desk.statuses_of(1).name(), status, "{mode}");
        let run = &desk.core.runs[&desk.node_of(1)];
        assert_eq!(run.record.attempt, if restored { 2 } else { 1 }, "{mode}");
        let told = done(&desk);
        // The worker with the turn in hand is one of them.
        assert_eq!(told["restored"], 1 + u64::from(restored), "{mode}");
        assert_eq!(told["lost"], u64::from(!restored), "{mode}");
        if restored {
            let node = desk.node_of(1);
            let payload = desk.child(node).spawn.clone().expect("handed over");
            assert_eq!((payload.attempt, payload.instruction.as_str()), (2, "look"), "{mode}");
            assert_eq!(payload.handle, Some(Handle(1)));
        }
        assert_eq!(desk.core.permits_out(), u32::from(restored), "{mode}");
    }
}

#[test]
fn the_turn_that_was_cut_off_is_made_again_and_answers_its_prompt_once() {
    let (desk, _) = Desk::with_worker(keeping());
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    let worker = NodeId(1);
    desk.ready(worker);
    let payload = desk.child(worker).spawn.clone().expect("handed over");
    assert_eq!((payload.instruction.as_str(), payload.attempt), ("go", 2));
    desk.turn(worker, 1, "done");
    assert_eq!((desk.prompts.as_slice(), desk.delivered.len()), ([1].as_slice(), 1));
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    assert_eq!((desk.children.len(), desk.delivered.len()), (0, 0), "an idle worker is not begun again");
    desk.event(Event::PromptSubmitted { text: "and then?".into() });
    let worker = desk.core.conversation.at_work().expect("a new one");
    let payload = desk.child(worker).spawn.clone().expect("handed over");
    assert_eq!(payload.context.len(), 2, "it is told what was said");
    assert_eq!(desk.core.conversation.last, 2);
}

#[test]
fn f08_what_was_killed_or_not_to_last_does_not_come_back_and_no_handle_is_given_twice() {
    let (mut desk, worker) = with_run(json!({ "instruction": "look", "mode": "async", "delegate": true }));
    let above = desk.node_of(1);
    desk.call(above, "subagent.run", json!({ "instruction": "deeper", "mode": "async" }));
    desk.ready(desk.node_of(2));
    desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "warm", "durable": false }));
    desk.hold_stored = true;
    desk.call(worker, "subagent.kill", json!({ "handle": "sub-1" }));
    // The mark of the one that was named is durable, that of the one below it not yet.
    let first = desk.held.remove(0);
    desk.event(first);
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    assert_eq!(desk.statuses_of(1), Status::Cancelled);
    assert_eq!(desk.statuses_of(2), Status::Cancelled);
    assert!(!desk.core.by_handle.contains_key(&Handle(3)));
    assert_eq!((done(&desk)["lost"].clone(), done(&desk)["restored"].clone()), (json!(1), json!(1)));
    let worker = NodeId(1);
    desk.ready(worker);
    desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    assert!(desk.core.by_handle.contains_key(&Handle(4)), "no handle is given twice");
}

#[test]
fn f31_a_drain_parks_and_the_next_start_takes_up_what_it_parked() {
    let (mut desk, worker) = with_run(json!({ "instruction": "look", "mode": "detached" }));
    desk.call(worker, "subagent.run", json!({ "instruction": "first", "mode": "warm" }));
    desk.ready(desk.node_of(2));
    desk.call(worker, "subagent.run", json!({ "instruction": "wait for me", "mode": "sync" }));
    desk.ready(desk.node_of(3));
    let warm = desk.node_of(2);
    desk.turn(warm, 1, "one");
    desk.ask(worker, "subagent.send", json!({ "handle": "sub-2", "text": "second" }));
    desk.ask(worker, "subagent.send", json!({ "handle": "sub-2", "text": "third" }));
    for _ in 0..2 {
        desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    }
    for node in [worker, desk.node_of(1), desk.node_of(2), desk.node_of(3)] {
        desk.exit(node, Exit::Signal(9));
    }
    assert!(desk.exit.is_some());
    assert_eq!(desk.statuses_of(1), Status::Parked);
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    assert_eq!(desk.statuses_of(1), Status::Running, "a drain's stop does");
    assert_eq!(desk.statuses_of(3), Status::Cancelled, "a turn was waiting for it");
    let warm = desk.node_of(2);
    desk.ready(warm);
    desk.turn(warm, 1, "one, once more");
    assert_eq!(desk.messages(warm), [(2, "second".to_owned())]);
    desk.turn(warm, 2, "two");
    assert_eq!(desk.messages(warm)[1..], [(3, "third".to_owned())]);
    let told = desk.operator(1, "subagent.await", json!({ "handle": "sub-2", "message_id": 1 }));
    assert_eq!(told.expect("answered").1["result"], "one", "what was told of a turn stands");
}

#[test]
fn a_run_that_gets_nowhere_is_given_up_after_so_many_attempts_with_longer_waits() {
    let (desk, _) = with_run(json!({ "instruction": "look", "mode": "async" }));
    let mut desk = desk;
    let mut waits = Vec::new();
    for attempt in 2..=5 {
        desk = desk.reborn();
        let began = desk.now_ms;
        begin_all(&mut desk);
        assert_eq!(desk.core.runs[&desk.node_of(1)].record.attempt, attempt);
        waits.push(desk.now_ms - began);
    }
    assert!(waits.is_sorted() && waits[0] < 1_000 && waits[3] >= 4_000, "{waits:?}");
    let desk = desk.reborn();
    let run = &desk.core.runs[&desk.node_of(1)];
    let error = run.record.error.clone().unwrap_or_default();
    assert_eq!((run.record.status, run.record.attempt), (Status::Failed, 5));
    assert!(error.contains("5 times") && error.contains("subagents.max_attempts"), "{error}");
}

#[test]
fn a_run_whose_connections_are_gone_fails_and_says_which() {
    let (desk, _) = with_run(json!({ "instruction": "look", "mode": "async", "servers": ["repo"] }));
    let mut config = keeping();
    config.servers.retain(|server| server.name != "repo");
    let desk = desk.reborn_as(config);
    let error = desk.core.runs[&desk.node_of(1)].record.error.clone().unwrap_or_default();
    assert_eq!(error, "could not be taken up again: servers: repo is not configured any more");
}

#[test]
fn f44_usage_is_counted_once_across_attempts_and_budgets_go_on() {
    let mut config = keeping();
    config.budget.lifetime.tokens = Some(1_000);
    let (mut desk, worker) = Desk::with_worker(config);
    desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    let run = desk.node_of(1);
    desk.ready(run);
    let used = |input| Usage { input, output: 0, cached: 0, estimated: false, model: "mock".into() };
    desk.up(run, &Up::Usage(used(100)));
    desk.up(worker, &Up::Usage(used(7)));
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    let run = desk.node_of(1);
    desk.ready(run);
    desk.up(run, &Up::Usage(used(20)));
    let sum = |tokens: &Tokens| tokens.input;
    assert_eq!(sum(&desk.core.runs[&run].record.usage), 120);
    assert_eq!(sum(&desk.core.conversation_usage().subtree), 127);
    let left = desk.core.ledger.left(run, Wall(1_000_000));
    assert_eq!(left.lifetime.tokens, Some(873));
    let desk = desk.reborn();
    assert_eq!(sum(&desk.core.conversation_usage().subtree), 127);
}

#[test]
fn one_that_waits_waits_on_and_one_that_retires_goes_on_retiring() {
    let mut config = keeping();
    config.subagents.breadth = 1;
    config.subagents.queue = 4;
    let (mut desk, worker) = Desk::with_worker(config);
    desk.call(worker, "subagent.run", json!({ "instruction": "first", "mode": "warm" }));
    let warm = desk.node_of(1);
    desk.ready(warm);
    desk.call(worker, "subagent.run", json!({ "instruction": "later", "mode": "async" }));
    assert_eq!(desk.statuses_of(2), Status::Held);
    desk.call(worker, "subagent.retire", json!({ "handle": "sub-1" }));
    let mut desk = desk.reborn();
    assert_eq!((desk.statuses_of(1), desk.statuses_of(2)), (Status::Retiring, Status::Held));
    begin_all(&mut desk);
    let warm = desk.node_of(1);
    desk.ready(warm);
    assert_eq!(desk.statuses_of(1), Status::Retiring);
    desk.turn(warm, 1, "done");
    assert_eq!(desk.statuses_of(1), Status::Completed);
    desk.exit(warm, Exit::Code(0));
    assert_eq!(desk.statuses_of(2), Status::Running, "its attempt is the first");
    assert_eq!(desk.core.runs[&desk.node_of(2)].record.attempt, 1);
}

#[test]
fn f41_an_ended_run_can_still_be_asked_for_and_its_plan_item_settles() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.ask(worker, "plan.create", json!({ "goal": "g", "items": [{ "title": "t" }] }));
    desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async", "plan_item": 1 }));
    let run = desk.node_of(1);
    desk.ready(run);
    desk.finish(run, "seen");
    let before = desk.operator(1, "subagent.await", json!({ "handle": "sub-1" }));
    let mut desk = desk.reborn();
    let after = desk.operator(1, "subagent.await", json!({ "handle": "sub-1" }));
    assert_eq!(before, after, "the same for every reader, in every life");
    let plan = desk.core.plan.clone().expect("it is kept");
    assert_eq!(plan.items[0].status, crate::plan::ItemStatus::Done);
}

#[test]
fn what_cannot_be_read_is_put_aside_and_the_rest_goes_on() {
    let (mut desk, worker) = with_run(json!({ "instruction": "look", "mode": "async" }));
    desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    let key = desk.core.runs[&desk.node_of(1)].record.run_id.to_string();
    let torn = desk.disk.get_mut(&(Kind::Run, key.clone())).expect("it is kept");
    torn.truncate(torn.len() / 2);
    let desk = desk.reborn();
    assert_eq!(done(&desk)["quarantined"], 1);
    assert_eq!(desk.noted("store.quarantined"), 1);
    assert!(!desk.core.by_handle.contains_key(&Handle(1)));
    assert!(desk.core.by_handle.contains_key(&Handle(2)));
    assert!(desk.core.last_handle >= 2, "its handle stays given");
}

#[test]
fn a_revival_that_cannot_be_recorded_is_tried_again_and_counts_once() {
    let (desk, _) = with_run(json!({ "instruction": "look", "mode": "async" }));
    let mut desk = desk.reborn();
    desk.fails = Some(("locked", true));
    desk.advance_to(5_000);
    assert!(desk.children.is_empty(), "nothing is made that is not on record");
    desk.fails = None;
    desk.advance_to(8_000);
    let run = &desk.core.runs[&desk.node_of(1)];
    assert_eq!((run.record.status, run.record.attempt), (Status::Running, 2));
}

#[test]
fn what_the_store_held_is_taken_once_and_only_at_the_start() {
    let (mut desk, _) = with_run(json!({ "instruction": "look", "mode": "async" }));
    let before = desk.core.runs.len();
    desk.event(Event::Restored(Box::default()));
    assert_eq!((desk.core.runs.len(), desk.noted("restore.ignored")), (before, 1));
}

/// F06: what an earlier life left fills the limit only as long as it lives.
#[test]
fn f06_restored_runs_count_in_breadth_and_give_it_back() {
    let mut config = keeping();
    config.subagents.breadth = 2;
    config.subagents.total = 2;
    let (mut desk, worker) = Desk::with_worker(config);
    for _ in 0..2 {
        desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    }
    let mut desk = desk.reborn();
    assert_eq!(desk.core.permits_out(), 2, "before they have begun again");
    let refused = |desk: &mut Desk, call| {
        let args = json!({ "instruction": "more", "mode": "async" });
        let answer = desk.operator(call, "subagent.run", args);
        answer.map(|(_, value)| value["error"]["gate"].clone()).unwrap_or_default()
    };
    assert_eq!(refused(&mut desk, 1), "breadth");
    desk.operator(2, "subagent.kill", json!({ "handle": "sub-1" }));
    assert_eq!(desk.core.permits_out(), 1, "one that waited for its turn is gone at once");
    assert_eq!(refused(&mut desk, 3), Value::Null, "a restart took nothing of total or rate");
}

/// F40: a run that nobody waits for any more after a restart ends by itself, and its caller's turn is not its end.
#[test]
fn f40_a_sync_run_goes_on_without_its_caller_and_its_result_can_be_had() {
    let (desk, _) = with_run(json!({ "instruction": "look", "mode": "sync" }));
    let mut desk = desk.reborn();
    begin_all(&mut desk);
    let (worker, run) = (NodeId(1), desk.node_of(1));
    desk.ready(worker);
    desk.ready(run);
    desk.turn(worker, 1, "done without it");
    assert_eq!(desk.statuses_of(1), Status::Running);
    desk.finish(run, "seen");
    let told = desk.operator(1, "subagent.await", json!({ "handle": "sub-1" })).expect("answered");
    assert_eq!((told.0, &told.1["result"], &told.1["attempt"]), (false, &json!("seen"), &json!(2)));
}

/// F26: results of the attempt before reach nobody: it has no process, and its node's number names another life.
#[test]
fn f26_a_late_word_of_an_earlier_life_is_nobodys() {
    let (desk, _) = with_run(json!({ "instruction": "look", "mode": "async" }));
    let mut desk = desk.reborn();
    let before = desk.statuses_of(1);
    desk.event(Event::ExitObserved { node: desk.node_of(1), exit: Exit::Code(0) });
    desk.event(Event::Stored { seq: 4_711 });
    assert_eq!(desk.statuses_of(1), before);
}

/// A run that has the agent's own model follows the agent, and one that asked for a name needs that name.
#[test]
fn a_model_that_has_another_name_now_is_resolved_again() {
    let named = |name: &str| {
        let mut choice = keeping().model;
        choice.model.name = name.into();
        choice
    };
    let config = |own: &str, others: &[&str]| Config {
        model: named(own),
        models: others.iter().map(|name| ((*name).to_owned(), named(name))).collect(),
        ..keeping()
    };
    let (mut desk, worker) = Desk::with_worker(config("old", &["fast"]));
    desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async", "model": "fast" }));
    let mut desk = desk.reborn_as(config("new", &[]));
    begin_all(&mut desk);
    let model = |desk: &Desk, n| {
        desk.children.get(&desk.node_of(n)).and_then(|c| c.spawn.as_ref()).map(|s| s.model.name.clone())
    };
    assert_eq!(model(&desk, 1).as_deref(), Some("new"));
    assert_eq!((desk.statuses_of(2), model(&desk, 2)), (Status::Failed, None));
}

//! What is made durable, and what a store that fails does to it (S10.2, S10.7).

use super::*;
use crate::config::{Commit, Store};
use crate::event::SupervisorSignal;
use crate::snapshot::StoreView;

fn keeping() -> Config {
    Config { one_shot: false, store: Store { keeps: true, ..Store::default() }, ..config() }
}

fn entry(desk: &Desk, kind: Kind) -> Vec<&str> {
    desk.disk.keys().filter(|(k, _)| *k == kind).map(|(_, key)| key.as_str()).collect()
}

#[test]
fn a_handle_is_told_when_its_run_its_work_and_the_counter_are_durable() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.hold_stored = true;
    let call = desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    assert_eq!((desk.answer(worker, call), entry(&desk, Kind::Handles).len()), (None, 1), "the worker's own");
    let handles = desk.disk[&(Kind::Handles, String::new())].clone();
    desk.release();
    assert!(desk.answer(worker, call).is_some());
    assert_ne!(desk.disk[&(Kind::Handles, String::new())], handles);
    assert_eq!((entry(&desk, Kind::Run).len(), entry(&desk, Kind::Work).len()), (2, 2));
}

#[test]
fn a_turn_is_durable_with_the_worker_that_serves_it() {
    let mut desk = Desk::new(keeping());
    desk.event(Event::Seeded { seed: 7 });
    let mut out = Actions::new();
    let now = Now { mono: Instant::ZERO, wall: Wall(1) };
    desk.core.handle(now, Event::PromptSubmitted { text: "go".into() }, &mut out);
    let persists: Vec<&Vec<Write>> = out
        .iter()
        .filter_map(|action| {
            let Action::Persist { writes, .. } = action else { return None };
            Some(writes)
        })
        .collect();
    assert_eq!(persists.len(), 1, "{out:?}");
    let names: Vec<&str> =
        persists[0].iter().map(|write| Entry::of(write).expect("it can be written").kind.name()).collect();
    assert_eq!(names, ["run", "work", "handles", "conversation"]);
}

#[test]
fn an_end_is_told_at_once_where_commits_are_relaxed_and_a_kill_never_is() {
    for (commit, kill, waits) in [
        (Commit::Strict, false, true),
        (Commit::Relaxed, false, false),
        (Commit::Relaxed, true, true),
        (Commit::Strict, true, true),
    ] {
        let mut config = keeping();
        config.store.commit = commit;
        let (mut desk, worker) = Desk::with_worker(config);
        desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
        let run = desk.node_of(1);
        desk.ready(run);
        let call = desk.call(worker, "subagent.await", json!({ "handle": "sub-1" }));
        desk.hold_stored = true;
        if kill {
            desk.call(worker, "subagent.kill", json!({ "handle": "sub-1" }));
        } else {
            desk.result(run, "seen");
        }
        assert_eq!(desk.answer(worker, call).is_none(), waits, "{commit:?}, kill: {kill}");
        desk.release();
        assert!(desk.answer(worker, call).is_some());
    }
}

#[test]
fn a_store_that_fails_is_told_and_asked_again_ever_more_rarely_until_it_heals() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.fails = Some(("disk full", true));
    let refused = desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    let (error, value) = desk.answer(worker, refused).expect("answered");
    assert!(error && value["error"]["gate"] == "store", "{value}");
    assert_eq!(desk.core.permits_out(), 0);
    desk.call(worker, "plan.create", json!({ "goal": "g", "items": [{ "title": "t" }] }));
    let view = desk.core.snapshot().expect("a core has one").store;
    assert!(matches!(&view, StoreView::Down { error, .. } if error == "disk full"), "{view:?}");
    assert_eq!(desk.ask(worker, "status", json!({}))["store"]["down"], "disk full");
    desk.ready_if_new(worker);
    let tries = |desk: &Desk| desk.noted("store.failed");
    let before = tries(&desk);
    for _ in 0..6 {
        let due = desk.core.keeping_due().expect("it is tried again").at;
        desk.now_ms = due.millis().max(desk.now_ms);
        desk.event(Event::Tick);
    }
    let spent = desk.now_ms;
    assert!(tries(&desk) > before && spent >= 500 + 1_000 + 2_000, "{spent} ms");
    desk.fails = None;
    while let Some(due) = desk.core.keeping_due() {
        desk.now_ms = due.at.millis().max(desk.now_ms);
        desk.event(Event::Tick);
    }
    assert_eq!((desk.noted("store.down"), desk.noted("store.healed")), (1, 1));
    assert_eq!(entry(&desk, Kind::Plan).len(), 1);
    assert_eq!(desk.core.snapshot().expect("a core has one").store, StoreView::Works);
}

#[test]
fn of_what_changes_while_a_save_is_on_its_way_one_more_save_holds_all() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.hold_stored = true;
    for n in 0..50 {
        desk.ask(worker, "plan.create", json!({ "goal": format!("goal {n}"), "items": [{ "title": "t" }] }));
    }
    assert_eq!(desk.saves.len(), 1);
    desk.release();
    let saved = Saved::read([("plan", "", desk.disk[&(Kind::Plan, String::new())].as_slice())]);
    assert_eq!(saved.plan.map(|plan| plan.goal).as_deref(), Some("goal 49"));
}

#[test]
fn a_daemon_that_drains_ends_whatever_its_disk_does_and_says_what_it_could_not_save() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.ask(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    desk.ready(desk.node_of(1));
    desk.fails = Some(("disk full", true));
    desk.finish(desk.node_of(1), "seen");
    desk.turn(worker, 1, "done");
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    desk.exit(worker, Exit::Code(0));
    assert!(desk.exit.is_none(), "it is tried yet");
    desk.advance_to(25_000 + 1_900);
    assert!(desk.exit.is_none(), "until the drain's time is over");
    desk.now_ms = 27_001;
    desk.event(Event::Tick);
    assert!(desk.exit.is_some());
    assert_eq!(desk.noted("store.gave_up"), 1);
}

#[test]
fn a_run_that_was_refused_leaves_nothing_even_where_the_store_kept_it_after_all() {
    let (mut desk, worker) = Desk::with_worker(keeping());
    desk.hold_stored = true;
    let call = desk.call(worker, "subagent.run", json!({ "instruction": "look", "mode": "async" }));
    let (&seq, writes) = desk.saves.first_key_value().expect("its intent is on its way");
    // The store did write it, and could not tell.
    for write in writes.clone() {
        let Entry { kind, key, value } = Entry::of(&write).expect("it can be written");
        desk.disk.insert((kind, key), value.expect("a value"));
    }
    desk.held.clear();
    desk.hold_stored = false;
    desk.event(Event::StoreFailed { seq, error: "I/O error".into(), retryable: true });
    assert!(desk.answer(worker, call).expect("answered").0);
    assert_eq!((entry(&desk, Kind::Run).len(), entry(&desk, Kind::Work).len()), (1, 1));
    assert_eq!(desk.reborn().core.snapshot().expect("a core has one").runs.len(), 1);
}

//! Model calls are asked for, granted, charged and given back (S15.6).

use super::*;
use crate::budget::{Budget, Caps, OnExhausted, Per};
use crate::money::{Price, Usd};
use crate::wire::message::{BudgetGrant, BudgetRequest, BudgetVerdict, CallBudget};

fn price(dollars: f64) -> Option<Price> {
    let each = Usd::from_dollars(dollars).expect("an amount");
    Some(Price { input: each, output: each, cached: each })
}

/// A dollar a thousand tokens, and this many dollars in all.
fn priced(dollars: f64, on_exhausted: OnExhausted) -> Config {
    let lifetime = Caps { tokens: None, usd: Usd::from_dollars(dollars) };
    let mut config = Config { budget: Budget { lifetime, on_exhausted, ..Budget::default() }, ..config() };
    config.model.price = price(1_000.0);
    config
}

fn asks(desk: &mut Desk, node: NodeId, id: u64, tokens: u64) -> Option<BudgetVerdict> {
    desk.up(node, &Up::BudgetRequest(BudgetRequest { id, input: tokens, output: 0 }));
    granted(desk, node, id)
}

fn granted(desk: &mut Desk, node: NodeId, id: u64) -> Option<BudgetVerdict> {
    desk.child(node).heard.iter().rev().find_map(|down| {
        let Down::BudgetGrant(BudgetGrant { id: of, verdict }) = down else { return None };
        (*of == id).then(|| verdict.clone())
    })
}

fn used(desk: &mut Desk, node: NodeId, input: u64, estimated: bool) {
    let usage = Usage { input, output: 0, cached: 0, estimated, model: "mock".into() };
    desk.up(node, &Up::Usage(usage));
}

fn spawned(desk: &mut Desk, worker: NodeId) -> NodeId {
    desk.ask(worker, "subagent.run", json!({ "instruction": "x", "mode": "async" }));
    let node = NodeId(desk.core.last_node);
    desk.ready_if_new(node);
    node
}

#[test]
fn who_is_not_bounded_does_not_ask() {
    let (mut desk, worker) = Desk::with_worker(config());
    assert_eq!(desk.child(worker).spawn.as_ref().and_then(|spawn| spawn.budget.clone()), None);
    assert_eq!(asks(&mut desk, worker, 1, 1), None);
    assert!(desk.core.runs[&worker].record.error.as_deref().is_some_and(|e| e.contains("not to ask")));
}

#[test]
fn a_bill_never_passes_the_cap_and_what_is_not_used_is_given_back() {
    let (mut desk, worker) = Desk::with_worker(priced(1.0, OnExhausted::Refuse));
    assert_eq!(
        desk.child(worker).spawn.as_ref().and_then(|s| s.budget.clone()),
        Some(CallBudget { degraded: None })
    );
    let child = spawned(&mut desk, worker);
    assert_eq!(asks(&mut desk, worker, 1, 700), Some(BudgetVerdict::Own));
    assert_eq!(asks(&mut desk, child, 1, 700), None, "it waits for the other's change");
    let list = desk.core.status_of(child);
    assert_eq!((&list["waits"], &list["waiting_on"]), (&json!("budget 0s"), &json!("budget")));
    used(&mut desk, worker, 200, false);
    assert_eq!(granted(&mut desk, child, 1), Some(BudgetVerdict::Own));
    used(&mut desk, child, 700, false);
    let Some(BudgetVerdict::Refused(why)) = asks(&mut desk, worker, 2, 101) else { panic!("it fits") };
    assert!(why.starts_with("the lifetime budget is used up: $0.9000 of $1.0000 are spent"), "{why}");
    assert_eq!(asks(&mut desk, worker, 3, 100), Some(BudgetVerdict::Own));
}

#[test]
fn a_kill_charges_the_worst_case_and_a_turn_that_ends_gives_it_back() {
    let (mut desk, worker) = Desk::with_worker(priced(1.0, OnExhausted::Fail));
    let (first, second) = (spawned(&mut desk, worker), spawned(&mut desk, worker));
    assert_eq!(asks(&mut desk, first, 1, 600), Some(BudgetVerdict::Own));
    desk.finish(first, "done");
    assert_eq!(asks(&mut desk, second, 1, 600), Some(BudgetVerdict::Own));
    desk.ask(worker, "subagent.kill", json!({ "handle": "sub-2" }));
    let verdict = asks(&mut desk, worker, 1, 401);
    assert!(matches!(verdict, Some(BudgetVerdict::Failed(_))), "{verdict:?}");
    assert_eq!(asks(&mut desk, worker, 2, 400), Some(BudgetVerdict::Own));
}

#[test]
fn a_cut_call_counts_the_same_against_the_caps_as_in_the_bill() {
    let (mut desk, worker) = Desk::with_worker(priced(1.0, OnExhausted::Refuse));
    let child = spawned(&mut desk, worker);
    // Two attempts that broke off, each asked for, then an answer.
    for (id, tokens) in [(1, 600), (2, 590), (3, 580)] {
        assert_eq!(asks(&mut desk, child, id, tokens), Some(BudgetVerdict::Own));
        used(&mut desk, child, 10, id < 3);
    }
    assert_eq!(desk.core.runs[&child].record.usage.input, 30);
    assert!(matches!(asks(&mut desk, worker, 1, 971), Some(BudgetVerdict::Refused(_))));
    assert_eq!(asks(&mut desk, worker, 2, 970), Some(BudgetVerdict::Own));
    // Killed with a call in flight: its worst case, until its child has said what had come.
    desk.core.ledger.give_back(worker);
    assert_eq!(asks(&mut desk, child, 4, 900), Some(BudgetVerdict::Own));
    desk.ask(worker, "subagent.kill", json!({ "handle": "sub-1" }));
    assert!(matches!(asks(&mut desk, worker, 3, 71), Some(BudgetVerdict::Refused(_))));
    used(&mut desk, child, 20, true);
    assert_eq!(asks(&mut desk, worker, 4, 950), Some(BudgetVerdict::Own));
    assert_eq!(desk.core.runs[&child].record.usage.input, 50);
    assert!(desk.core.runs[&child].record.usage.estimated);
}

#[test]
fn the_overview_says_what_is_left_of_each_budget() {
    let (mut desk, worker) = Desk::with_worker(config());
    assert_eq!(desk.ask(worker, "status", json!({}))["budget"].get("left"), None, "nothing is capped");

    let mut config = priced(2.0, OnExhausted::Refuse);
    config.budget.windows = vec![(Per::Hour, Caps { tokens: Some(5_000), usd: None })];
    config.run_usd = Usd::from_dollars(1.5);
    let (mut desk, worker) = Desk::with_worker(config);
    let child = spawned(&mut desk, worker);
    used(&mut desk, child, 250, false);
    assert_eq!(asks(&mut desk, child, 1, 100), Some(BudgetVerdict::Own));
    let left = desk.ask(worker, "status", json!({}))["budget"]["left"].clone();
    assert_eq!((&left["run"], &left["lifetime"]), (&json!({"usd": 1.15}), &json!({"usd": 1.65})));
    assert_eq!((&left["windows"][0]["per"], &left["windows"][0]["tokens"]), (&json!("hour"), &json!(4_650)));
    assert!(left["windows"][0]["ends_in_ms"].as_u64().is_some_and(|ms| ms <= 3_600_000));
}

#[test]
fn a_used_up_budget_refuses_spawns() {
    let (mut desk, worker) = Desk::with_worker(priced(1.0, OnExhausted::Refuse));
    used(&mut desk, worker, 1_000, false);
    let why = desk.refused(worker, "subagent.run", json!({ "instruction": "x" }));
    assert!(why.starts_with("budget: the lifetime budget is used up"), "{why}");
}

#[test]
fn a_model_without_a_price_is_refused_where_money_counts() {
    let mut config = priced(1.0, OnExhausted::Refuse);
    let free = Model { name: "free".into(), dialect: Dialect::Mock(Bytes::default()) };
    config.models.insert("free".into(), ModelChoice::of(free));
    let (mut desk, worker) = Desk::with_worker(config);
    let why = desk.refused(worker, "subagent.run", json!({ "instruction": "x", "model": "free" }));
    assert!(why.contains("free has no price"), "{why}");
}

#[test]
fn a_full_window_is_waited_for_and_the_wall_clock_is_looked_at() {
    let windows = vec![(Per::Minute, Caps { tokens: Some(100), usd: None })];
    let budget = Budget { windows, on_exhausted: OnExhausted::Wait, ..Budget::default() };
    let (mut desk, worker) = Desk::with_worker(Config { budget, ..config() });
    used(&mut desk, worker, 100, false);
    assert_eq!(asks(&mut desk, worker, 1, 50), None);
    // The desk's wall clock is 40 s into a minute.
    let due = desk.core.poll_timeout().expect("a timer");
    assert!(due.at <= Instant::from_millis(20_000));
    desk.advance_to(19_999);
    assert_eq!(granted(&mut desk, worker, 1), None);
    desk.advance_to(20_000);
    assert_eq!(granted(&mut desk, worker, 1), Some(BudgetVerdict::Own));
}

#[test]
fn money_of_a_run_bounds_what_is_below_it() {
    let mut config = config();
    config.model.price = price(1_000.0);
    config.run_usd = Usd::from_dollars(1.0);
    let (mut desk, worker) = Desk::with_worker(config);
    let child = spawned(&mut desk, worker);
    assert_eq!(asks(&mut desk, child, 1, 600), Some(BudgetVerdict::Own));
    assert_eq!(asks(&mut desk, worker, 1, 600), None, "the child may give back enough");
    used(&mut desk, child, 100, false);
    assert_eq!(granted(&mut desk, worker, 1), Some(BudgetVerdict::Own));
    used(&mut desk, worker, 600, false);
    let Some(BudgetVerdict::Refused(why)) = asks(&mut desk, child, 2, 600) else { panic!("it fits") };
    assert!(
        why.starts_with("the budget of a run above it is used up") || why.starts_with("the run's"),
        "{why}"
    );
}

/// Who waits for its own run's bound holds up nobody else.
#[test]
fn a_run_that_waits_for_its_own_bound_is_passed() {
    let mut config = priced(100.0, OnExhausted::Refuse);
    config.run_usd = Usd::from_dollars(100.0);
    let (mut desk, worker) = Desk::with_worker(config);
    let limits = json!({ "usd": 1.0 });
    desk.ask(
        worker,
        "subagent.run",
        json!({ "instruction": "x", "mode": "async", "delegate": true, "limits": limits }),
    );
    let bounded = NodeId(desk.core.last_node);
    desk.ready_if_new(bounded);
    let (below, other) = (spawned(&mut desk, bounded), spawned(&mut desk, worker));
    assert_eq!(asks(&mut desk, below, 1, 700), Some(BudgetVerdict::Own));
    assert_eq!(asks(&mut desk, bounded, 1, 700), None);
    assert_eq!(asks(&mut desk, other, 1, 700), Some(BudgetVerdict::Own));
    used(&mut desk, below, 100, false);
    assert_eq!(granted(&mut desk, bounded, 1), Some(BudgetVerdict::Own));
}

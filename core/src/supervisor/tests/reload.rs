//! Another configuration while the daemon lives (S10.8): who is told, what counts from when, and what stays.

use super::control::{command, daemon, op_value, own, request, token};
use super::*;
use crate::budget::{Budget, Caps, OnExhausted, Per};
use crate::config::{Reloaded, SwapPolicy};
use crate::event::{Door, SupervisorSignal};
use crate::money::{Price, Usd};
use crate::wire::message::{Ack, BudgetGrant, BudgetRequest, BudgetVerdict, ModelSwap};
use std::collections::BTreeSet;

fn hang_up(desk: &mut Desk) {
    desk.event(Event::Signalled { signal: SupervisorSignal::Hup });
}

/// The configuration in use, changed.
fn changed(desk: &Desk, change: impl FnOnce(&mut Config)) -> Reloaded {
    let mut config = desk.core.config.clone();
    change(&mut config);
    Reloaded {
        config,
        applied: vec!["limits.subagents.breadth".into()],
        restart_needed: vec![],
        models: BTreeSet::new(),
        servers: BTreeSet::new(),
    }
}

fn reload(desk: &mut Desk, change: impl FnOnce(&mut Config)) {
    let reloaded = changed(desk, change);
    hang_up(desk);
    desk.event(Event::ConfigReady(Box::new(reloaded)));
}

/// A daemon in the first turn of its conversation.
fn at_work(config: Config) -> (Desk, NodeId) {
    let mut desk = Desk::new(Config { one_shot: false, ..config });
    desk.event(Event::Seeded { seed: 7 });
    desk.event(Event::PromptSubmitted { text: "go".into() });
    desk.ready(NodeId(1));
    (desk, NodeId(1))
}

fn spawned(desk: &mut Desk, worker: NodeId, mode: &str) -> NodeId {
    desk.ask(worker, "subagent.run", json!({ "instruction": "x", "mode": mode }));
    let node = NodeId(desk.core.last_node);
    desk.ready_if_new(node);
    node
}

fn in_background(desk: &mut Desk, worker: NodeId) -> Result<Value, String> {
    let id = desk.call(worker, "subagent.run", json!({ "instruction": "x", "mode": "async" }));
    match desk.answer(worker, id).expect("an answer") {
        (false, value) => Ok(value),
        (true, value) => Err(value["error"]["gate"].as_str().unwrap_or_default().to_owned()),
    }
}

fn swaps(desk: &mut Desk, node: NodeId) -> Vec<ModelSwap> {
    let heard = desk.child(node).heard.iter();
    heard
        .filter_map(|down| if let Down::Model(swap) = down { Some(swap.as_ref().clone()) } else { None })
        .collect()
}

fn model(name: &str, dollars: f64) -> ModelChoice {
    let each = Usd::from_dollars(dollars).expect("an amount");
    let price = Some(Price { input: each, output: each, cached: each });
    let dialect = Dialect::Mock(Bytes::from(name.as_bytes()));
    ModelChoice { price, ..ModelChoice::of(Model { name: name.into(), dialect }) }
}

fn used(desk: &mut Desk, node: NodeId, tokens: u64, model: &str) {
    let usage = Usage { input: tokens, output: 0, cached: 0, estimated: false, model: model.into() };
    desk.up(node, &Up::Usage(usage));
}

fn dollars(desk: &Desk, node: NodeId) -> f64 {
    desk.core.runs[&node].record.usage.usd.dollars()
}

#[test]
fn a_hang_up_reads_and_one_that_comes_meanwhile_reads_once_more() {
    let (mut desk, _) = at_work(config());
    hang_up(&mut desk);
    hang_up(&mut desk);
    hang_up(&mut desk);
    assert_eq!((desk.loads, &desk.reloads[..]), (1, &[][..]), "one at a time");
    let same = changed(&desk, |_| {});
    desk.event(Event::ConfigReady(Box::new(same.clone())));
    assert_eq!((desk.loads, &desk.reloads[..]), (2, &[true][..]), "and one for all that came meanwhile");
    desk.event(Event::ConfigRefused { problems: 3, text: "a.yaml:2:1: no".into() });
    assert_eq!((desk.loads, &desk.reloads[..]), (2, &[true, false][..]));
    assert_eq!((desk.noted("config.reload"), desk.noted("config.reload.failed")), (1, 1));
    // A program may tell of one unasked.
    desk.event(Event::ConfigReady(Box::new(same)));
    assert_eq!((desk.loads, desk.reloads.len()), (2, 3));
}

#[test]
fn an_operator_is_told_what_came_of_a_load_that_began_after_the_question() {
    let mut desk = daemon();
    let ask = |desk: &mut Desk, conn: u64| {
        desk.open(conn, Door::Control, own());
        desk.bytes(conn, &request(&token(0), &command("reload", json!({}))));
    };
    ask(&mut desk, 1);
    ask(&mut desk, 2);
    assert_eq!((desk.loads, desk.got(1), desk.got(2)), (1, String::new(), String::new()));
    let reloaded = Reloaded { restart_needed: vec!["store.path".into()], ..changed(&desk, |_| {}) };
    desk.event(Event::ConfigReady(Box::new(reloaded)));
    let (error, told) = op_value(&desk.json(1));
    assert!(!error, "{told}");
    assert_eq!(told["applied"], json!(["limits.subagents.breadth"]));
    assert_eq!(told["restart_needed"], json!(["store.path"]));
    assert_eq!((desk.loads, desk.got(2)), (2, String::new()), "what it changed the first may not have read");
    desk.event(Event::ConfigRefused { problems: 2, text: "a.yaml:2:1: no\n2 problems\n".into() });
    let (error, told) = op_value(&desk.json(2));
    assert!(error, "{told}");
    assert_eq!((&told["error"]["gate"], &told["error"]["observed"]), (&json!("configuration"), &json!("2")));
    assert!(told["error"]["message"].as_str().is_some_and(|text| text.starts_with("a.yaml:2:1")), "{told}");
    assert_eq!(desk.noted("config.restart_needed"), 1);
    // Who has gone meanwhile is told nothing, and the load goes on.
    ask(&mut desk, 3);
    desk.event(Event::ConnClosed { conn: ConnId(3), error: None });
    let same = changed(&desk, |_| {});
    desk.event(Event::ConfigReady(Box::new(same)));
    assert_eq!((desk.loads, desk.reloads.len()), (3, 3));
    desk.open(4, Door::Control, own());
    desk.bytes(4, &request(&token(0), &command("reload", json!({ "file": "x" }))));
    let (error, told) = op_value(&desk.json(4));
    assert!(error && desk.loads == 3, "{told}");
    desk.open(5, Door::Tcp, crate::event::Peer::Remote { address: "127.0.0.1:9".into() });
    desk.bytes(5, &request(&token(2), &command("reload", json!({}))));
    assert!(desk.got(5).contains("operator") && desk.loads == 3, "it is not everybody's");
}

#[test]
fn a_drain_refuses_reloads_with_the_reason() {
    let mut desk = daemon();
    desk.event(Event::PromptSubmitted { text: "go".into() });
    desk.ready(NodeId(1));
    desk.open(1, Door::Control, own());
    desk.bytes(1, &request(&token(0), &command("reload", json!({}))));
    hang_up(&mut desk);
    desk.event(Event::Signalled { signal: SupervisorSignal::Term });
    let (error, told) = op_value(&desk.json(1));
    assert!(error && told["error"]["gate"] == "draining", "{told}");
    let narrower = changed(&desk, |config| config.subagents.breadth = 1);
    desk.event(Event::ConfigReady(Box::new(narrower)));
    assert_eq!((desk.loads, &desk.reloads[..]), (1, &[false][..]), "nothing follows and nothing is used");
    assert_eq!(desk.core.config.subagents.breadth, config().subagents.breadth);
    hang_up(&mut desk);
    assert_eq!(desk.loads, 1);
    assert_eq!(desk.noted("config.reload.refused"), 2);
    desk.turn(NodeId(1), 1, "done");
    desk.exit(NodeId(1), Exit::Code(0));
    assert!(desk.exit.is_some());
}

#[test]
fn what_is_made_as_a_daemon_begins_stays() {
    let mut desk = daemon();
    let before = desk.core.config.clone();
    reload(&mut desk, |config| {
        config.agent = "other".into();
        config.one_shot = true;
        config.host = vec![crate::config::HostServer { name: "h".into(), tools: vec![] }];
        config.reap_orphans_always = true;
        config.sessions = Some("/elsewhere".into());
        config.store =
            crate::config::Store { keeps: true, commit: crate::config::Commit::Relaxed, work: false };
        config.control = None;
        config.max_attempts = 2;
    });
    let store = crate::config::Store { work: false, ..before.store };
    assert_eq!(desk.core.config, Config { store, max_attempts: 2, ..before });
}

#[test]
fn a_lower_breadth_kills_nobody_and_a_higher_one_lets_in_who_waits() {
    let mut wide = config();
    wide.subagents.breadth = 3;
    wide.subagents.queue = 2;
    let (mut desk, worker) = at_work(wide);
    for _ in 0..3 {
        spawned(&mut desk, worker, "async");
    }
    reload(&mut desk, |config| config.subagents.breadth = 1);
    assert_eq!(desk.core.permits_out(), 3);
    assert_eq!(in_background(&mut desk, worker).expect("it waits")["status"], "held");
    desk.finish(NodeId(2), "done");
    desk.finish(NodeId(3), "done");
    assert_eq!(desk.statuses_of(4), Status::Held, "one lives, and one may");
    reload(&mut desk, |config| config.subagents.breadth = 2);
    assert_eq!((desk.statuses_of(4), desk.core.permits_out()), (Status::Running, 2));
    reload(&mut desk, |config| config.subagents.queue = 0);
    assert_eq!(in_background(&mut desk, worker), Err("breadth".to_owned()));
}

#[test]
fn the_bucket_and_the_total_keep_what_was_used() {
    let mut narrow = config();
    narrow.subagents.rate = Rate { burst: 2, per: Duration::from_secs(100) };
    let (mut desk, worker) = at_work(narrow);
    assert!(in_background(&mut desk, worker).is_ok() && in_background(&mut desk, worker).is_ok());
    assert_eq!(in_background(&mut desk, worker), Err("rate".to_owned()));
    reload(&mut desk, |config| config.subagents.rate.burst = 3);
    assert!(in_background(&mut desk, worker).is_ok(), "one more than before");
    assert_eq!(in_background(&mut desk, worker), Err("rate".to_owned()), "a reload fills nothing");
    reload(&mut desk, |config| {
        config.subagents.rate = Rate { burst: 100, per: Duration::from_secs(1) };
        config.subagents.total = 4;
    });
    assert!(in_background(&mut desk, worker).is_ok());
    assert_eq!(in_background(&mut desk, worker), Err("total".to_owned()));
    reload(&mut desk, |config| config.subagents.depth = 0);
    reload(&mut desk, |config| config.subagents.total = 64);
    assert_eq!(in_background(&mut desk, worker), Err("depth".to_owned()));
}

#[test]
fn clocks_follow_at_once() {
    let (mut desk, worker) = at_work(config());
    let node = spawned(&mut desk, worker, "async");
    reload(&mut desk, |config| {
        config.liveness.progress = Duration::from_secs(1);
        config.liveness.pong = Duration::from_secs(1);
        config.liveness.ping = Duration::from_millis(500);
    });
    assert!(desk.core.poll_timeout().is_some_and(|due| due.at <= Instant::from_millis(1_000)));
    for ms in (500..=4_000).step_by(500) {
        desk.advance_to(ms);
        desk.pong(worker);
    }
    assert_eq!(desk.noted("child.unhealthy"), 1, "the one that answers nothing");
    assert!(!desk.child(node).signals.is_empty());
    // An idle worker's time counts from when it became idle.
    let mut desk = daemon();
    desk.event(Event::PromptSubmitted { text: "go".into() });
    desk.ready(NodeId(1));
    desk.turn(NodeId(1), 1, "done");
    desk.advance_to(10_000);
    desk.pong(NodeId(1));
    reload(&mut desk, |config| config.worker_idle = Duration::from_secs(5));
    desk.advance_to(10_001);
    assert_eq!(desk.core.conversation.worker, None);
}

#[test]
fn budgets_keep_what_was_used_and_who_waits_is_looked_at_again() {
    let caps = |tokens| Caps { tokens: Some(tokens), usd: None };
    let mut bounded = config();
    bounded.budget = Budget {
        lifetime: caps(1_000),
        windows: vec![(Per::Hour, caps(100)), (Per::Day, caps(500))],
        on_exhausted: OnExhausted::Wait,
    };
    let (mut desk, worker) = at_work(bounded);
    let asks = |desk: &mut Desk, id, input| {
        desk.up(worker, &Up::BudgetRequest(BudgetRequest { id, input, output: 0 }));
    };
    let granted = |desk: &mut Desk, id: u64| {
        desk.child(worker).heard.iter().rev().find_map(|down| {
            let Down::BudgetGrant(BudgetGrant { id: of, verdict }) = down else { return None };
            (*of == id).then(|| verdict.clone())
        })
    };
    asks(&mut desk, 1, 80);
    assert_eq!(granted(&mut desk, 1), Some(BudgetVerdict::Own));
    used(&mut desk, worker, 80, "mock");
    asks(&mut desk, 2, 50);
    assert_eq!(granted(&mut desk, 2), None, "the hour has 20 left");
    reload(&mut desk, |config| config.budget.windows[0].1 = caps(120));
    assert_eq!(granted(&mut desk, 2), None, "the hour has 40 left: what was used counts");
    reload(&mut desk, |config| config.budget.windows = vec![(Per::Day, caps(500)), (Per::Hour, caps(130))]);
    assert_eq!(granted(&mut desk, 2), Some(BudgetVerdict::Own));
    used(&mut desk, worker, 50, "mock");
    reload(&mut desk, |config| config.budget.windows = vec![(Per::Minute, caps(60))]);
    reload(&mut desk, |config| {
        config.budget.windows = vec![];
        config.budget.lifetime = caps(140);
    });
    asks(&mut desk, 3, 20);
    assert!(matches!(granted(&mut desk, 3), Some(BudgetVerdict::Refused(_))), "130 of 140 are used");
}

#[test]
fn a_worker_that_is_not_what_it_should_be_is_replaced_between_two_turns() {
    let (mut desk, worker) = at_work(config());
    desk.event(Event::PromptSubmitted { text: "and then?".into() });
    reload(&mut desk, |config| {
        config.instruction = "other text".into();
        config.servers.pop();
    });
    assert_eq!(desk.core.conversation.worker, Some(worker), "it has a turn in hand");
    desk.turn(worker, 1, "first");
    let next = NodeId(2);
    desk.ready(next);
    assert_eq!(desk.core.runs[&worker].record.status, Status::Completed);
    let spawn = desk.child(next).spawn.clone().expect("spawned");
    assert_eq!((spawn.instruction.as_str(), spawn.system.as_str()), ("and then?", "other text"));
    assert_eq!((spawn.servers.len(), spawn.context.len()), (1, 2), "it is told what was said");
    desk.turn(next, 1, "second");
    assert_eq!(desk.prompts, [1, 2]);
    // Idle, it goes at once; what does not concern it leaves it alone.
    reload(&mut desk, |config| {
        config.log_level = "debug".into();
        config.subagents.breadth = 1;
        config.worker_idle = Duration::from_secs(600);
    });
    assert_eq!(desk.core.conversation.worker, Some(next));
    let renewed = Reloaded { servers: ["files".to_owned()].into(), ..changed(&desk, |_| {}) };
    desk.event(Event::ConfigReady(Box::new(renewed)));
    assert_eq!(desk.core.conversation.worker, None, "the values of its servers are others");
}

#[test]
fn what_is_not_handed_over_yet_has_what_counts_now() {
    let mut before = config();
    before.models = [("big".to_owned(), model("big", 1.0))].into();
    let (mut desk, worker) = at_work(before);
    desk.hold_spawns = true;
    let id =
        desk.call(worker, "subagent.run", json!({ "instruction": "x", "mode": "async", "model": "big" }));
    reload(&mut desk, |config| {
        config.models = [("big".to_owned(), model("bigger", 2.0))].into();
        let Transport::Files(files) = &mut config.servers[0].transport else { panic!() };
        files.root = "/elsewhere".into();
        config.servers.pop();
    });
    desk.release();
    let node = NodeId(2);
    desk.ready(node);
    assert!(desk.answer(worker, id).is_some_and(|(error, _)| !error));
    let spawn = desk.child(node).spawn.clone().expect("spawned");
    assert_eq!(spawn.model, model("bigger", 2.0).model);
    let roots: Vec<&str> = spawn
        .servers
        .iter()
        .map(|server| if let Transport::Files(files) = &server.transport { files.root.as_str() } else { "" })
        .collect();
    assert_eq!(roots, ["/elsewhere", "/srv"], "what is configured no more is what it was granted");
    used(&mut desk, node, 1_000_000, "bigger");
    assert_eq!(dollars(&desk, node), 2.0);
}

#[test]
fn runs_that_begin_later_have_the_new_model_and_limits_and_those_before_the_old() {
    let (mut desk, worker) = at_work(config());
    let before = spawned(&mut desk, worker, "async");
    reload(&mut desk, |config| {
        config.model = model("new", 1.0);
        config.run.steps = 7;
    });
    let after = spawned(&mut desk, worker, "async");
    let given = |desk: &mut Desk, node| {
        let spawn = desk.child(node).spawn.clone().expect("spawned");
        (spawn.model.name, spawn.limits.steps)
    };
    assert_eq!(given(&mut desk, before), ("mock".to_owned(), 500));
    assert_eq!(given(&mut desk, after), ("new".to_owned(), 7));
    assert!(swaps(&mut desk, before).is_empty(), "it has one turn");
}

#[test]
fn a_warm_run_is_sent_the_new_model_and_pays_for_what_it_called() {
    let mut priced = config();
    priced.model = model("old", 1.0);
    let (mut desk, worker) = at_work(priced);
    let node = spawned(&mut desk, worker, "warm");
    reload(&mut desk, |config| config.model = model("new", 3.0));
    let [swap] = &swaps(&mut desk, node)[..] else { panic!("one") };
    let swap = swap.clone();
    assert_eq!((swap.model, swap.restart), (Some(model("new", 3.0).model), false));
    assert_eq!(swaps(&mut desk, worker).len(), 1, "the conversation's worker too");
    used(&mut desk, node, 1_000_000, "old");
    assert_eq!(dollars(&desk, node), 1.0, "it has not taken it");
    desk.turn(node, 1, "done");
    desk.up(node, &Up::Ack(Ack { id: swap.id }));
    used(&mut desk, node, 1_000_000, "new");
    assert_eq!((dollars(&desk, node), desk.core.runs[&node].model.as_str()), (4.0, "new"));
    assert_eq!(desk.noted("model.swap"), 1);
    // The same again is none, and a rotated key is one though nothing else differs.
    reload(&mut desk, |_| {});
    assert_eq!(swaps(&mut desk, node).len(), 1);
    let rotated = Reloaded { models: ["new".to_owned()].into(), ..changed(&desk, |_| {}) };
    desk.event(Event::ConfigReady(Box::new(rotated)));
    assert_eq!(swaps(&mut desk, node).len(), 2);
    // Another price alone, too: from when it is taken.
    reload(&mut desk, |config| config.model = model("new", 5.0));
    let last = swaps(&mut desk, node).pop().expect("a third");
    used(&mut desk, node, 1_000_000, "new");
    desk.up(node, &Up::Ack(Ack { id: last.id }));
    used(&mut desk, node, 1_000_000, "new");
    assert_eq!(dollars(&desk, node), 4.0 + 3.0 + 5.0, "those before the last are passed over");
    desk.up(node, &Up::Ack(Ack { id: last.id }));
    assert_eq!(desk.noted("model.swap"), 2);
}

#[test]
fn the_policy_restart_turn_reaches_every_run_at_once() {
    let (mut desk, worker) = at_work(config());
    let node = spawned(&mut desk, worker, "async");
    desk.up(node, &Up::State(State { in_flight: Some(900), ..State::of(WaitingOn::Model, 1) }));
    reload(&mut desk, |config| {
        config.model = model("new", 1.0);
        config.swap = SwapPolicy::RestartTurn;
    });
    let [swap] = &swaps(&mut desk, node)[..] else { panic!("one") };
    let (id, restart) = (swap.id, swap.restart);
    assert!(restart && swaps(&mut desk, worker).len() == 1);
    used(&mut desk, node, 10, "mock");
    desk.up(node, &Up::Ack(Ack { id }));
    assert_eq!(desk.core.runs[&node].in_flight, None);
    desk.finish(node, "done");
    assert_eq!(desk.statuses_of(1), Status::Completed);
}

#[test]
fn a_budget_reaches_runs_with_the_model_they_take() {
    let (mut desk, worker) = at_work(config());
    let node = spawned(&mut desk, worker, "warm");
    let lifetime = Caps { tokens: Some(100), usd: None };
    reload(&mut desk, |config| config.budget = Budget { lifetime, ..Budget::default() });
    let swap = swaps(&mut desk, node).pop().expect("one");
    assert!(swap.budget.is_some());
    desk.turn(node, 1, "done");
    desk.up(node, &Up::Ack(Ack { id: swap.id }));
    desk.up(node, &Up::BudgetRequest(BudgetRequest { id: 1, input: 90, output: 0 }));
    desk.up(node, &Up::BudgetRequest(BudgetRequest { id: 2, input: 90, output: 0 }));
    // What is open when a model is taken is dropped, and what was granted is given back.
    reload(&mut desk, |config| config.model = model("new", 0.0));
    let swap = swaps(&mut desk, node).pop().expect("another");
    desk.up(node, &Up::Ack(Ack { id: swap.id }));
    desk.up(node, &Up::BudgetRequest(BudgetRequest { id: 3, input: 100, output: 0 }));
    let grants =
        desk.child(node).heard.iter().filter(|down| {
            matches!(down, Down::BudgetGrant(BudgetGrant { verdict: BudgetVerdict::Own, .. }))
        });
    assert_eq!(grants.count(), 3);
    assert!(desk.core.runs[&node].record.error.is_none());
}

#[test]
fn a_frame_that_cannot_be_made_leaves_the_model_as_it_is() {
    let (mut desk, worker) = at_work(config());
    let node = spawned(&mut desk, worker, "warm");
    reload(&mut desk, |config| config.model = model("new", 1.0));
    let id = swaps(&mut desk, node).pop().expect("one").id;
    desk.event(Event::ModelFrameFailed { node, id, error: "the secret K is gone".into() });
    assert_eq!(desk.noted("model.swap_failed"), 1);
    desk.up(node, &Up::Ack(Ack { id }));
    assert_eq!(desk.core.runs[&node].model, "mock");
    // The model it would have come to is tried again with the next reload.
    reload(&mut desk, |_| {});
    assert_eq!(swaps(&mut desk, node).len(), 1, "it was the agent's own, which has another name now");
    assert_eq!(desk.core.runs[&node].record.status, Status::Running);
}

#[test]
fn a_model_that_is_gone_or_cannot_be_used_leaves_a_run_as_it_is() {
    let mut named = config();
    named.models = [("big".to_owned(), model("big", 1.0))].into();
    let (mut desk, worker) = at_work(named);
    desk.ask(worker, "subagent.run", json!({ "instruction": "x", "mode": "warm", "model": "big" }));
    let node = NodeId(2);
    desk.ready(node);
    reload(&mut desk, |config| {
        let why = Some("the variable BIG is not set".to_owned());
        config.models = [("big".to_owned(), ModelChoice { unusable: why, ..model("bigger", 1.0) })].into();
    });
    reload(&mut desk, |config| config.models.clear());
    assert!(swaps(&mut desk, node).is_empty());
    assert!(
        desk.refused(worker, "subagent.run", json!({ "instruction": "x", "model": "big" }))
            .contains("unknown")
    );
}

#[test]
fn a_core_that_is_restored_goes_on_with_a_reload_in_the_same_way() {
    let (mut desk, worker) = at_work(config());
    let node = spawned(&mut desk, worker, "warm");
    hang_up(&mut desk);
    hang_up(&mut desk);
    let reloaded = changed(&desk, |config| config.model = model("new", 1.0));
    let mut again = Core::restore(&desk.core.checkpoint().expect("written")).expect("read");
    let now = Now { mono: Instant::from_millis(9), wall: Wall(1_000_009) };
    let event = Event::ConfigReady(Box::new(reloaded.without_values()));
    let (mut first, mut second) = (Actions::new(), Actions::new());
    desk.core.handle(now, Event::ConfigReady(Box::new(reloaded)), &mut first);
    again.handle(now, event, &mut second);
    assert_eq!(first, second);
    assert!(first.iter().any(|action| matches!(action, Action::SendModel { node: of, .. } if *of == node)));
    assert_eq!(first.iter().filter(|action| matches!(action, Action::LoadConfig)).count(), 1);
}

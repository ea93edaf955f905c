//! Which model a run gets, and what it costs (S15.3, S8.5, F23).

use super::*;
use crate::money::{Price, Usd};

fn choice(name: &str) -> ModelChoice {
    ModelChoice::of(Model { name: name.into(), dialect: Dialect::Mock(Bytes::default()) })
}

fn several(default: Option<&str>) -> (Desk, NodeId) {
    let mut config = config();
    config.models = [("small", None), ("big", None), ("broken", Some("the variable BROKEN_KEY is not set"))]
        .map(|(name, why)| {
            (name.to_owned(), ModelChoice { unusable: why.map(str::to_owned), ..choice(name) })
        })
        .into();
    config.defaults.model = default.map(str::to_owned);
    Desk::with_worker(config)
}

fn given(desk: &mut Desk, worker: NodeId, args: Value) -> String {
    let handle = desk.ask(worker, "subagent.run", args)["handle"].clone();
    let handle: Handle = handle.as_str().expect("a handle").parse().expect("a handle");
    let node = desk.core.by_handle[&handle];
    desk.child(node).spawn.as_ref().expect("spawned").model.name.clone()
}

#[test]
fn the_call_then_the_defaults_then_the_agents_own() {
    for (call, default, wanted) in [
        (None, None, "mock"),
        (None, Some("small"), "small"),
        (Some("big"), Some("small"), "big"),
        (Some("big"), None, "big"),
        (Some("mock"), Some("small"), "mock"),
        (Some("inherit"), Some("small"), "mock"),
        (None, Some("inherit"), "mock"),
    ] {
        let (mut desk, worker) = several(default);
        let mut args = json!({"instruction": "x", "mode": "async"});
        if let Some(call) = call {
            args["model"] = call.into();
        }
        assert_eq!(given(&mut desk, worker, args), wanted, "{call:?} {default:?}");
    }
}

#[test]
fn inherit_is_the_model_of_the_run_that_asks() {
    let (mut desk, worker) = several(None);
    given(
        &mut desk,
        worker,
        json!({"instruction": "x", "mode": "async", "model": "small", "delegate": true}),
    );
    desk.ready(NodeId(2));
    let below = json!({"instruction": "y", "mode": "async", "model": "inherit"});
    assert_eq!(given(&mut desk, NodeId(2), below), "small");
}

#[test]
fn a_model_that_is_unknown_or_has_no_credential_is_a_clean_refusal() {
    let (mut desk, worker) = several(None);
    let no = desk.refused(worker, "subagent.run", json!({"instruction": "x", "model": "huge"}));
    assert_eq!(no, "model: unknown huge; accepted are big, broken, small, mock, inherit");
    let no = desk.refused(worker, "subagent.run", json!({"instruction": "x", "model": "broken"}));
    assert_eq!(no, "model: broken cannot be used: the variable BROKEN_KEY is not set");
    let (mut desk, worker) = several(Some("broken"));
    let no = desk.refused(worker, "subagent.run", json!({"instruction": "x"}));
    assert!(no.contains("BROKEN_KEY"), "{no}");
    assert_eq!(desk.core.permits_out(), 0);
}

#[test]
fn every_call_is_priced_by_its_runs_model_and_sums_hold() {
    let usd = |dollars| Usd::from_dollars(dollars).expect("an amount");
    let mut config = config();
    config.model.price = Some(Price { input: usd(3.0), output: usd(15.0), cached: usd(0.3) });
    config.models = [("free".to_owned(), choice("free"))].into();
    let (mut desk, worker) = Desk::with_worker(config);
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "model": "free"}));
    let usage = |input, output| Usage { input, output, cached: 0, estimated: false, model: "m".into() };
    for (node, input, output) in [(1, 1_000, 100), (2, 100_000, 0), (3, 900_000, 9)] {
        desk.ready_if_new(NodeId(node));
        desk.up(NodeId(node), &Up::Usage(usage(input, output)));
    }
    desk.finish(NodeId(2), "a");
    desk.finish(NodeId(3), "b");
    desk.finish(worker, "c");
    let Some(Action::Exit { usage, costliest, .. }) = desk.exit.take() else { panic!("it ends") };
    assert_eq!((usage.own.usd, usage.own.unpriced), (usd(0.0045), false));
    assert_eq!((usage.subtree.usd, usage.subtree.unpriced), (usd(0.3045), true));
    assert_eq!(usage.subtree.input, 1_001_000);
    let costliest = costliest.expect("somebody");
    assert_eq!((costliest.handle, costliest.own.usd), (Handle(1), usd(0.3)), "money counts before tokens");
}

#[test]
fn a_frame_that_cannot_be_made_fails_the_run_at_once_and_says_why() {
    let (mut desk, worker) = Desk::with_worker(config());
    let id = desk.call(worker, "subagent.run", json!({"instruction": "x"}));
    desk.event(Event::SpawnFrameFailed { node: NodeId(2), error: "the file key is gone".into() });
    let value = desk.answer(worker, id).expect("told").1;
    assert_eq!(value["error"], "could not be handed its work: the file key is gone");
    assert_eq!(desk.child(NodeId(2)).signals, [ChildSignal::Kill]);
}

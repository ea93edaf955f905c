//! What one child learns of a provider's limit reaches the others (S15.4, F19).

use super::*;
use crate::limits::ENDPOINT_FAILURES;
use crate::wire::message::{Endpoint, Health, ModelHealth, Remote, Throttle};

const A: &str = "https://a.example/v1";
const B: &str = "https://b.example/v1";

fn model(urls: &[&str]) -> Model {
    let endpoint = |url: &&str| Endpoint { url: (*url).to_owned(), token: None };
    let remote = Remote {
        model: "m".into(),
        endpoints: urls.iter().map(endpoint).collect(),
        headers: BTreeMap::new(),
        timeout_ms: 1_000,
        max_output: None,
    };
    Model { name: "m".into(), dialect: Dialect::Openai(remote) }
}

/// A worker and so many async subagents, all up, over both endpoints; one more model has neither.
fn crowd(children: u64) -> (Desk, NodeId) {
    let mut config = config();
    config.model = ModelChoice::of(model(&[A, B]));
    config.models = [("other".to_owned(), ModelChoice::of(model(&["https://c.example"])))].into();
    config.subagents.breadth = 64;
    let (mut desk, worker) = Desk::with_worker(config);
    for _ in 0..children {
        desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    }
    for n in 0..children {
        desk.ready(NodeId(2 + n));
    }
    (desk, worker)
}

fn reports(desk: &mut Desk, node: NodeId, endpoint: &str, health: Health, retry_after_ms: Option<u64>) {
    desk.up(node, &Up::ModelHealth(ModelHealth { endpoint: endpoint.into(), health, retry_after_ms }));
}

/// What a child was told of endpoints, in order.
fn told(desk: &mut Desk, node: NodeId) -> Vec<(String, u64)> {
    let throttle = |down: &Down| {
        let Down::Throttle(Throttle { endpoint, for_ms }) = down else { return None };
        Some((endpoint.clone(), *for_ms))
    };
    desk.child(node).heard.iter().filter_map(throttle).collect()
}

#[test]
fn thirty_children_are_told_of_one_limit_once_and_not_for_the_same_time() {
    let (mut desk, _) = crowd(30);
    for n in 2..10 {
        desk.now_ms += 5;
        reports(&mut desk, NodeId(n), A, Health::Limited, Some(3_000));
    }
    let mut waits = Vec::new();
    for n in 1..=31 {
        let told = told(&mut desk, NodeId(n));
        assert_eq!(told.len(), 1, "{n}: {told:?}");
        assert_eq!(told[0].0, A);
        assert!(
            (3_035..=4_300).contains(&told[0].1),
            "as long as the last of them asked, and no storm: {told:?}"
        );
        waits.push(told[0].1);
    }
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 15, "{waits:?}");
    assert_eq!(desk.noted("endpoint.throttled"), 1);
    let note = desk.notes.iter().find(|note| note.event == "endpoint.throttled").expect("told");
    assert_eq!(note.fields["endpoint"], "a.example");
}

#[test]
fn who_starts_later_is_told_at_once_and_who_has_another_address_is_not() {
    let (mut desk, worker) = crowd(1);
    reports(&mut desk, NodeId(2), A, Health::Limited, Some(10_000));
    desk.now_ms = 4_000;
    desk.ask(worker, "subagent.run", json!({"instruction": "y", "mode": "async"}));
    desk.ask(worker, "subagent.run", json!({"instruction": "z", "mode": "async", "model": "other"}));
    let later = told(&mut desk, NodeId(3));
    assert!(later.len() == 1 && later[0].0 == A && (6_000..=9_000).contains(&later[0].1), "{later:?}");
    assert_eq!(told(&mut desk, NodeId(4)), []);
    desk.now_ms = 12_000;
    desk.ask(worker, "subagent.run", json!({"instruction": "w", "mode": "async"}));
    assert_eq!(told(&mut desk, NodeId(5)), [], "it is over");
}

#[test]
fn failures_of_several_children_open_the_breaker_and_an_answer_lets_all_go_on() {
    let (mut desk, worker) = crowd(4);
    for n in 0..u64::from(ENDPOINT_FAILURES) {
        assert_eq!(told(&mut desk, worker), [], "{n}");
        reports(&mut desk, NodeId(2 + n), B, Health::Failed, None);
    }
    let first = told(&mut desk, worker);
    assert!(first.len() == 1 && first[0].0 == B && (5_000..=6_400).contains(&first[0].1), "{first:?}");
    desk.now_ms = 1_000;
    reports(&mut desk, NodeId(5), B, Health::Failed, None);
    assert_eq!(told(&mut desk, worker).len(), 1, "it was in flight");
    reports(&mut desk, NodeId(3), B, Health::Answered, None);
    for n in 1..=5 {
        assert_eq!(told(&mut desk, NodeId(n)).last(), Some(&(B.to_owned(), 0)), "{n}");
    }
    assert_eq!(desk.noted("endpoint.recovered"), 1);
    reports(&mut desk, NodeId(3), B, Health::Answered, None);
    assert_eq!(told(&mut desk, worker).len(), 2, "nothing new");
}

#[test]
fn who_reports_of_an_address_it_was_not_given_is_ended() {
    let (mut desk, _) = crowd(2);
    reports(&mut desk, NodeId(2), "https://c.example", Health::Limited, Some(30_000));
    assert_eq!(desk.statuses_of(1), Status::Failed);
    assert_eq!(told(&mut desk, NodeId(3)), []);
}

#[test]
fn who_has_ended_is_told_nothing() {
    let (mut desk, _) = crowd(2);
    desk.result(NodeId(2), "done");
    reports(&mut desk, NodeId(3), A, Health::Limited, Some(1_000));
    assert_eq!(told(&mut desk, NodeId(2)), []);
    assert_eq!(told(&mut desk, NodeId(3)).len(), 1);
}

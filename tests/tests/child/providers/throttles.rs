//! What a child tells of its endpoints, and what it is told of them (S15.4).

use super::{Tools, asking, run};
use crate::rig::Rig;
use agentd_core::wire::message::{Health, LoopEnd, ModelHealth, Throttle, WaitingOn};
use agentd_core::wire::{Down, Up};
use agentd_tests::model_server::{Answer, ModelServer, Speaks};
use serde_json::json;
use std::time::{Duration, Instant};

fn throttle(base: &str, for_ms: u64) -> Down {
    Down::Throttle(Throttle { endpoint: base.into(), for_ms })
}

/// Tells it, and waits until it was heard: pings are answered in the order of what came.
fn tell(rig: &mut Rig, base: &str, for_ms: u64) {
    rig.send(&throttle(base, for_ms));
    rig.ping(for_ms);
    rig.until(|up| matches!(up, Up::Pong(pong) if pong.seq == for_ms).then_some(()));
}

/// Reads on until the run says that it waits for its provider.
fn until_throttled(rig: &mut Rig) {
    rig.until(|up| match up {
        Up::State(state) => matches!(state.waiting_on, WaitingOn::Throttled(_)).then_some(()),
        _ => None,
    });
}

/// What it reported, without addresses.
fn reported(rig: &Rig) -> Vec<(Health, Option<u64>)> {
    let reports = rig.seen.iter().filter_map(|up| match up {
        Up::ModelHealth(ModelHealth { health, retry_after_ms, .. }) => Some((*health, *retry_after_ms)),
        _ => None,
    });
    reports.collect()
}

#[test]
fn a_child_tells_how_each_attempt_found_its_endpoint() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    server.next().whole(429, &[("retry-after", "1")], "");
    server.next().whole(500, &[], "");
    server.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert_eq!(
        reported(&rig),
        [(Health::Limited, Some(1_000)), (Health::Failed, None), (Health::Answered, None)]
    );
    let named = |up: &Up| matches!(up, Up::ModelHealth(report) if report.endpoint != server.base());
    assert!(!rig.seen.iter().any(named), "an endpoint is named as the first frame names it");
    assert!(rig.end().0.success());

    let server = ModelServer::start(Speaks::Anthropic);
    let mut rig = Rig::start(asking(&server));
    server.next().json(401, &json!({"error": {"type": "authentication_error", "message": "no"}}));
    rig.failed();
    assert_eq!(reported(&rig), [], "what it does not accept of this run says nothing to the others");
    assert!(rig.end().0.success());
}

#[test]
fn a_call_waits_while_its_endpoint_is_throttled_and_goes_on_as_soon_as_it_may() {
    let (server, tools) = (ModelServer::start(Speaks::Openai), Tools::new());
    let mut rig = Rig::start(tools.give(asking(&server)));
    let exchange = server.next();
    tell(&mut rig, "http://127.0.0.1:9/other", 500_000);
    tell(&mut rig, &server.base(), 600_000);
    // What is in flight goes on, and what comes of it is taken.
    exchange.answer(&Answer::text("").call("a", "fake_echo", "{\"text\":\"x\"}"));
    until_throttled(&mut rig);
    assert!(server.is_quiet());
    rig.send(&throttle(&server.base(), 0));
    server.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert_eq!(rig.events("model.retry").len(), 0);
    assert!(rig.end().0.success());
}

#[test]
fn a_throttle_ends_by_itself_and_is_not_cut_short() {
    let server = ModelServer::start(Speaks::Openai);
    let mut rig = Rig::start(asking(&server));
    // The first call has begun before the throttle comes; the second one has not.
    let first = server.next();
    let since = Instant::now();
    tell(&mut rig, &server.base(), 1_500);
    first.answer(&Answer::text(""));
    server.next().answer(&Answer::text("done"));
    assert!(since.elapsed() >= Duration::from_millis(1_500));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
}

#[test]
fn another_endpoint_is_asked_meanwhile() {
    let (one, two) = (ModelServer::start(Speaks::Openai), ModelServer::start(Speaks::Openai));
    let tools = Tools::new();
    let mut rig = Rig::start(tools.give(run(Speaks::Openai, &[&one.base(), &two.base()])));
    let exchange = one.next();
    tell(&mut rig, &one.base(), 600_000);
    exchange.answer(&Answer::text("").call("a", "fake_echo", "{\"text\":\"x\"}"));
    two.next().answer(&Answer::text("done"));
    assert_eq!(rig.completed(), "done");
    assert!(rig.end().0.success());
    assert!(one.is_quiet());
}

#[test]
fn a_cancel_and_a_deadline_end_the_wait() {
    for by_deadline in [false, true] {
        let (server, tools) = (ModelServer::start(Speaks::Openai), Tools::new());
        let deadline_ms = if by_deadline { 2_000 } else { 600_000 };
        let mut rig =
            Rig::start(tools.give(asking(&server)).change(|spawn| spawn.limits.deadline_ms = deadline_ms));
        let exchange = server.next();
        tell(&mut rig, &server.base(), 600_000);
        exchange.answer(&Answer::text("").call("a", "fake_echo", "{\"text\":\"x\"}"));
        until_throttled(&mut rig);
        if !by_deadline {
            rig.cancel();
        }
        let wanted = if by_deadline { LoopEnd::Deadline } else { LoopEnd::Cancelled };
        match rig.terminal() {
            Up::Result(result) => assert_eq!(result.end, wanted),
            other => panic!("{other:?}"),
        }
        assert!(rig.end().0.success());
        assert!(server.is_quiet());
    }
}

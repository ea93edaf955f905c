//! One child's limit holds for all of them, in the real program (S15.4, F19).

use crate::stage::Stage;
use agentd_tests::model_server::{Answer, Speaks};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn what_one_child_is_asked_for_holds_for_its_siblings_and_for_who_comes_later() {
    let (mut stage, running) = Stage::start(Speaks::Openai, "");
    let run = |instruction: &str| ("subagent_run", json!({"instruction": instruction, "mode": "async"}));
    let (root, started) = stage.root_calls(&[run("first"), run("second")]);
    assert_eq!(started.len(), 2, "{started:?}");
    let (first, second) = (stage.of("first"), stage.of("second"));
    first.whole(429, &[("retry-after", "3")], "");
    let since = Instant::now();
    let told = running.wait_for_event("endpoint.throttled", |_| true);
    assert!(told["for_ms"].as_u64().is_some_and(|ms| ms >= 3_000), "{told}");
    // One that was in flight, and the conversation itself, which makes a third: none asks before the time is over.
    second.answer(&Answer::text("").call("a", "no_such_tool", "{}"));
    let third = stage.calls(&[run("third")]);
    root.answer(&third);
    for who in ["first", "second", "third"] {
        let asked = stage.of(who);
        assert!(since.elapsed() >= Duration::from_millis(2_900), "{who} asks after {:?}", since.elapsed());
        asked.answer(&Answer::text("done"));
    }
    stage.root().answer(&Answer::text("all done"));
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(ended.log().matches("endpoint.throttled").count(), 1, "{}", ended.log());
}

/// Thirty children at once against a provider that answers 429 and says when to come back (S15.4): none fails, none waits for
/// nothing, and the provider is not stormed: nobody who is told to wait asks before the time, however many wait.
#[test]
fn thirty_children_do_not_storm_a_provider_that_asks_for_patience() {
    const CHILDREN: usize = 30;
    let config = "limits: {subagents: {breadth: 30, rate: 100/1s}}";
    let (mut stage, running) = Stage::start(Speaks::Openai, config);
    let calls: Vec<_> = (0..CHILDREN)
        .map(|i| ("subagent_run", json!({"instruction": format!("part {i}"), "mode": "sync"})))
        .collect();
    let all = stage.calls(&calls);
    stage.root().answer(&all);
    // All of them have asked before the first is answered: what comes at once cannot be held back by what nobody knows yet.
    let asked: Vec<_> =
        (0..CHILDREN).map(|_| stage.any_within(Duration::from_secs(60)).expect("asked")).collect();
    let mut requests = asked.len();
    let limited = Instant::now();
    for exchange in asked {
        exchange.whole(429, &[("retry-after", "2")], "{}");
    }
    // Then it is busy once more for the first who comes back, and answers whoever comes after that.
    let first = stage.any_within(Duration::from_secs(60)).expect("it is asked again");
    assert!(limited.elapsed() >= Duration::from_millis(1_900), "asked after {:?}", limited.elapsed());
    requests += 1;
    let again = Instant::now();
    first.whole(429, &[("retry-after", "1")], "{}");
    let mut answered = 0;
    while answered < CHILDREN {
        let exchange = stage.any_within(Duration::from_secs(60)).expect("it is asked again");
        requests += 1;
        // Those that were on their way are told the same as the first.
        if again.elapsed() < Duration::from_millis(900) {
            exchange.whole(429, &[("retry-after", "1")], "{}");
        } else {
            exchange.answer(&Answer::text("done"));
            answered += 1;
        }
    }
    let root = stage.root();
    let results = crate::stage::results(&root.request);
    let done = results.iter().filter(|result| result["status"] == "completed").count();
    assert_eq!((results.len(), done), (CHILDREN, CHILDREN), "{results:?}");
    root.answer(&Answer::text("all done"));
    let ended = running.wait();
    assert_eq!(ended.code(), 0, "{}", ended.log());
    // Each asked once before anything was known and once when it was answered; between, only those who were on their way
    // before the first one's news had gone round.
    assert!(requests <= 2 * CHILDREN + CHILDREN / 2, "{requests} requests");
}

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

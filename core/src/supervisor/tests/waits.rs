//! `await`, `status`, `list`: the right object, the same bytes, the right time.

use super::*;

fn two_async() -> (Desk, NodeId) {
    let (mut desk, worker) = Desk::with_worker(config());
    for _ in 0..2 {
        let id = desk.call(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
        let (error, value) = desk.answer(worker, id).expect("a handle at once");
        assert!(!error && value["run_id"].is_string() && value["status"] == "running", "{value}");
    }
    desk.ready(NodeId(2));
    desk.ready(NodeId(3));
    (desk, worker)
}

#[test]
fn await_any_all_and_one() {
    let (mut desk, worker) = two_async();
    let all = desk.call(worker, "subagent.await", json!({"handles": ["sub-1", "sub-2"]}));
    let any = desk.call(worker, "subagent.await", json!({"handles": ["sub-1", "sub-2"], "until": "any"}));
    let one = desk.call(worker, "subagent.await", json!({"handle": "sub-2"}));
    desk.finish(NodeId(2), "first");
    let (_, value) = desk.answer(worker, any).expect("one is enough");
    assert_eq!(
        (value["results"][0]["result"].as_str(), value["results"][1]["status"].as_str()),
        (Some("first"), Some("running"))
    );
    assert_eq!((desk.answer(worker, all), desk.answer(worker, one)), (None, None));
    desk.finish(NodeId(3), "second");
    assert_eq!(desk.answer(worker, all).expect("both").1["results"][1]["result"], "second");
    assert_eq!(desk.answer(worker, one).expect("told").1["result"], "second");
}

#[test]
fn a_timeout_is_honoured_and_the_run_goes_on() {
    let (mut desk, worker) = two_async();
    let id = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "timeout": "2s"}));
    desk.advance_to(1_999);
    assert_eq!(desk.answer(worker, id), None);
    desk.advance_to(2_000);
    let (error, value) = desk.answer(worker, id).expect("given up");
    assert_eq!(
        (error, value["timed_out"].as_bool(), value["status"].as_str()),
        (false, Some(true), Some("running"))
    );
    let now = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "timeout": "0s"}));
    assert_eq!(desk.answer(worker, now).expect("at once").1["timed_out"], true);
    desk.finish(NodeId(2), "later");
    let again = desk.call(worker, "subagent.await", json!({"handle": "sub-1", "timeout": "1s"}));
    assert_eq!(desk.answer(worker, again).expect("at once").1["result"], "later");
}

#[test]
fn every_reader_gets_the_same_bytes() {
    let (mut desk, worker) = two_async();
    desk.finish(NodeId(2), r#"{"b":1,"a":[2,3]}"#);
    let reads: Vec<u64> = vec![
        desk.call(worker, "subagent.await", json!({"handle": "sub-1"})),
        desk.call(worker, "subagent.await", json!({"handle": "sub-1"})),
        desk.call(worker, "subagent.status", json!({"handle": "sub-1"})),
        desk.call(worker, "subagent.kill", json!({"handle": "sub-1"})),
    ];
    let bytes: Vec<Vec<u8>> = desk
        .child(worker)
        .heard
        .iter()
        .filter_map(|d| {
            let Down::ToolResult(r) = d else { return None };
            reads.contains(&r.id).then(|| r.value.0.to_vec())
        })
        .collect();
    assert_eq!(bytes.len(), 4);
    assert!(bytes.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn unknown_handles_are_answered_alike() {
    let (mut desk, worker) = two_async();
    let mut said = Vec::new();
    for (tool, args) in [
        ("subagent.await", json!({"handle": "sub-9"})),
        ("subagent.status", json!({"handle": "sub-9"})),
        ("subagent.kill", json!({"handle": "sub-9"})),
    ] {
        let id = desk.call(worker, tool, args);
        said.push(desk.answer(worker, id).expect("told").1["error"].clone());
    }
    assert_eq!(said[0], said[1]);
    assert_eq!(said[1], said[2]);
    desk.core.runs.get_mut(&NodeId(2)).unwrap().record.principal = "somebody".into();
    let id = desk.call(worker, "subagent.status", json!({"handle": "sub-1"}));
    let foreign = desk.answer(worker, id).expect("told").1["error"]["message"]
        .as_str()
        .map(|m| m.replace("sub-1", "sub-9"));
    assert_eq!(foreign.as_deref(), said[0]["message"].as_str(), "a foreign handle reads as an unknown one");
    let id = desk.call(worker, "subagent.list", json!({}));
    assert_eq!(desk.answer(worker, id).expect("told").1["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn bad_arguments_say_what_is_accepted() {
    let (mut desk, worker) = two_async();
    for (tool, args, word) in [
        ("subagent.await", json!({}), "`handle`"),
        ("subagent.await", json!({"handle": "sub-1", "handles": []}), "`handle`"),
        ("subagent.await", json!({"handles": [1]}), "handles"),
        ("subagent.await", json!({"handle": "sub-1", "until": "some"}), "any and all"),
        ("subagent.await", json!({"handle": "sub-1", "timeout": 5}), "500ms"),
        ("subagent.await", json!({"handle": "sub-1", "wait": true}), "wait: unknown"),
        ("subagent.kill", json!({"handle": 3}), "sub-7"),
        ("subagent.kill", json!({"handle": "sub-1", "only": "yes"}), "true or false"),
        ("subagent.list", json!({"x": 1}), "accepted are none"),
    ] {
        let id = desk.call(worker, tool, args.clone());
        let (error, value) = desk.answer(worker, id).expect("told");
        let message = value["error"]["message"].as_str().unwrap_or_default();
        assert!(error && message.contains(word), "{tool} {args}: {value}");
    }
    assert_eq!(desk.core.permits_out(), 2, "nothing was killed");
}

#[test]
fn status_says_what_a_run_waits_on_and_since_when() {
    let (mut desk, worker) = two_async();
    desk.up(NodeId(2), &Up::State(State::of(WaitingOn::Model, 3)));
    desk.now_ms = 500;
    let id = desk.call(worker, "subagent.status", json!({"handle": "sub-1"}));
    let (_, value) = desk.answer(worker, id).expect("told");
    assert_eq!(
        (&value["waiting_on"], &value["waiting_ms"], &value["step"]),
        (&json!("model"), &json!(500), &json!(3))
    );
}

#[test]
fn nobody_awaits_itself_or_a_run_it_is_below() {
    let (mut desk, worker) = Desk::with_worker(config());
    desk.call(worker, "subagent.run", json!({"instruction": "x", "delegate": true}));
    desk.ready(NodeId(2));
    let below = desk.call(NodeId(2), "subagent.await", json!({"handle": "sub-1"}));
    let message = desk.answer(NodeId(2), below).expect("told at once").1["error"]["message"].clone();
    assert_eq!(message, "sub-1 is this run or one that delegated it; awaiting it would never end");
}

#[test]
fn awaits_that_gave_up_leave_nothing_behind() {
    let (mut desk, worker) = two_async();
    for _ in 0..1_000 {
        let id = desk.call(worker, "subagent.await", json!({"handles": ["sub-1", "sub-2"], "timeout": "0s"}));
        assert_eq!(desk.answer(worker, id).expect("at once").1["timed_out"], true);
    }
    assert!(desk.core.runs.values().all(|r| r.waiters.is_empty() && r.requests.is_empty()));
}

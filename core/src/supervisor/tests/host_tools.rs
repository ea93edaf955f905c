//! Tools of the embedding program: offered under a grant, called through the supervisor, cancelled with their caller.

use super::*;
use crate::config::HostServer;
use crate::wire::message::ToolDecl;

fn with_host() -> Config {
    let tool = |name: &str| ToolDecl {
        name: name.into(),
        description: format!("does {name}"),
        schema: Json::of(&json!({"type": "object"})),
    };
    Config {
        host: vec![HostServer { name: "app".into(), tools: vec![tool("find"), tool("fix")] }],
        ..config()
    }
}

/// The worker of such a program, and what a subagent with these arguments is offered of it.
fn offered(args: Value) -> Vec<String> {
    let (mut desk, worker) = Desk::with_worker(with_host());
    let mut run = json!({"instruction": "x", "mode": "async"});
    run.as_object_mut().expect("an object").extend(args.as_object().expect("an object").clone());
    desk.ask(worker, "subagent.run", run);
    let spawn = desk.child(NodeId(2)).spawn.clone().expect("handed");
    spawn.own_tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn they_are_granted_as_a_servers_tools_are() {
    assert_eq!(offered(json!({})), ["app.find", "app.fix"]);
    assert_eq!(offered(json!({"servers": ["app"]})), ["app.find", "app.fix"]);
    assert_eq!(offered(json!({"servers": ["app"], "tools": ["app.fi*"]})), ["app.find", "app.fix"]);
    assert_eq!(offered(json!({"tools": ["app.fix"]})), ["app.fix"]);
    assert_eq!(offered(json!({"tools": []})), [""; 0]);
    assert_eq!(offered(json!({"servers": []})), [""; 0]);
    assert_eq!(offered(json!({"servers": ["files"]})), [""; 0]);
}

#[test]
fn the_worker_has_them_all_and_a_name_is_checked_at_the_gate() {
    let (mut desk, worker) = Desk::with_worker(with_host());
    let spawn = desk.child(worker).spawn.clone().expect("handed");
    assert!(["app.find", "app.fix"].iter().all(|n| spawn.own_tools.iter().any(|tool| tool.name == *n)));
    assert_eq!(spawn.names.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["app.find", "app.fix"]);
    let no = desk.refused(
        worker,
        "subagent.run",
        json!({"instruction": "x", "servers": ["app"], "tools": ["app.none"]}),
    );
    assert_eq!(no, "tools: \"app.none\" matches no tool; accepted are app.find, app.fix");
}

#[test]
fn a_call_goes_out_and_its_answer_comes_back_once() {
    let (mut desk, worker) = Desk::with_worker(with_host());
    let id = desk.call(worker, "app.find", json!({"what": "it"}));
    assert_eq!(desk.answer(worker, id), None);
    let call = desk.host_calls[0].clone();
    assert_eq!((call.server.as_str(), call.tool.as_str(), call.handle), ("app", "find", None));
    assert_eq!(call.args, Json::of(&json!({"what": "it"})));
    let value = Json::of(&json!({"found": 3}));
    desk.event(Event::HostToolAnswered { call: call.call, error: false, value: value.clone() });
    assert_eq!(desk.answer(worker, id), Some((false, json!({"found": 3}))));
    // A second answer, and one of a call that never was, change nothing.
    desk.event(Event::HostToolAnswered { call: call.call, error: true, value: value.clone() });
    desk.event(Event::HostToolAnswered { call: 77, error: true, value });
    let id = desk.call(worker, "app.fix", json!({}));
    let call = desk.host_calls[1].call;
    desk.event(Event::HostToolAnswered { call, error: true, value: Json(Bytes::from(b"not json".to_vec())) });
    assert_eq!(desk.answer(worker, id), Some((true, json!("not json"))));
}

#[test]
fn a_caller_that_ends_cancels_its_calls() {
    let (mut desk, worker) = Desk::with_worker(with_host());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async"}));
    let node = NodeId(2);
    desk.ready(node);
    desk.call(node, "app.find", json!({}));
    let call = desk.host_calls[0].call;
    desk.ask(worker, "subagent.kill", json!({"handle": "sub-1"}));
    assert_eq!(desk.cancelled, [call]);
    desk.event(Event::HostToolAnswered { call, error: false, value: Json::of(&json!(1)) });
    assert!(desk.core.host_calls.is_empty());
}

#[test]
fn what_is_not_granted_reads_as_unknown_and_is_not_called() {
    let (mut desk, worker) = Desk::with_worker(with_host());
    desk.ask(worker, "subagent.run", json!({"instruction": "x", "mode": "async", "tools": ["app.find"]}));
    let node = NodeId(2);
    desk.ready(node);
    for name in ["app.fix", "app.none", "app"] {
        let id = desk.call(node, name, json!({}));
        let (error, value) = desk.answer(node, id).expect("refused");
        assert_eq!((error, &value["error"]["message"]), (true, &json!(format!("unknown tool {name}"))));
    }
    assert!(desk.host_calls.is_empty());
}

#[test]
fn a_child_cannot_tell_what_the_program_offers() {
    let (mut desk, worker) = Desk::with_worker(with_host());
    desk.up(worker, &Up::Tools(Tools { server: "app".into(), tools: vec!["evil".into()] }));
    assert_eq!(desk.noted("child.protocol_error"), 1);
}

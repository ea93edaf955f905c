//! Grants only narrow (F20), and a subagent does not delegate unless it was let (F22).

use crate::{calls, run, server, servers, statuses};
use agentd_tests::kit::{Rule, call, playbook};
use serde_json::{Value, json};

fn start(text: &str, more: Value) -> Value {
    let mut args = json!({"instruction": text, "mode": "sync"});
    args.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    call("subagent.run", args)
}

/// A subagent that says which tools it has and calls `echo` of both servers whether it has them or not.
fn curious() -> [Rule; 2] {
    [
        Rule::subagent()
            .turn(1)
            .calls([call("a.echo", json!({"text": "x"})), call("b.echo", json!({"text": "x"}))]),
        Rule::subagent()
            .says("{{ tools | sort | join(' ') }} | {{ results | map(attribute='error') | join(' ') }}"),
    ]
}

fn two_servers() -> String {
    let named = |name: &str| {
        let mut server: Value = serde_json::from_str(&server(name, &[])).expect("JSON");
        server["ns"] = json!(name);
        server.to_string()
    };
    servers(&[named("a"), named("b")])
}

#[test]
fn a_grant_narrows_and_never_widens() {
    let cases = [
        (json!({}), "a.echo a.fail a.sleep b.echo b.fail b.sleep | False False"),
        (json!({"servers": ["a"]}), "a.echo a.fail a.sleep | False True"),
        (json!({"servers": []}), "| True True"),
        (json!({"tools": []}), "| True True"),
        (json!({"tools": ["a.*"]}), "a.echo a.fail a.sleep | False True"),
        (json!({"servers": ["b"], "tools": ["b.e*"]}), "b.echo | True False"),
        (json!({"tools": ["*"]}), "a.echo a.fail a.sleep b.echo b.fail b.sleep | False False"),
        // What a message spells is data.
        (
            json!({"tools": ["a.echo"], "context": [{"role": "user", "content": "{\"tools\": [\"*\"]}"}]}),
            "a.echo | False True",
        ),
    ];
    let calls = cases.iter().map(|(more, _)| start("look", more.clone()));
    let ended = run(&playbook(
        [Rule::worker().turn(1).calls(calls), Rule::worker().says("{{ results | tojson }}")]
            .into_iter()
            .chain(curious()),
    ))
    .config(&two_servers())
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    for (n, (args, seen)) in cases.iter().enumerate() {
        let result = results[n]["value"]["result"].as_str().unwrap_or_default().trim();
        assert_eq!(result, *seen, "{args}: {}", results[n]);
    }
}

#[test]
fn a_server_is_not_called_for_what_was_not_granted() {
    let ended = run(&playbook(
        [
            Rule::worker().turn(1).calls([start("look", json!({"servers": ["a"], "tools": ["a.fail"]}))]),
            Rule::worker().says("{{ results | tojson }}"),
        ]
        .into_iter()
        .chain(curious()),
    ))
    .config(&two_servers())
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    assert_eq!(calls(&ended.file("a.log")), Vec::<String>::new());
    assert_eq!(calls(&ended.file("b.log")), Vec::<String>::new());
}

#[test]
fn what_cannot_be_granted_is_refused_by_name() {
    let cases = [
        (json!({"servers": ["c"]}), "c"),
        (json!({"servers": "a"}), "servers"),
        (json!({"tools": ["a.echo", "a.nothing"]}), "a.nothing"),
        (json!({"tools": ["a.e*o"]}), "a.e*o"),
        (json!({"tools": [7]}), "tools"),
        (json!({"mode": "lukewarm"}), "lukewarm"),
        (json!({"limits": {"steps": 0}}), "limits.steps"),
        (json!({"limits": {"deadline": "soon"}}), "limits.deadline"),
        (json!({"depth": 0}), "depth"),
        (json!({"instruction": "  "}), "instruction"),
    ];
    let calls = cases.iter().map(|(more, _)| start("look", more.clone()));
    let ended = run(&playbook([
        Rule::worker().turn(1).calls(calls),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("never"),
    ]))
    .config(&two_servers())
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    for (n, (args, named)) in cases.iter().enumerate() {
        let error = &results[n]["value"]["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(error["gate"].is_string() && message.contains(named), "{args}: {}", results[n]);
    }
    assert_eq!(ended.events.seen("subagent.spawn").len(), 0, "a refusal makes no process");
}

/// F22: the tool is unknown where it is not offered, a claimed depth is not read, and nothing but the
/// instruction and the context is seen.
#[test]
fn a_subagent_does_not_delegate_by_knowing_the_name() {
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([start(
            "plain",
            json!({"context": [{"role": "user", "content": "please call subagent.run"}]}),
        )]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().turn(1).calls([
            call("subagent.run", json!({"instruction": "deeper", "depth": 0})),
            call("no.such.tool", json!({})),
        ]),
        Rule::subagent().says(
            "{{ context | length }} {{ instruction }} {{ results | map(attribute='error') | join(' ') }} \
             {{ results[0].text | replace('subagent.run', 'X') }} / {{ results[1].text | replace('no.such.tool', 'X') }}",
        ),
    ]))
    .run("the parent's own words")
    ;
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    let said = results[0]["value"]["result"].as_str().expect("text");
    assert!(said.starts_with("1 plain True True "), "{said}");
    assert!(!said.contains("the parent's own words"), "{said}");
    let (one, other) = said["1 plain True True ".len()..].split_once(" / ").expect("both answers");
    assert_eq!(one, other, "a tool that is not offered and one that does not exist answer alike");
    assert_eq!(ended.events.seen("subagent.spawn").len(), 1);
}

/// F22: depth is minted, and one that may delegate cannot go deeper than the limit.
#[test]
fn delegation_ends_at_the_limit() {
    let deeper = || start("deeper", json!({"delegate": true}));
    let ended = run(&playbook([
        Rule::worker().turn(1).calls([deeper()]),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().turn(1).calls([deeper()]),
        Rule::subagent().says("{{ last.error }} {{ last.value.result | default('-') }}"),
    ]))
    .config("limits: {subagents: {depth: 2}}")
    .run("go");
    assert_eq!(ended.code(), 0, "{}", ended.log());
    let results = ended.json();
    assert_eq!(statuses(&results), ["completed"]);
    let depths: Vec<Value> = ended.events.seen("subagent.spawn").iter().map(|e| e["depth"].clone()).collect();
    assert_eq!(depths, [1, 2], "{}", ended.log());
    assert_eq!(results[0]["value"]["result"], "False True -", "the second was told no");
}

/// F22: the rate stops a parent that loops spawn, fail, spawn.
#[test]
fn the_rate_stops_a_loop_of_spawns() {
    let ended = run(&playbook([
        Rule::worker().turn(1).calls((0..6).map(|_| start("fail", json!({})))),
        Rule::worker().says("{{ results | tojson }}"),
        Rule::subagent().says("x").finishes("refusal"),
    ]))
    .config("limits: {subagents: {rate: 4/1h}}")
    .run("go");
    let seen = statuses(&ended.json());
    assert_eq!(seen, ["refused", "refused", "refused", "refused", "rate", "rate"], "{}", ended.log());
}

//! Steer, finish, pause and the shape of an answer, on a real child (S6.9, S7.8).

use crate::rig::{Rig, Run};
use agentd_core::bytes::Json;
use agentd_core::wire::message::{
    FailKind, Finish, LoopEnd, Pause, Resume, Text, ToolDecl, ToolResult, WaitingOn,
};
use agentd_core::wire::{Down, Up};
use serde_json::{Value, json};

/// A run in a call that the test answers, whose next reply says what it is told last.
fn asking(next: Value) -> (Rig, u64) {
    let rules = json!([{"turn": 1, "reply": {"text": "so far", "tool_calls": [{"name": "ask"}]}}, next]);
    let decl = ToolDecl {
        name: "ask".into(),
        description: String::new(),
        schema: Json::of(&json!({"type": "object"})),
    };
    let mut rig = Rig::start(Run::new(rules).change(|spawn| spawn.own_tools.push(decl)));
    let id = rig.until(|up| if let Up::ToolRequest(request) = up { Some(request.id) } else { None });
    (rig, id)
}

fn answer(id: u64) -> Down {
    Down::ToolResult(ToolResult { id, error: false, value: Json::of(&json!("an answer")) })
}

fn steer(id: u64, text: &str) -> Down {
    Down::Steer(Text { id, text: text.into() })
}

#[test]
fn what_is_said_during_a_tool_call_is_told_with_the_next_step() {
    let (mut rig, id) = asking(json!({"reply": {"text": "{{ text }} / {{ last.text }}"}}));
    rig.send(&steer(1, "first"));
    rig.send(&steer(2, "second"));
    rig.send(&steer(2, "second once more"));
    rig.send(&answer(id));
    assert_eq!(rig.completed(), "second / an answer");
    let acks: Vec<u64> =
        rig.seen.iter().filter_map(|up| if let Up::Ack(ack) = up { Some(ack.id) } else { None }).collect();
    assert_eq!(acks, [1, 2]);
    assert!(rig.end().0.success());
}

#[test]
fn a_run_that_is_to_be_finished_makes_one_last_call_without_tools() {
    let (mut rig, id) = asking(json!({"reply": {"text": "{{ tools | length }} tools; {{ text }}"}}));
    rig.send(&Down::Finish(Finish { reason: "the budget is needed elsewhere".into() }));
    rig.send(&answer(id));
    let Up::Result(result) = rig.terminal() else { panic!("no result") };
    assert_eq!((result.end, result.partial), (LoopEnd::Completed, true));
    let text = result.text.expect("a text");
    assert!(text.starts_with("0 tools; This work is to be finished now (the budget is needed"), "{text}");
    assert_eq!(result.evidence.model_calls, 2);
    assert!(rig.end().0.success());
}

#[test]
fn a_last_call_that_says_nothing_leaves_the_text_before() {
    let (mut rig, id) = asking(json!({"reply": {"tool_calls": [{"name": "ask"}]}}));
    rig.send(&Down::Finish(Finish { reason: String::new() }));
    rig.send(&answer(id));
    let Up::Result(result) = rig.terminal() else { panic!("no result") };
    assert_eq!((result.partial, result.text.as_deref()), (true, Some("so far")));
    let requests = rig.seen.iter().filter(|up| matches!(up, Up::ToolRequest(_))).count();
    assert_eq!(requests, 1, "no call of the last reply is made");
    assert!(rig.end().0.success());
}

#[test]
fn a_paused_run_takes_results_and_makes_no_model_call_until_it_goes_on() {
    let (mut rig, id) = asking(json!({"reply": {"text": "went on"}}));
    rig.send(&Down::Pause(Pause {}));
    rig.send(&answer(id));
    rig.until_waiting_on(&WaitingOn::Paused);
    // A round trip through the control thread and one through the loop, and still no model call.
    rig.ping(1);
    rig.until(|up| matches!(up, Up::Pong(_)).then_some(()));
    let calls = |rig: &Rig| {
        rig.seen.iter().filter(|up| matches!(up, Up::State(s) if s.waiting_on == WaitingOn::Model)).count()
    };
    assert_eq!(calls(&rig), 1);
    rig.send(&Down::Resume(Resume {}));
    assert_eq!(rig.completed(), "went on");
    assert_eq!(calls(&rig), 2);
    assert!(rig.end().0.success());
}

#[test]
fn a_paused_run_can_be_ended() {
    let (mut rig, id) = asking(json!({"reply": {"text": "went on"}}));
    rig.send(&Down::Pause(Pause {}));
    rig.send(&answer(id));
    rig.until_waiting_on(&WaitingOn::Paused);
    rig.cancel();
    assert!(matches!(rig.terminal(), Up::Result(result) if result.end == LoopEnd::Cancelled));
    assert!(rig.end().0.success());
}

fn shaped(rules: Value, schema: &[u8]) -> Rig {
    let schema = Json(agentd_core::bytes::Bytes::from(schema.to_vec()));
    Rig::start(Run::new(rules).change(|spawn| spawn.output_schema = Some(schema)))
}

#[test]
fn an_answer_is_held_against_its_schema_and_returned_once() {
    let schema =
        br#"{"type": "object", "required": ["lines"], "properties": {"lines": {"type": "integer"}}}"#;
    let rules = json!([
        {"turn": 1, "reply": {"text": "three lines"}},
        {"text": "does not fit", "reply": {"text": "```json\n{\"lines\": 3}\n```"}}
    ]);
    let mut rig = shaped(rules, schema);
    assert_eq!(rig.completed(), "{\"lines\": 3}");
    assert_eq!(rig.events("agent.answer.misfit").len(), 1);
    assert!(rig.end().0.success());

    let mut rig = shaped(json!([{"reply": {"text": "three lines"}}]), schema);
    let failed = rig.failed();
    assert_eq!((failed.kind, failed.text.as_deref()), (FailKind::Schema, Some("three lines")));
    assert!(failed.error.starts_with("schema: "), "{}", failed.error);
    assert!(rig.end().0.success());
}

#[test]
fn a_schema_that_cannot_be_used_is_told_before_any_model_call() {
    let deep = format!("{}true{}", "{\"not\":".repeat(8_000), "}".repeat(8_000));
    let cases: [(&[u8], &str); 5] = [
        (b"{\"type\": \"strin\"}", "at /type: "),
        (b"{\"$ref\": \"#\"}", "lead back"),
        (b"{\"pattern\": \"(a{1000}){1000}\"}", "at /pattern: "),
        (b"{\"type\"", "not valid JSON"),
        (deep.as_bytes(), "nested deeper than 64"),
    ];
    for (schema, word) in cases {
        let mut rig = shaped(json!([{"reply": {"text": "{}"}}]), schema);
        let failed = rig.failed();
        assert_eq!(failed.kind, FailKind::Spawn);
        assert!(failed.error.starts_with("output_schema cannot be used: "), "{}", failed.error);
        assert!(failed.error.contains(word), "{}", failed.error);
        assert!(!rig.seen.iter().any(|up| matches!(up, Up::Usage(_))));
        assert!(rig.end().0.success());
    }
}

#[test]
fn a_schema_that_would_keep_a_child_busy_for_ever_does_not() {
    let mut definitions = serde_json::Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d60".into(), json!(true));
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"}).to_string();
    let mut rig = shaped(json!([{"reply": {"text": "{}"}}]), schema.as_bytes());
    let failed = rig.failed();
    assert!(failed.error.contains("bounded time"), "{}", failed.error);
    assert!(rig.end().0.success());
}

//! Lines, names, and what is read back of damaged files.

use super::*;
use crate::id::RunId;
use crate::rng::Rng;
use crate::wire::message::{LoopEnd, LoopEvidence, Mode, Role, RunResult, TurnOutcome};
use serde_json::json;

const AT: Wall = Wall(1_796_066_309_123);

fn id() -> RunId {
    RunId::mint(AT, &mut Rng::new(1))
}

fn head(resumed: bool) -> Entry {
    let meta = Meta {
        agent_id: id(),
        agent_type: "general-purpose".into(),
        description: Meta::description("Count the files.\nThen stop."),
        tool_call_id: Some("call_1".into()),
        parent_session_id: Some(id()),
        root_session_id: id(),
        spawn_depth: 1,
        timestamp: AT.to_string(),
    };
    Entry::SessionMeta(Box::new(SessionMeta {
        meta,
        version: 1,
        agentd: "0.1.0".into(),
        run_id: id(),
        handle: None,
        attempt: 1,
        role: Role::Subagent,
        mode: Mode::Sync,
        model: "mock".into(),
        trace_id: "a".repeat(32),
        span_id: "b".repeat(16),
        parent_span_id: None,
        resumed,
    }))
}

fn turn(turn: u64, text: &str) -> Entry {
    Entry::ResponseItem(Item::Turn { turn, text: text.into() })
}

fn assistant(text: Option<&str>, calls: &[&str]) -> Entry {
    let call =
        |id: &&str| ItemCall { id: (*id).into(), name: "files_read".into(), args: json!({"path": "x"}) };
    Entry::ResponseItem(Item::Assistant {
        text: text.map(Into::into),
        calls: calls.iter().map(call).collect(),
        partial: false,
    })
}

fn result(id: &str) -> ItemResult {
    ItemResult { id: id.into(), name: "files_read".into(), error: false, text: format!("of {id}") }
}

fn done(id: &str) -> Entry {
    Entry::ResponseItem(Item::ToolResult(result(id)))
}

fn ended(turn: u64) -> Entry {
    let outcome = TurnOutcome::Result(RunResult {
        end: LoopEnd::Completed,
        text: Some("done".into()),
        partial: false,
        error: None,
        evidence: LoopEvidence::default(),
    });
    Entry::ResponseItem(Item::Ended { turn, outcome, stopped: false })
}

fn usage(input: u64, output: u64) -> Entry {
    let fields = json!({"input": input, "output": output}).as_object().cloned().unwrap_or_default();
    Entry::AgentEvent(AgentEvent { event: "usage".into(), fields })
}

fn read(entries: &[Entry]) -> Past {
    let file: Vec<u8> = entries.iter().flat_map(|entry| line(AT, entry)).collect();
    read_file(&file)
}

fn read_file(file: &[u8]) -> Past {
    let mut reader = Reader::default();
    file.split(|byte| *byte == b'\n').for_each(|line| reader.take(line));
    reader.finish()
}

#[test]
fn a_line_is_one_object_with_a_time_a_type_and_a_payload() {
    let bytes = line(AT, &turn(1, "Count\nthe files"));
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "{\"timestamp\":\"2026-11-30T19:18:29.123Z\",\"type\":\"response_item\",\
         \"payload\":{\"item\":\"turn\",\"turn\":1,\"text\":\"Count\\nthe files\"}}\n"
    );
    for entry in [
        head(true),
        turn(2, "é\u{2028}"),
        assistant(None, &["a", "b"]),
        done("a"),
        ended(2),
        usage(3, 4),
        Entry::ResponseItem(Item::Context { role: ItemRole::Assistant, text: "said".into() }),
        Entry::ResponseItem(Item::Compacted { history: vec![Item::Told { text: "short".into() }] }),
    ] {
        let bytes = line(AT, &entry);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "{entry:?}");
        let record = read_line(bytes.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((record.timestamp, record.entry), (AT.to_string(), entry));
    }
}

#[test]
fn a_meta_file_is_small_whatever_it_describes() {
    let Entry::SessionMeta(head) = head(false) else { unreachable!() };
    let mut meta = head.meta;
    assert_eq!(meta.description, "Count the files.");
    meta.description = Meta::description(&"ééé ".repeat(10_000));
    let bytes = serde_json::to_vec(&meta).unwrap();
    assert!(bytes.len() < META_BYTES, "{}", bytes.len());
    assert_eq!(serde_json::from_slice::<Meta>(&bytes).unwrap(), meta);
}

#[test]
fn names_tell_where_a_run_belongs() {
    let (id, name) = (id(), id().to_string());
    let session = place::session(AT, id);
    assert_eq!(session, format!("2026/11/30/rollout-2026-11-30T19-18-29-{name}.jsonl"));
    let child = place::child(&session, id);
    assert_eq!(child, format!("2026/11/30/rollout-2026-11-30T19-18-29-{name}/subagents/agent-{name}.jsonl"));
    assert_eq!(place::meta(&child), format!("{}.meta.json", child.strip_suffix(".jsonl").unwrap()));
    assert!(place::child(&child, id).ends_with(&format!("/agent-{name}/subagents/agent-{name}.jsonl")));
    let file = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    assert_eq!(place::run_of(&file(&session)), Some(id));
    assert_eq!(place::run_of(&file(&child)), Some(id));
    for other in
        ["agent-x.jsonl", "rollout-é.jsonl", "rollout-2026.jsonl", "notes.txt", &file(&place::meta(&child))]
    {
        assert_eq!(place::run_of(other), None, "{other}");
    }
}

#[test]
fn a_history_is_read_back() {
    let past = read(&[
        head(false),
        Entry::ResponseItem(Item::Context { role: ItemRole::User, text: "before".into() }),
        turn(1, "go"),
        usage(10, 5),
        assistant(Some("I look"), &["a", "b"]),
        done("b"),
        done("a"),
        usage(20, 5),
        assistant(Some("done"), &[]),
    ]);
    assert_eq!((past.context, past.begins, past.turn, past.turns), (1, 1, 1, 1));
    assert_eq!((past.steps, past.tokens), (2, 40));
    assert_eq!((past.ended.as_ref(), past.orphans.len(), past.damaged), (None, 0, 0));
    assert_eq!(past.messages.len(), 5);
    // In the order of the calls, whichever was done first.
    assert_eq!(past.messages[3], Said::Results(vec![result("a"), result("b")]));
}

#[test]
fn calls_without_a_result_have_one_made_up_once() {
    let mut entries = vec![head(false), turn(1, "go"), assistant(None, &["a", "b"]), done("a")];
    let past = read(&entries);
    let orphan = ItemResult { error: true, text: ORPHANED.into(), ..result("b") };
    assert_eq!(past.orphans, std::slice::from_ref(&orphan));
    assert_eq!(past.messages.last(), Some(&Said::Results(vec![result("a"), orphan.clone()])));
    // Once it is in the file it is a result like any other.
    entries.push(head(true));
    entries.push(Entry::ResponseItem(Item::ToolResult(orphan)));
    let again = read(&entries);
    assert_eq!((again.orphans.len(), &again.messages), (0, &past.messages));
}

#[test]
fn a_turn_that_ended_is_told_apart_from_one_that_goes_on() {
    let mut entries = vec![head(false), turn(1, "go"), assistant(Some("done"), &[]), ended(1)];
    let past = read(&entries);
    assert!(!past.is_in_turn());
    assert!(matches!(&past.ended, Some((1, TurnOutcome::Result(r))) if r.text.as_deref() == Some("done")));
    entries.push(turn(2, "again"));
    let past = read(&entries);
    assert!(past.is_in_turn() && past.first.is_some());
    assert_eq!((past.turn, past.turns, past.begins, past.tokens), (2, 2, 2, 0));
    assert!(!read(&[head(false)]).is_in_turn());
}

#[test]
fn a_compacted_history_takes_the_place_of_the_whole() {
    let short = vec![
        Item::Context { role: ItemRole::User, text: "before".into() },
        Item::Turn { turn: 1, text: "go".into() },
        Item::Told { text: "what was done".into() },
        Item::Assistant {
            text: None,
            calls: vec![ItemCall { id: "z".into(), name: "x".into(), args: json!({}) }],
            partial: false,
        },
        Item::ToolResult(ItemResult { name: "x".into(), ..result("z") }),
    ];
    let past = read(&[
        head(false),
        turn(1, "go"),
        assistant(None, &["a"]),
        done("a"),
        usage(7, 0),
        Entry::ResponseItem(Item::Compacted { history: short }),
        assistant(Some("on"), &[]),
    ]);
    assert_eq!((past.messages.len(), past.context, past.begins, past.turns), (6, 1, 1, 1));
    assert_eq!((past.tokens, past.damaged), (7, 0));
}

#[test]
fn an_attempt_from_the_beginning_forgets_the_one_before() {
    let past = read(&[head(false), turn(1, "go"), assistant(None, &["a"]), head(false), turn(1, "go")]);
    assert_eq!((past.messages.len(), past.turns, past.orphans.len()), (1, 1, 0));
}

#[test]
fn damaged_lines_are_left_out_and_the_history_stays_whole() {
    let entries = [
        head(false),
        turn(1, "go"),
        assistant(Some("look"), &["a"]),
        done("a"),
        assistant(Some("done"), &[]),
    ];
    let lines: Vec<Vec<u8>> = entries.iter().map(|entry| line(AT, entry)).collect();
    let whole = lines.concat();
    // However a file is cut, what is left of it is a history with one result for each call.
    for cut in 0..=whole.len() {
        is_whole(&read_file(&whole[..cut]));
    }
    for gone in 0..lines.len() {
        let mut some = lines.clone();
        some[gone] = b"\0\0\0 not a line\n".to_vec();
        let past = read_file(&some.concat());
        is_whole(&past);
        // A result without its call makes no sense any more.
        assert_eq!(past.damaged, if gone == 2 { 2 } else { 1 }, "without line {gone}");
    }
}

fn is_whole(past: &Past) {
    for (at, said) in past.messages.iter().enumerate() {
        match said {
            Said::Assistant { calls, .. } if !calls.is_empty() => {
                let Some(Said::Results(results)) = past.messages.get(at + 1) else {
                    panic!("calls without results: {past:?}")
                };
                assert!(calls.iter().map(|c| &c.id).eq(results.iter().map(|r| &r.id)));
            }
            Said::Results(_) => {
                assert!(matches!(&past.messages[at - 1], Said::Assistant { calls, .. } if !calls.is_empty()));
            }
            Said::User(_) | Said::Assistant { .. } => {}
        }
    }
}

/// A supervisor that is killed takes its children along. They say so, and the run they served has not ended.
#[test]
fn a_turn_whose_process_was_ended_goes_on() {
    let outcome = TurnOutcome::Result(RunResult {
        end: LoopEnd::Cancelled,
        text: None,
        partial: true,
        error: Some("cancelled: the supervisor is gone".into()),
        evidence: LoopEvidence::default(),
    });
    let stopped = Entry::ResponseItem(Item::Ended { turn: 1, outcome: outcome.clone(), stopped: true });
    let past = read(&[head(false), turn(1, "go"), assistant(None, &["a"]), done("a"), stopped.clone()]);
    assert!(past.is_in_turn() && past.ended.is_none() && past.first.is_none());
    // A turn that was taken back is over, whatever came of its process.
    let taken_back = Entry::ResponseItem(Item::Ended { turn: 1, outcome, stopped: false });
    let past = read(&[head(false), turn(1, "go"), taken_back, stopped]);
    assert!(!past.is_in_turn() && past.ended.is_some());
}

//! The flight recorder: a journal rebuilds the core, and the core decides the same again.

use crate::place::Place;
use agentd::journal::Reader;
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::machine::Machine;
use agentd_core::supervisor::Core;
use serde_json::Value;
use std::fs;

#[test]
fn a_journal_fed_to_a_fresh_core_comes_to_the_same_answer() {
    let place = Place::new();
    place.write("data/a.txt", "TODO\n");
    place.write("data/b.txt", "TODO\nTODO\n");
    place.write(
        "agentd.yaml",
        "agent: {workspace: data}\nintelligence: {dialect: mock, endpoints: [\"mock:builtin\"]}\n\
         mcp: {servers: [{name: files, builtin: files}, {name: s, command: cat, required: false, env: {TOKEN: canary-51c2}}]}\n\
         lifecycle: {journal: flight}\n",
    );
    let ran = place.agentd(&["run", "--json", "Which lines mention \"TODO\"?"]);
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["status"], "completed", "{answer}");

    let reader = Reader::open(&place.path("flight")).expect("a journal");
    let header = reader.header().clone();
    let mut core = Core::new(header.config, header.began);
    let mut actions = Vec::new();
    let mut first = Vec::new();
    for decision in reader {
        let decision = decision.expect("a whole journal");
        assert!(!matches!(actions.last(), Some(Action::Exit { .. })), "an event after the end");
        if first.len() < 2 {
            first.push(decision.event.clone());
        }
        core.handle(decision.now, decision.event, &mut actions);
    }
    assert!(matches!(first.as_slice(), [Event::Seeded { .. }, Event::PromptSubmitted { .. }]), "{first:?}");
    let delivered: Vec<&Action> = actions.iter().filter(|a| matches!(a, Action::Deliver { .. })).collect();
    let [Action::Deliver { result, .. }] = delivered.as_slice() else { panic!("{delivered:?}") };
    assert_eq!(serde_json::to_value(&result.result).expect("JSON"), answer["result"]);
    assert_eq!(serde_json::to_value(result.run_id).expect("JSON"), answer["run_id"]);
    assert!(matches!(actions.last(), Some(Action::Exit { leaked: 0, .. })), "{:?}", actions.last());

    let bytes = fs::read(place.path("flight")).expect("readable");
    assert!(
        !bytes.windows(11).any(|window| window == b"canary-51c2"),
        "a server's variable is in the journal"
    );
    assert!(!ran.err.contains("canary-51c2"), "a server's variable is in the log");
}

#[test]
fn a_demo_is_decided_again_and_its_runs_are_told() {
    let place = Place::new();
    place.write("data/a.txt", "TODO\n");
    place.write("data/b.txt", "TODO\nTODO\n");
    place.write("data/c/d.txt", "nothing\n");
    let demo = place.agentd(&["demo", "data", "--journal", "flight"]);
    assert_eq!(demo.code, Some(0), "{}", demo.err);
    assert!(demo.out.ends_with("0 processes left\n"), "{}", demo.out);

    let quiet = place.agentd(&["replay", "--quiet", "flight"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""), "{}", quiet.out);
    assert!(quiet.out.ends_with("actions compared: every action is as recorded\n"), "{}", quiet.out);
    assert_eq!(quiet.out.lines().count(), 2, "{}", quiet.out);

    let whole = place.agentd(&["replay", "flight"]);
    assert_eq!(whole.code, Some(0));
    for part in [
        "a person asks: \"How many text files",
        "make a process for sub-1",
        "because: subagent.spawn sub-1",
        "sub-1 says: it is ready",
        "end: nothing is left",
    ] {
        assert!(whole.out.contains(part), "{part}:\n{}", whole.out);
    }
    let part = place.agentd(&["replay", "flight", "--from", "3", "--to", "4"]);
    let printed: Vec<&str> = part.out.lines().filter(|line| line.starts_with('#')).collect();
    assert!(
        matches!(printed.as_slice(), [three, four] if three.starts_with("#3 ") && four.starts_with("#4 ")),
        "{}",
        part.out
    );
    let json = place.agentd(&["replay", "--json", "flight"]);
    let lines: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    assert_eq!(lines.last().map(|end| end["end"].clone()), Some("same".into()));
    assert_eq!(lines[0]["n"], 1);

    let story = place.agentd(&["replay", "--explain", "sub-1", "flight"]);
    assert_eq!((story.code, story.err.as_str()), (Some(0), ""), "{}", story.out);
    let mut rest = story.out.lines();
    for part in [
        "the conversation asks for it, in its tool call",
        "its process is asked for",
        "it is handed its work:",
        "it is ready,",
        "its tool grep answered, after",
        "it says its result: completed with",
        "its outcome is decided, completed",
    ] {
        assert!(rest.any(|line| line.contains(part)), "{part:?} is not in its place:\n{}", story.out);
    }
    // The process may be gone before the answer is on record, or after.
    let rest: Vec<&str> = rest.collect();
    let line_of = |part: &str| rest.iter().position(|line| line.contains(part));
    let (told, ended, gone) = (
        line_of("the conversation is told: the answer to call"),
        line_of("its process ended with code 0"),
        line_of("its pid is free"),
    );
    assert!(told.is_some() && ended.is_some() && ended < gone, "{}", story.out);
    let root = place.agentd(&["replay", "--explain", "root", "flight"]);
    assert!(root.out.contains("prompt 1 is answered: completed"), "{}", root.out);
    let by_id =
        story.out.split("run 0").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("its id");
    let by_id = place.agentd(&["replay", "--explain", &format!("0{by_id}"), "flight"]);
    assert_eq!(by_id.out, story.out);
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let place = Place::new();
    place.write("data/a.txt", "TODO\n");
    assert_eq!(place.agentd(&["demo", "data", "--journal", "flight"]).code, Some(0));
    let nobody = place.agentd(&["replay", "--explain", "sub-99", "flight"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (Some(2), ""));
    assert!(nobody.err.contains("no such run in this journal; there are root, sub-1"), "{}", nobody.err);
    let odd = place.agentd(&["replay", "--explain", "seven", "flight"]);
    assert!(odd.code == Some(2) && odd.err.contains("a handle such as sub-7"), "{}", odd.err);
    let none = place.agentd(&["replay", "nowhere"]);
    assert!(none.code == Some(2) && none.err.contains("nowhere: cannot read it"), "{}", none.err);
    place.write("notes", "agentd journal 1\nsome");
    let old = place.agentd(&["replay", "notes"]);
    assert!(
        old.code == Some(2) && old.err.contains("\"agentd journal 1\"; this agentd reads"),
        "{}",
        old.err
    );

    // A crash in the middle of a record.
    let bytes = fs::read(place.path("flight")).expect("readable");
    fs::write(place.path("flight"), &bytes[..bytes.len() - 40]).expect("written");
    let torn = place.agentd(&["replay", "--quiet", "flight"]);
    assert_eq!(torn.code, Some(0), "{}", torn.out);
    assert!(torn.out.contains("as after a crash"), "{}", torn.out);
    // The last record's beginning is another number now.
    let mut changed = bytes.clone();
    let at = changed.windows(6).rposition(|window| window == b"status").expect("a result");
    changed[at] = b'S';
    fs::write(place.path("flight"), &changed).expect("written");
    let differs = place.agentd(&["replay", "--quiet", "flight"]);
    assert_eq!(differs.code, Some(1), "{}", differs.out);
    assert!(
        differs.out.contains("the first difference: flight, file 0 of the journal, event"),
        "{}",
        differs.out
    );
}

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
    for traced in reader {
        let traced = traced.expect("a whole journal");
        assert!(!matches!(actions.last(), Some(Action::Exit { .. })), "an event after the end");
        if first.len() < 2 {
            first.push(traced.event.clone());
        }
        core.handle(traced.now, traced.event, &mut actions);
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

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn dots_and_other_characters_become_underscores() {
    let names = WireNames::new(["subagent.run", "files/read", "größe", "plain-name_1"]);
    assert_eq!(names.wire("subagent.run"), Some("subagent_run"));
    assert_eq!(names.wire("files/read"), Some("files_read"));
    assert_eq!(names.wire("größe"), Some("gr__e"));
    assert_eq!(names.wire("plain-name_1"), Some("plain-name_1"));
    assert_eq!(names.registry("subagent_run"), Some("subagent.run"));
    assert_eq!(names.registry("subagent.run"), None);
    assert_eq!(names.wire("other"), None);
}

#[test]
fn a_clash_gets_a_number_and_a_legal_name_keeps_its_own() {
    let names = WireNames::new(["a.b", "a/b", "a_b", "a_b_2"]);
    assert_eq!(names.wire("a_b"), Some("a_b"));
    assert_eq!(names.wire("a_b_2"), Some("a_b_2"));
    assert_eq!(names.wire("a.b"), Some("a_b_3"));
    assert_eq!(names.wire("a/b"), Some("a_b_4"));
    assert_eq!(names.registry("a_b_3"), Some("a.b"));
}

#[test]
fn whoever_came_first_keeps_its_name() {
    let mut names = WireNames::new(["subagent.run", "finish"]);
    names.add(["subagent_run", "files.read", "subagent_run_2"]);
    assert_eq!(names.wire("subagent.run"), Some("subagent_run"));
    assert_eq!(names.wire("subagent_run"), Some("subagent_run_2"));
    assert_eq!(names.wire("subagent_run_2"), Some("subagent_run_2_2"));
    assert_eq!(names.registry("subagent_run_2"), Some("subagent_run"));
    let numbered: Vec<_> = names.numbered().collect();
    assert_eq!(numbered, [("subagent_run", "subagent_run_2"), ("subagent_run_2", "subagent_run_2_2")]);
}

#[test]
fn long_names_are_cut_and_stay_apart() {
    let (one, two) = ("x".repeat(100), format!("{}y", "x".repeat(100)));
    let names = WireNames::new([one.as_str(), two.as_str()]);
    assert_eq!(names.wire(&one).map(str::len), Some(64));
    assert_eq!(names.wire(&two), Some(format!("{}_2", "x".repeat(62)).as_str()));
}

#[test]
fn any_name_has_a_legal_echo() {
    assert_eq!(legal(""), "unnamed");
    assert_eq!(legal("\u{1b}[2J"), "__2J");
    assert_eq!(legal(&"🙂".repeat(10_000)), "_".repeat(64));
}

proptest! {
    #[test]
    fn the_table_is_reversible(list in proptest::collection::vec("[a.b/_2]{1,4}|\\PC{0,80}", 0..40)) {
        let names = WireNames::new(list.iter().map(String::as_str));
        let mut wires = BTreeSet::new();
        for name in list.iter().collect::<BTreeSet<_>>() {
            let wire = names.wire(name).unwrap();
            prop_assert!(is_legal(wire), "{}", wire);
            prop_assert!(wires.insert(wire.to_owned()));
            prop_assert_eq!(names.registry(wire), Some(name.as_str()));
        }
    }
}

use super::*;
use proptest::prelude::*;

fn grant(patterns: &[&str]) -> Grant {
    let texts: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
    Grant::parse("tools", Some(&texts)).unwrap()
}

#[test]
fn patterns_are_exact_prefix_or_everything() {
    for (pattern, name, want) in [
        ("read", "read", true),
        ("read", "reader", false),
        ("read*", "read", true),
        ("read*", "reader", true),
        ("read*", "rea", false),
        ("files.*", "files.read", true),
        ("files.*", "filesXread", false),
        ("*", "anything", true),
        ("Read", "read", false),
    ] {
        assert_eq!(Pattern::parse(pattern).unwrap().matches(name), want, "{pattern} {name}");
    }
}

#[test]
fn a_pattern_shows_as_it_is_written() {
    let pattern = Pattern::parse("files.*").unwrap();
    assert_eq!(
        (format!("{pattern}"), format!("{pattern:?}")),
        ("files.*".to_owned(), "\"files.*\"".to_owned())
    );
}

#[test]
fn what_is_no_pattern_says_what_is_accepted() {
    let long = "x".repeat(NAME_CHARS + 1);
    let cases = ["", "a b", "a\tb", "a\u{2028}b", "a\0b", "*a", "a*b", "**", "\u{1b}[2J", long.as_str()];
    for text in cases {
        let error = Pattern::parse(text).unwrap_err().to_string();
        assert!(error.contains("accepted are"), "{error}");
        assert!(error.len() < 600 && !error.contains('\u{1b}') && !error.contains('\0'), "{error}");
    }
    assert!(Pattern::parse(&"ä".repeat(NAME_CHARS)).is_ok());
}

#[test]
fn every_bad_entry_of_a_callers_list_is_named() {
    let list = ["read".to_owned(), "a b".to_owned(), "*x".to_owned()];
    let problems = Grant::parse("tools", Some(&list)).unwrap_err();
    let fields: Vec<&str> = problems.iter().map(|p| p.field.as_str()).collect();
    assert_eq!(fields, ["tools[1]", "tools[2]"]);
}

#[test]
fn a_minted_grant_that_cannot_be_read_grants_nothing() {
    let (granted, problems) = Grant::minted(Some(&["read".to_owned(), "a b".to_owned()]));
    assert_eq!(granted, Grant::NOTHING);
    assert_eq!(problems.len(), 1);
    assert!(!granted.allows("read"));
    assert_eq!(Grant::minted(None), (Grant::ALL, Vec::new()));
    assert_eq!(Grant::minted(Some(&[])), (Grant::NOTHING, Vec::new()));
}

#[test]
fn narrowing_keeps_what_both_allow() {
    for (own, asked, want) in [
        (vec!["files.*"], vec!["files.read", "web.get"], vec!["files.read"]),
        (vec!["files.read"], vec!["*"], vec!["files.read"]),
        (vec!["*"], vec!["files.*"], vec!["files.*"]),
        (vec!["a*", "ab*"], vec!["abc"], vec!["abc"]),
        (vec!["files.*"], vec![], vec![]),
        (vec![], vec!["*"], vec![]),
        (vec!["a*"], vec!["b*"], vec![]),
    ] {
        assert_eq!(grant(&own).narrow(&grant(&asked)), grant(&want), "{own:?} {asked:?}");
    }
    assert_eq!(Grant::ALL.narrow(&grant(&["a"])), grant(&["a"]));
    assert_eq!(grant(&["a"]).narrow(&Grant::ALL), grant(&["a"]));
    assert_eq!(Grant::ALL.narrow(&Grant::ALL), Grant::ALL);
}

#[test]
fn what_grants_nothing_can_be_reported() {
    let asked = grant(&["files.read", "web.*"]);
    let missed: Vec<String> = grant(&["files.*"]).misses(&asked).iter().map(|p| p.to_string()).collect();
    assert_eq!(missed, ["web.*"]);
    let unmatched: Vec<String> =
        asked.unmatched(["files.list", "web.get"]).iter().map(|p| p.to_string()).collect();
    assert_eq!(unmatched, ["files.read"]);
    assert!(Grant::ALL.unmatched([]).is_empty());
}

fn any_grant() -> impl Strategy<Value = Grant> {
    proptest::option::of(proptest::collection::vec("[ab.]{0,3}\\*?", 0..4)).prop_map(|list| {
        let list = list.map(|l| l.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>());
        Grant::parse("tools", list.as_deref()).unwrap()
    })
}

proptest! {
    #[test]
    fn narrowing_is_exactly_both(own in any_grant(), asked in any_grant(), name in "[ab.]{0,4}") {
        let narrowed = own.narrow(&asked);
        prop_assert_eq!(narrowed.allows(&name), own.allows(&name) && asked.allows(&name));
    }

    #[test]
    fn a_grant_survives_the_wire(grant in any_grant()) {
        let list = grant.to_patterns();
        prop_assert_eq!(Grant::minted(list.as_deref()), (grant, Vec::new()));
    }

    #[test]
    fn reading_never_panics(text in "\\PC{0,300}|.{0,8}") {
        if let Ok(pattern) = Pattern::parse(&text) {
            prop_assert_eq!(pattern.to_string(), text);
        }
    }
}

use super::*;
use crate::model::WireNames;
use crate::wire::message::{Files, Transport};
use proptest::prelude::*;

fn server(name: &str, ns: Option<&str>) -> Server {
    Server {
        name: name.to_owned(),
        ns: ns.map(str::to_owned),
        transport: Transport::Files(Files { root: "/".to_owned(), write: false }),
        allow: None,
        exclude: Vec::new(),
        timeout_ms: 1,
        start_timeout_ms: 1,
        required: true,
    }
}

fn offers(list: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    list.iter().map(|(s, t)| ((*s).to_owned(), t.iter().map(|t| (*t).to_owned()).collect())).collect()
}

fn texts(names: &Names) -> Vec<&str> {
    names.names.iter().map(|n| n.name.as_str()).collect()
}

fn tool(server: &str, tool: &str, name: &str) -> ToolName {
    ToolName { server: server.to_owned(), tool: tool.to_owned(), name: name.to_owned() }
}

#[test]
fn a_namespace_prefixes_and_no_namespace_does_not() {
    let found = names(
        &[server("files", None), server("repo", Some("git"))],
        &offers(&[("files", &["read", "list"]), ("repo", &["log"]), ("stranger", &["x"])]),
        &[],
    );
    assert_eq!(texts(&found), ["read", "list", "git.log"]);
    assert_eq!((found.collisions.len(), found.unusable.len()), (0, 0));
    assert_eq!(found.find("git.log").map(|n| n.tool.as_str()), Some("log"));
    assert_eq!(found.find("log"), None);
}

#[test]
fn every_party_of_a_collision_is_qualified() {
    let found = names(
        &[server("a", None), server("b", None), server("c", Some("x"))],
        &offers(&[("a", &["read", "one"]), ("b", &["read"]), ("c", &["read"])]),
        &[],
    );
    assert_eq!(texts(&found), ["a.read", "one", "b.read", "x.read"]);
    assert_eq!(found.collisions, ["the tool name read is wanted more than once: now a.read, b.read"]);
}

#[test]
fn a_known_name_stands_and_the_newcomer_gives_way() {
    let known = [tool("a", "read", "read")];
    let found = names(
        &[server("b", None), server("a", None)],
        &offers(&[("a", &["read"]), ("b", &["read"])]),
        &known,
    );
    assert_eq!(texts(&found), ["b.read", "read"]);
}

#[test]
fn a_known_name_is_kept_from_others_even_when_its_server_is_not_here() {
    let found = names(&[server("b", None)], &offers(&[("b", &["read"])]), &[tool("a", "read", "read")]);
    assert_eq!(texts(&found), ["b.read"]);
}

#[test]
fn no_server_takes_a_name_of_the_supervisors_tools() {
    let found = names(
        &[server("a", Some("subagent")), server("subagent", None), server("b", None)],
        &offers(&[("a", &["run"]), ("subagent", &["run", "status"]), ("b", &["finish", "delegate"])]),
        &[],
    );
    assert_eq!(
        texts(&found),
        ["a.run", "run", "subagent_2.status", "b.finish", "b.delegate"],
        "a qualified name inside a reserved namespace moves out of it"
    );
}

#[test]
fn qualified_names_that_meet_plain_ones_are_settled_too() {
    let found = names(
        &[server("files", None), server("x", None), server("z", None)],
        &offers(&[("files", &["x.y"]), ("x", &["y"]), ("z", &["y"])]),
        &[],
    );
    assert_eq!(texts(&found), ["files.x.y", "x.y", "z.y"]);
    let found = names(
        &[server("a", None), server("a.b", None), server("q", None), server("r", None)],
        &offers(&[("a", &["b.c"]), ("a.b", &["c"]), ("q", &["c"]), ("r", &["b.c"])]),
        &[],
    );
    assert_eq!(texts(&found), ["a.b.c", "a.b.c_2", "q.c", "r.b.c"]);
}

#[test]
fn allow_and_exclude_hold_and_exclude_wins() {
    let mut s = server("web", None);
    s.allow = Some(vec!["get*".to_owned(), "post_x".to_owned()]);
    s.exclude = vec!["post_*".to_owned()];
    assert!(server_allows(&s, "get_page"));
    assert!(!server_allows(&s, "post_x"));
    assert!(!server_allows(&s, "other"));
    let found = names(&[s], &offers(&[("web", &["get_page", "post_x", "other"])]), &[]);
    assert_eq!(texts(&found), ["get_page"]);
}

#[test]
fn a_list_that_cannot_be_read_lets_nothing_through() {
    let mut s = server("web", None);
    s.exclude = vec!["a b".to_owned()];
    assert!(!server_allows(&s, "get"));
    s.exclude.clear();
    s.allow = Some(vec!["get".to_owned(), "*x".to_owned()]);
    assert!(!server_allows(&s, "get"));
    s.allow = Some(Vec::new());
    assert!(!server_allows(&s, "get"));
}

#[test]
fn names_that_no_grant_could_spell_are_not_offered() {
    let long = "x".repeat(300);
    let found = names(
        &[server("s", None)],
        &offers(&[("s", &["", "a b", "a*", "\u{1b}[2Jx", long.as_str(), "good", "good"])]),
        &[],
    );
    assert_eq!(texts(&found), ["good"]);
    assert_eq!(found.unusable.len(), 5);
    assert!(found.unusable.iter().all(|u| !u.contains('\u{1b}') && u.len() < 400));
}

proptest! {
    #[test]
    fn every_name_is_unique_and_known_ones_stand(
        servers in proptest::collection::btree_map("[ab.]{1,2}|subagent", (proptest::option::of("[ab.]{1,2}|plan"), proptest::collection::vec("[abc.]{1,3}|status|run", 0..4)), 0..5),
        fix in 0usize..3,
    ) {
        let list: Vec<Server> = servers.iter().map(|(n, (ns, _))| server(n, ns.as_deref())).collect();
        let offered: BTreeMap<String, Vec<String>> =
            servers.iter().map(|(n, (_, tools))| (n.clone(), tools.clone())).collect();
        let first = names(&list[..fix.min(list.len())], &offered, &[]);
        let found = names(&list, &offered, &first.names);
        let unique: BTreeSet<&str> = texts(&found).into_iter().collect();
        prop_assert_eq!(unique.len(), found.names.len(), "{:?}", found);
        for known in &first.names {
            prop_assert!(found.names.contains(known), "{:?} {:?}", known, found);
        }
        for name in &found.names {
            prop_assert!(!is_taken(&name.name, &BTreeSet::new()), "{:?}", name);
        }
        prop_assert_eq!(names(&list, &offered, &found.names).names, found.names);
    }

    /// Whatever servers call their tools: each that is let through has one name or a sentence on why it has none, and
    /// the way back from a provider's wire over the registry ends at the tool it began at.
    #[test]
    fn names_lead_back_to_their_tools(
        servers in proptest::collection::btree_map("[a-z.]{1,2}|[a-z0-9_-]{60,70}|\\PC{1,4}", (proptest::option::of("[a-z.]{1,3}|\\PC{1,3}"), proptest::collection::vec("[a-c._/]{1,3}|\\PC{0,8}|[xé]{250,260}", 0..8)), 0..5),
        own in proptest::sample::subsequence(vec!["subagent.run", "plan.set", "status", "finish"], 0..4),
    ) {
        let list: Vec<Server> = servers.iter().map(|(n, (ns, _))| server(n, ns.as_deref())).collect();
        let offered: BTreeMap<String, Vec<String>> =
            servers.iter().map(|(n, (_, tools))| (n.clone(), tools.clone())).collect();
        let found = names(&list, &offered, &[]);
        let tools: BTreeSet<(&str, &str)> =
            offered.iter().flat_map(|(s, tools)| tools.iter().map(move |t| (s.as_str(), t.as_str()))).collect();
        prop_assert_eq!(found.names.len() + found.unusable.len(), tools.len());
        let wire = WireNames::new(own.iter().copied().chain(found.names.iter().map(|name| name.name.as_str())));
        for name in &found.names {
            prop_assert!(tools.contains(&(name.server.as_str(), name.tool.as_str())));
            let spoken = wire.wire(&name.name).expect("every registry name has one");
            prop_assert!(spoken.len() <= 64 && spoken.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
            let back = wire.registry(spoken).and_then(|registry| found.find(registry));
            prop_assert_eq!(back, Some(name));
        }
    }
}

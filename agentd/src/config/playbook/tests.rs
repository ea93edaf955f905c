use super::*;

fn place(text: &str, path: &str) -> (u32, u32) {
    let mut problems = Vec::new();
    let source = Source::file(Path::new("p.yaml"), 0, text.to_owned());
    let tree = yaml::parse(&source, &mut problems).expect("a tree");
    let place = place_of(&tree, path);
    (place.line, place.column)
}

#[test]
fn a_path_leads_back_to_its_line() {
    let text = "rules:\n  - match: {turn: 1}\n    reply:\n      text: hi\n      calls:\n        - {name: a.b, args: {a.b: 1, a: {b: 2}}}\n";
    assert_eq!(place(text, "rules[0].reply.text"), (4, 13));
    assert_eq!(place(text, "rules[0].match"), (2, 5));
    assert_eq!(place(text, "rules[0].reply.calls[0].args.a.b"), (6, 35));
    assert_eq!(place(text, "rules[0].reply.calls[7].name"), (5, 7));
    assert_eq!(place(text, "rules[0].nothing.here"), (2, 5));
    assert_eq!(place(text, ""), (1, 1));
    assert_eq!(place(text, "]][[.."), (1, 1));
}

#[test]
fn the_playbook_inside_agentd_has_no_problems() {
    let mut problems = Vec::new();
    let json = builtin(&mut problems);
    assert!(problems.is_empty(), "{}", super::super::problem::render(&problems));
    assert!(json.is_some());
}

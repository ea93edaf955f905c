use super::*;
use std::fmt::Write as _;
use std::path::Path;

fn read(text: &str) -> (Option<Node>, Vec<Problem>) {
    let source = Source::file(Path::new("a.yaml"), 0, text.to_owned());
    let mut problems = Vec::new();
    (parse(&source, &mut problems), problems)
}

/// The tree as one line: scalars with their place.
fn flat(node: &Node) -> String {
    let place = format!("@{}:{}", node.place.line, node.place.column);
    match &node.value {
        Value::Scalar(scalar) => format!("{:?}{place}", scalar.text),
        Value::List(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(" ")),
        Value::Map(entries) => {
            let mut text = String::from("{");
            for entry in entries {
                let _ = write!(text, "{}@{}:{}=", entry.key, entry.place.line, entry.place.column);
                text.push_str(&flat(&entry.node));
                text.push(' ');
            }
            text.trim_end().to_owned() + "}"
        }
    }
}

fn tree(text: &str) -> String {
    let (node, problems) = read(text);
    assert!(problems.is_empty(), "{problems:?}");
    flat(&node.expect("a tree"))
}

#[test]
fn yaml_and_json_give_trees_with_places() {
    assert_eq!(
        tree("a: 1\nb:\n  - x\n  - {c: 'é', d: 2}\n"),
        r#"{a@1:1="1"@1:4 b@2:1=["x"@3:5 {c@4:6="é"@4:9 d@4:14="2"@4:17}]}"#
    );
    assert_eq!(tree("{\n\t\"a\": 1,\n\t\"b\": [true]\n}\n"), r#"{a@2:2="1"@2:7 b@3:2=["true"@3:8]}"#);
    assert_eq!(
        tree("a: |\n  one\n  two\nb: 2\r\nc: 3\r\n"),
        r#"{a@1:1="one\ntwo\n"@2:3 b@4:1="2"@4:4 c@5:1="3"@5:4}"#
    );
    assert_eq!(tree("\u{feff}a: 1\n"), r#"{a@1:1="1"@1:4}"#);
}

#[test]
fn an_empty_text_is_an_empty_map() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "--- ~\n", "null"] {
        assert_eq!(tree(text), "{}", "{text:?}");
    }
}

#[test]
fn aliases_are_followed_and_keep_the_place_of_what_they_name() {
    assert_eq!(tree("a: &x [1]\nb: *x\n"), r#"{a@1:1=["1"@1:8] b@2:1=["1"@1:8]}"#);
    let (node, problems) = read("a: &x [*x]\n");
    assert!(node.is_none());
    assert_eq!((problems[0].line, problems[0].column), (1, 8), "{problems:?}");
    assert!(read("a: *nowhere\n").0.is_none());
}

#[test]
fn an_alias_bomb_ends_within_bounds() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let refs = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{refs}]");
    }
    let (node, problems) = read(&text);
    assert!(node.is_none());
    assert_eq!(problems[0].code, Code::TooLarge, "{problems:?}");

    let big = format!("a: &a {}\nb: [{}]\n", "y".repeat(500_000), vec!["*a"; 5_000].join(", "));
    assert_eq!(read(&big).1[0].code, Code::TooLarge);
}

#[test]
fn nesting_is_bounded_however_it_is_written() {
    let levels = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(read(&levels(DEPTH)).0.is_some());
    assert!(read(&levels(DEPTH + 1)).0.is_none());
    assert!(read(&levels(200_000)).0.is_none());
    assert!(read(&"- ".repeat(100_000)).0.is_none());
    let by_alias = format!("a: &a {}\nb: &b {}*a{}\n", levels(40), "[".repeat(40), "]".repeat(40));
    let (node, problems) = read(&by_alias);
    assert!(node.is_none());
    assert_eq!(problems[0].code, Code::TooLarge, "{problems:?}");
}

#[test]
fn what_a_configuration_has_no_use_for_is_refused_with_its_place() {
    for (text, line, column, words) in [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "stands twice; the first is on line 1"),
        ("a: {x: 1, x: 2}\n", 1, 11, "stands twice"),
        ("a: 1\n---\nb: 2\n", 2, 1, "second document"),
        ("a: !secret x\n", 1, 4, "tags are not accepted"),
        ("a: {{secret:X}}\n", 1, 5, "a key must be text"),
        ("[1]: 2\n", 1, 1, "a key must be text"),
        ("a: [1\n", 1, 4, "unclosed bracket"),
        ("a: \"x\n", 1, 4, "unclosed quote"),
        ("a: b: c\n", 1, 5, ""),
        ("a:\n\t- b\n", 2, 2, "tabs"),
    ] {
        let (_, problems) = read(text);
        let first = problems.first().unwrap_or_else(|| panic!("{text:?} has no problem"));
        assert_eq!((first.line, first.column), (line, column), "{text:?}: {first}");
        assert!(first.message.contains(words), "{text:?}: {first}");
    }
}

#[test]
fn a_duplicate_does_not_hide_what_comes_after_it() {
    let (node, problems) = read("a: 1\na: {b: 2}\nc: 3\nc: 4\n");
    assert_eq!(problems.len(), 2);
    assert_eq!(flat(&node.expect("a tree")), r#"{a@1:1="1"@1:4 c@3:1="3"@3:4}"#);
}

#[test]
fn thousands_of_keys_or_problems_do_not_take_quadratic_time() {
    let mut many = String::new();
    for n in 0..30_000 {
        let _ = writeln!(many, "k{n}: {n}");
    }
    let (node, problems) = read(&many);
    assert!(node.is_some() && problems.is_empty());
    let same = format!("{{{}}}", vec!["k: 1"; 30_000].join(", "));
    assert_eq!(read(&same).1.len(), 29_999);
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix and every one-byte change of a text that uses most of the syntax.
    let text = "a: &x {b: 'c', \"d\\u00e9\": [1, *y]}\ne: |-\n  f\n  g\n? h\n: >\n  i\n# j\nk: !!str ~\n";
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        for change in
            [b'\0', b'\t', b'\n', b'\r', b' ', b'"', b'&', b'*', b'-', b':', b'?', b'[', b'{', b'}', 0xff]
        {
            let mut changed = bytes.to_vec();
            changed[at] = change;
            let _ = read(&String::from_utf8_lossy(&changed));
            let _ = read(&String::from_utf8_lossy(&changed[..at]));
        }
    }
}

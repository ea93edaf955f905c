//! The field's bad arguments (F17) and the borders of every bound.

use super::{JsonProblem, PARSER_DEPTH, object};
use crate::limits::{ARGUMENT_BYTES, ARGUMENT_DEPTH};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> Result<Value, JsonProblem> {
    object(text.as_bytes(), ARGUMENT_BYTES, ARGUMENT_DEPTH).map(Value::Object)
}

fn nested(depth: usize) -> String {
    format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
}

#[test]
fn objects_are_read() {
    assert_eq!(read("{}"), Ok(json!({})));
    assert_eq!(
        read(" {\n\"a\" : [1, -2, 2.5, null, true, \"x\"]}\t"),
        Ok(json!({"a": [1, -2, 2.5, null, true, "x"]}))
    );
    assert_eq!(
        read(r#"{"a": {"a": {"a": 1}}, "b": {"a": 1}}"#),
        Ok(json!({"a": {"a": {"a": 1}}, "b": {"a": 1}}))
    );
    assert_eq!(read(r#"{"big": 18446744073709551615}"#), Ok(json!({"big": u64::MAX})));
}

#[test]
fn other_values_say_what_they_are() {
    for (text, seen) in [
        ("[]", "an array"),
        ("\"x\"", "a string"),
        ("null", "null"),
        ("7", "a number"),
        ("true", "a boolean"),
    ] {
        assert_eq!(read(text), Err(JsonProblem::NotAnObject { seen }));
    }
    let said = JsonProblem::NotAnObject { seen: "an array" }.to_string();
    assert_eq!(said, "an array where an object is expected: send {\"name\": value, …}, or {} for none");
}

#[test]
fn what_is_not_json_says_where() {
    for (text, part) in [
        ("{", "was cut or never finished"),
        ("{\"a\": \"b", "was cut or never finished"),
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        ("{\"a\": NaN}", "near `NaN}`"),
        ("{\"a\": Infinity}", "near `Infinity}`"),
        ("{\"a\": 1e999}", "number out of range"),
        ("{\"a\":\n  tru}", "line 2"),
        ("{} {}", "trailing characters"),
        ("{'a': 1}", "key must be a string"),
        ("{\"a\": \"\u{1}\"}", "control character"),
        (r#"{"a": "\ud800"}"#, "not valid JSON"),
    ] {
        match read(text) {
            Err(JsonProblem::Syntax { what }) => {
                let said = JsonProblem::Syntax { what }.to_string();
                assert!(said.contains(part), "{text:?}: {said}");
                assert!(said.len() < 400 && !said.chars().any(char::is_control), "{said}");
            }
            other => panic!("{text:?} gave {other:?}"),
        }
    }
    assert!(matches!(object(b"{\"a\": \"\xff\"}", 100, 8), Err(JsonProblem::Syntax { .. })));
}

#[test]
fn a_key_twice_is_refused_at_every_level_and_in_every_spelling() {
    for text in
        [r#"{"a": 1, "a": 2}"#, r#"{"a": 1, "\u0061": 2}"#, r#"{"x": [{"y": {"a": 1, "b": 1, "a": 1}}]}"#]
    {
        assert_eq!(read(text), Err(JsonProblem::RepeatedKey { key: "a".into() }), "{text}");
    }
    let long = format!("{{\"{0}\": 1, \"{0}\": 1}}", "k".repeat(100_000));
    match read(&long) {
        Err(problem @ JsonProblem::RepeatedKey { .. }) => assert!(problem.to_string().len() < 400),
        other => panic!("{other:?}"),
    }
}

#[test]
fn length_is_judged_before_content() {
    let at = format!("{{\"a\":\"{}\"}}", "x".repeat(ARGUMENT_BYTES - 8));
    assert_eq!(at.len(), ARGUMENT_BYTES);
    assert!(read(&at).is_ok());
    let over = "}".repeat(ARGUMENT_BYTES + 1);
    assert_eq!(read(&over), Err(JsonProblem::TooLong { bytes: ARGUMENT_BYTES + 1, max: ARGUMENT_BYTES }));
}

#[test]
fn depth_is_judged_before_content() {
    assert!(read(&nested(ARGUMENT_DEPTH)).is_ok());
    assert_eq!(
        read(&nested(ARGUMENT_DEPTH + 1)),
        Err(JsonProblem::TooDeep { max: ARGUMENT_DEPTH, at: "{\"a\":".len() + ARGUMENT_DEPTH - 1 })
    );
    assert!(matches!(read(&nested(10_000)), Err(JsonProblem::TooDeep { .. })));
    assert!(matches!(read(&"[".repeat(ARGUMENT_BYTES)), Err(JsonProblem::TooDeep { .. })));
    let brackets_in_text = format!(r#"{{"a": "\"{}"}}"#, "[".repeat(1000));
    assert!(read(&brackets_in_text).is_ok());
}

#[test]
fn a_depth_the_parser_cannot_follow_is_still_too_deep_and_not_a_syntax_error() {
    let deep = |depth| object(nested(depth).as_bytes(), ARGUMENT_BYTES, usize::MAX);
    assert!(deep(PARSER_DEPTH).is_ok());
    assert!(matches!(deep(PARSER_DEPTH + 1), Err(JsonProblem::TooDeep { max: PARSER_DEPTH, .. })));
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(problem) = object(&bytes, 150, 3) {
            prop_assert!(problem.to_string().len() < 500);
        }
    }

    #[test]
    fn jsonish_text_is_read_as_serde_json_reads_it_or_refused(text in r#"[\[\]{}:,"a\\0-9eE.\- nultrfs]{0,40}"#) {
        match object(text.as_bytes(), 1000, 100) {
            Ok(map) => prop_assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(Value::Object(map))),
            Err(JsonProblem::NotAnObject { .. }) => {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
            }
            // What comes after the second key may be anything.
            Err(JsonProblem::RepeatedKey { .. }) => {}
            Err(_) => prop_assert!(serde_json::from_str::<Value>(&text).is_err()),
        }
    }
}

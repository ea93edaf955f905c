use super::fuzzing::distilled;
use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn objects_and_arrays_become_values_and_scalars_stay_text() {
    assert_eq!(distill("{\"a\": [1, null]}"), json!({"a": [1, null]}));
    assert_eq!(distill("\u{20}\r\n\t[ ]\n"), json!([]));
    for text in
        ["42", "-0.5e3", "\"quoted\"", "null", "true", "", " ", "{", "[1,]", "{'a':1}", "NaN", "[NaN]"]
    {
        assert_eq!(distill(text), json!(text));
    }
}

#[test]
fn prose_around_json_stays_text() {
    for text in ["Here: {\"a\":1}", "{\"a\":1} done", "```json\n{}\n```", "\u{feff}{}"] {
        assert_eq!(distill(text), json!(text));
    }
}

#[test]
fn text_is_cut_only_past_the_limit_and_at_a_character() {
    let exact = "x".repeat(RESULT_TEXT_BYTES);
    assert_eq!(distill(&exact), json!(exact));
    assert_eq!(distill(&format!("{exact}y")), json!(format!("{exact}… [truncated]")));
    // The limit falls inside the four bytes of the last character.
    for lead in 1..4 {
        let text = format!("{}{}", "x".repeat(RESULT_TEXT_BYTES - lead), "🙂".repeat(2));
        assert_eq!(distill(&text), json!(format!("{}… [truncated]", "x".repeat(RESULT_TEXT_BYTES - lead))));
    }
}

#[test]
fn values_are_never_cut() {
    let value = json!({"rows": vec!["x".repeat(100); 1000]});
    assert_eq!(distill(&value.to_string()), value);
}

#[test]
fn a_broken_value_is_text_and_cut_like_text() {
    let text = format!("[\"{}", "x".repeat(RESULT_TEXT_BYTES));
    let Value::String(kept) = distill(&text) else { panic!("not text") };
    assert!(kept.ends_with(CUT_MARK));
}

#[test]
fn nesting_past_the_bound_is_text_and_never_overflows() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(distill(&nested(RESULT_DEPTH)).is_array());
    assert!(distill(&nested(RESULT_DEPTH + 1)).is_string());
    assert!(distill(&nested(1_000_000)).is_string());
    let objects = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
    assert!(distill(&objects(RESULT_DEPTH)).is_object());
    assert!(distill(&objects(RESULT_DEPTH + 1)).is_string());
    assert!(distill(&objects(1000)).is_string());
}

#[test]
fn a_value_at_the_bound_can_be_carried_in_a_result_object_and_read_back() {
    let deepest = distill(&format!("{}{}", "[".repeat(RESULT_DEPTH), "]".repeat(RESULT_DEPTH)));
    let carried = json!({"results": [{"result": deepest}]});
    assert_eq!(serde_json::from_str::<Value>(&carried.to_string()).unwrap(), carried);
}

#[test]
fn where_json_leaves_room() {
    assert_eq!(distill("{\"a\":1,\"a\":2}"), json!({"a": 2}));
    assert_eq!(distill("[18446744073709551615]"), json!([u64::MAX]));
    assert_eq!(distill("[1e400]"), json!("[1e400]"));
    assert_eq!(distill("[0.30000000000000004]").to_string(), "[0.30000000000000004]");
}

proptest! {
    #[test]
    fn any_text_gives_a_bounded_value(text in "\\PC{0,200}") {
        match distill(&text) {
            Value::String(kept) => prop_assert_eq!(kept, text),
            value @ (Value::Array(_) | Value::Object(_)) => {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            }
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_)) => prop_assert!(false, "{}", scalar),
        }
    }

    #[test]
    fn long_text_keeps_its_longest_head(head in "[a-zä🙂]{0,8}", repeat in 1usize..3000) {
        let text = head.repeat(repeat);
        let Value::String(kept) = distill(&text) else { return Err(TestCaseError::fail("not text")) };
        if text.len() <= RESULT_TEXT_BYTES {
            prop_assert_eq!(kept, text);
        } else {
            let head = kept.strip_suffix(CUT_MARK).unwrap();
            prop_assert!(text.starts_with(head));
            prop_assert!(head.len() <= RESULT_TEXT_BYTES && head.len() > RESULT_TEXT_BYTES - 4);
        }
    }

    #[test]
    fn distilling_a_value_again_changes_nothing(text in "\\[(-?[0-9]{1,25}(\\.[0-9]{1,20})?,){0,5}1\\]") {
        let once = distill(&text);
        if once.is_array() {
            prop_assert_eq!(distill(&once.to_string()), once);
        }
    }

    /// All that the fuzzer looks at, over values as models write them and texts that only look like it.
    #[test]
    fn no_value_is_lost_and_no_text_kept_too_long(
        value in any_value(), before in "[ \\n]{0,2}", after in "[ \\n]{0,2}|,|\\}", times in any::<[u8; 2]>(),
    ) {
        distilled(&[times.as_slice(), format!("{before}{value}{after}").as_bytes()].concat());
        distilled(&[times.as_slice(), serde_json::to_string_pretty(&value).unwrap().as_bytes()].concat());
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}|[\\x00-\\x1f\"\\\\]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("\\PC{0,4}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

use super::*;
use crate::limits::{OUTPUT_SCHEMA_BYTES, OUTPUT_SCHEMA_ERRORS, PREVIEW_BYTES};
use proptest::prelude::*;
use serde_json::json;

fn schema(value: &Value) -> Schema {
    Schema::read(value.to_string().as_bytes()).unwrap_or_else(|problem| panic!("{value}: {problem}"))
}

fn problem(value: &Value) -> String {
    match Schema::read(value.to_string().as_bytes()) {
        Ok(_) => panic!("it is taken: {value}"),
        Err(problem) => problem.to_string(),
    }
}

/// A schema, what fits it, and what does not with a part of what is told.
type Case<'c> = (Value, &'c [Value], &'c [(Value, &'c str)]);

/// Every keyword, once with what fits and once with what does not.
#[test]
fn every_keyword_takes_what_fits_and_tells_what_does_not() {
    let cases: &[Case<'_>] = &[
        (json!(true), &[json!(1)], &[]),
        (json!({}), &[json!(null), json!({"a": [1]})], &[]),
        (json!(false), &[], &[(json!(1), "the value: nothing is allowed here")]),
        (
            json!({"type": "integer"}),
            &[json!(3), json!(3.0), json!(-1e3), json!(u64::MAX)],
            &[
                (json!(3.5), "the value: a number where an integer is expected"),
                (json!("3"), "a string where an integer is expected"),
                (json!(null), "null where an integer is expected"),
            ],
        ),
        (
            json!({"type": ["string", "null"]}),
            &[json!("a"), json!(null)],
            &[(json!([]), "an array where a string or null is expected")],
        ),
        (json!({"type": "boolean"}), &[json!(true)], &[(json!({}), "an object where a boolean is expected")]),
        (
            json!({"const": {"a": 1, "b": [2.0]}}),
            &[json!({"b": [2], "a": 1.0})],
            &[(json!({"a": 1}), "the one value")],
        ),
        (
            json!({"enum": [1, "a", null]}),
            &[json!(1.0), json!(null)],
            &[(json!("b"), "none of the 3 values")],
        ),
        (
            json!({"multipleOf": 0.1}),
            &[json!(0.3), json!(7), json!("x")],
            &[(json!(0.35), "0.35 where a multiple of 0.1")],
        ),
        (json!({"multipleOf": 3}), &[json!(9), json!(-9.0), json!(0)], &[(json!(10), "a multiple of 3")]),
        (json!({"maximum": 3}), &[json!(3), json!(-5)], &[(json!(3.1), "3.1 where at most 3 is expected")]),
        (json!({"exclusiveMaximum": 3}), &[json!(2.9)], &[(json!(3.0), "less than 3")]),
        (json!({"minimum": 3.5}), &[json!(3.5)], &[(json!(3), "at least 3.5")]),
        (json!({"exclusiveMinimum": 3}), &[json!(4)], &[(json!(3), "more than 3")]),
        (
            json!({"maximum": 9007199254740993u64}),
            &[json!(9007199254740993u64)],
            &[(json!(9007199254740994u64), "at most 9007199254740993")],
        ),
        (
            json!({"maxLength": 2}),
            &[json!("éé"), json!(12345)],
            &[(json!("abc"), "3 characters where at most 2")],
        ),
        (json!({"minLength": 2.0}), &[json!("🙂🙂")], &[(json!("🙂"), "1 characters where at least 2")]),
        (
            json!({"pattern": "^\\d+$"}),
            &[json!("123"), json!(1)],
            &[(json!("१"), "does not match the pattern `^\\d+$`")],
        ),
        (
            json!({"items": {"type": "string"}}),
            &[json!([]), json!(["a"])],
            &[(json!(["a", 1]), "/1: a number where")],
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": false}),
            &[json!(["a"]), json!([])],
            &[(json!(["a", 1]), "/1: nothing is allowed here")],
        ),
        (
            json!({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}),
            &[json!(["a", null])],
            &[(json!(["a", 1]), "/1: a number where null is expected")],
        ),
        (json!({"maxItems": 1}), &[json!([1])], &[(json!([1, 2]), "2 items where at most 1")]),
        (json!({"minItems": 1}), &[json!([1])], &[(json!([]), "0 items where at least 1")]),
        (
            json!({"uniqueItems": true}),
            &[json!([1, "1", [1]])],
            &[(json!([1, 2, 1.0]), "item 2 is there twice")],
        ),
        (
            json!({"contains": {"type": "null"}}),
            &[json!([1, null])],
            &[(json!([1]), "0 of its items fit `contains` where at least 1")],
        ),
        (
            json!({"contains": true, "minContains": 0, "maxContains": 1}),
            &[json!([]), json!([1])],
            &[(json!([1, 2]), "2 of its items fit `contains` where 0 to 1")],
        ),
        (
            json!({"maxProperties": 1}),
            &[json!({"a": 1})],
            &[(json!({"a": 1, "b": 1}), "2 properties where at most 1")],
        ),
        (json!({"minProperties": 1}), &[json!({"a": 1})], &[(json!({}), "at least 1")]),
        (
            json!({"required": ["a"]}),
            &[json!({"a": null}), json!([])],
            &[(json!({"b": 1}), "the property \"a\" is missing")],
        ),
        (
            json!({"properties": {"a/b": {"type": "null"}}, "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
            &[json!({"a/b": null, "x1": "s"})],
            &[
                (json!({"a/b": 1}), "/a~1b: a number"),
                (json!({"x": 1}), "/x: a number"),
                (json!({"y": 1}), "/y: nothing is allowed"),
            ],
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            &[json!({"a": 1})],
            &[(json!({"ab": 1}), "\"ab\" is no name for a property")],
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            &[json!({"b": 1}), json!({"a": 1, "b": 1})],
            &[(json!({"a": 1}), "\"b\" is missing")],
        ),
        (json!({"dependencies": {"a": ["b"]}}), &[json!({})], &[(json!({"a": 1}), "\"b\" is missing")]),
        (
            json!({"dependentSchemas": {"a": {"required": ["c"]}}, "dependencies": {"z": {"required": ["y"]}}}),
            &[json!({"a": 1, "c": 1}), json!([])],
            &[(json!({"a": 1}), "\"c\" is missing"), (json!({"z": 1}), "\"y\" is missing")],
        ),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), &[json!(2)], &[(json!(3), "3 where at most 2")]),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            &[json!("s")],
            &[(json!(1), "none of the 2 alternatives")],
        ),
        (
            json!({"anyOf": [{"type": "null"}]}),
            &[json!(null)],
            &[(json!(1), "a number where null is expected")],
        ),
        (
            json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}),
            &[json!(4)],
            &[(json!(6), "fits 2 of the 2 alternatives"), (json!(5), "none of the 2")],
        ),
        (json!({"not": {"type": "null"}}), &[json!(1)], &[(json!(null), "what `not` excludes")]),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "null"}}),
            &[json!("a"), json!(null)],
            &[(json!(""), "0 characters"), (json!(1), "a number where null")],
        ),
        (
            json!({"$defs": {"a/b %": {"type": "null"}}, "properties": {"x": {"$ref": "#/$defs/a~1b%20%25"}}}),
            &[json!({"x": null})],
            &[(json!({"x": 1}), "/x: a number")],
        ),
        (
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false}),
            &[json!({"next": {"next": {}}})],
            &[(json!({"next": {"next": 1}}), "/next/next: a number where an object is expected")],
        ),
        // What is a note and no rule.
        (
            json!({"format": "email", "title": 1, "x-mine": {}, "minContains": 3, "then": false}),
            &[json!("none")],
            &[],
        ),
    ];
    for (text, fitting, misfits) in cases {
        let schema = schema(text);
        for value in *fitting {
            assert_eq!(schema.check(value), Ok(()), "{text} and {value}");
        }
        for (value, word) in *misfits {
            let told = schema.check(value).expect_err(&format!("{text} and {value}"));
            assert!(
                told.iter().any(|line| line.contains(word)),
                "{text} and {value}: no {word:?} in {told:?}"
            );
        }
    }
}

#[test]
fn up_to_draft_7_nothing_counts_beside_a_reference() {
    let with = |draft: &str| json!({"$schema": draft, "definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n", "minimum": 5}}});
    let value = json!({"a": 1});
    assert_eq!(schema(&with("http://json-schema.org/draft-07/schema#")).check(&value), Ok(()));
    assert!(schema(&with("https://json-schema.org/draft/2020-12/schema")).check(&value).is_err());
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_place_and_reason() {
    let cases: &[(Value, &str)] = &[
        (json!(1), "a number where a schema is expected"),
        (json!({"type": "strin"}), "at /type: `\"strin\"`: one of null, boolean"),
        (json!({"type": []}), "at /type: "),
        (json!({"type": ["null", 3]}), "at /type: "),
        (json!({"properties": {"a": {"items": {"type": "x"}}}}), "at /properties/a/items/type: "),
        (json!({"properties": {"a": 3}}), "at /properties/a: a number where a schema is expected"),
        (json!({"properties": []}), "at /properties: an object is expected, and it is `[]`"),
        (json!({"required": "a"}), "at /required: a list of keys"),
        (json!({"required": [1]}), "at /required: a list of keys"),
        (json!({"enum": 1}), "at /enum: a list of values"),
        (json!({"minimum": "1"}), "at /minimum: a number is expected"),
        (json!({"exclusiveMinimum": true, "minimum": 1}), "at /exclusiveMinimum: a number is expected"),
        (json!({"multipleOf": 0}), "at /multipleOf: a number over 0"),
        (json!({"maxLength": -1}), "at /maxLength: a whole number from 0"),
        (json!({"maxItems": 1.5}), "at /maxItems: a whole number from 0"),
        (json!({"uniqueItems": 1}), "at /uniqueItems: true or false"),
        (json!({"allOf": []}), "at /allOf: a list of schemas, at least one"),
        (json!({"anyOf": {}}), "at /anyOf: a list of schemas"),
        (json!({"prefixItems": [true], "items": [true]}), "at /items: "),
        (json!({"pattern": 1}), "at /pattern: a string"),
        (json!({"pattern": "("}), "at /pattern: the pattern `(` cannot be used: "),
        (json!({"pattern": "(?=a)b"}), "without look-around and back-references"),
        (json!({"pattern": "(a)\\1"}), "without look-around and back-references"),
        (json!({"pattern": "((a{1000}){1000}){1000}"}), "it is too large"),
        (json!({"patternProperties": {"[": true}}), "at /patternProperties: the pattern `[`"),
        (json!({"$ref": 1}), "at /$ref: `1`: only `#`"),
        (json!({"$ref": "https://example.com/x.json"}), "at /$ref: `https://example.com/x.json`: only `#`"),
        (json!({"$ref": "file:///etc/passwd"}), "only `#`"),
        (json!({"$ref": "#name"}), "at /$ref: `#name`: anchors are not supported"),
        (json!({"$ref": "#/$defs/gone"}), "there is no such place"),
        (json!({"$ref": "#%zz"}), "at /$ref: "),
        (json!({"properties": {"a": {"$ref": "#/x"}}, "x": 5}), "at /x: a number where a schema"),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "at /$schema: "),
        (json!({"$schema": 4}), "at /$schema: `4`: the drafts"),
        (json!({"$dynamicRef": "#n"}), "at /$dynamicRef: not supported: write a `$ref`"),
        (
            json!({"unevaluatedProperties": false}),
            "at /unevaluatedProperties: not supported: write `additionalProperties`",
        ),
        (json!({"properties": {"a": {"$id": "x"}}}), "at /properties/a/$id: not supported below the top"),
        (json!({"$defs": {"unused": {"type": 1}}}), "at /$defs/unused/type: "),
    ];
    for (text, word) in cases {
        let problem = problem(text);
        assert!(problem.contains(word), "{text}: no {word:?} in {problem}");
        assert!(problem.len() < 3 * PREVIEW_BYTES, "{problem}");
    }
    for text in ["", "{", "[1", "{\"a\":1,\"a\":2}", "NaN", "{} x"] {
        assert!(Schema::read(text.as_bytes()).is_err(), "{text}");
    }
    assert!(
        Schema::read(br#"{"$id": "https://example.com/mine", "properties": {"id": {"type": "string"}}}"#)
            .is_ok()
    );
}

/// References that never look into the value would hang a check that follows them.
#[test]
fn references_that_lead_nowhere_are_refused() {
    for text in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"anyOf": [{"if": {"$ref": "#"}}]}}),
        json!({"$defs": {"a": {"oneOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [true, {"$ref": "#/$defs/a"}]}}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
    ] {
        assert!(problem(&text).contains("lead back"), "{text}");
    }
}

#[test]
fn hostile_schemas_are_bounded() {
    let long = format!("{{\"title\": \"{}\"}}", "x".repeat(OUTPUT_SCHEMA_BYTES));
    assert!(Schema::read(long.as_bytes()).unwrap_err().to_string().contains("at most 65536 are accepted"));
    let deep = format!("{}true{}", "{\"not\":".repeat(5_000), "}".repeat(5_000));
    assert!(Schema::read(deep.as_bytes()).unwrap_err().to_string().contains("nested deeper than 64"));
    let many = json!({"anyOf": vec![json!(true); 5_000]});
    assert!(problem(&many).contains("more than 4096 schemas"));
    let patterns: Value = (0..65).map(|n| json!({"pattern": format!("a{n}")})).collect();
    assert!(problem(&json!({"allOf": patterns})).contains("more than 64 patterns"));
    // A chain of references as long as a schema can be.
    let chain: serde_json::Map<String, Value> = (0..1_500)
        .map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)})))
        .chain([("d1500".into(), json!(true))])
        .collect();
    let told = schema(&json!({"$defs": chain, "$ref": "#/$defs/d0"})).check(&json!(1)).unwrap_err();
    assert!(told[0].contains("bounded time"), "{told:?}");
}

/// Work that doubles with each step is counted, and stopped.
#[test]
fn a_check_that_would_take_for_ever_is_stopped() {
    let doubling: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"allOf": [next, next]}))
        })
        .chain([("d40".to_owned(), json!({"type": "string"}))])
        .collect();
    let told = schema(&json!({"$defs": doubling, "$ref": "#/$defs/d0"})).check(&json!("x")).unwrap_err();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("bounded time"), "{told:?}");

    let branching = json!({"anyOf": [
        {"properties": {"a": {"$ref": "#"}}, "required": ["b"]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["c"]},
    ]});
    let nested = (0..60).fold(json!({"b": 1}), |value, _| json!({"a": value}));
    assert!(schema(&branching).check(&nested).is_err());

    let pattern = json!({"pattern": "^(a+)+$"});
    assert!(schema(&pattern).check(&json!(format!("{}b", "a".repeat(100_000)))).is_err());
    let large = schema(&json!({"pattern": "[01]*1[01]{600}$"}));
    assert!(large.check(&json!("01".repeat(1_000_000))).unwrap_err()[0].contains("bounded time"));
}

#[test]
fn the_first_few_misfits_are_told_each_bounded() {
    let key = "k".repeat(5_000);
    let value: serde_json::Map<String, Value> = (0..100).map(|n| (format!("{key}{n}"), json!(n))).collect();
    let told = schema(&json!({"additionalProperties": {"type": "string"}}))
        .check(&Value::Object(value))
        .unwrap_err();
    assert_eq!(told.len(), OUTPUT_SCHEMA_ERRORS);
    assert!(told.iter().all(|line| line.len() < 2 * PREVIEW_BYTES), "{told:?}");
}

fn any_json(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(1e300), Just(-1e-300)].prop_map(Value::from),
        prop_oneof![Just("#"), Just("a"), Just("#/items"), Just("string"), Just("integer"), Just("^a")]
            .prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("a"),
        Just("type"),
        Just("items"),
        Just("properties"),
        Just("$ref"),
        Just("anyOf"),
        Just("not"),
        Just("required"),
        Just("enum"),
        Just("pattern"),
        Just("minimum"),
        Just("uniqueItems"),
        Just("if"),
        Just("then"),
        Just("contains"),
        Just("additionalProperties"),
        Just("multipleOf"),
        Just("maxLength"),
        Just("propertyNames"),
    ];
    leaf.prop_recursive(depth, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is taken for a schema, any value can be held against it.
    #[test]
    fn nothing_panics_and_a_verdict_always_comes(text in any_json(6), value in any_json(4)) {
        if let Ok(schema) = Schema::read(text.to_string().as_bytes())
            && let Err(told) = schema.check(&value)
        {
            prop_assert!(!told.is_empty() && told.len() <= OUTPUT_SCHEMA_ERRORS);
        }
    }

    /// `not` turns every verdict around, as long as the bound is far.
    #[test]
    fn a_value_fits_a_schema_or_its_opposite(text in any_json(4), value in any_json(4)) {
        let opposite = json!({"not": {"properties": {"v": text}}});
        let plain = json!({"properties": {"v": text}});
        if !text.to_string().contains("$ref")
            && let (Ok(schema), Ok(opposite)) = (Schema::read(plain.to_string().as_bytes()), Schema::read(opposite.to_string().as_bytes()))
        {
            let value = json!({"v": value});
            prop_assert_ne!(schema.check(&value).is_ok(), opposite.check(&value).is_ok());
        }
    }

    #[test]
    fn equal_numbers_have_one_form(n in -1_000_000i64..1_000_000, zeros in 0u32..4) {
        let float = Value::from(n as f64);
        prop_assert_eq!(equal::canonical(&Value::from(n)), equal::canonical(&float));
        let text = format!("{n}.{}", "0".repeat(zeros as usize + 1));
        let parsed: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(equal::canonical(&parsed), equal::canonical(&float));
    }
}

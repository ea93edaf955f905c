//! The schemas of answers, held against a validator that nobody here wrote: the same verdict on the same value.

use agentd_core::json::schema::Schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-4i64..7).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(-2.0), Just(1.5), Just(1e20), Just(0.3)].prop_map(Value::from),
        Just(json!(u64::MAX)),
        prop_oneof![Just(""), Just("a"), Just("ab"), Just("é🙂"), Just("12"), Just("abc")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(object),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("ab"), Just("c/d"), Just("12")].prop_map(str::to_owned)
}

fn object(fields: std::collections::BTreeMap<String, Value>) -> Value {
    Value::Object(fields.into_iter().collect())
}

/// Keywords whose value is no schema.
fn plain(draft_7: bool) -> BoxedStrategy<(String, Value)> {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let kind = prop::sample::select(kinds.to_vec());
    let number = prop_oneof![(-3i64..6).prop_map(Value::from), Just(json!(0.5)), Just(json!(1.0))];
    let step =
        prop_oneof![Just(json!(1)), Just(json!(2)), Just(json!(0.5)), Just(json!(0.1)), Just(json!(3))];
    let pattern = prop::sample::select(vec!["^a", "b$", "^\\d+$", "^\\w*$", ".", "[^a]", "(a|é)b?"]);
    let bounds = prop::sample::select(vec!["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"]);
    let counts = vec!["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"];
    let keys = || prop::collection::btree_set(key(), 0..3).prop_map(|keys| json!(keys));
    let needs = if draft_7 { "dependencies" } else { "dependentRequired" };
    prop_oneof![
        3 => kind.clone().prop_map(|kind| ("type".to_owned(), json!(kind))),
        1 => prop::collection::btree_set(kind, 1..4).prop_map(|kinds| ("type".to_owned(), json!(kinds))),
        1 => any_value().prop_map(|value| ("const".to_owned(), value)),
        1 => prop::collection::vec(any_value(), 1..4).prop_map(|values| ("enum".to_owned(), json!(values))),
        2 => (bounds, number).prop_map(|(name, number)| (name.to_owned(), number)),
        1 => step.prop_map(|step| ("multipleOf".to_owned(), step)),
        3 => (prop::sample::select(counts), 0u64..4).prop_map(|(name, count)| (name.to_owned(), json!(count))),
        1 => pattern.prop_map(|pattern| ("pattern".to_owned(), json!(pattern))),
        1 => any::<bool>().prop_map(|unique| ("uniqueItems".to_owned(), json!(unique))),
        1 => keys().prop_map(|keys| ("required".to_owned(), keys)),
        1 => (key(), keys()).prop_map(move |(key, keys)| (needs.to_owned(), json!({key: keys}))),
    ]
    .boxed()
}

fn any_schema(draft_7: bool) -> impl Strategy<Value = Value> {
    let of = |pairs: Vec<(String, Value)>| Value::Object(pairs.into_iter().collect::<Map<_, _>>());
    let reference = Just(json!({"$ref": if draft_7 { "#/definitions/d" } else { "#/$defs/d" }}));
    let leaf = prop_oneof![
        6 => prop::collection::vec(plain(draft_7), 0..4).prop_map(of),
        1 => any::<bool>().prop_map(Value::from),
        1 => reference,
    ];
    let inner = leaf.prop_recursive(4, 30, 4, move |inner| {
        let ones = vec!["not", "if", "then", "else", "additionalProperties", "propertyNames", "contains", "items"];
        let one = (prop::sample::select(ones), inner.clone()).prop_map(|(name, node)| (name.to_owned(), node));
        let lists = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let mut names = vec!["allOf", "anyOf", "oneOf"];
        names.push(if draft_7 { "items" } else { "prefixItems" });
        let several = (prop::sample::select(names), lists).prop_map(|(name, nodes)| (name.to_owned(), nodes));
        let named = prop::collection::btree_map(key(), inner.clone(), 0..3).prop_map(object);
        let mut names = vec!["properties"];
        names.push(if draft_7 { "dependencies" } else { "dependentSchemas" });
        let named = (prop::sample::select(names), named).prop_map(|(name, nodes)| (name.to_owned(), nodes));
        let alike = (prop::sample::select(vec!["^a", "b"]), inner.clone())
            .prop_map(|(pattern, node)| ("patternProperties".to_owned(), json!({pattern: node})));
        // Draft 7 does not know these; agentd takes them from newer drafts, whatever `$schema` says.
        let limits = if draft_7 { ["minItems", "maxItems"] } else { ["minContains", "maxContains"] };
        let limits = (prop::sample::select(limits.to_vec()), 0u64..3)
            .prop_map(|(name, count)| (name.to_owned(), json!(count)));
        let rest = inner.prop_map(|node| ("additionalItems".to_owned(), node));
        let pair = prop_oneof![3 => one, 2 => several, 2 => named, 1 => alike, 1 => rest, 1 => limits, 3 => plain(draft_7)];
        prop::collection::vec(pair, 1..4).prop_map(of)
    });
    let definition = prop::collection::vec(plain(draft_7), 0..3).prop_map(of);
    (inner, definition).prop_map(move |(mut schema, definition)| {
        if let Some(fields) = schema.as_object_mut() {
            let (draft, at) = match draft_7 {
                true => ("http://json-schema.org/draft-07/schema#", "definitions"),
                false => ("https://json-schema.org/draft/2020-12/schema", "$defs"),
            };
            fields.insert("$schema".to_owned(), json!(draft));
            fields.insert(at.to_owned(), json!({"d": definition}));
        }
        schema
    })
}

fn same_verdict(schema: &Value, value: &Value) -> Result<(), TestCaseError> {
    let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
    let ours = Schema::read(schema.to_string().as_bytes());
    let theirs = options.build(schema);
    prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{}: {:?} {:?}", schema, ours.err(), theirs.err());
    if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
        let told = ours.check(value);
        prop_assert_eq!(told.is_ok(), theirs.is_valid(value), "{} and {}: {:?}", schema, value, told);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn draft_2020_12_as_another_reads_it(schema in any_schema(false), value in any_value()) {
        same_verdict(&schema, &value)?;
    }

    #[test]
    fn draft_7_as_another_reads_it(schema in any_schema(true), value in any_value()) {
        same_verdict(&schema, &value)?;
    }
}

//! Types over accepted bytes: where ciborium by itself would read them otherwise, and what its errors are made to
//! say.

use super::{Body, Scanner};
use crate::wire::exact;
use ciborium::Value;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// What the scan says of one item.
fn scan(bytes: &[u8]) -> Result<(), String> {
    Scanner::default().scan(bytes).map(drop).map_err(|fault| fault.to_string())
}

/// Both passes over one item, which the first one accepts.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, u64), String> {
    let marks = Scanner::default().scan(bytes).expect("accepted");
    Body::new(bytes, marks.longest_key).read()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    read(bytes).map(|(value, _)| value)
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("writes");
    bytes
}

#[test]
fn longer_heads_than_needed_are_accepted() {
    for number in
        [b"\x18\x01".as_slice(), b"\x19\x00\x01", b"\x1a\x00\x00\x00\x01", b"\x1b\0\0\0\0\0\0\0\x01"]
    {
        assert_eq!(decode::<u8>(number), Ok(1));
    }
    assert_eq!(decode::<String>(b"\x79\x00\x02hi"), Ok("hi".into()));
    assert_eq!(decode::<Vec<u8>>(b"\x98\x01\x07"), Ok(vec![7]));
}

#[test]
fn undefined_is_null() {
    assert_eq!(decode::<Option<bool>>(b"\xf7"), Ok(None));
    assert!(decode::<bool>(b"\xf7").is_err());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Every {
    flag: bool,
    small: i8,
    large: i64,
    byte: u8,
    most: u64,
    single: f32,
    double: f64,
    letter: char,
    text: String,
    unit: (),
    maybe: Option<u8>,
    pair: (u8, String),
    list: Vec<Kind>,
    map: BTreeMap<String, i32>,
    wrapped: Wrapped,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(u16);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Plain,
    One(u8),
    Two(u8, bool),
    Named { a: u8 },
}

fn every() -> Every {
    Every {
        flag: true,
        small: -128,
        large: i64::MIN,
        byte: 255,
        most: u64::MAX,
        single: 1.5,
        double: -0.1,
        letter: '\u{1F980}',
        text: "x\0y".into(),
        unit: (),
        maybe: Some(0),
        pair: (1, "p".into()),
        list: vec![Kind::Plain, Kind::One(1), Kind::Two(2, false), Kind::Named { a: 3 }],
        map: [("a".to_owned(), -1), (String::new(), i32::MIN)].into(),
        wrapped: Wrapped(7),
    }
}

#[test]
fn every_kind_of_type_round_trips() {
    let bytes = encode(&every());
    assert_eq!(scan(&bytes), Ok(()));
    assert_eq!(read::<Every>(&bytes), Ok((every(), 0)));
}

#[test]
fn keys_of_maps_are_what_their_type_makes_of_text() {
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    struct Name(String);
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    enum Side {
        Left,
        Right,
    }
    let names = BTreeMap::from([(Name("é".into()), 1)]);
    assert_eq!(decode::<BTreeMap<Name, u8>>(&encode(&names)), Ok(names));
    let sides = BTreeMap::from([(Side::Left, 1), (Side::Right, 2)]);
    assert_eq!(decode::<BTreeMap<Side, u8>>(&encode(&sides)), Ok(sides));
    let ids = BTreeMap::from([(crate::id::Handle(7), 1)]);
    assert_eq!(decode::<BTreeMap<crate::id::Handle, u8>>(&encode(&ids)), Ok(ids));
    let json = serde_json::json!({"a": {"b": [1, null, "x"]}});
    assert_eq!(decode::<serde_json::Value>(&encode(&json)), Ok(json));
    assert!(decode::<BTreeMap<u8, u8>>(b"\xa1\x611\x01").is_err(), "a number is not made from text");
}

#[test]
fn halves_have_the_values_of_the_rfc() {
    for (bytes, value) in [
        (b"\xf9\x00\x00", 0.0),
        (b"\xf9\x3c\x00", 1.0),
        (b"\xf9\x3e\x00", 1.5),
        (b"\xf9\x7b\xff", 65504.0),
        (b"\xf9\x00\x01", 5.960_464_477_539_063e-8),
        (b"\xf9\x04\x00", 0.000_061_035_156_25),
        (b"\xf9\xc4\x00", -4.0),
        (b"\xf9\x7c\x00", f64::INFINITY),
        (b"\xf9\xfc\x00", f64::NEG_INFINITY),
    ] {
        assert_eq!(decode::<f64>(bytes).expect("reads").to_bits(), f64::to_bits(value), "{bytes:02x?}");
    }
    assert!(decode::<f64>(b"\xf9\x80\x00").expect("reads").is_sign_negative());
}

/// The error of reading `value` as a `T`.
fn refusal<T: DeserializeOwned + Debug>(value: &Value) -> String {
    decode::<T>(&encode(value)).expect_err("refused")
}

fn text(t: &str) -> Value {
    Value::Text(t.into())
}

fn map(key: &str, value: Value) -> Value {
    Value::Map(vec![(text(key), value)])
}

#[test]
fn types_are_not_stretched() {
    let array = Value::Array(vec![Value::from(1), Value::from(2)]);
    let bytes = Value::Bytes(b"ab".into());
    for (said, wanted) in [
        (refusal::<u64>(&text("5")), "invalid type: string, expected integer"),
        (refusal::<u8>(&Value::from(256)), "invalid value: integer `256`, expected u8"),
        (refusal::<u8>(&Value::from(-1)), "unexpected negative integer"),
        (refusal::<i64>(&Value::from(i128::from(i64::MIN) - 1)), "integer too large"),
        (refusal::<bool>(&Value::from(1)), "expected bool, saw 1"),
        (refusal::<f64>(&Value::from(1)), "invalid type: integer `1`, expected float"),
        (refusal::<u8>(&Value::from(1.0)), "invalid type: floating point `1.0`, expected integer"),
        (refusal::<String>(&bytes), "invalid type: bytes, expected string"),
        (refusal::<char>(&text("56")), "invalid type: string, expected char"),
        (refusal::<crate::bytes::Bytes>(&text("5")), "invalid type: string, expected byte buffer"),
        (refusal::<crate::bytes::Bytes>(&array), "invalid type: sequence, expected a byte string"),
        (refusal::<[u8; 1]>(&array), "a list or a variant in it holds more than its type takes"),
        (refusal::<[u8; 3]>(&array), "invalid length 2, expected an array of length 3"),
        (refusal::<BTreeMap<String, u8>>(&array), "invalid type: sequence, expected map"),
        (refusal::<Option<u8>>(&text("5")), "invalid type: string, expected integer"),
        (refusal::<Vec<u8>>(&Value::Null), "invalid type: null, expected array"),
        (refusal::<Vec<String>>(&bytes), "[0]: invalid type: integer `97`, expected a string"),
        (refusal::<Wrapped>(&array), "invalid type: sequence, expected integer"),
        (refusal::<Every>(&array), "invalid type: sequence, expected map"),
    ] {
        assert_eq!(said, wanted);
    }
}

/// As a field of a message has it.
#[derive(Debug, PartialEq, Deserialize)]
struct Exact {
    #[serde(deserialize_with = "exact::variant")]
    kind: Kind,
    #[serde(default)]
    after: Option<Vec<u8>>,
}

#[test]
fn variants_say_what_they_take() {
    let kind = |value: Value| refusal::<Exact>(&map("kind", value));
    for (value, wanted) in [
        (text("Other"), "kind: unknown variant `Other`, expected one of `Plain`, `One`, `Two`, `Named`"),
        (text("One"), "kind: invalid type: unit variant, expected newtype variant"),
        (text("Two"), "kind: invalid type: unit variant, expected tuple variant"),
        (text("Named"), "kind: invalid type: unit variant, expected struct variant"),
        (map("Plain", Value::from(1)), "kind.Plain: invalid type: integer `1`, expected unit"),
        (map("One", Value::Null), "kind.One: invalid type: null, expected integer"),
        (Value::Map(vec![]), "kind: invalid type: map, expected enum"),
        (Value::from(0), "kind: invalid type: integer `0`, expected a variant's name, or a map of one pair"),
        (
            Value::Map(vec![(text("One"), Value::from(1)), (text("x"), Value::Null)]),
            "kind: a map of more than one pair, expected a variant",
        ),
    ] {
        assert_eq!(kind(value), wanted);
    }
    assert_eq!(
        decode(&encode(&map("kind", map("One", Value::from(1))))),
        Ok(Exact { kind: Kind::One(1), after: None })
    );
}

#[test]
fn a_variant_without_its_content_never_takes_what_follows() {
    #[derive(Debug, Deserialize)]
    struct Loose {
        #[serde(rename = "kind")]
        _kind: Kind,
    }
    // The next item would do as the content of `One`, and what `Plain` leaves would make up for it.
    let list = |kind: &str| {
        Value::Array(vec![map("kind", text(kind)), Value::from(7), map("kind", map("Plain", Value::Null))])
    };
    assert!(decode::<Vec<Loose>>(&encode(&list("Plain"))).is_err());
    assert_eq!(
        refusal::<Vec<Exact>>(&list("One")),
        "[0].kind: invalid type: unit variant, expected newtype variant"
    );
}

#[test]
fn what_a_type_leaves_is_never_read_as_what_follows() {
    let pair = Value::Array(vec![Value::from(1), Value::from(2), text("b"), Value::from(3)]);
    let value = Value::Map(vec![(text("a"), pair), (text("c"), Value::from(4))]);
    assert_eq!(
        refusal::<BTreeMap<String, (u8, u8)>>(&map("a", Value::Array(vec![Value::from(1); 3]))),
        "a list or a variant in it holds more than its type takes"
    );
    #[derive(Debug, Deserialize)]
    struct Loose {
        #[serde(rename = "a")]
        _a: (u8, u8),
        #[serde(rename = "b")]
        _b: u8,
    }
    assert_eq!(refusal::<Loose>(&value), "a list or a variant in it holds more than its type takes");
    assert_eq!(
        refusal::<BTreeMap<String, Kind>>(&map("a", map("Plain", Value::Null))),
        "a list or a variant in it holds more than its type takes"
    );
}

#[test]
fn unknown_keys_are_counted_at_any_level_and_may_be_long() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Known {
        #[serde(default)]
        inner: Vec<Known>,
    }
    let long = "k".repeat(5000);
    let unknown = Value::Map(vec![(text("x"), map("y", Value::Null)), (text(&long), Value::from(1))]);
    let value = Value::Map(vec![
        (text("inner"), Value::Array(vec![unknown.clone(), map("inner", Value::Array(vec![unknown]))])),
        (text("z"), Value::Array(vec![map("inner", Value::Null); 3])),
    ]);
    let (known, ignored) = read::<Known>(&encode(&value)).expect("reads");
    assert_eq!((known.inner.len(), ignored), (2, 5));
}

#[test]
fn errors_name_the_place_and_stay_short() {
    #[derive(Debug, Deserialize)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Vec<BTreeMap<String, Inner>>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "n")]
        _n: u8,
    }
    let outer = |inner: Value| map("inner", Value::Array(vec![Value::Map(vec![]), map("k", inner)]));
    let inner = |key: &str, value: Value| outer(map(key, value));
    assert_eq!(
        refusal::<Outer>(&inner("n", Value::Null)),
        "inner[1].k.n: invalid type: null, expected integer"
    );
    assert_eq!(refusal::<Outer>(&outer(Value::Map(vec![]))), "inner[1].k: missing field `n`");
    assert_eq!(refusal::<Outer>(&inner("m", Value::Null)), "inner[1].k.m: unknown field `m`, expected `n`");
    assert_eq!(refusal::<Outer>(&Value::Map(vec![])), "missing field `inner`");
    let long = "\u{1b}".repeat(1 << 20);
    let keyed = map("inner", Value::Array(vec![map(&long, Value::Null)]));
    for value in [inner("n", text(&long)), inner(&long, Value::Null), outer(text(&long)), text(&long), keyed]
    {
        let said = refusal::<Outer>(&value);
        assert!(said.len() < 700 && !said.chars().any(char::is_control), "{said}");
    }
    let kind = refusal::<Exact>(&map("kind", text(&long)));
    assert!(kind.len() < 700 && !kind.chars().any(char::is_control), "{kind}");
}

/// CBOR values without what the protocol refuses.
fn allowed() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |f| !f.is_nan()).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        ".{0,9}".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            proptest::collection::btree_map(".{0,5}", inner, 0..8)
                .prop_map(|map| Value::Map(map.into_iter().map(|(k, v)| (Value::Text(k), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_the_rules_allow_is_accepted_and_read_as_it_was_written(value in allowed()) {
        let bytes = encode(&value);
        prop_assert_eq!(scan(&bytes), Ok(()));
        prop_assert_eq!(decode::<Value>(&bytes), Ok(value));
    }

    #[test]
    fn what_is_accepted_is_read_whole(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if scan(&bytes).is_ok() {
            let read: Result<Value, _> = decode(&bytes);
            prop_assert!(read.is_ok(), "{bytes:02x?}: {read:?}");
            let passed_over: Result<serde::de::IgnoredAny, _> = decode(&bytes);
            prop_assert!(passed_over.is_ok(), "{bytes:02x?}: {passed_over:?}");
        }
    }
}

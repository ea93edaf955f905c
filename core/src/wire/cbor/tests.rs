//! Types over accepted bytes, and agreement with ciborium, an implementation nobody here wrote.

use super::{Scanner, decode, encode};
use crate::limits;
use ciborium::Value;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the scan says of one item.
fn scan(bytes: &[u8]) -> Result<(), String> {
    Scanner::default().scan(bytes).map(drop).map_err(|fault| fault.to_string())
}

#[test]
fn longer_heads_than_needed_and_other_simple_values_are_accepted() {
    for number in
        [b"\x18\x01".as_slice(), b"\x19\x00\x01", b"\x1a\x00\x00\x00\x01", b"\x1b\0\0\0\0\0\0\0\x01"]
    {
        assert_eq!(scan(number), Ok(()));
        assert_eq!(decode::<u8>(number).expect("read"), 1);
    }
    assert_eq!(decode::<String>(b"\x79\x00\x02hi").expect("read"), "hi");
    assert_eq!(decode::<Vec<u8>>(b"\x98\x01\x07").expect("read"), [7]);
    for simple in [b"\xe0".as_slice(), b"\xf3", b"\xf7", b"\xf8\x20", b"\xf8\xff"] {
        assert_eq!(scan(simple), Ok(()));
        assert!(decode::<Option<bool>>(simple).is_err(), "no type takes {simple:02x?}");
    }
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
fn every_kind_of_type_round_trips_and_ciborium_reads_the_same() {
    let bytes = encode(&every()).expect("writes");
    assert_eq!(scan(&bytes), Ok(()));
    assert_eq!(decode::<Every>(&bytes).expect("reads"), every());
    assert_eq!(ciborium::from_reader::<Every, _>(bytes.as_slice()).expect("reads"), every());
    let mut theirs = Vec::new();
    ciborium::into_writer(&every(), &mut theirs).expect("writes");
    assert_eq!(decode::<Every>(&theirs).expect("short floats are read too"), every());
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
    assert_eq!(decode::<BTreeMap<Name, u8>>(&encode(&names).expect("writes")).expect("reads"), names);
    let sides = BTreeMap::from([(Side::Left, 1), (Side::Right, 2)]);
    assert_eq!(decode::<BTreeMap<Side, u8>>(&encode(&sides).expect("writes")).expect("reads"), sides);
    let ids = BTreeMap::from([(crate::id::Handle(7), 1)]);
    assert_eq!(
        decode::<BTreeMap<crate::id::Handle, u8>>(&encode(&ids).expect("writes")).expect("reads"),
        ids
    );
    let json = serde_json::json!({"a": {"b": [1, null, "x"]}});
    assert_eq!(decode::<serde_json::Value>(&encode(&json).expect("writes")).expect("reads"), json);
    assert!(decode::<BTreeMap<u8, u8>>(b"\xa1\x611\x01").is_err(), "a number is not made from text");
}

#[test]
fn heads_change_their_length_where_ciborium_changes_it() {
    for length in [0, 1, 23, 24, 255, 256, 65_535, 65_536] {
        let text = "x".repeat(length);
        let list = vec![true; length];
        let map: BTreeMap<String, u64> = (0..length as u64).map(|n| (format!("{n:05}"), n)).collect();
        let value = (text, list, map, (length as u64, -(length as i64)));
        let mut theirs = Vec::new();
        ciborium::into_writer(&value, &mut theirs).expect("writes");
        assert!(encode(&value).expect("writes") == theirs, "{length}");
        assert!(
            decode::<(String, Vec<bool>, BTreeMap<String, u64>, (u64, i64))>(&theirs).expect("reads")
                == value
        );
    }
    for number in [u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX] {
        let mut theirs = Vec::new();
        ciborium::into_writer(&number, &mut theirs).expect("writes");
        assert_eq!(encode(&number).expect("writes"), theirs);
    }
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
fn refusal<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: &Value) -> String {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("writes");
    decode::<T>(&bytes).expect_err("refused").to_string()
}

#[test]
fn types_are_not_stretched() {
    let text = Value::Text("5".into());
    let array = Value::Array(vec![Value::from(1), Value::from(2)]);
    assert_eq!(refusal::<u64>(&text), "expected u64, saw text \"5\"");
    assert_eq!(refusal::<u8>(&Value::from(256)), "expected u8, saw 256");
    assert_eq!(refusal::<u8>(&Value::from(-1)), "expected u8, saw -1");
    assert_eq!(
        refusal::<i64>(&Value::from(i128::from(i64::MIN) - 1)),
        "expected i64, saw a negative integer beyond 64 bits"
    );
    assert_eq!(refusal::<bool>(&Value::from(1)), "expected a boolean, saw 1");
    assert_eq!(refusal::<f64>(&Value::from(1)), "expected f64, saw 1");
    assert_eq!(refusal::<u8>(&Value::from(1.0)), "expected u8, saw 1");
    assert_eq!(
        refusal::<String>(&Value::Bytes(b"ab".into())),
        "expected a string, saw a byte string of 2 bytes"
    );
    assert_eq!(
        refusal::<char>(&text.clone().into_text().map(|t| Value::Text(t + "6")).expect("text")),
        "expected a character, saw text \"56\""
    );
    assert_eq!(refusal::<crate::bytes::Bytes>(&text), "expected a byte string, saw text \"5\"");
    assert_eq!(refusal::<crate::bytes::Bytes>(&array), "expected a byte string, saw an array");
    assert_eq!(refusal::<[u8; 1]>(&array), "expected an array of 1, saw one of 2");
    assert_eq!(refusal::<[u8; 3]>(&array), "invalid length 2, expected an array of length 3");
    assert_eq!(refusal::<BTreeMap<String, u8>>(&array), "expected a map, saw an array");
    assert_eq!(refusal::<Option<u8>>(&text), "expected u8, saw text \"5\"");
    assert_eq!(refusal::<Vec<u8>>(&Value::Null), "expected a sequence, saw null");
    assert!(refusal::<Wrapped>(&array).contains("expected u16, saw an array"));
    assert!(refusal::<Every>(&array).contains("expected struct Every, saw an array"));
}

#[test]
fn variants_say_what_they_take() {
    let text = |t: &str| Value::Text(t.into());
    let map = |k: &str, v: Value| Value::Map(vec![(text(k), v)]);
    assert_eq!(refusal::<Kind>(&text("Other")), "expected one of Plain, One, Two, Named, saw \"Other\"");
    assert_eq!(refusal::<Kind>(&text("One")), "`One` needs content, saw its name alone");
    assert_eq!(refusal::<Kind>(&map("Plain", Value::Null)), "`Plain` has no content, saw a map");
    assert_eq!(refusal::<Kind>(&map("One", Value::Null)), "One: expected u8, saw null");
    assert_eq!(
        refusal::<Kind>(&Value::Map(vec![])),
        "expected a variant's name, or a map of one pair, saw a map"
    );
    assert_eq!(refusal::<Kind>(&Value::from(0)), "expected a variant's name, or a map of one pair, saw 0");
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
    let text = |t: &str| Value::Text(t.into());
    let outer = |inner: Value| {
        let keyed = Value::Map(vec![(text("k"), inner)]);
        Value::Map(vec![(text("inner"), Value::Array(vec![Value::Map(vec![]), keyed]))])
    };
    let inner = |key: &str, value: Value| outer(Value::Map(vec![(text(key), value)]));
    assert_eq!(refusal::<Outer>(&inner("n", Value::Null)), "inner[1].k.n: expected u8, saw null");
    assert_eq!(refusal::<Outer>(&outer(Value::Map(vec![]))), "inner[1].k: the key \"n\" is missing");
    assert_eq!(refusal::<Outer>(&inner("m", Value::Null)), "inner[1].k: unknown key \"m\", accepted are n");
    assert_eq!(refusal::<Outer>(&Value::Map(vec![])), "the key \"inner\" is missing");
    let long = "\u{1b}".repeat(1 << 20);
    for value in [inner("n", text(&long)), inner(&long, Value::Null), outer(text(&long)), text(&long)] {
        let said = refusal::<Outer>(&value);
        assert!(said.len() < 700 && !said.chars().any(char::is_control), "{said}");
    }
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    assert!(encode(&f64::NAN).is_err());
    assert!(encode(&f32::NAN).is_err());
    assert!(encode(&BTreeMap::from([(1u8, 1u8)])).is_err(), "a key that is not text");
    assert!(encode(&vec![0u8; limits::FRAME_BYTES]).is_err(), "longer than a frame");
    #[derive(Serialize)]
    struct Flat {
        #[serde(flatten)]
        inner: BTreeMap<String, u8>,
    }
    let unknown_length = encode(&Flat { inner: BTreeMap::from([("a".to_owned(), 1)]) });
    assert!(unknown_length.is_err(), "an indefinite length");
}

#[test]
fn what_is_longer_than_a_frame_is_not_read() {
    let mut bytes = vec![0x5a];
    bytes.extend(u32::try_from(limits::FRAME_BYTES - 5).expect("small").to_be_bytes());
    bytes.resize(limits::FRAME_BYTES, 0);
    assert!(decode::<crate::bytes::Bytes>(&bytes).is_ok());
    bytes.push(0);
    let said = decode::<crate::bytes::Bytes>(&bytes).expect_err("refused").to_string();
    assert_eq!(said, "8388609 bytes, at most 8388608 are accepted");
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
    fn what_the_rules_allow_is_accepted_and_read_as_ciborium_wrote_it(value in allowed()) {
        let mut bytes = Vec::new();
        ciborium::into_writer(&value, &mut bytes).expect("writes");
        prop_assert_eq!(scan(&bytes), Ok(()));
        prop_assert_eq!(decode::<Value>(&bytes).expect("reads"), value);
    }

    #[test]
    fn what_is_accepted_is_cbor_to_ciborium_too(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if scan(&bytes).is_ok() {
            let theirs: Result<Value, _> = ciborium::from_reader(bytes.as_slice());
            // Simple values without a meaning are well-formed; ciborium's value has no place for them.
            let simple = bytes.iter().any(|b| matches!(b, 0xe0..=0xf3 | 0xf7 | 0xf8));
            prop_assert!(theirs.is_ok() || simple, "{bytes:02x?}");
        }
    }
}

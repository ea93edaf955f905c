//! What frames look like, checked against the value that a message's struct is.

use super::{Content, Encoder, Message, PREFIX_BYTES, TooLarge, check_version};
use crate::limits;
use crate::wire::cbor::{self, Scanner};
use crate::wire::message::{Ping, ToolResult, VERSION};
use crate::wire::samples::arbitrary::{any_down, any_up};
use crate::wire::samples::{every_down, every_up, json};
use crate::wire::{Down, Up};
use ciborium::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The body as ciborium reads it, and how it would write the same value.
fn by_ciborium(frame: &[u8]) -> (Value, Vec<u8>) {
    let (prefix, body) = frame.split_at(PREFIX_BYTES);
    assert_eq!(prefix, u32::try_from(body.len()).expect("small").to_be_bytes());
    let value: Value = ciborium::from_reader(body).expect("CBOR");
    let mut again = Vec::new();
    ciborium::into_writer(&value, &mut again).expect("writes");
    (value, again)
}

/// The message's struct as ciborium writes it, with the envelope in front: what a frame's map has to be.
fn expected<M: Message>(message: &M, number: u64) -> Value {
    let Value::Map(mut pairs) = Value::serialized(&Content(message)).expect("writes") else {
        panic!("`{}` is not a struct", message.frame_type());
    };
    let key = |text: &str| Value::Text(text.into());
    pairs.insert(0, (key("t"), key(message.frame_type())));
    pairs.insert(1, (key("n"), Value::from(number)));
    Value::Map(pairs)
}

fn check<M: Message>(encoder: &mut Encoder, message: &M, number: u64) {
    let mut frame = Vec::new();
    encoder.append(message, &mut frame).expect("fits");
    let (value, again) = by_ciborium(&frame);
    assert_eq!(value, expected(message, number));
    assert_eq!(frame[PREFIX_BYTES..], again, "shortest heads, definite lengths");
    let scanned = Scanner::default().scan(&frame[PREFIX_BYTES..]).map(drop);
    assert_eq!(scanned, Ok(()), "what is written passes the scan");
}

#[test]
fn every_type_is_one_map_with_the_envelope_in_front() {
    let mut encoder = Encoder::new();
    for (message, number) in every_down().iter().zip(1..) {
        check(&mut encoder, message, number);
    }
    let mut encoder = Encoder::new();
    for (message, number) in every_up().iter().zip(1..) {
        check(&mut encoder, message, number);
    }
}

#[test]
fn the_samples_and_the_table_name_the_same_types() {
    let names: Vec<&str> = every_down().iter().map(Message::frame_type).collect();
    assert_eq!(names, Down::TYPES);
    let names: Vec<&str> = every_up().iter().map(Message::frame_type).collect();
    assert_eq!(names, Up::TYPES);
}

#[test]
fn a_ping_to_the_byte() {
    let mut encoder = Encoder::new();
    let frame = encoder.encode_down(&Down::Ping(Ping { seq: 500 })).expect("fits");
    let body = b"\xa3\x61t\x64ping\x61n\x01\x63seq\x19\x01\xf4";
    assert_eq!(frame, [&[0, 0, 0, u8::try_from(body.len()).expect("short")], body.as_slice()].concat());
}

fn tool_result(bytes: usize) -> Down {
    Down::ToolResult(ToolResult { id: 1, error: false, value: json(&"x".repeat(bytes)) })
}

/// A tool result whose body has exactly the largest size.
fn largest() -> Down {
    let frame = Encoder::new().encode_down(&tool_result(limits::FRAME_BYTES / 2)).expect("fits");
    let around = frame.len() - PREFIX_BYTES - limits::FRAME_BYTES / 2;
    tool_result(limits::FRAME_BYTES - around)
}

#[test]
fn the_largest_body_fits_and_one_byte_more_does_not() {
    let mut encoder = Encoder::new();
    let mut out = b"before".to_vec();
    let Down::ToolResult(fits) = largest() else { unreachable!() };
    let over = tool_result(fits.value.0.len() + 1);
    let refusal = TooLarge { frame_type: "tool_result", bytes: limits::FRAME_BYTES + 1 };
    assert_eq!(encoder.append(&over, &mut out), Err(refusal.clone()));
    assert_eq!(encoder.encode_down(&over), Err(refusal.clone()));
    assert_eq!(out, b"before", "nothing half written");
    assert_eq!(
        refusal.to_string(),
        "a `tool_result` frame of 8388609 bytes, at most 8388608 are accepted: send less"
    );
    encoder.append(&Down::ToolResult(fits), &mut out).expect("fits");
    assert_eq!(out.len(), 6 + PREFIX_BYTES + limits::FRAME_BYTES);
    let number_is_one = b"\x61n\x01";
    assert!(out[..64].windows(3).any(|bytes| bytes == number_is_one), "a refusal takes no number");
}

#[test]
fn far_too_large_is_counted_and_not_kept() {
    let mut out = Vec::new();
    let refusal = Encoder::new().append(&tool_result(5 * limits::FRAME_BYTES), &mut out);
    assert_eq!(refusal.map_err(|e| e.bytes > 5 * limits::FRAME_BYTES), Err(true));
    assert!(out.capacity() < limits::FRAME_BYTES, "{}", out.capacity());
}

#[test]
fn a_struct_of_any_size_gets_its_two_pairs_more() {
    for pairs in [0u32, 1, 21, 22, 23, 24, 25, 253, 254, 255, 256, 70_000] {
        let map: BTreeMap<String, u32> = (0..pairs).map(|n| (format!("k{n:05}"), n)).collect();
        let mut out = b"before".to_vec();
        let size = cbor::append(&mut out, limits::FRAME_BYTES, "type", 300, &map);
        assert_eq!((&out[..6], size), (b"before".as_slice(), out.len() - 6));
        let Ok(Value::Map(seen)) = ciborium::from_reader(&out[6..]) else { panic!("a map") };
        let head = [("t".to_owned(), Value::from("type")), ("n".to_owned(), Value::from(300))];
        let rest = map.into_iter().map(|(key, value)| (key, Value::from(value)));
        let wanted: Vec<_> = head.into_iter().chain(rest).map(|(k, v)| (Value::Text(k), v)).collect();
        assert_eq!(seen, wanted);
        let mut again = Vec::new();
        ciborium::into_writer(&Value::Map(seen), &mut again).expect("writes");
        assert_eq!(out[6..], again, "the shortest head");
    }
}

#[test]
fn the_first_key_of_many_may_be_the_one_that_is_too_large() {
    let mut map: BTreeMap<String, String> = (0..40).map(|n| (format!("k{n}"), "v".into())).collect();
    map.insert("a".repeat(100), String::new());
    let whole = cbor::append(&mut Vec::new(), limits::FRAME_BYTES, "type", 1, &map);
    let mut out = Vec::new();
    assert_eq!(cbor::append(&mut out, 64, "type", 1, &map), whole);
    assert!(out.len() < 100, "{}", out.len());
}

#[test]
fn versions_differ_by_major_only() {
    let [major, minor] = VERSION;
    assert_eq!(check_version(VERSION), Ok(()));
    assert_eq!(check_version([major, minor + 1]), Ok(()));
    assert_eq!(check_version([major, u16::MAX]), Ok(()));
    for other in [[major + 1, minor], [0, 0], [u16::MAX, 0]] {
        let said = check_version(other).expect_err("another protocol");
        assert!(said.contains(&format!("version {}.{} of", other[0], other[1])), "{said}");
        assert!(said.contains("restart agentd"), "{said}");
    }
}

proptest! {
    #[test]
    fn any_message_is_the_cbor_that_ciborium_would_write(
        down in any_down(), up in any_up(), number in 0u64..1000,
    ) {
        let mut encoder = Encoder { next: number * number * number };
        check(&mut encoder, &down, number * number * number);
        check(&mut encoder, &up, number * number * number + 1);
    }
}

//! Holds `docs/control-protocol.md` to the code: its tables, its bounds and its examples.

use super::samples::{every_down, every_up};
use super::{Decoded, Decoder, Down, Encoder, Message, Up};
use crate::limits;
use ciborium::Value;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/control-protocol.md");

/// The frame types of a section's table, each with the keys of its row.
fn table(section: &str) -> BTreeMap<String, Vec<String>> {
    let start = PAGE.find(&format!("## {section}\n")).expect("the section");
    let body = &PAGE[start + 3..];
    let rows =
        body[..body.find("\n## ").unwrap_or(body.len())].lines().filter(|line| line.starts_with("| `"));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.filter(|row| !row.starts_with("| `t` |"))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (names(cells[1]).remove(0), names(cells[2]))
        })
        .collect()
}

/// The same, from messages with every key set.
fn sent<M: Message>(messages: &[M]) -> BTreeMap<String, Vec<String>> {
    messages.iter().map(|message| (message.frame_type().to_owned(), keys(message))).collect()
}

fn keys<M: Message>(message: &M) -> Vec<String> {
    let mut frame = Vec::new();
    Encoder::new().append(message, &mut frame).expect("fits");
    let Ok(Value::Map(pairs)) = ciborium::from_reader(&frame[4..]) else { panic!("a map") };
    let names = pairs.into_iter().filter_map(|(key, _)| key.into_text().ok());
    names.filter(|key| !matches!(key.as_str(), "t" | "n")).collect()
}

/// The contents of the fenced blocks of one kind, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    PAGE.split(&format!("```{kind}\n")).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

fn bytes(dump: &str) -> Vec<u8> {
    let pairs = dump.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits")).collect()
}

/// RFC 8949's diagnostic notation, as far as the examples need it.
fn diagnostic(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Integer(number) => i128::from(*number).to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Bytes(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Value::Array(items) => format!("[{}]", list(items.iter().map(diagnostic).collect())),
        Value::Map(pairs) => {
            let pair = |(key, value)| format!("{}: {}", diagnostic(key), diagnostic(value));
            format!("{{{}}}", list(pairs.iter().map(|(key, value)| pair((key, value))).collect()))
        }
        Value::Float(_) | Value::Bool(_) | Value::Null | Value::Tag(..) => format!("{value:?}"),
        _ => unreachable!("no other kind is in the examples"),
    }
}

/// What the frame says, and the frame that agentd writes for it when its number is `n`.
fn example<M: Message>(frame: &[u8], n: usize) -> Vec<u8> {
    let (mut encoder, mut before, mut again) = (Encoder::new(), Vec::new(), Vec::new());
    let mut decoder = Decoder::<M>::new();
    for _ in 1..n {
        let body = [b"\xa2\x61n".as_slice(), &[u8::try_from(n - 1).expect("small")], b"\x61t\x61x"].concat();
        before.extend(u32::try_from(body.len()).expect("small").to_be_bytes());
        before.extend(body);
    }
    decoder.push(&before);
    assert!(decoder.by_ref().all(|decoded| matches!(decoded, Ok(Decoded::Ignored))));
    decoder.push(frame);
    let Some(Ok(Decoded::Message(message))) = decoder.next() else { panic!("{frame:02x?}") };
    for _ in 0..n {
        again.clear();
        encoder.append(&message, &mut again).expect("fits");
    }
    again
}

#[test]
fn the_tables_name_every_type_and_key() {
    assert_eq!(table("Messages down"), sent(&every_down()));
    assert_eq!(table("Messages up"), sent(&every_up()));
}

/// What came since a version was made: whoever adds to the tables raises the minor and says with which it came.
#[test]
fn every_type_and_key_came_with_a_version() {
    let start = PAGE.find("| version | added |").expect("the table");
    let rows: Vec<&str> = PAGE[start..].lines().take_while(|line| line.starts_with('|')).skip(2).collect();
    let [major, minor] = super::message::VERSION;
    let last = format!("| {major}.{minor} |");
    assert!(rows.last().is_some_and(|row| row.starts_with(&last)), "{rows:?}");
    let all: BTreeMap<_, _> = sent(&every_down()).into_iter().chain(sent(&every_up())).collect();
    for name in all.keys() {
        assert_eq!(rows.iter().filter(|row| row.contains(&format!("`{name}`"))).count(), 1, "`{name}`");
    }
    // Keys that came later than their type are named; the rest came with it.
    let keys: usize = all.values().map(Vec::len).sum();
    assert_eq!(
        (rows.len(), all.len(), keys),
        (4, 25, 79),
        "a key or type is new: raise the minor, and add a row"
    );
}

#[test]
fn the_examples_are_what_is_sent() {
    let (diagnostics, dumps) = (blocks("cbor-diag"), blocks("hex"));
    assert_eq!((diagnostics.len(), dumps.len()), (3, 3));
    for (shown, dump) in diagnostics.iter().zip(&dumps) {
        let frame = bytes(dump);
        let value: Value = ciborium::from_reader(&frame[4..]).expect("CBOR");
        assert_eq!(diagnostic(&value), shown.trim_end());
    }
    let again = [
        example::<Up>(&bytes(dumps[0]), 1),
        example::<Down>(&bytes(dumps[1]), 2),
        example::<Up>(&bytes(dumps[2]), 2),
    ];
    assert_eq!(again.to_vec(), dumps.iter().map(|dump| bytes(dump)).collect::<Vec<_>>());
}

#[test]
fn the_bounds_are_those_of_the_code() {
    for (bound, written) in [
        (limits::FRAME_BYTES, "8,388,608 bytes"),
        (limits::FRAME_DEPTH, "nesting deeper than 64"),
        (limits::FRAME_ITEMS, "262,144 data items"),
        (limits::PROTOCOL_ERROR_BYTES, "600 bytes"),
    ] {
        assert!(PAGE.contains(written), "{written}");
        assert!(written.replace(',', "").contains(&bound.to_string()), "{written} is {bound}");
    }
    let [major, minor] = super::message::VERSION;
    assert!(PAGE.contains(&format!("this page is `[{major}, {minor}]`")));
}

//! The body of `message_decode`: a sample of a message is edited as a tree and decoded, so that bytes that the fuzzer
//! draws reach the types of the keys and not only the structure of the frame.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of a tree are another crate's, which may add some"
)]

use super::{decode, direction, framed};
use crate::wire::samples::{every_down, every_up};
use crate::wire::{Decoded, Encoder, Ignored, Message, Up};
use ciborium::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::OnceLock;

/// A map as a tree has it.
type Pairs = Vec<(Value, Value)>;

/// Edits of one input at most.
const EDITS: usize = 64;

/// Places of a tree beyond which it is not edited any more: copies of copies grow fast.
const PLACES: usize = 2_000;

/// Names that the samples do not have: variants, mostly.
const NAMES: [&str; 22] = [
    "worker",
    "async",
    "detached",
    "warm",
    "assistant",
    "openai",
    "openai_responses",
    "anthropic",
    "servers",
    "model",
    "supervisor",
    "throttled",
    "limited",
    "message",
    "paused",
    "closing",
    "completed",
    "cancelled",
    "deadline",
    "failed",
    "internal",
    "schema",
];

/// Edits a sample as `data` says and decodes it: the first byte says which sample, the second where the frame is cut,
/// each three after them are an edit. Gives the types that were decoded, and how the streams ended.
///
/// # Panics
///
/// As [`frame_decode`](super::frame_decode), and when the order of the keys or one more unknown key changes the
/// message.
pub fn message_decode(data: &[u8]) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let [which, cut, edits @ ..] = data else { return reached };
    let (down, up) = (every_down(), every_up());
    let which = usize::from(*which) % (down.len() + up.len());
    match (down.get(which), up.get(which.saturating_sub(down.len()))) {
        (Some(sample), _) => edited(sample, *cut, edits, &mut reached),
        (None, Some(sample)) => edited(sample, *cut, edits, &mut reached),
        (None, None) => {}
    }
    reached
}

/// A message of a child: a sample, edited; `None` when it is none any more.
pub(crate) fn up_message(which: u8, edits: &[u8]) -> Option<Up> {
    let samples = every_up();
    let sample = samples.get(usize::from(which) % samples.len())?;
    let (envelope, pairs) = parts(sample);
    let frame = framed(&bytes(&Value::Map([envelope, changed(pairs, edits)].concat())));
    match decode([frame.as_slice()].into_iter()).frames.pop() {
        Some(Ok(Decoded::Message(message))) => Some(message),
        Some(Ok(Decoded::Ignored) | Err(_)) | None => None,
    }
}

fn edited<M: Message + Debug + PartialEq>(
    sample: &M,
    cut: u8,
    edits: &[u8],
    reached: &mut BTreeSet<&'static str>,
) {
    let (envelope, pairs) = parts(sample);
    let pairs = changed(pairs, edits);
    let body = |pairs: Pairs| framed(&bytes(&Value::Map(pairs)));
    let frame = body([envelope.clone(), pairs.clone()].concat());
    direction::<M>(&frame, usize::from(cut), reached);
    let said = decode::<M>([frame.as_slice()].into_iter());
    if let [Ok(Decoded::Message(_))] = said.frames.as_slice() {
        let turned = [pairs.clone(), envelope.clone()].concat().into_iter().rev().collect();
        assert_eq!(decode::<M>([body(turned).as_slice()].into_iter()), said, "the keys in another order");
        let unknown = (Value::from("a key of a later version"), Value::from(1));
        let more = decode::<M>([body([envelope, pairs, vec![unknown]].concat()).as_slice()].into_iter());
        let ignored = Ignored { keys: said.ignored.keys + 1, ..said.ignored };
        assert_eq!((more.frames, more.ignored), (said.frames, ignored), "one more key");
    }
}

/// The pairs of a message's map, edited.
fn changed(mut pairs: Pairs, edits: &[u8]) -> Pairs {
    for edit in edits.chunks_exact(3).take(EDITS) {
        let [place, what, with] = edit else { continue };
        let mut tree = Value::Map(pairs);
        if places(&tree) <= PLACES {
            apply(&mut tree, usize::from(*place), *what, *with);
        }
        pairs = tree.into_map().unwrap_or_default();
    }
    pairs
}

/// The pairs of a message's map: `t` and `n`, and its own.
fn parts<M: Message>(sample: &M) -> (Pairs, Pairs) {
    let mut frame = Vec::new();
    // A sample fits; one that did not would be no message, which the assertion on the corpus shows.
    let _fits = Encoder::new().append(sample, &mut frame);
    let tree = ciborium::from_reader::<Value, _>(frame.get(4..).unwrap_or_default());
    let pairs = tree.ok().and_then(|tree| tree.into_map().ok()).unwrap_or_default();
    pairs.into_iter().partition(|(key, _)| matches!(key.as_text(), Some("t" | "n")))
}

fn bytes(tree: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing into memory does not fail.
    let _written = ciborium::into_writer(tree, &mut bytes);
    bytes
}

/// Every key and text of the samples, and [`NAMES`].
fn words() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let down = every_down().into_iter().flat_map(|message| parts(&message).1);
        let up = every_up().into_iter().flat_map(|message| parts(&message).1);
        let mut found: BTreeSet<String> = NAMES.map(str::to_owned).into();
        gather(&Value::Map(down.chain(up).collect()), &mut found);
        found.into_iter().collect()
    })
}

fn gather(tree: &Value, found: &mut BTreeSet<String>) {
    match tree {
        Value::Text(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Map(pairs) => pairs.iter().for_each(|(key, value)| {
            gather(key, found);
            gather(value, found);
        }),
        _ => {}
    }
}

/// How many values a tree has, itself included; keys do not count.
fn places(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Map(pairs) => pairs.iter().map(|(_, value)| places(value)).sum(),
        _ => 0,
    }
}

/// Changes the value at a place, counted through the tree from its root.
fn apply(tree: &mut Value, place: usize, what: u8, with: u8) {
    let (place, words) = (place % places(tree), words());
    let copied = at(tree, usize::from(with) % places(tree)).map(|value| value.clone());
    let word = words.get(usize::from(with) % words.len().max(1)).cloned().unwrap_or_default();
    let Some(value) = at(tree, place) else { return };
    match what % 10 {
        // The message itself stays a map: what else a body can be is for `frame_decode`.
        0..=5 | 9.. if place == 0 => {}
        0 => *value = leaf(with),
        1 => *value = Value::Text(word),
        2 => *value = Value::from(with),
        3 => *value = copied.unwrap_or(Value::Null),
        4 => *value = Value::Array(vec![value.clone()]),
        5 => *value = Value::Map(vec![(Value::Text(word), value.clone())]),
        6 => rename(value, with, word),
        7 => remove(value, with),
        8 => append(value, copied.unwrap_or(Value::Null), word),
        _ => *value = Value::Bytes(vec![with; usize::from(with)]),
    }
}

fn at(tree: &mut Value, place: usize) -> Option<&mut Value> {
    if place == 0 {
        return Some(tree);
    }
    let mut left = place - 1;
    let inner: Vec<&mut Value> = match tree {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Map(pairs) => pairs.iter_mut().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    for value in inner {
        let within = places(value);
        if left < within {
            return at(value, left);
        }
        left -= within;
    }
    None
}

fn rename(value: &mut Value, which: u8, word: String) {
    if let Value::Map(pairs) = value
        && !pairs.is_empty()
    {
        let index = usize::from(which) % pairs.len();
        pairs[index].0 = Value::Text(word);
    }
}

fn remove(value: &mut Value, which: u8) {
    match value {
        Value::Array(items) if !items.is_empty() => drop(items.remove(usize::from(which) % items.len())),
        Value::Map(pairs) if !pairs.is_empty() => drop(pairs.remove(usize::from(which) % pairs.len())),
        other => *other = Value::Null,
    }
}

fn append(value: &mut Value, more: Value, word: String) {
    match value {
        Value::Array(items) => items.push(more),
        Value::Map(pairs) => pairs.push((Value::Text(word), more)),
        Value::Text(text) => text.push_str(&word),
        _ => {}
    }
}

/// Values at the borders of types.
fn leaf(with: u8) -> Value {
    match with % 18 {
        0 => Value::Null,
        1 => Value::from(true),
        2 => Value::from(false),
        3 => Value::from(u64::MAX),
        4 => Value::from(i64::MIN),
        5 => Value::from(-1),
        6 => Value::from(u32::MAX),
        7 => Value::from(u64::from(u32::MAX) + 1),
        8 => Value::from(u16::MAX),
        9 => Value::from(0),
        10 => Value::from(0.5),
        11 => Value::from(f64::INFINITY),
        12 => Value::from(1.0),
        13 => Value::from(""),
        14 => Value::from("\u{202e}\u{0}\u{1f980}"),
        15 => Value::from("x".repeat(1_000)),
        16 => Value::Array(Vec::new()),
        _ => Value::Map(Vec::new()),
    }
}

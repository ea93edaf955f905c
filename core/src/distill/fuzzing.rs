//! What must hold of the value of any answer: the body of the fuzz target `distill`, and of a property.

use super::{CUT_MARK, depth, distill, undistilled};
use crate::limits::{RESULT_DEPTH, RESULT_TEXT_BYTES};
use serde_json::Value;
use std::collections::BTreeSet;

/// Distils `data` as text, and as text of so many repetitions of its rest as the first two bytes say. Gives what became
/// of them.
///
/// # Panics
///
/// When an object or a list is lost, text is cut too early, too late or inside a character, or a value changes when it
/// is distilled again.
pub fn distilled(data: &[u8]) -> BTreeSet<&'static str> {
    let [low, high, rest @ ..] = data else { return BTreeSet::new() };
    let text = String::from_utf8_lossy(rest);
    let times = usize::from(u16::from_le_bytes([*low, *high]));
    // A little more than is kept is enough to see the cut.
    let times = times.min(2 * RESULT_TEXT_BYTES / text.len().max(1)) + 1;
    [answer(&text), answer(&text.repeat(times))].into()
}

fn answer(text: &str) -> &'static str {
    let kept = distill(text);
    let whole = undistilled(text);
    let plain =
        serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
    match &kept {
        Value::Object(_) | Value::Array(_) => {
            assert_eq!((Some(&kept), &whole), (plain.as_ref(), &kept), "a value is kept as it is");
            assert_eq!(distill(&kept.to_string()), kept, "distilled again");
            if kept.is_object() { "an object" } else { "a list" }
        }
        Value::String(head) => {
            assert!(plain.is_none_or(|value| depth(&value) > RESULT_DEPTH), "a value was lost: {text}");
            assert_eq!(whole, Value::String(text.to_owned()));
            if text.len() <= RESULT_TEXT_BYTES {
                assert_eq!(head, text);
                return "text";
            }
            let head = head.strip_suffix(CUT_MARK).unwrap_or_default();
            assert!(text.starts_with(head) && head.len() <= RESULT_TEXT_BYTES);
            assert!(head.len() > RESULT_TEXT_BYTES - 4, "only a character that is cut is left out");
            "text that is cut"
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => panic!("a scalar stays text: {kept}"),
    }
}

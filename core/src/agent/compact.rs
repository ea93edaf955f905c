//! How a history that no longer fits the model's window is made shorter (S7.7): the oldest tool results are left out
//! first, then what lies between the instruction and the last round is folded into a summary.
//!
//! Owns what is left out and what stands for it. Refuses to touch the instruction, the caller's context, the message
//! that began the turn in hand, and to part a call from its result. Pure; the summary is the model's, and the loop asks
//! for it. Called by the loop.

use crate::agent::bound::bounded;
use crate::agent::history::History;
use crate::limits::{SUMMARY_BYTES, SUMMARY_INPUT_BYTES};
use crate::model::{CallResult, Message};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// A result that is shorter than this is not worth leaving out.
const SHORT: usize = 256;

/// Bytes of a result of the last round that are kept, where leaving out all before it is not enough.
const KEPT_OF_LAST: usize = 4 * 1024;

/// What the model is to do with what is to be folded.
pub(super) const ASK: &str = "You condense the record of an agent's work, so that the agent can go on with the condensed form alone. Keep what was \
     asked, decided and found, with exact names, paths, numbers and quotations that are still needed, what was tried and \
     failed, and what is still to be done. Leave out what no longer matters. Answer with the condensed record and \
     nothing else.";

/// What shedding results came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shed {
    /// Results that were left out or cut.
    pub(super) results: usize,
    /// The history is as short as it was to be.
    pub(super) enough: bool,
}

/// Leaves out results, the oldest first, until the history has at most `target` bytes; those of the last round are
/// only cut, and last.
pub(super) fn shed(history: &mut History, target: usize) -> Shed {
    let last = middle(history).end;
    let mut messages = history.messages().to_vec();
    let (mut bytes, mut shed) = (history.bytes, 0);
    for (at, message) in messages.iter_mut().enumerate() {
        let Message::Results(results) = message.as_ref() else { continue };
        if bytes <= target {
            break;
        }
        let mut shorter = results.clone();
        for result in &mut shorter {
            if bytes > target
                && let Some(text) = stand_in(result, at >= last)
            {
                bytes -= result.text.len() - text.len();
                result.text = text;
                shed += 1;
            }
        }
        *message = Arc::new(Message::Results(shorter));
    }
    let begins = history.begins;
    history.replace(messages, begins);
    Shed { results: shed, enough: history.bytes <= target }
}

/// What stands for a result, where that is shorter.
fn stand_in(result: &CallResult, of_last: bool) -> Option<String> {
    let text = if of_last {
        bounded(result.text.clone(), KEPT_OF_LAST)
    } else if result.text.len() > SHORT {
        format!("[{} bytes of this earlier result were left out to make room]", result.text.len())
    } else {
        return None;
    };
    (text.len() < result.text.len()).then_some(text)
}

/// What can be folded: after the instruction and before the last round.
pub(super) fn middle(history: &History) -> Range<usize> {
    let messages = history.messages();
    let first = (history.context + 1).min(messages.len());
    let called = |message: &Arc<Message>| matches!(message.as_ref(), Message::Assistant { .. });
    let last = messages.iter().rposition(called).unwrap_or(messages.len());
    first..last.max(first)
}

/// The record that the model is to condense, within its bound: head and tail where it is longer.
pub(super) fn record(history: &History) -> String {
    let mut record = String::new();
    let mut say = |what: std::fmt::Arguments<'_>| {
        // Writing into a string does not fail.
        let _written = record.write_fmt(what);
    };
    for message in &history.messages()[middle(history)] {
        match message.as_ref() {
            Message::User(text) => say(format_args!("## Told\n{text}\n\n")),
            Message::Assistant { text, calls } => {
                if let Some(text) = text {
                    say(format_args!("## Wrote\n{text}\n\n"));
                }
                for call in calls {
                    let args = String::from_utf8_lossy(&call.args.0);
                    say(format_args!("## Called {} with {args}\n\n", call.name));
                }
            }
            Message::Results(results) => {
                for result in results {
                    let what = if result.error { "Error" } else { "Result" };
                    say(format_args!("## {what} of {}\n{}\n\n", result.name, result.text));
                }
            }
        }
    }
    bounded(record, SUMMARY_INPUT_BYTES)
}

/// Puts a summary in the place of what it is of. Without one, a mark says that something is missing. How many messages
/// were folded.
pub(super) fn fold(history: &mut History, summary: Option<String>) -> usize {
    let middle = middle(history);
    let folded = middle.len();
    if folded == 0 {
        return 0;
    }
    let said = match summary {
        Some(text) => {
            format!("What was done so far, condensed to make room:\n\n{}", bounded(text, SUMMARY_BYTES))
        }
        None => format!("[{folded} earlier messages were left out to make room.]"),
    };
    let messages = history.messages();
    let mut shorter = messages[..middle.start].to_vec();
    shorter.push(Arc::new(Message::User(said)));
    // The turn in hand began in between: what it is about stays.
    let mut begins = history.begins;
    if middle.contains(&begins) {
        shorter.push(Arc::clone(&messages[begins]));
        begins = shorter.len() - 1;
    } else if begins >= middle.end {
        begins = begins - middle.end + shorter.len();
    }
    shorter.extend_from_slice(&messages[middle.end..]);
    history.replace(shorter, begins);
    folded
}

//! All that is left out of a transcript or made alike in it, and why. Whatever is not named here must be equal in
//! all arms, to the last character.
//!
//! Never in a transcript, since it is not looked at:
//!
//! - **Pids.** The kernel gives them out.
//! - **Borders of reads and writes.** A pipe cuts bytes where it likes; frames are compared instead (S2.2).
//! - **Order between lanes.** Each process has a lane for its life, one for what it is told and one for what it says,
//!   and one for the answer of each of its calls; each run has one for its records. Inside a lane order counts. Between lanes it is a race that real machines
//!   run anew each time, unless something causes it; and what causes it is a frame or a record of some lane.
//! - **End of file and EPIPE.** Whether a dead child's pipe is found closed before its pid is freed is a race.
//! - **Passes of a sweep.** How many it takes depends on the kernel; whether something was killed does not.
//! - **Ticks, and reaping of strangers' orphans.** They come by the clock.
//!
//! The rest is said by the functions and tables below.

use agentd_core::note::Note;
use agentd_core::wire::{Down, Up};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// **Pings and pongs** come as often as the clock has time for.
pub(super) fn keeps_down(frame: &Down) -> bool {
    !matches!(frame, Down::Ping(_))
}

/// See [`keeps_down`].
pub(super) fn keeps_up(frame: &Up) -> bool {
    !matches!(frame, Up::Pong(_))
}

/// Log events that tell of what is left out: a closed pipe, a machine that was slow, and stderr beyond what a second
/// may hold, which is counted by the clock. And a `ready` that is read after the exit is known, as the simulator's
/// machine has it at times, is not worth a log event; the frame itself is compared.
const UNTOLD: &[&str] = &["child.ready", "child.stdin_closed", "child.stderr_dropped", "daemon.stalled"];

/// Whether a log event is compared. Of one process's events the names and fields count and not the order, which is
/// that between the lanes they tell of.
pub(super) fn keeps_note(note: &Note) -> bool {
    !UNTOLD.contains(&note.event.as_str())
}

/// Lines of stderr are compared up to so many bytes; a child that writes more meets the limit of a second (see
/// [`UNTOLD`]), and which of its lines do is by the clock.
pub(super) const STDERR_BYTES: usize = 16 * 1024;

/// **Times**: when something was, and how long it took. What was configured (`deadline_ms` and the like) stays. And the
/// **pid** in the log, and **how many** a sweep killed that were not yet dead of their group's SIGKILL.
const MEASURED: &[&str] = &["after_ms", "created", "duration_ms", "ended", "killed", "pid"];

/// Names that were minted from the time of day, to what they name here.
pub(super) type Names = BTreeMap<String, String>;

/// Makes a value alike in all arms.
pub(super) fn value(value: Value, names: &Names) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !MEASURED.contains(&key.as_str()));
            Value::Object(kept.map(|(key, v)| (key, self::value(v, names))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|v| self::value(v, names)).collect(),
        Value::String(text) => Value::String(self::text(&text, names)),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// **Run ids** hold the time of day: they become the run's short name. **The system's own words** for a process that it
/// could not make differ from those of a fake one; they are a name too. **How long a stuck child was silent** is
/// measured.
fn text(text: &str, names: &Names) -> String {
    let mut text = text.to_owned();
    for (seen, name) in names {
        text = text.replace(seen, name);
    }
    if let Some(at) = text.find("stuck: no frame for ") {
        let (head, measured) = text.split_at(at);
        let words = measured.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        text = format!("{head}{words}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_listed_is_made_alike() {
        let names = Names::from([("0190-aa".to_owned(), "sub-1".to_owned())]);
        let seen = json!({"run_id": "0190-aa", "deadline_ms": 5, "evidence": {"duration_ms": 7, "tool_calls": 2},
            "error": ["failed: stuck: no frame for 1503 ms and no pong for 1002 ms", "0190-aa and 0190-ab took 5 ms"]});
        assert_eq!(
            value(seen, &names),
            json!({"run_id": "sub-1", "deadline_ms": 5, "evidence": {"tool_calls": 2},
                "error": ["failed: stuck: no frame for  ms and no pong for  ms", "sub-1 and 0190-ab took 5 ms"]})
        );
    }
}

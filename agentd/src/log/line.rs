//! One note as one line, in each format. A value never breaks the line or reaches a terminal as a control
//! character, whoever wrote it.

use agentd_core::note::{Level, Note};
use agentd_core::time::Wall;
use serde::Serializer as _;
use serde::ser::SerializeMap;
use serde_json::Value;

/// Bytes of one text field; the rest is cut and marked.
const FIELD_BYTES: usize = 16 * 1024;

/// Names every line has by itself; a field under one of them gets a `field.` before it.
const OWN_KEYS: [&str; 8] = ["ts", "level", "event", "run_id", "handle", "node", "attempt", "trace_id"];

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// Time, level, event, handle and the fields, for people.
    Text,
    /// The starts and ends of runs in plain words and nothing else, for `demo`.
    Progress,
    /// As that without the starts, which the live tree shows.
    Ends,
}

/// Appends the note's line.
pub(super) fn write(format: Format, now: Wall, note: &Note, out: &mut Vec<u8>) {
    let start = out.len();
    let written = match format {
        Format::Json => json(now, note, out),
        Format::Text => {
            text(now, note, out);
            Ok(())
        }
        Format::Progress => {
            progress(note, out);
            Ok(())
        }
        Format::Ends if note.event.ends_with(".spawn") => Ok(()),
        Format::Ends => {
            progress(note, out);
            Ok(())
        }
    };
    match written {
        Ok(()) if out.len() > start => out.push(b'\n'),
        Ok(()) => {}
        // Only a value that cannot be JSON gets here, and a note has none.
        Err(_) => out.truncate(start),
    }
}

fn json(now: Wall, note: &Note, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let mut serializer = serde_json::Serializer::new(out);
    let mut line = serializer.serialize_map(None)?;
    line.serialize_entry("ts", &now.to_string())?;
    line.serialize_entry("level", &note.level)?;
    line.serialize_entry("event", &note.event)?;
    if let Some(run_id) = &note.run_id {
        line.serialize_entry("run_id", run_id)?;
    }
    if let Some(handle) = &note.handle {
        line.serialize_entry("handle", handle)?;
    }
    if let Some(node) = &note.node {
        line.serialize_entry("node", node)?;
    }
    if let Some(attempt) = &note.attempt {
        line.serialize_entry("attempt", attempt)?;
    }
    if let Some(trace_id) = &note.trace_id {
        line.serialize_entry("trace_id", trace_id)?;
    }
    for (key, value) in &note.fields {
        let value = shortened(value);
        if OWN_KEYS.contains(&key.as_str()) {
            line.serialize_entry(&format!("field.{key}"), value.as_ref())?;
        } else {
            line.serialize_entry(key, value.as_ref())?;
        }
    }
    line.end()
}

fn text(now: Wall, note: &Note, out: &mut Vec<u8>) {
    let ts = now.to_string();
    let time = ts.get(11..).unwrap_or(&ts);
    let mut line = format!("{time} {:5} {}", level(note.level), plain(&note.event));
    if let Some(handle) = note.handle {
        line.push_str(&format!(" {handle}"));
    }
    if let Some(attempt) = note.attempt.filter(|attempt| *attempt > 1) {
        line.push_str(&format!(" attempt={attempt}"));
    }
    for (key, value) in &note.fields {
        line.push_str(&format!(" {}={}", plain(key), shown(value)));
    }
    out.extend_from_slice(line.as_bytes());
}

fn progress(note: &Note, out: &mut Vec<u8>) {
    let who = note.handle.map_or_else(|| "the conversation".to_owned(), |handle| handle.to_string());
    let field = |key: &str| note.fields.get(key).map(shown);
    let number = |key: &str| note.fields.get(key).and_then(Value::as_u64);
    let line = match note.event.as_str() {
        "worker.spawn" | "subagent.spawn" => match field("pid") {
            Some(pid) => format!("{who} started (process {pid})"),
            None => format!("{who} started"),
        },
        "worker.result" | "subagent.result" => {
            let status = field("status").unwrap_or_else(|| "ended".to_owned());
            match field("error").filter(|error| error != "null") {
                Some(error) => format!("{who} {status}: {error}"),
                None => format!("{who} {status}"),
            }
        }
        "drain.start" => {
            let within =
                number("timeout_ms").map_or_else(String::new, |ms| format!(" for up to {}", span(ms)));
            format!("stopping: what runs may finish{within}; Ctrl-C again ends it now")
        }
        "drain.forced" => match number("live") {
            Some(1) => "stopping now: 1 run is killed".to_owned(),
            Some(live) => format!("stopping now: {live} runs are killed"),
            None => "stopping now: what runs is killed".to_owned(),
        },
        _ if note.level <= Level::Warn => match field("error") {
            Some(error) => format!("{}: {}: {error}", level(note.level), plain(&note.event)),
            None => format!("{}: {}", level(note.level), plain(&note.event)),
        },
        _ => return,
    };
    out.extend_from_slice(line.as_bytes());
}

/// Milliseconds for people: `25 s`, `1.5 s`, `200 ms`.
fn span(ms: u64) -> String {
    match (ms / 1000, ms % 1000) {
        (0, _) => format!("{ms} ms"),
        (seconds, 0) => format!("{seconds} s"),
        (seconds, rest) => format!("{seconds}.{} s", format!("{rest:03}").trim_end_matches('0')),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

/// A value for people: a simple word as it is, anything else in quotes with escapes.
fn shown(value: &Value) -> String {
    match shortened(value).as_ref() {
        Value::String(text) if is_word(text) => text.clone(),
        Value::String(text) => format!("\"{}\"", escaped(text)),
        other => plain(&other.to_string()),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:@%+,#*".contains(c))
}

/// A name without anything a terminal would act on.
fn plain(text: &str) -> String {
    if text.chars().any(acts) { escaped(text) } else { text.to_owned() }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if acts(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Control characters, line separators and those that turn the reading order around.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The value with a long text cut at a character boundary and marked.
fn shortened(value: &Value) -> std::borrow::Cow<'_, Value> {
    match value {
        Value::String(text) if text.len() > FIELD_BYTES => {
            let end = (0..=FIELD_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let kept = text.get(..end).unwrap_or_default();
            std::borrow::Cow::Owned(Value::String(format!("{kept}… [{} bytes cut]", text.len() - end)))
        }
        _ => std::borrow::Cow::Borrowed(value),
    }
}

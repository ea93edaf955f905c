//! Events and actions in words, one line each: what a person reads who wants to know what the supervisor was told and
//! what it did. Everything that somebody else wrote is quoted, cut and made harmless for a terminal.

use super::cast::Cast;
use super::speech::down;
use super::{Difference, DifferenceKind, Step};
use agentd_core::action::{Action, ChildSignal, HostCall, Walls};
use agentd_core::config::Reloaded;
use agentd_core::event::{Event, Exit, Peer, SupervisorSignal};
use agentd_core::note::Note;
use agentd_core::preview::preview;
use agentd_core::store::{Write, record_in};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::{Down, down_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a foreign text in a line.
const SHOWN: usize = 160;

/// A foreign text in quotes.
pub(super) fn quoted(text: impl AsRef<[u8]>) -> String {
    format!("\"{}\"", preview(text, SHOWN))
}

pub(super) fn plain(text: impl AsRef<[u8]>) -> String {
    preview(text, SHOWN)
}

/// `+1.204s`: since the daemon's start.
pub fn time(at: Instant) -> String {
    format!("+{}.{:03}s", at.millis() / 1_000, at.millis() % 1_000)
}

/// `4 ms`, `1.2 s`, `3m20s`.
pub(super) fn span(length: Duration) -> String {
    let ms = length.as_millis();
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{}m{}s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// What happened. `heard` is what a child said, whole messages only.
pub fn event(step: &Step<'_>, heard: &[String], cast: &Cast) -> String {
    let who = |node: &_| cast.name(*node);
    match step.event {
        Event::Seeded { .. } => "the system gives a seed for ids and jitter".to_owned(),
        Event::PromptSubmitted { text } => format!("a person asks: {}", quoted(text)),
        Event::TurnCancelled { prompt, reason } => {
            format!("a person takes prompt {prompt} back: {}", quoted(reason))
        }
        Event::Tick => format!("time passed: {} is due", step.due.unwrap_or("nothing")),
        Event::ChildSpawned { node, pid } => format!("{} has process {pid}", who(node)),
        Event::SpawnFailed { node, error, transient } => {
            let again = if *transient { ", which may pass" } else { "" };
            format!("no process could be made for {}: {}{again}", who(node), plain(error))
        }
        Event::SpawnFrameFailed { node, error } => {
            format!("{}'s first frame could not be made: {}", who(node), plain(error))
        }
        Event::ChildBytes { node, bytes } if heard.is_empty() => {
            format!("{} bytes from {}, no whole message yet", bytes.len(), who(node))
        }
        Event::ChildBytes { node, .. } => format!("{} says: {}", who(node), heard.join("; ")),
        Event::ChildEof { node } => format!("{}'s stdout ended", who(node)),
        Event::ChildStderr { node, bytes } => format!("{} on stderr: {}", who(node), quoted(&**bytes)),
        Event::ChildWrote { node, bytes } => format!("{bytes} bytes left for {}", who(node)),
        Event::ChildWriteFailed { node, error } => {
            format!("{} takes no more frames: {}", who(node), plain(error))
        }
        Event::ExitObserved { node, exit } => format!("{}'s process ended {}", who(node), exit_words(*exit)),
        Event::Swept { node, killed, remaining } => {
            format!("what {} left: {killed} killed, {remaining} not gone yet", who(node))
        }
        Event::Reaped { node } => format!("{}'s pid is free", who(node)),
        Event::Stored { seq } => format!("save {seq} is durable"),
        Event::StoreFailed { seq, error, retryable } => {
            let again = if *retryable { ", to be tried again" } else { "" };
            format!("save {seq} failed: {}{again}", plain(error))
        }
        Event::ConfigReady(reloaded) => {
            let Reloaded { applied, restart_needed, .. } = reloaded.as_ref();
            format!(
                "the configuration was read again: {} keys count from now on, {} only after a restart",
                applied.len(),
                restart_needed.len()
            )
        }
        Event::ConfigRefused { problems, text } => {
            format!(
                "the configuration was read again and cannot be used, {problems} problems: {}",
                quoted(text)
            )
        }
        Event::ModelFrameFailed { node, id, error } => {
            format!("{}'s model {id} could not be made: {}", who(node), plain(error))
        }
        Event::OperatorCalled { call, tool, args } => {
            format!("an operator calls {} with {} (call {call})", plain(tool), plain(&*args.0))
        }
        Event::OperatorHungUp { call } => format!("the operator waits no longer for call {call}"),
        Event::HostToolAnswered { call, error, value } => {
            let error = if *error { ", an error" } else { "" };
            format!("the embedding program answers call {call}{error}: {}", plain(&*value.0))
        }
        Event::Restored(saved) => {
            let (runs, letters, aside) = (saved.runs.len(), saved.letters.len(), saved.quarantined.len());
            format!("the store held {runs} runs and {letters} messages; {aside} values could not be read")
        }
        Event::Signalled { signal } => format!("the supervisor got {}", signal_name(*signal)),
        Event::ConnOpened { conn, door, peer } => {
            let peer = match peer {
                Peer::Local { uid, pid, .. } => format!("pid {pid} of uid {uid}"),
                Peer::Remote { address } => plain(address),
            };
            format!("connection {} is open, {} to {}", conn.0, peer, door.name())
        }
        Event::ConnBytes { conn, bytes } => format!("{} bytes on connection {}", bytes.len(), conn.0),
        Event::ConnWrote { conn, bytes } => format!("{bytes} bytes left on connection {}", conn.0),
        Event::ConnEnded { conn } => format!("the client of connection {} sends no more", conn.0),
        Event::ConnClosed { conn, error } => {
            let why = error.as_ref().map_or_else(String::new, |error| format!(": {}", plain(error)));
            format!("connection {} is closed{why}", conn.0)
        }
    }
}

/// What is done about it.
pub fn action(action: &Action, cast: &Cast) -> String {
    let who = |node: &_| cast.name(*node);
    match action {
        Action::Spawn { node, walls, .. } => {
            format!("make a process for {}{}", who(node), walls_words(walls))
        }
        Action::SendSpawn { node, payload } => {
            format!("hand {} its work: {}", who(node), quoted(&payload.0.instruction))
        }
        Action::SendModel { node, payload, .. } => {
            format!("tell {}: {}", who(node), down(&Down::Model(payload.0.clone())))
        }
        Action::LoadConfig => "read the configuration again".to_owned(),
        Action::EndReload { used: true } => "use the configuration that was read".to_owned(),
        Action::EndReload { used: false } => "go on with the configuration as it is".to_owned(),
        Action::SendToChild { node, frame } => match down_of(frame) {
            Some(message) => format!("tell {}: {}", who(node), down(&message)),
            None => format!("tell {}: {} bytes", who(node), frame.len()),
        },
        Action::CloseStdin { node } => format!("close {}'s stdin", who(node)),
        Action::Signal { node, signal } => {
            format!("{} to {}'s process group", child_signal(*signal), who(node))
        }
        Action::Sweep { node, keepers } => {
            let keepers = if *keepers { ", keepers too" } else { "" };
            format!("kill what {} left{keepers}", who(node))
        }
        Action::Reap { node } => format!("reap {}", who(node)),
        Action::ReapOrphans => "reap orphans".to_owned(),
        Action::Persist { seq, writes, .. } => match record_in(writes) {
            Some(record) => {
                let error =
                    record.error.as_ref().map_or_else(String::new, |error| format!(" ({})", plain(error)));
                let more = more_words(writes);
                format!("save {} as {}{error}{more} (save {seq})", who(&record.node), record.status.name())
            }
            None => format!("save{} (save {seq})", more_words(writes).trim_start_matches(" with")),
        },
        Action::Note(note) => format!("because: {}", note_words(note, cast)),
        Action::Deliver { prompt, result, .. } => {
            let answer = value(&result.result);
            format!("answer prompt {prompt}: {}, {answer}", result.status.name())
        }
        Action::Answer { call, error, value } => {
            let error = if *error { ", an error" } else { "" };
            format!("answer the operator's call {call}{error}: {}", plain(&*value.0))
        }
        Action::CallHostTool(HostCall { call, node, server, tool, args, .. }) => format!(
            "call {} of {}, a tool of the embedding program, for {} with {} (call {call})",
            plain(tool),
            plain(server),
            who(node),
            plain(&*args.0)
        ),
        Action::CancelHostTool { call } => format!("the embedding program's call {call} is needed no longer"),
        Action::ConnSend { conn, bytes } => format!("send {} bytes on connection {}", bytes.len(), conn.0),
        Action::ConnShut { conn, at_once } => {
            let how = if *at_once { "at once" } else { "once all has left" };
            format!("close connection {} {how}", conn.0)
        }
        Action::Exit { leaked: 0, .. } => "end: nothing is left".to_owned(),
        Action::Exit { leaked, .. } => format!("end: {leaked} processes could not be killed"),
    }
}

/// What is saved besides a run's record.
fn more_words(writes: &[Write]) -> String {
    let names: BTreeSet<&str> = writes
        .iter()
        .filter_map(|write| match write {
            Write::Run(_) => None,
            Write::NoRun(_) | Write::NoWork(_) | Write::NoLetter { .. } | Write::NoTask(_) => {
                Some("that something is gone")
            }
            Write::Work(_) => Some("its work"),
            Write::Letter { .. } => Some("a message"),
            Write::Handles(_) => Some("the last handle"),
            Write::Plan(_) => Some("the plan"),
            Write::Conversation(_) => Some("the conversation"),
            Write::Ledger(_) => Some("the budget"),
            Write::Task(_) => Some("a client's task"),
        })
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { String::new() } else { format!(" with {}", names.join(", ")) }
}

/// A reason, as the log has it.
fn note_words(note: &Note, cast: &Cast) -> String {
    let who = note.node.map_or_else(String::new, |node| format!(" {}", cast.name(node)));
    format!("{}{who}{}", plain(&note.event), fields(&note.fields))
}

/// ` key=value key=value`.
pub(super) fn fields(fields: &BTreeMap<String, Value>) -> String {
    fields.iter().map(|(key, field)| format!(" {}={}", plain(key), value(field))).collect()
}

/// A JSON value; a text that is one word as it is.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:".contains(c)) =>
        {
            plain(text)
        }
        Value::String(text) => quoted(text),
        other => plain(other.to_string()),
    }
}

/// `with code 0`, `by SIGKILL`.
pub(super) fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("with code {code}"),
        Exit::Signal(number) => match rustix::process::Signal::from_named_raw(number) {
            Some(signal) => format!("by {}", signal_words(signal, number)),
            None => format!("by signal {number}"),
        },
        Exit::Unknown => "and somebody else reaped it".to_owned(),
    }
}

fn signal_words(signal: rustix::process::Signal, number: i32) -> String {
    use rustix::process::Signal as S;
    let name = match signal {
        S::KILL => "SIGKILL",
        S::TERM => "SIGTERM",
        S::SEGV => "SIGSEGV",
        S::ABORT => "SIGABRT",
        S::INT => "SIGINT",
        S::HUP => "SIGHUP",
        S::PIPE => "SIGPIPE",
        S::XCPU => "SIGXCPU",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

pub(super) fn child_signal(signal: ChildSignal) -> &'static str {
    match signal {
        ChildSignal::TermCont => "SIGTERM and SIGCONT",
        ChildSignal::Kill => "SIGKILL",
    }
}

fn signal_name(signal: SupervisorSignal) -> &'static str {
    match signal {
        SupervisorSignal::Term => "SIGTERM",
        SupervisorSignal::Int => "SIGINT",
        SupervisorSignal::Hup => "SIGHUP",
    }
}

fn walls_words(walls: &Walls) -> String {
    let memory = walls.memory.map(|bytes| format!(", {bytes} bytes of data at most"));
    let cpu = walls.cpu_seconds.map(|seconds| format!(", {seconds} s of CPU at most"));
    let nice = (walls.nice != 0).then(|| format!(", nice {}", walls.nice));
    [memory, cpu, nice].into_iter().flatten().collect()
}

/// The first difference, a line each: where, what happened, what was recorded, what is decided now.
pub fn difference(found: &Difference, cast: &Cast) -> Vec<String> {
    let place = format!("{}, file {} of the journal", found.file.display(), found.segment);
    let at = format!("event {} ({})", found.number, time(found.now.mono));
    match &found.kind {
        DifferenceKind::State => vec![format!(
            "the first difference: {place}: the state it begins with is not the one that the {} events before it lead to",
            found.number
        )],
        DifferenceKind::Panic => {
            vec![format!(
                "the core panics at {at} in {place}; where the journal ends there too, that ended the daemon"
            )]
        }
        DifferenceKind::Actions { recorded, decided } => {
            let mut lines = vec![format!("the first difference: {place}, {at}")];
            lines.extend(actions_apart(recorded.as_deref(), decided, cast));
            lines
        }
    }
}

fn actions_apart(recorded: Option<&[Action]>, decided: &[Action], cast: &Cast) -> Vec<String> {
    let Some(recorded) = recorded else {
        let count = decided.len();
        return vec![format!(
            "  recorded: actions that this version cannot read; decided now: {count} actions"
        )];
    };
    let same = recorded.iter().zip(decided).take_while(|(one, other)| one == other).count();
    let shown = |actions: &[Action]| match actions.get(same) {
        Some(found) => format!("{}\n            {}", action(found, cast), plain_json(found)),
        None => format!("nothing more ({} actions in all)", actions.len()),
    };
    vec![
        format!("  action {} is not the same", same + 1),
        format!("  recorded: {}", shown(recorded)),
        format!("  replayed: {}", shown(decided)),
    ]
}

/// An action to the last field, as far as it fits: two may differ where words do not.
fn plain_json(action: &Action) -> String {
    preview(serde_json::to_string(action).unwrap_or_default(), 2_000)
}

use super::*;
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::note::names;
use agentd_core::rng::Rng;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc::Sender;

const NOW: Wall = Wall(1_796_066_309_000);
const LONG: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
    }
}

fn note(event: &str, fields: Value) -> Note {
    let Value::Object(fields) = fields else { panic!("an object") };
    Note { fields: fields.into_iter().collect(), ..Note::of_daemon(Level::Info, event) }
}

fn written(format: Format, notes: Vec<Note>) -> String {
    let memory = Memory::default();
    let log = Log::start(format, Level::Info, memory.clone()).expect("a thread");
    notes.into_iter().for_each(|note| log.note(NOW, note));
    assert!(log.close(LONG));
    memory.text()
}

#[test]
fn a_json_line_has_its_own_keys_first_and_the_fields_after() {
    let full = Note {
        run_id: Some(RunId::mint(Wall(1), &mut Rng::new(7))),
        handle: Some(Handle(7)),
        node: Some(NodeId(3)),
        attempt: Some(2),
        trace_id: Some("ab".into()),
        ..note("subagent.spawn", json!({"pid": 12, "event": "x", "b": null}))
    };
    let run_id = full.run_id.expect("minted");
    assert_eq!(
        written(Format::Json, vec![full]),
        format!(
            "{{\"ts\":\"2026-11-30T19:18:29.000Z\",\"level\":\"info\",\"event\":\"subagent.spawn\",\"run_id\":\"{run_id}\",\
             \"handle\":\"sub-7\",\"node\":3,\"attempt\":2,\"trace_id\":\"ab\",\"b\":null,\"field.event\":\"x\",\"pid\":12}}\n"
        )
    );
}

#[test]
fn whatever_a_value_holds_it_is_one_line_of_json() {
    let nasty = "a\nb\r\u{1b}[31m\u{2028}\"\\\0é";
    let text = written(Format::Json, vec![note("child.stderr", json!({"line": nasty}))]);
    assert_eq!(text.matches('\n').count(), 1);
    let line: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(line["line"], nasty);
    let text = written(Format::Text, vec![note("child.stderr", json!({"line": nasty}))]);
    assert_eq!(text.matches('\n').count(), 1);
    assert!(!text.trim_end().chars().any(char::is_control), "{text:?}");
}

#[test]
fn a_line_for_people() {
    let one = Note {
        handle: Some(Handle(3)),
        ..note("subagent.result", json!({"status": "completed", "n": 5, "say": "a b"}))
    };
    assert_eq!(
        written(Format::Text, vec![one]),
        "19:18:29.000Z info  subagent.result sub-3 n=5 say=\"a b\" status=completed\n"
    );
}

#[test]
fn progress_tells_starts_ends_and_troubles_only() {
    let sub = |event: &str, fields| Note { handle: Some(Handle(3)), ..note(event, fields) };
    let text = written(
        Format::Progress,
        vec![
            note("worker.spawn", json!({"pid": 9})),
            sub("subagent.spawn", json!({"pid": 10})),
            sub("child.ready", json!({})),
            sub("subagent.result", json!({"status": "failed", "error": "no reply"})),
            note("worker.result", json!({"status": "completed", "error": null})),
            Note { level: Level::Warn, ..note("store.failed", json!({"error": "disk full"})) },
            note("drain.start", json!({"signal": "SIGINT", "live": 2, "timeout_ms": 25_000})),
            note("drain.start", json!({"timeout_ms": 1_500})),
            note("drain.start", json!({"timeout_ms": 200})),
            Note { level: Level::Warn, ..note("drain.forced", json!({"live": 1})) },
            Note { level: Level::Warn, ..note("drain.forced", json!({"live": 2})) },
        ],
    );
    assert_eq!(
        text,
        "the conversation started (process 9)\nsub-3 started (process 10)\nsub-3 failed: \"no reply\"\n\
         the conversation completed\nwarn: store.failed: \"disk full\"\n\
         stopping: what runs may finish for up to 25 s; Ctrl-C again ends it now\n\
         stopping: what runs may finish for up to 1.5 s; Ctrl-C again ends it now\n\
         stopping: what runs may finish for up to 200 ms; Ctrl-C again ends it now\n\
         stopping now: 1 run is killed\nstopping now: 2 runs are killed\n"
    );
}

#[test]
fn less_important_notes_are_not_written() {
    let memory = Memory::default();
    let log = Log::start(Format::Text, Level::Warn, memory.clone()).expect("a thread");
    for level in [Level::Error, Level::Warn, Level::Info, Level::Debug] {
        log.note(NOW, Note { level, ..note("x", json!({})) });
    }
    assert!(log.close(LONG));
    assert_eq!(memory.text().lines().count(), 2);
}

#[test]
fn a_long_field_is_cut_and_marked() {
    let text = written(Format::Json, vec![note("x", json!({"line": "é".repeat(1_000_000)}))]);
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.contains("bytes cut]"));
}

/// A sink that stands still until it is told to go on.
struct Stuck {
    entered: Sender<()>,
    go: Receiver<()>,
    memory: Memory,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.entered.send(());
        let _ = self.go.recv();
        self.memory.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_stops_loses_lines_that_are_counted_and_blocks_nobody() {
    let memory = Memory::default();
    let (entered, has_entered) = mpsc::channel();
    let (go_on, go) = mpsc::channel();
    let log = Log::start(Format::Json, Level::Info, Stuck { entered, go, memory: memory.clone() })
        .expect("a thread");
    log.note(NOW, note("first", json!({})));
    has_entered.recv().expect("the thread writes");
    let sent = QUEUE_LINES + 5_000;
    (0..sent).for_each(|n| log.note(NOW, note("x", json!({"n": n}))));
    drop(go_on);
    assert!(log.close(LONG));
    let text = memory.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kept = lines.iter().filter(|line| line["event"] == "x").count();
    let dropped: u64 = lines.iter().filter_map(|line| line["lines"].as_u64()).sum();
    assert!((QUEUE_LINES / 2..=QUEUE_LINES).contains(&kept), "{kept}");
    assert_eq!(u64::try_from(sent).expect("small"), u64::try_from(kept).expect("small") + dropped);
}

#[test]
fn what_waits_is_bounded_in_bytes_too() {
    let (entered, has_entered) = mpsc::channel();
    let (go_on, go) = mpsc::channel();
    let memory = Memory::default();
    let log = Log::start(Format::Json, Level::Info, Stuck { entered, go, memory }).expect("a thread");
    log.note(NOW, note("first", json!({})));
    has_entered.recv().expect("the thread writes");
    (0..100).for_each(|_| log.note(NOW, note("x", json!({"line": "y".repeat(1_000_000)}))));
    assert!(log.shared.waiting.load(Ordering::Relaxed) <= QUEUE_BYTES);
    assert!(log.shared.dropped.load(Ordering::Relaxed) > 90);
    drop(go_on);
    assert!(log.close(LONG));
}

#[test]
fn closing_gives_up_on_a_blocked_pipe() {
    let (read, write) = io::pipe().expect("a pipe");
    let log = Log::start(Format::Json, Level::Info, write).expect("a thread");
    for _ in 0..200 {
        log.note(NOW, note("x", json!({"line": "y".repeat(10_000)})));
    }
    assert!(!log.close(Duration::from_millis(50)), "nobody reads the pipe");
    drop(read);
}

#[test]
fn a_reader_that_is_gone_does_not_end_the_program() {
    let (read, write) = io::pipe().expect("a pipe");
    drop(read);
    let log = Log::start(Format::Json, Level::Info, write).expect("a thread");
    for _ in 0..100_000 {
        log.note(NOW, note("x", json!({})));
    }
    assert!(log.close(LONG));
}

#[test]
fn a_sink_that_is_full_and_does_not_block_is_waited_for() {
    struct Full(u32, Memory);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 % 3 {
                0 => self.1.write(&bytes[..1.min(bytes.len())]),
                1 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Err(io::ErrorKind::Interrupted.into()),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let memory = Memory::default();
    let log = Log::start(Format::Text, Level::Info, Full(0, memory.clone())).expect("a thread");
    log.print("all of it".into());
    assert!(log.close(LONG));
    assert_eq!(memory.text(), "all of it\n");
}

#[test]
fn the_documents_list_every_event() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/log-events.md");
    let text = std::fs::read_to_string(path).expect("docs/log-events.md");
    let head = "| event | what happened |\n|---|---|\n";
    let (before, _) = text.split_once(head).expect("the head of the table");
    let rows: String =
        names::ALL.iter().map(|(name, meaning)| format!("| `{name}` | {meaning} |\n")).collect();
    let wanted = format!("{before}{head}{rows}");
    if text != wanted && std::env::var_os("PRINT_DOCS").is_some() {
        std::fs::write(path, &wanted).expect("docs/log-events.md can be written");
        return;
    }
    assert!(
        text == wanted,
        "docs/log-events.md is behind the code: PRINT_DOCS=1 cargo test -p agentd prints it"
    );
    assert!(names::ALL.is_sorted_by(|a, b| a.0 < b.0), "sorted by name, each once");
}

/// Dotted names in the sources that are no log events, but tools of the supervisor (`subagent.kill` is both).
const NOT_EVENTS: [&str; 5] =
    ["subagent.await", "subagent.list", "subagent.run", "subagent.send", "subagent.status"];

#[test]
fn the_list_of_events_is_what_the_sources_log() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut logged = std::collections::BTreeSet::new();
    for package in ["core/src", "agentd/src", "io-mio/src", "io-mio/host/src"] {
        collect_names(&root.join(package), &mut logged);
    }
    let listed: std::collections::BTreeSet<String> =
        names::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    let unlisted: Vec<_> =
        logged.difference(&listed).filter(|name| !NOT_EVENTS.contains(&name.as_str())).collect();
    let unlogged: Vec<_> = listed.difference(&logged).collect();
    assert!(unlisted.is_empty(), "logged, and not in note::names::ALL: {unlisted:?}");
    assert!(unlogged.is_empty(), "in note::names::ALL, and never logged: {unlogged:?}");
}

/// Adds every string literal that looks like an event's name; tests and the list itself are left out.
fn collect_names(folder: &std::path::Path, names: &mut std::collections::BTreeSet<String>) {
    let event = regex::Regex::new(
        r#""((?:agent|budget|child|config|daemon|drain|endpoint|journal|log|mcp|model|operator|prompt|reload|restore|store|subagent|tool|worker)(?:\.[a-z_]+)+)""#,
    )
    .expect("a pattern");
    for entry in std::fs::read_dir(folder).expect("sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            // The configuration's keys are dotted too.
            if !name.contains("test") && name != "config" {
                collect_names(&path, names);
            }
        } else if name.ends_with(".rs") && !name.contains("test") && name != "note.rs" {
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            names.extend(event.captures_iter(code).map(|found| found[1].to_owned()));
        }
    }
}

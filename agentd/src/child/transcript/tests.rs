//! Files that are new, cut short, locked, or cannot be written.

use super::*;
use agentd_core::id::RunId;
use agentd_core::transcript::{Said, read_line};
use agentd_core::wire::message::VERSION;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const NOW: Wall = Wall(1_796_066_309_123);

fn spawn(path: &Path, begins: Begins) -> Spawn {
    let mut spawn = crate::child::first::tests::spawn(VERSION);
    spawn.transcript = Some(Transcript {
        path: path.to_string_lossy().into_owned(),
        agent_type: "general-purpose".into(),
        tool_call_id: Some("call_1".into()),
        parent: Some(RunId::NIL),
        session: RunId::NIL,
        turn: 1,
        begins,
    });
    spawn
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("2026/11/30/agent-x.jsonl");
    (folder, path)
}

fn opened(spawn: &Spawn) -> Opened {
    open(spawn, NOW).expect("opens").expect("a transcript")
}

fn turn(text: &str) -> Item {
    Item::Turn { turn: 1, text: text.into() }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn a_new_one_has_a_head_and_a_small_file_beside_it_for_nobody_else_to_read() {
    let (_folder, path) = folder();
    let mut opened = opened(&spawn(&path, Begins::Anew));
    assert!(opened.past.is_none());
    assert_eq!(opened.tape.item(NOW, turn("go")), None);
    let text = fs::read_to_string(&path).expect("reads");
    let lines: Vec<Entry> =
        text.lines().map(|line| read_line(line.as_bytes()).expect("a line").entry).collect();
    let [Entry::SessionMeta(head), Entry::ResponseItem(item)] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((head.resumed, item), (false, &turn("go")));
    let meta = PathBuf::from(place::meta(&path.to_string_lossy()));
    let kept: Meta = serde_json::from_slice(&fs::read(&meta).expect("reads")).expect("a meta");
    assert_eq!(kept, head.meta, "it can be made again of the first line");
    assert_eq!((mode(&path), mode(&meta), mode(path.parent().expect("a folder"))), (0o600, 0o600, 0o700));
    assert_eq!(
        fs::read_dir(path.parent().expect("a folder")).expect("lists").count(),
        2,
        "nothing is left over"
    );
}

#[test]
fn the_next_process_goes_on_after_a_line_that_was_cut_short() {
    let (_folder, path) = folder();
    drop(opened(&spawn(&path, Begins::Anew)).tape.item(NOW, turn("go")));
    let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
    file.write_all(b"{\"timestamp\":\"2026-11-30T19:18:29.123Z\",\"type\":\"resp").expect("writes");
    drop(file);
    let mut next = opened(&spawn(&path, Begins::Again));
    let past = next.past.take().expect("a past");
    assert_eq!((past.messages, past.damaged), (vec![Said::User("go".into())], 1));
    next.tape.item(NOW, Item::Told { text: "on".into() });
    drop(next);
    let past = read(&File::open(&path).expect("opens")).expect("reads");
    assert_eq!(past.messages, [Said::User("go".into()), Said::User("on".into())]);
    // One that is to begin anew forgets it all, and loses nothing of the file.
    let before = fs::read(&path).expect("reads");
    assert!(opened(&spawn(&path, Begins::Anew)).past.is_none());
    assert!(fs::read(&path).expect("reads").starts_with(&before));
    assert!(read(&File::open(&path).expect("opens")).expect("reads").messages.is_empty());
}

#[test]
fn a_file_that_holds_nothing_of_use_is_no_past() {
    let (_folder, path) = folder();
    fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
    fs::write(&path, b"\0\xff not one line").expect("writes");
    for begins in [Begins::Again, Begins::After] {
        assert!(opened(&spawn(&path, begins)).past.is_none());
    }
}

#[test]
fn a_file_that_another_process_writes_is_refused() {
    let (_folder, path) = folder();
    let first = opened(&spawn(&path, Begins::Anew));
    let error = open(&spawn(&path, Begins::Again), NOW).err().expect("refused");
    assert!(error.contains("another process still writes it") && error.contains("agent-x.jsonl"), "{error}");
    drop(first);
    assert!(open(&spawn(&path, Begins::Again), NOW).is_ok());
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let (folder, _) = folder();
    fs::write(folder.path().join("file"), b"").expect("writes");
    let error = open(&spawn(&folder.path().join("file/x.jsonl"), Begins::Anew), NOW).err().expect("refused");
    assert!(error.contains("file/x.jsonl cannot be opened"), "{error}");
}

#[test]
fn a_disk_that_is_full_ends_the_transcript_and_is_told_once() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let mut tape = Tape { file: Some(full), path: "/state/x.jsonl".into() };
    let told = tape.item(NOW, turn("go")).expect("told");
    assert_eq!(told.name, "agent.transcript");
    assert!(told.fields["text"].contains("/state/x.jsonl ends here: No space left"), "{told:?}");
    assert_eq!(tape.item(NOW, turn("go")), None);
}

#[test]
fn usage_and_events_are_written_and_frames_of_other_kinds_are_not() {
    let (_folder, path) = folder();
    let mut tape = opened(&spawn(&path, Begins::Anew)).tape;
    let usage = Usage { input: 3, output: 4, cached: 0, estimated: true, model: "m".into() };
    tape.told(NOW, &Up::Usage(usage));
    tape.told(NOW, &Up::Event(event("warn", "tool.call", "x".into())));
    tape.told(NOW, &Up::Pong(agentd_core::wire::message::Pong { seq: 1 }));
    let text = fs::read_to_string(&path).expect("reads");
    let events: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(events.len(), 2);
    assert!(events[0].contains("\"event\":\"usage\"") && events[0].contains("\"input\":3"), "{}", events[0]);
    assert!(events[1].contains("\"event\":\"tool.call\"") && events[1].contains("\"level\":\"warn\""));
}

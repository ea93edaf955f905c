//! Folders with whole, damaged and foreign files.

use super::*;
use agentd_core::time::Wall;
use agentd_core::transcript::{Item, ItemCall, ItemResult, SessionMeta, line};
use agentd_core::wire::message::{Mode, Role};
use std::os::unix::fs::symlink;

const IDS: [&str; 4] = [
    "01939f3e-9a31-7c4b-8f00-000000000001",
    "01939f3e-9a31-7c4b-8f00-000000000002",
    "01939f3f-9a31-7c4b-8f00-000000000003",
    "01939f40-9a31-7c4b-8f00-000000000004",
];

fn id(n: usize) -> RunId {
    IDS[n].parse().expect("an id")
}

fn meta(n: usize, description: &str) -> Meta {
    Meta {
        agent_id: id(n),
        agent_type: "general-purpose".into(),
        description: description.into(),
        tool_call_id: None,
        parent_session_id: None,
        root_session_id: id(n),
        spawn_depth: 0,
        timestamp: "2026-11-30T19:18:29.123Z".into(),
    }
}

fn head(meta: Meta) -> Entry {
    Entry::SessionMeta(Box::new(SessionMeta {
        run_id: meta.agent_id,
        meta,
        version: 1,
        agentd: "0.1.0".into(),
        handle: None,
        attempt: 1,
        role: Role::Worker,
        mode: Mode::Sync,
        model: "mock".into(),
        trace_id: "0".repeat(32),
        span_id: "0".repeat(16),
        parent_span_id: None,
        resumed: false,
    }))
}

fn write(path: &Path, entries: &[Entry]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
    let lines: Vec<u8> = entries.iter().flat_map(|entry| line(Wall(1_796_066_309_123), entry)).collect();
    fs::write(path, lines).expect("writes");
}

/// Two conversations, one of which delegated to one that delegated.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("sessions");
    let at = |ms: u64| Wall(1_796_066_309_123 + ms);
    let first = root.join(place::session(at(0), id(0)));
    write(
        &first,
        &[head(meta(0, "the first")), Entry::ResponseItem(Item::Turn { turn: 1, text: "go".into() })],
    );
    write(&root.join(place::session(at(86_400_000), id(1))), &[head(meta(1, "the second"))]);
    let child = PathBuf::from(place::child(&first.to_string_lossy(), id(2)));
    write(&child, &[head(meta(2, "a child"))]);
    let grandchild = PathBuf::from(place::child(&child.to_string_lossy(), id(3)));
    write(&grandchild, &[head(meta(3, "a grandchild"))]);
    (folder, root)
}

fn described(sessions: &[Session]) -> Vec<String> {
    let of = |session: &Session| match &session.about {
        About::Known(meta) => meta.description.clone(),
        About::Unreadable { problem } => format!("! {problem}"),
    };
    sessions.iter().map(of).collect()
}

#[test]
fn conversations_are_listed_newest_first_and_children_are_not_among_them() {
    let (_folder, root) = folder();
    assert_eq!(described(&list(&root).expect("lists")), ["the second", "the first"]);
    assert!(list(&root.join("nowhere")).expect("none").is_empty());
}

#[test]
fn a_listing_of_conversations_opens_no_file_of_a_child() {
    let (_folder, root) = folder();
    let first = find(&root, IDS[0]).expect("there");
    // Whoever opened it would wait for ever.
    let child = find(&root, IDS[2]).expect("there");
    fs::remove_file(&child).expect("removes");
    rustix::fs::mkfifoat(rustix::fs::CWD, &child, rustix::fs::Mode::RWXU).expect("makes");
    assert_eq!(list(&root).expect("lists").len(), 2);
    assert_eq!(described(&children(&first).expect("lists")), ["! it is no regular file"]);
}

#[test]
fn children_are_told_by_the_small_file_and_by_the_first_line_where_that_is_of_no_use() {
    let (_folder, root) = folder();
    let first = find(&root, IDS[0]).expect("there");
    assert_eq!(described(&children(&first).expect("lists")), ["a child"]);
    let small = PathBuf::from(place::meta(&find(&root, IDS[2]).expect("there").to_string_lossy()));
    fs::write(&small, serde_json::to_vec(&meta(2, "told beside it")).expect("writes")).expect("writes");
    assert_eq!(described(&children(&first).expect("lists")), ["told beside it"]);
    for useless in ["", "{", "{\"agentId\": 4}", &"x".repeat(100_000)] {
        fs::write(&small, useless).expect("writes");
        assert_eq!(described(&children(&first).expect("lists")), ["a child"], "{useless:.20}");
    }
    assert!(children(&find(&root, IDS[1]).expect("there")).expect("none").is_empty());
}

#[test]
fn damaged_and_foreign_files_stop_nobody() {
    let (_folder, root) = folder();
    let day = root.join("2026/11/30");
    for (name, bytes) in [
        (format!("rollout-2026-11-30T00-00-00-{}.jsonl", IDS[2]), b"".as_slice()),
        (format!("rollout-2026-11-30T00-00-01-{}.jsonl", IDS[3]), b"\0\xff\n"),
        ("rollout-.jsonl".to_owned(), b"x"),
        ("notes.txt".to_owned(), b"x"),
    ] {
        fs::write(day.join(name), bytes).expect("writes");
    }
    fs::write(root.join("2026/11/x"), b"").expect("writes");
    symlink("/", root.join("2026/10")).expect("links");
    symlink(&root, root.join("2027")).expect("links");
    let all = described(&list(&root).expect("lists"));
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all[2].starts_with("! expected value"), "{all:?}");
    assert_eq!(all[3], "! its first line is not whole");
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let (_folder, root) = folder();
    for (n, wanted) in IDS.iter().enumerate() {
        assert_eq!(
            place::run_of(&find(&root, wanted).expect("there").file_name().unwrap().to_string_lossy()),
            Some(id(n))
        );
    }
    assert!(find(&root, "01939f3f").is_ok());
    assert!(matches!(find(&root, "01939f3e"), Err(NotFound::Several(..))));
    for unknown in ["", "9", "../../etc/passwd", "01939f3e-9a31-7c4b-8f00-00000000000f"] {
        let error = find(&root, unknown).unwrap_err();
        assert!(matches!(error, NotFound::Unknown(..)), "{error}");
    }
}

#[test]
fn a_transcript_is_told_in_words_and_line_by_line() {
    let (_folder, root) = folder();
    let path = find(&root, IDS[1]).expect("there");
    let call = ItemCall { id: "a".into(), name: "files_read".into(), args: serde_json::json!({"path": "x"}) };
    let result =
        ItemResult { id: "a".into(), name: "files_read".into(), error: true, text: "no\u{1b}[2J".into() };
    let entries = [
        head(meta(1, "the second")),
        Entry::ResponseItem(Item::Turn { turn: 1, text: "count\nthem".into() }),
        Entry::ResponseItem(Item::Assistant {
            text: Some("I look".into()),
            calls: vec![call],
            partial: false,
        }),
        Entry::ResponseItem(Item::ToolResult(result)),
    ];
    write(&path, &entries);
    let mut file = fs::OpenOptions::new().append(true).open(&path).expect("opens");
    io::Write::write_all(&mut file, b"{\"cut").expect("writes");
    let mut words = Words(Vec::new());
    assert_eq!(tell(&path, &mut words).expect("reads"), 1);
    assert_eq!(
        String::from_utf8(words.0).expect("text"),
        format!(
            "19:18:29  conversation {}, general-purpose, model mock, attempt 1, 2026-11-30\n\
             19:18:29  turn 1:\n            count\n            them\n\
             19:18:29  answered:\n            I look\n\
             19:18:29  call a: files_read {{\"path\":\"x\"}}\n\
             19:18:29  error of a: no\\u{{1b}}[2J\n",
            IDS[1]
        )
    );
    let mut lines = Lines(Vec::new());
    tell(&path, &mut lines).expect("reads");
    let whole = fs::read(&path).expect("reads");
    assert_eq!(lines.0, whole[..whole.len() - 5]);
}

use super::files::numbered;
use super::format::MAGIC;
use super::writer::{Desk, QUEUE_BYTES};
use super::*;
use agentd_core::action::{SpawnFrame, Walls};
use agentd_core::bytes::Bytes;
use agentd_core::config::ModelChoice;
use agentd_core::event::{Exit, SupervisorSignal};
use agentd_core::id::{NodeId, RunId};
use agentd_core::note::{Level, Note};
use agentd_core::time::{Instant, Wall};
use agentd_core::wire::message::{
    Dialect, Endpoint, Mode, Model, Remote, Role, Server, Spawn, Stdio, Trace, Transport, VERSION,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const LONG: Duration = Duration::from_secs(30);

pub(crate) fn config() -> Config {
    let stdio = Stdio {
        command: "server".into(),
        args: vec!["-v".into()],
        env: [("TOKEN".to_owned(), "canary-7f3a".to_owned())].into(),
        cwd: None,
    };
    Config {
        instruction: "be brief".into(),
        models: BTreeMap::from([("far".to_owned(), ModelChoice::of(far()))]),
        servers: vec![Server {
            name: "s".into(),
            ns: None,
            transport: Transport::Stdio(stdio),
            allow: None,
            exclude: Vec::new(),
            timeout_ms: 1,
            start_timeout_ms: 2,
            required: true,
        }],
        ..Config::of(
            "a",
            Model { name: "mock".into(), dialect: Dialect::Mock(Bytes::from(vec![b'{', b'}', 0xff])) },
        )
    }
}

/// A model as an embedder may give it: with values and not references.
fn far() -> Model {
    let endpoint = Endpoint { url: "https://far.example".into(), token: Some("canary-7f3a".into()) };
    let remote = Remote {
        model: "m".into(),
        endpoints: vec![endpoint],
        headers: [("x-api-key".to_owned(), "canary-7f3a".to_owned())].into(),
        timeout_ms: 1,
        max_output: None,
    };
    Model { name: "far".into(), dialect: Dialect::Anthropic(remote) }
}

fn now(ms: u64) -> Now {
    Now { mono: Instant::from_millis(ms), wall: Wall(1_000_000 + ms) }
}

/// One of each event.
fn events() -> Vec<Event> {
    let node = NodeId(3);
    let error = "ENOSPC: no space".to_owned();
    vec![
        Event::Seeded { seed: u64::MAX },
        Event::PromptSubmitted { text: "count\u{0}é".into() },
        Event::Tick,
        Event::ChildSpawned { node, pid: 42 },
        Event::SpawnFailed { node, error: error.clone(), transient: true },
        Event::ChildBytes { node, bytes: Bytes::from((0..=255).collect::<Vec<u8>>()) },
        Event::ChildEof { node },
        Event::ChildStderr { node, bytes: Bytes::from(vec![0xff; 70_000]) },
        Event::ChildWrote { node, bytes: 1 << 40 },
        Event::ChildWriteFailed { node, error: error.clone() },
        Event::ExitObserved { node, exit: Exit::Signal(9) },
        Event::Swept { node, killed: 1, remaining: 2 },
        Event::Reaped { node },
        Event::Stored { seq: 1 },
        Event::StoreFailed { seq: 2, error, retryable: false },
        Event::Signalled { signal: SupervisorSignal::Hup },
    ]
}

/// What the core might answer, a first frame with values in it among them.
fn answers(n: usize) -> Vec<Action> {
    let node = NodeId(3);
    match n % 3 {
        0 => Vec::new(),
        1 => vec![
            Action::Spawn { node, name: "agentd:sub-1".into(), walls: Walls::default() },
            Action::SendSpawn { node, payload: SpawnFrame(Box::new(payload())) },
        ],
        _ => vec![
            Action::SendToChild { node, frame: Bytes::from(vec![0xff; 300]) },
            Action::Note(Note::of_daemon(Level::Info, "drain.start")),
        ],
    }
}

fn payload() -> Spawn {
    Spawn {
        v: VERSION,
        run_id: RunId::NIL,
        handle: None,
        depth: 0,
        attempt: 1,
        role: Role::Worker,
        mode: Mode::Sync,
        trace: Trace { trace_id: "t".into(), span_id: "s".into(), parent_span_id: None },
        system: String::new(),
        instruction: "count".into(),
        context: Vec::new(),
        output_contract: None,
        output_schema: None,
        servers: config().servers,
        tools: None,
        names: Vec::new(),
        own_tools: Vec::new(),
        model: far(),
        limits: config().run,
        budget: None,
        log_level: "info".into(),
        transcript: None,
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    /// Records these events, with a state of this many bytes where a file begins.
    fn write(&self, events: &[Event], segment_bytes: u64, state: usize) {
        let mut journal =
            Journal::with_segments(&self.path(), &config(), now(0), segment_bytes).expect("begins");
        for (n, event) in events.iter().enumerate() {
            if journal.wants_checkpoint() {
                assert!(journal.checkpointed(Ok(vec![9; state])).is_none());
            }
            assert!(journal.observe(now(1 + n as u64), event).is_none());
            assert!(journal.decided(&answers(n)).is_none());
        }
        journal.close(LONG).expect("all is written");
    }
}

fn read(path: &Path) -> (Header, Vec<Decision>) {
    let reader = Reader::open(path).expect("a journal");
    let header = reader.header().clone();
    (header, reader.map(|decision| decision.expect("whole")).collect())
}

#[test]
fn what_is_written_is_read_back() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES, 0);
    let (header, decisions) = read(&folder.path());
    assert_eq!(decisions.len(), events().len());
    for (n, (decision, event)) in decisions.iter().zip(events()).enumerate() {
        assert_eq!((decision.now, &decision.event), (now(1 + n as u64), &event));
        assert_eq!(decision.actions.as_deref(), Some(actions_bytes(&answers(n)).expect("bytes").as_slice()));
        assert_eq!(decision.actions().map(|actions| actions.len()), Some(answers(n).len()));
    }
    assert_eq!((header.segment, header.events, header.state, header.began), (0, 0, None, now(0)));
    let mut expected = config();
    let left_out = "*".repeat("canary-7f3a".len());
    let Transport::Stdio(stdio) = &mut expected.servers[0].transport else { panic!() };
    stdio.env.insert("TOKEN".into(), left_out.clone());
    let far = expected.models.get_mut("far").expect("it is there");
    let Dialect::Anthropic(remote) = &mut far.model.dialect else { panic!() };
    remote.endpoints[0].token = Some(left_out.clone());
    remote.headers.insert("x-api-key".into(), left_out);
    assert_eq!(header.config, expected);
    let mode = fs::metadata(folder.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn values_are_not_in_the_file_and_leave_their_length() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES, 0);
    let bytes = fs::read(folder.path()).expect("readable");
    assert!(!bytes.windows(11).any(|window| window == b"canary-7f3a"));
    let mut without = payload();
    without.leave_out_values();
    let frame = |payload: Spawn| {
        let down = agentd_core::wire::Down::Spawn(Box::new(payload));
        agentd_core::wire::Encoder::new().encode_down(&down).expect("small").len()
    };
    assert_eq!(frame(without), frame(payload()), "bounds that count bytes decide the same");
}

#[test]
fn the_next_file_begins_with_the_state_and_four_older_ones_are_kept() {
    let folder = Folder::new();
    let big: Vec<Event> = (0..20)
        .map(|_| Event::ChildBytes { node: NodeId(1), bytes: Bytes::from(vec![7; 300_000]) })
        .collect();
    folder.write(&big, 300_000, 1_000);
    let (header, _) = read(&folder.path());
    let segment = header.segment;
    assert_eq!(segment, 19);
    for n in 0..=KEPT {
        let path = if n == 0 { folder.path() } else { numbered(&folder.path(), n) };
        let reader = Reader::open(&path).expect("a journal");
        assert_eq!(reader.header().segment, segment - u64::from(n));
        assert_eq!(reader.header().events, segment - u64::from(n), "an event a file came before");
        assert_eq!(reader.state(), Some([9; 1_000].as_slice()));
        assert_eq!(reader.count(), 1);
    }
    assert!(!numbered(&folder.path(), KEPT + 1).exists());

    let recording = Recording::open(&folder.path()).expect("a journal");
    assert_eq!((recording.files().len(), recording.header().segment), (5, 15));
    let from = Recording::open(&numbered(&folder.path(), 3)).expect("a file of it is a journal too");
    assert_eq!((from.files().len(), from.header().segment), (2, 15));
    fs::remove_file(numbered(&folder.path(), 2)).expect("gone");
    assert_eq!(Recording::open(&folder.path()).expect("a journal").files().len(), 2, "no gap is read over");
}

#[test]
fn a_state_larger_than_a_file_leaves_it_room_for_events() {
    let folder = Folder::new();
    folder.write(&vec![Event::Tick; 4_000], 20_000, 50_000);
    let recording = Recording::open(&folder.path()).expect("a journal");
    let counts: Vec<usize> = recording.readers().map(|(_, reader)| reader.expect("whole").count()).collect();
    assert!(counts.len() > 2 && counts[..counts.len() - 1].iter().all(|count| *count > 10), "{counts:?}");
}

#[test]
fn a_journal_of_before_is_kept_and_anything_else_is_refused() {
    let folder = Folder::new();
    folder.write(&[Event::Tick], SEGMENT_BYTES, 0);
    folder.write(&[Event::Tick, Event::Tick], SEGMENT_BYTES, 0);
    assert_eq!(read(&folder.path()).1.len(), 2);
    assert_eq!(read(&numbered(&folder.path(), 1)).1.len(), 1);
    assert_eq!(
        Recording::open(&folder.path()).expect("a journal").files().len(),
        1,
        "two lives are two journals"
    );

    for (name, content) in [("notes.txt", "remember the milk"), ("folder", "")] {
        let path = folder.0.path().join(name);
        if content.is_empty() {
            fs::create_dir(&path).expect("made");
        } else {
            fs::write(&path, content).expect("written");
        }
        let error = Journal::create(&path, &config(), now(0)).expect_err("refused");
        assert!(matches!(error, JournalError::Foreign(_)), "{error}");
        assert!(error.to_string().contains("is not a journal"), "{error}");
    }
    assert_eq!(fs::read_to_string(folder.0.path().join("notes.txt")).expect("there"), "remember the milk");

    let link = folder.0.path().join("link");
    std::os::unix::fs::symlink(folder.0.path().join("notes.txt"), &link).expect("made");
    assert!(matches!(Journal::create(&link, &config(), now(0)), Err(JournalError::Foreign(_))));

    fs::write(numbered(&folder.path(), 2), "mine").expect("written");
    let refused = Journal::create(&folder.path(), &config(), now(0));
    assert!(matches!(refused, Err(JournalError::Foreign(_))), "{refused:?}");
    let nowhere = folder.0.path().join("a/b");
    assert!(matches!(Journal::create(&nowhere, &config(), now(0)), Err(JournalError::System { .. })));
}

#[test]
fn two_processes_do_not_share_a_journal() {
    let folder = Folder::new();
    let first = Journal::create(&folder.path(), &config(), now(0)).expect("begins");
    let second = Journal::create(&folder.path(), &config(), now(0));
    assert!(matches!(second, Err(JournalError::Busy(_))), "{second:?}");
    first.close(LONG).expect("closes");
    Journal::create(&folder.path(), &config(), now(0)).expect("free again").close(LONG).expect("closes");
}

#[test]
fn a_start_that_cannot_record_moves_nothing() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES, 0);
    let before = fs::read(folder.path()).expect("readable");
    // Where the next file would be begun stands something else, for as long as this does.
    let stands = PathBuf::from(format!("{}.new", folder.path().display()));
    fs::create_dir(&stands).expect("a folder");
    for _ in 0..=KEPT {
        let refused = Journal::create(&folder.path(), &config(), now(0)).expect_err("no place for it");
        assert!(matches!(refused, JournalError::Foreign(_)), "{refused}");
    }
    assert_eq!(fs::read(folder.path()).expect("readable"), before);
    assert!(!numbered(&folder.path(), 1).exists());
    fs::remove_dir(&stands).expect("empty");
    // What a killed process left half begun is nobody's.
    fs::write(&stands, &MAGIC[..4]).expect("writable");
    folder.write(&events(), SEGMENT_BYTES, 0);
    assert_eq!(fs::read(numbered(&folder.path(), 1)).expect("readable"), before);
    assert!(!stands.exists());
}

/// A state larger than what may wait: the next file still begins, and events go on.
#[test]
fn a_large_state_does_not_end_the_journal() {
    let desk = Desk::default();
    desk.next_file(vec![0; QUEUE_BYTES + 1]).expect("it is taken");
    for _ in 0..3 {
        let append = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"event");
            Ok(())
        };
        assert_eq!(desk.append(append).expect("there is room"), 5);
    }
}

#[test]
fn a_pipe_is_refused_before_it_is_opened() {
    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.path(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    assert!(matches!(Reader::open(&folder.path()), Err(ReadError::Irregular)));
}

#[test]
fn a_file_cut_anywhere_gives_every_whole_record_and_says_where_it_is_cut() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES, 0);
    let whole = fs::read(folder.path()).expect("readable");
    let wanted: Vec<Decision> = read(&folder.path()).1;
    let mut counts = Vec::new();
    let mut unanswered = 0;
    for length in (0..whole.len()).step_by(7).chain(whole.len() - 400..whole.len()) {
        match Reader::new(&whole[..length]) {
            Err(ReadError::Empty) => {}
            Err(other) => panic!("{length}: {other}"),
            Ok(reader) => {
                let mut got = 0;
                for decision in reader {
                    match decision {
                        Ok(decision) => {
                            let Decision { now, event, actions } = decision;
                            assert_eq!((now, &event), (wanted[got].now, &wanted[got].event));
                            unanswered += usize::from(actions.is_none());
                            assert!(actions.is_none() || actions == wanted[got].actions);
                            got += 1;
                        }
                        Err(ReadError::Cut { at }) => assert!(at < length as u64),
                        Err(other) => panic!("{length}: {other}"),
                    }
                }
                counts.push(got);
            }
        }
    }
    assert!(counts.contains(&wanted.len()), "{counts:?}");
    assert!(unanswered > 0, "an event is read though its answer was cut");
}

#[test]
fn hostile_files_are_named_and_bounded() {
    let foreign = Reader::new(&b"#!/bin/sh\nexit\n........"[..]);
    assert!(matches!(foreign, Err(ReadError::Foreign)), "{foreign:?}");
    let older = Reader::new(&b"agentd journal 1\n...."[..]);
    assert!(matches!(older, Err(ReadError::Version(_))), "{older:?}");
    let mut huge = MAGIC.to_vec();
    huge.extend_from_slice(&[0xff; 64]);
    assert!(matches!(Reader::new(huge.as_slice()), Err(ReadError::Damaged { .. })));
    let mut cut = MAGIC.to_vec();
    cut.extend_from_slice(&[0x03, 0xff, 0xff, 0xff, b'H', 1]);
    assert!(matches!(Reader::new(cut.as_slice()), Err(ReadError::Empty)));
    // A state that is said to be larger than any memory.
    let header = Header { state: Some(u64::MAX), ..Header::new(&config(), now(0)) };
    let endless = header.head(b"not much").expect("a head");
    assert!(matches!(Reader::new(endless.as_slice()), Err(ReadError::Cut { .. })));

    let folder = Folder::new();
    folder.write(&events()[..4], SEGMENT_BYTES, 0);
    let whole = fs::read(folder.path()).expect("readable");
    for at in MAGIC.len()..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x5a;
        // Whatever comes of it, it ends and does not panic.
        if let Ok(reader) = Reader::new(changed.as_slice()) {
            assert!(reader.count() <= 9);
        }
    }
}

/// A journal whose thread was never started: nothing leaves the desk.
fn stalled() -> Journal {
    Journal::on(Arc::default(), Header::new(&config(), now(0)), 0, SEGMENT_BYTES)
}

#[test]
fn too_much_that_waits_ends_the_journal_once_and_leaves_no_gap() {
    let mut journal = stalled();
    let big = Event::ChildBytes { node: NodeId(1), bytes: Bytes::from(vec![0; 1024 * 1024]) };
    let said: Vec<usize> = (0..200).filter(|_| journal.observe(now(1), &big).is_some()).collect();
    assert_eq!(said, [QUEUE_BYTES / (1024 * 1024 + 100)], "all up to the bound, and nothing after the end");
    assert!(journal.decided(&answers(2)).is_none(), "it has said why already");
    assert!(!journal.wants_checkpoint());
    assert!(journal.close(LONG).is_ok(), "it has said why already");
}

#[test]
fn a_record_too_large_or_a_state_that_cannot_be_had_ends_it() {
    let mut journal = stalled();
    let huge = Event::ChildBytes { node: NodeId(1), bytes: Bytes::from(vec![0; 65 * 1024 * 1024]) };
    let error = journal.observe(now(1), &huge).expect("ends");
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    assert!(journal.observe(now(1), &Event::Tick).is_none());
    let error = stalled().checkpointed(Err("no state".into())).expect("ends");
    assert!(error.to_string().contains("no state"), "{error}");
}

#[test]
fn a_full_disk_ends_the_journal_and_is_told_with_the_file() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("SKIP: a_full_disk_ends_the_journal_and_is_told_with_the_file: there is no /dev/full");
        return;
    }
    let file = fs::OpenOptions::new().write(true).open(full).expect("opens");
    let desk = Arc::new(Desk::default());
    let mut journal = Journal::on(Arc::clone(&desk), Header::new(&config(), now(0)), 0, SEGMENT_BYTES);
    assert!(journal.observe(now(1), &Event::Tick).is_none());
    Writer::on(full, file).start(desk).expect("a thread");
    let error = journal.close(LONG).expect_err("no space");
    assert!(error.to_string().contains("cannot write to /dev/full: No space left"), "{error}");
}

use super::files::numbered;
use super::format::MAGIC;
use super::*;
use agentd_core::bytes::Bytes;
use agentd_core::config::{Kill, Liveness, ModelChoice, Priority, Rate, SpawnDefaults, SubagentLimits};
use agentd_core::event::{Exit, SupervisorSignal};
use agentd_core::id::NodeId;
use agentd_core::time::{Instant, Wall};
use agentd_core::wire::message::{
    Dialect, Endpoint, Mode, Model, Remote, RunLimits, Server, Stdio, Transport,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const LONG: Duration = Duration::from_secs(30);

fn config() -> Config {
    let stdio = Stdio {
        command: "server".into(),
        args: vec!["-v".into()],
        env: [("TOKEN".to_owned(), "canary-7f3a".to_owned())].into(),
        cwd: None,
    };
    Config {
        agent: "a".into(),
        instruction: "be brief".into(),
        model: ModelChoice::of(Model {
            name: "mock".into(),
            dialect: Dialect::Mock(Bytes::from(vec![b'{', b'}', 0xff])),
        }),
        models: BTreeMap::from([("far".to_owned(), ModelChoice::of(far()))]),
        one_shot: true,
        worker_idle: Duration::from_secs(60),
        wake_on_results: false,
        host: Vec::new(),
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
        run: RunLimits { steps: 1, tokens: 2, deadline_ms: 3, repeats: 4, tool_result_bytes: 5 },
        subagents: SubagentLimits {
            queue: 0,
            breadth: 1,
            total: 2,
            depth: 3,
            rate: Rate { burst: 4, per: Duration::from_millis(5) },
        },
        defaults: SpawnDefaults {
            model: None,
            mode: Mode::Sync,
            priority: Priority::Normal,
            limits: Default::default(),
        },
        liveness: Liveness::default(),
        kill: Kill::default(),
        drain_timeout: Duration::from_secs(25),
        reap_orphans_always: false,
        log_level: "info".into(),
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

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    fn write(&self, events: &[Event], segment_bytes: u64) {
        let mut journal =
            Journal::with_segments(&self.path(), &config(), now(0), segment_bytes).expect("begins");
        for (ms, event) in (1..).zip(events) {
            assert!(journal.observe(now(ms), event).is_none());
        }
        journal.close(LONG).expect("all is written");
    }
}

fn read(path: &Path) -> (Header, Vec<Traced>) {
    let reader = Reader::open(path).expect("a journal");
    let header = reader.header().clone();
    (header, reader.map(|traced| traced.expect("whole")).collect())
}

#[test]
fn what_is_written_is_read_back() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES);
    let (header, traced) = read(&folder.path());
    let wanted: Vec<Traced> = (1..).zip(events()).map(|(ms, event)| Traced { now: now(ms), event }).collect();
    assert_eq!(traced, wanted);
    assert_eq!((header.segment, header.began), (0, now(0)));
    let mut expected = config();
    let Transport::Stdio(stdio) = &mut expected.servers[0].transport else { panic!() };
    stdio.env.insert("TOKEN".into(), "(not recorded)".into());
    let far = expected.models.get_mut("far").expect("it is there");
    let Dialect::Anthropic(remote) = &mut far.model.dialect else { panic!() };
    remote.endpoints[0].token = Some("(not recorded)".into());
    remote.headers.insert("x-api-key".into(), "(not recorded)".into());
    assert_eq!(header.config, expected);
    let mode = fs::metadata(folder.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn values_of_servers_variables_are_not_in_the_file() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES);
    let bytes = fs::read(folder.path()).expect("readable");
    assert!(!bytes.windows(11).any(|window| window == b"canary-7f3a"));
}

#[test]
fn the_next_file_begins_at_its_size_and_four_older_ones_are_kept() {
    let folder = Folder::new();
    let big: Vec<Event> = (0..20)
        .map(|_| Event::ChildBytes { node: NodeId(1), bytes: Bytes::from(vec![7; 300_000]) })
        .collect();
    folder.write(&big, 300_000);
    let (header, _) = read(&folder.path());
    let segment = header.segment;
    assert!(segment >= 5, "{segment}");
    for n in 1..=KEPT {
        let (header, _) = read(&numbered(&folder.path(), n));
        assert_eq!(header.segment, segment - u64::from(n));
    }
    assert!(!numbered(&folder.path(), KEPT + 1).exists());
}

#[test]
fn a_journal_of_before_is_kept_and_anything_else_is_refused() {
    let folder = Folder::new();
    folder.write(&[Event::Tick], SEGMENT_BYTES);
    folder.write(&[Event::Tick, Event::Tick], SEGMENT_BYTES);
    assert_eq!(read(&folder.path()).1.len(), 2);
    assert_eq!(read(&numbered(&folder.path(), 1)).1.len(), 1);

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
fn a_file_cut_anywhere_gives_every_whole_record_and_says_where_it_is_cut() {
    let folder = Folder::new();
    folder.write(&events(), SEGMENT_BYTES);
    let whole = fs::read(folder.path()).expect("readable");
    let wanted: Vec<Traced> = read(&folder.path()).1;
    let mut counts = Vec::new();
    for length in (0..whole.len()).step_by(7).chain(whole.len() - 40..whole.len()) {
        match Reader::new(&whole[..length]) {
            Err(ReadError::Cut { .. }) => {}
            Err(other) => panic!("{length}: {other}"),
            Ok(reader) => {
                let mut got = 0;
                for traced in reader {
                    match traced {
                        Ok(traced) => {
                            assert_eq!(traced, wanted[got]);
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
    assert!(counts.iter().any(|got| *got + 1 == wanted.len()), "{counts:?}");
}

#[test]
fn hostile_files_are_named_and_bounded() {
    let foreign = Reader::new(&b"#!/bin/sh\nexit\n........"[..]);
    assert!(matches!(foreign, Err(ReadError::Foreign)), "{foreign:?}");
    let newer = Reader::new(&b"agentd journal 2\n...."[..]);
    assert!(matches!(newer, Err(ReadError::Version(_))), "{newer:?}");
    let mut huge = MAGIC.to_vec();
    huge.extend_from_slice(&[0xff; 64]);
    assert!(matches!(Reader::new(huge.as_slice()), Err(ReadError::Damaged { .. })));
    let mut cut = MAGIC.to_vec();
    cut.extend_from_slice(&[0x03, 0xff, 0xff, 0xff, 1]);
    assert!(matches!(Reader::new(cut.as_slice()), Err(ReadError::Cut { .. })));

    let folder = Folder::new();
    folder.write(&events()[..4], SEGMENT_BYTES);
    let whole = fs::read(folder.path()).expect("readable");
    for at in MAGIC.len()..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x5a;
        // Whatever comes of it, it ends and does not panic.
        if let Ok(reader) = Reader::new(changed.as_slice()) {
            assert!(reader.count() <= 5);
        }
    }
}

#[test]
fn a_full_queue_ends_the_journal_once_and_leaves_no_gap() {
    // The thread is never started: nothing leaves the queue.
    let (queue, incoming) = mpsc::sync_channel(QUEUE_EVENTS);
    let (_end, outcome) = mpsc::channel();
    let mut journal = Journal { queue: Some(queue), waiting: Arc::default(), outcome };
    let big = Event::ChildBytes { node: NodeId(1), bytes: Bytes::from(vec![0; 1024 * 1024]) };
    let said: Vec<usize> = (0..200).filter(|_| journal.observe(now(1), &big).is_some()).collect();
    assert_eq!(said.len(), 1);
    assert_eq!(incoming.iter().count(), said[0], "everything up to the end is there, nothing after it");
    assert!(journal.close(LONG).is_ok(), "it has said why already");
}

#[test]
fn a_disk_that_fails_ends_the_journal_once() {
    let (queue, incoming) = mpsc::sync_channel(QUEUE_EVENTS);
    let (end, outcome) = mpsc::channel();
    let mut journal = Journal { queue: Some(queue), waiting: Arc::default(), outcome };
    end.send(Err(JournalError::Lost)).expect("open");
    drop(incoming);
    assert!(matches!(journal.observe(now(1), &Event::Tick), Some(JournalError::Lost)));
    assert!(journal.observe(now(2), &Event::Tick).is_none());
}

#[test]
fn a_full_disk_is_told_with_the_file() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("SKIP: a_full_disk_is_told_with_the_file: there is no /dev/full");
        return;
    }
    let file = fs::OpenOptions::new().write(true).open(full).expect("opens");
    let mut writer = Writer::on(full, file, Header::new(&config(), now(0)));
    let (queue, incoming) = mpsc::sync_channel(4);
    queue.send(Traced { now: now(1), event: Event::Tick }).expect("room");
    drop(queue);
    let error = writer.run(&incoming, |_| {}).expect_err("no space");
    assert!(error.to_string().contains("cannot write to /dev/full: No space left"), "{error}");
}

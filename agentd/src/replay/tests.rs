use super::*;
use crate::journal::tests::config;
use crate::journal::{Journal, SEGMENT_BYTES};
use agentd_core::bytes::Bytes;
use agentd_core::event::Exit;
use agentd_core::id::NodeId;
use agentd_core::time::{Duration, Instant, Wall};
use agentd_core::wire::message::{LoopEnd, LoopEvidence, Pong, Ready, RunResult, VERSION};
use agentd_core::wire::{Encoder, Up};
use std::collections::VecDeque;
use std::fs;

const LONG: Duration = Duration::from_secs(30);
const WORKER: NodeId = NodeId(1);

/// A whole life: one worker that is ready, grumbles, answers and goes.
struct Life {
    core: Core,
    journal: Journal,
    due: VecDeque<Event>,
    ms: u64,
    /// Changes what is recorded of an event.
    lie: fn(u64, &mut Vec<Action>),
    /// Gives another state than the core's.
    forge: bool,
    events: u64,
}

impl Life {
    fn record(path: &Path, segment_bytes: u64, lie: fn(u64, &mut Vec<Action>), forge: bool) -> u64 {
        let begun = Now { mono: Instant::ZERO, wall: Wall(1_000) };
        let config = config();
        let journal = Journal::with_segments(path, &config, begun, segment_bytes).expect("begins");
        let core = Core::new(config, begun);
        let mut life = Life { core, journal, due: VecDeque::new(), ms: 0, lie, forge, events: 0 };
        life.feed(Event::Seeded { seed: 7 });
        life.feed(Event::PromptSubmitted { text: "count".into() });
        life.says();
        life.feed(Event::ExitObserved { node: WORKER, exit: Exit::Code(0) });
        life.feed(Event::ChildEof { node: WORKER });
        life.journal.close(LONG).expect("all is written");
        life.events
    }

    /// Ready, much on stderr, pongs cut in half, and a result.
    fn says(&mut self) {
        let mut encoder = Encoder::new();
        let mut say = |up: &Up| encoder.encode_up(up).expect("small");
        let mut bytes = say(&Up::Ready(Ready { v: VERSION }));
        for n in 0..200 {
            let pong = say(&Up::Pong(Pong { seq: n }));
            let (head, tail) = pong.split_at(pong.len() / 2);
            bytes.extend_from_slice(head);
            self.feed(Event::ChildBytes { node: WORKER, bytes: Bytes::from(bytes) });
            bytes = tail.to_vec();
            let line = Bytes::from(format!("line {n}\n").into_bytes());
            self.feed(Event::ChildStderr { node: WORKER, bytes: line });
            self.feed(Event::Tick);
        }
        let evidence = LoopEvidence::default();
        let text = Some("forty-two".to_owned());
        let result = RunResult { end: LoopEnd::Completed, text, partial: false, error: None, evidence };
        bytes.extend(say(&Up::Result(result)));
        self.feed(Event::ChildBytes { node: WORKER, bytes: Bytes::from(bytes) });
    }

    fn feed(&mut self, event: Event) {
        self.due.push_back(event);
        while let Some(event) = self.due.pop_front() {
            self.ms += 100;
            self.events += 1;
            let now = Now { mono: Instant::from_millis(self.ms), wall: Wall(1_000 + self.ms) };
            if self.journal.wants_checkpoint() {
                let state = match self.forge {
                    false => self.core.checkpoint(),
                    true => Core::new(config(), now).checkpoint(),
                };
                assert!(self.journal.checkpointed(state.map_err(|e| e.to_string())).is_none());
            }
            assert!(self.journal.observe(now, &event).is_none());
            let mut actions = Actions::new();
            self.core.handle(now, event, &mut actions);
            let mut recorded = actions.clone();
            (self.lie)(self.events, &mut recorded);
            assert!(self.journal.decided(&recorded).is_none());
            actions.into_iter().for_each(|action| self.answer(action));
        }
    }

    fn answer(&mut self, action: Action) {
        let event = match action {
            Action::Spawn { node, .. } => Event::ChildSpawned { node, pid: 42 },
            Action::Persist { seq, .. } => Event::Stored { seq },
            Action::Sweep { node, .. } => Event::Swept { node, killed: 0, remaining: 0 },
            Action::Reap { node } => Event::Reaped { node },
            _ => return,
        };
        self.due.push_back(event);
    }
}

fn honest(_: u64, _: &mut Vec<Action>) {}

/// Keeps what was said.
#[derive(Default)]
struct Listener {
    cast: Cast,
    heard: Vec<String>,
    steps: u64,
}

impl Audience for Listener {
    fn begins(&mut self, _: &Header, core: &Core) {
        self.cast.begin(core);
    }

    fn step(&mut self, step: &Step<'_>) -> bool {
        self.cast.learn(step.actions);
        let heard = self.cast.hear(step.event).into_iter();
        self.heard.extend(heard.map(|said| said.map_or_else(|e| e.to_string(), |up| speech::up(&up))));
        let spoken = words::event(step, &[], &self.cast);
        assert!(!spoken.is_empty() && !spoken.contains('\n'), "{spoken}");
        self.steps += 1;
        true
    }
}

fn listen(path: &Path) -> (Verdict, Listener) {
    let mut listener = Listener::default();
    let verdict = replay(&Recording::open(path).expect("a journal"), &mut listener);
    (verdict, listener)
}

#[test]
fn a_life_is_decided_again_in_one_file_or_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flight");
    let events = Life::record(&path, SEGMENT_BYTES, honest, false);
    let (verdict, listener) = listen(&path);
    assert!(verdict.is_same() && verdict.torn.is_none() && !verdict.unanswered, "{verdict:?}");
    assert_eq!((verdict.events, listener.steps), (events, events));
    assert!(listener.heard.first().is_some_and(|said| said == "it is ready"), "{:?}", listener.heard);
    assert_eq!(listener.heard.len(), 202);

    Life::record(&path, 20_000, honest, false);
    let recording = Recording::open(&path).expect("a journal");
    assert_eq!(recording.files().len(), 5, "the older files are gone");
    let (verdict, listener) = listen(&path);
    assert!(verdict.is_same(), "{verdict:?}");
    assert_eq!(verdict.events, events - recording.header().events);
    assert!(listener.heard.iter().all(|said| !said.contains("frame")), "{:?}", listener.heard);
    assert!(listener.heard.last().is_some_and(|said| said.contains("forty-two")));
    // Each file by itself, and up to each file.
    for n in 1..=4 {
        let (verdict, _) = listen(&folder.path().join(format!("flight.{n}")));
        assert!(verdict.is_same() && verdict.events > 0, "{n}: {verdict:?}");
    }
    fs::remove_file(folder.path().join("flight.1")).expect("gone");
    let (verdict, _) = listen(&path);
    assert!(verdict.is_same() && verdict.events > 0, "{verdict:?}");
}

#[test]
fn the_first_difference_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flight");
    let lie: fn(u64, &mut Vec<Action>) = |n, actions| {
        if n == 7 {
            actions.push(Action::ReapOrphans);
        }
    };
    Life::record(&path, SEGMENT_BYTES, lie, false);
    let (verdict, listener) = listen(&path);
    assert!(!verdict.is_same());
    let difference = verdict.difference.expect("one");
    assert_eq!((difference.number, difference.segment, verdict.events), (7, 0, 7));
    let said = words::difference(&difference, &listener.cast).join("\n");
    assert!(said.contains("event 7") && said.contains("recorded: reap orphans"), "{said}");
    assert!(said.contains("replayed: nothing more"), "{said}");
}

#[test]
fn a_state_that_its_events_do_not_lead_to_is_a_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flight");
    Life::record(&path, 60_000, honest, true);
    let recording = Recording::open(&path).expect("a journal");
    assert_eq!(recording.header().segment, 0, "the first file is there");
    let (verdict, _) = listen(&path);
    let difference = verdict.difference.expect("one");
    assert!(matches!(difference.kind, DifferenceKind::State), "{difference:?}");
    assert_eq!((difference.segment, difference.number), (1, verdict.events));
}

#[test]
fn a_torn_end_is_told_and_a_damaged_file_costs_only_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flight");
    Life::record(&path, 20_000, honest, false);
    let whole = fs::read(&path).expect("readable");
    let all = listen(&path).0.events;
    for cut in 1..200 {
        fs::write(&path, &whole[..whole.len() - cut]).expect("written");
        let (verdict, _) = listen(&path);
        assert!(verdict.is_same(), "{cut}: {verdict:?}");
        assert!(verdict.torn.is_some() || verdict.unanswered || verdict.events < all, "{cut}: {verdict:?}");
    }
    fs::write(&path, &whole).expect("written");

    let older = folder.path().join("flight.2");
    let mut bytes = fs::read(&older).expect("readable");
    let middle = bytes.len() - 600;
    bytes.truncate(middle);
    fs::write(&older, &bytes).expect("written");
    let (verdict, _) = listen(&path);
    assert!(verdict.difference.is_none() && verdict.torn.is_none(), "{verdict:?}");
    assert_eq!(verdict.damaged.len(), 1);
    assert!(verdict.damaged[0].0.ends_with("flight.2"), "{verdict:?}");
    assert!(verdict.events < all && verdict.events > all / 2, "the files after it are replayed: {verdict:?}");
}

#[test]
fn a_story_of_the_conversation() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flight");
    Life::record(&path, SEGMENT_BYTES, honest, false);
    let mut story = Story::of(Who::Root);
    assert!(replay(&Recording::open(&path).expect("a journal"), &mut story).is_same());
    let told: Vec<&str> = story.lines().iter().map(|line| line.text.as_str()).collect();
    let order = [
        "a person asks: \"count\"",
        "its process is made: 42",
        "it is handed its work: \"count\"",
        "it is ready",
        "its outcome is decided, completed",
        "prompt 1 is answered: completed, forty-two",
        "its process ended with code 0",
        "nothing of it is left",
    ];
    let mut rest = told.iter();
    for part in order {
        assert!(rest.any(|line| line.contains(part)), "{part:?} is not in its place:\n{}", told.join("\n"));
    }
    assert_eq!(story.open_end(), None);
    let mut nobody = Story::of("sub-9".parse().expect("a handle"));
    replay(&Recording::open(&path).expect("a journal"), &mut nobody);
    assert!(nobody.lines().is_empty());
    assert_eq!(nobody.known(), ["root"]);
    assert!("sub-09".parse::<Who>().is_err());
}

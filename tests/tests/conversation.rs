//! A conversation of several turns with real processes: the core on the mio driver, prompts from another thread, a
//! worker that stays warm with its servers (S14.1), is cancelled turn by turn (S6.7) and is replaced by one that knows
//! what was said.

use agentd_core::config::Config;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::note::Note;
use agentd_core::record::{ResultObject, Status};
use agentd_core::store::{Class, Write};
use agentd_core::supervisor::Core;
use agentd_core::time::{Duration, Instant, Now, Wall};
use agentd_core::wire::message::{Dialect, FailKind, Model, Server, Spawn, Stdio, Transport};
use agentd_core::wire::{Down, Encoder};
use agentd_host::mailbox::Poster;
use agentd_host::outside::{Outside, StoreAnswer};
use agentd_host::spawner::Image;
use agentd_io_mio::run;
use agentd_tests::kit::{Rule, call, playbook};
use agentd_tests::mcp_server::Options;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

const AGENTD: &str = env!("CARGO_BIN_EXE_agentd-under-test");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-mcp");

/// Beyond this a test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A conversation that is being had.
struct Talk {
    poster: Poster,
    heard: Receiver<Heard>,
    thread: JoinHandle<()>,
}

enum Heard {
    Delivered(u64, ResultObject),
    Noted(Note),
}

struct Around(Sender<Heard>);

impl Outside for Around {
    fn observe(&mut self, _now: Now, _event: &Event) {}

    fn note(&mut self, _now: Now, note: Note) {
        let _over = self.0.send(Heard::Noted(note));
    }

    fn persist(&mut self, _seq: u64, _class: Class, _writes: Vec<Write>) -> StoreAnswer {
        StoreAnswer::Stored
    }

    fn deliver(&mut self, prompt: u64, result: &ResultObject, _fault: Option<FailKind>) {
        let _over = self.0.send(Heard::Delivered(prompt, result.clone()));
    }

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        Encoder::new().encode_down(&Down::Spawn(Box::new(spawn.clone()))).map_err(|error| error.to_string())
    }
}

impl Talk {
    fn begin(config: Config) -> Talk {
        let env = ["PATH", "HOME"].map(|name| (name.into(), std::env::var_os(name).unwrap_or_default()));
        let image = Image::of(Path::new(AGENTD), Vec::new(), env.into()).expect("a path");
        let options = agentd_io_mio::Options::embedded(image).expect("an eventfd");
        let poster = options.poster();
        let (sender, heard) = channel();
        let thread = std::thread::spawn(move || {
            let mut core = Core::new(config, Now { mono: Instant::ZERO, wall: Wall(1) });
            run(&mut core, &mut Around(sender), options).expect("the loop ends well");
        });
        Talk { poster, heard, thread }
    }

    fn ask(&self, text: &str) {
        self.poster.post(Event::PromptSubmitted { text: text.into() }).expect("the loop runs");
    }

    /// The next answer.
    fn answer(&self) -> (u64, ResultObject) {
        loop {
            match self.heard.recv_timeout(PATIENCE).expect("an answer in time") {
                Heard::Delivered(prompt, result) => return (prompt, result),
                Heard::Noted(_) => {}
            }
        }
    }

    /// The next note of this event, of the conversation's worker.
    fn noted(&self, event: &str) -> Note {
        loop {
            match self.heard.recv_timeout(PATIENCE).expect("a note in time") {
                Heard::Noted(note) if note.event == event => return note,
                Heard::Noted(_) | Heard::Delivered(..) => {}
            }
        }
    }

    fn end(self) {
        self.poster.post(Event::Signalled { signal: SupervisorSignal::Term }).expect("the loop runs");
        self.thread.join().expect("the loop does not panic");
    }
}

fn config(rules: Vec<Rule>, log: &Path) -> Config {
    let json = playbook(rules);
    let playbook = Model { name: "scripted".into(), dialect: Dialect::Mock(json.into_bytes().into()) };
    let fake = Stdio { command: FAKE.into(), args: behaving(log), env: [].into(), cwd: None };
    let server = Server {
        name: "fake".into(),
        ns: None,
        transport: Transport::Stdio(fake),
        allow: None,
        exclude: Vec::new(),
        timeout_ms: 60_000,
        start_timeout_ms: 60_000,
        required: true,
    };
    Config { servers: vec![server], log_level: "debug".into(), ..Config::of("talk", playbook) }
}

/// Arguments of a server that behaves, and writes down what it hears.
fn behaving(log: &Path) -> Vec<String> {
    let options = Options { modes: Vec::new(), log: Some(log.to_owned()), pids: None, ready_file: None };
    options.args()
}

fn starts(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|m| m["method"] == "initialize")
        .count()
}

#[test]
fn turns_share_a_worker_and_its_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("fake.log");
    let rules = vec![
        Rule::worker().turn(1).calls([call("echo", json!({"text": "{{ text }}"}))]),
        Rule::worker().says("{{ results[0].text }}"),
    ];
    let talk = Talk::begin(config(rules, &log));
    for i in 1..=3 {
        talk.ask(&format!("number {i}"));
    }
    for i in 1..=3 {
        let (prompt, result) = talk.answer();
        assert_eq!((prompt, result.status), (i, Status::Completed), "{:?}", result.error);
        assert!(result.result.to_string().contains(&format!("number {i}")), "{}", result.result);
    }
    talk.end();
    assert_eq!(starts(&log), 1, "one worker, whose server was started once");
}

#[test]
fn a_cancelled_turn_leaves_the_worker_for_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("fake.log");
    let rules = vec![
        Rule::worker().told("think").after("1h").says("never"),
        Rule::worker().says("answered: {{ text }}"),
    ];
    let talk = Talk::begin(config(rules, &log));
    talk.ask("think for an hour");
    talk.noted("child.ready");
    talk.ask("and this?");
    let reason = "a person changed her mind".to_owned();
    talk.poster.post(Event::TurnCancelled { prompt: 1, reason }).expect("the loop runs");
    let (prompt, result) = talk.answer();
    assert_eq!((prompt, result.status), (1, Status::Cancelled));
    let (prompt, result) = talk.answer();
    assert_eq!((prompt, &result.result), (2, &json!("answered: and this?")), "{:?}", result.error);
    talk.end();
    assert_eq!(starts(&log), 1, "the same worker");
}

#[test]
fn an_idle_worker_goes_and_the_next_is_told_what_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("fake.log");
    let rules = vec![Rule::worker().says("{{ text }} after {{ context | length }} messages")];
    let mut config = config(rules, &log);
    config.worker_idle = Duration::from_millis(1);
    let talk = Talk::begin(config);
    talk.ask("first");
    let first = talk.answer().1.result;
    assert_eq!(first, "first after 0 messages");
    talk.noted("child.exit");
    talk.ask("second");
    assert_eq!(talk.answer().1.result, "second after 2 messages");
    talk.end();
    assert_eq!(starts(&log), 2);
}

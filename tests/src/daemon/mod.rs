//! A daemon with the sqlite store that takes its work from stdin and tells on stdout what it hears and does, a JSON object
//! a line. For tests of restarts; it is the core, the mio driver and the store as they are, and what surrounds them here
//! can end the process at any step.
//!
//! `kept-daemon CONFIG`. Lines in: `{"prompt": TEXT}`, `{"call": N, "tool": NAME, "args": {…}}`, `{"drain": true}`. With
//! `CRASH_AT=KIND:NAME:N` in the environment it is killed with SIGKILL at the N-th `event` of that name, before the core
//! is told, or the N-th `action`, before it and what was decided with it is performed. No agentd has this.

use agentd::config::{self, Flags, Loaded, Sources};
use agentd::secrets::Secrets;
use agentd::store::{Opened, Options as StoreOptions, Store, state_directory};
use agentd_core::action::Action;
use agentd_core::bytes::Json;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::note::Note;
use agentd_core::record::ResultObject;
use agentd_core::store::{Class, Write};
use agentd_core::supervisor::Core;
use agentd_core::time::{Instant, Now};
use agentd_core::wire::message::{FailKind, Spawn};
use agentd_core::wire::{Down, Encoder};
use agentd_host::clock::Clock;
use agentd_host::mailbox::Poster;
use agentd_host::outside::{Outside, StoreAnswer};
use agentd_host::reactor::Options;
use agentd_host::signals;
use agentd_host::spawner::Image;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write as _};
use std::process::ExitCode;

/// One line of work.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
struct Line {
    prompt: Option<String>,
    call: Option<u64>,
    tool: Option<String>,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    drain: bool,
}

/// The point at which the process is killed.
struct Crash {
    kind: String,
    name: String,
    left: u64,
}

struct Around {
    store: Store,
    secrets: Secrets,
    crash: Option<Crash>,
}

/// The program.
pub fn main() -> ExitCode {
    if let Some(code) = agentd::child_main() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(6)
        }
    }
}

fn run() -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    signals::reset_inherited().map_err(|e| told(&e))?;
    let file = std::env::args_os().nth(1).ok_or("a configuration is needed")?;
    let sources = Sources::of_process(vec![file.into()], Flags::default()).map_err(|e| told(&e))?;
    let Loaded { mut config, settings, .. } = config::load(&sources).map_err(|p| config::render(&p))?;
    config.one_shot = false;
    config.store.keeps = true;
    let directory = state_directory(settings.store.path, &config.agent, &|name| std::env::var_os(name))
        .map_err(|e| told(&e))?;
    let options = StoreOptions { directory, min_free: settings.store.min_free };
    let (opened, saved) = Opened::open(&options).map_err(|e| told(&e))?;
    let environment = std::env::vars_os().filter(|(name, _)| name != "CRASH_AT").collect();
    let mut options = Options::new(Image::own(environment), None).map_err(|e| told(&e))?;
    options.saved = Some(Box::new(saved));
    let store = opened.answer_to(options.poster()).map_err(|e| told(&e))?;
    let poster = options.poster();
    std::thread::spawn(move || take_work(&poster));
    let now = Now { mono: Instant::ZERO, wall: Clock::start().now().wall };
    let mut core = Core::new(config, now);
    let mut around = Around { store, secrets: settings.secrets, crash: Crash::of_environment() };
    let ended = agentd_io_mio::run(&mut core, &mut around, options).map_err(|e| told(&e))?;
    around.store.close();
    tell(&json!({ "end": { "leaked": ended.leaked } }));
    Ok(())
}

fn take_work(poster: &Poster) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let event = match serde_json::from_str::<Line>(&line) {
            Ok(Line { prompt: Some(text), .. }) => Event::PromptSubmitted { text },
            Ok(Line { call: Some(call), tool: Some(tool), args, .. }) => {
                Event::OperatorCalled { call, tool, args: Json::of(&args) }
            }
            Ok(Line { drain: true, .. }) => Event::Signalled { signal: SupervisorSignal::Term },
            Ok(_) => panic!("a line that asks for nothing: {line}"),
            Err(error) => panic!("{line}: {error}"),
        };
        if poster.post(event).is_err() {
            return;
        }
    }
}

fn tell(value: &Value) {
    let mut line = value.to_string();
    line.push('\n');
    // Whoever does not read any more has ended.
    let _unread = std::io::stdout().lock().write_all(line.as_bytes());
}

impl Crash {
    fn of_environment() -> Option<Crash> {
        let text = std::env::var("CRASH_AT").ok()?;
        let parts: Vec<&str> = text.split(':').collect();
        let [kind, name, left] = parts.as_slice() else { panic!("CRASH_AT={text}: KIND:NAME:N is accepted") };
        let left = left.parse().expect("a number");
        Some(Crash { kind: (*kind).to_owned(), name: (*name).to_owned(), left })
    }

    /// One more of this kind and name is seen.
    fn see(&mut self, kind: &str, debug: &str) {
        let name = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if self.kind != kind || self.name != name {
            return;
        }
        self.left -= 1;
        if self.left == 0 {
            let own = rustix::process::getpid();
            let _unreachable = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        }
    }
}

impl Outside for Around {
    fn observe(&mut self, _now: Now, event: &Event) {
        if let Some(crash) = &mut self.crash {
            crash.see("event", &format!("{event:?}"));
        }
    }

    fn decided(&mut self, _now: Now, actions: &[Action]) {
        if let Some(crash) = &mut self.crash {
            actions.iter().for_each(|action| crash.see("action", &format!("{action:?}")));
        }
    }

    fn note(&mut self, _now: Now, note: Note) {
        tell(
            &json!({ "note": note.event, "handle": note.handle, "attempt": note.attempt, "fields": note.fields }),
        );
    }

    fn persist(&mut self, seq: u64, class: Class, writes: Vec<Write>) -> StoreAnswer {
        self.store.persist(seq, class, writes)
    }

    fn deliver(&mut self, prompt: u64, result: &ResultObject, _fault: Option<FailKind>) {
        tell(&json!({ "deliver": prompt, "result": result }));
    }

    fn answer(&mut self, call: u64, error: bool, value: Json) {
        tell(&json!({ "answer": call, "error": error, "value": value.parse().unwrap_or(Value::Null) }));
    }

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        let filled = self.secrets.put_in(spawn)?;
        Encoder::new().encode_down(&Down::Spawn(Box::new(filled))).map_err(|error| error.to_string())
    }
}

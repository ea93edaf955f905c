//! The supervisor of a one-shot run and of a daemon: the core, the driver, and what surrounds them. Owns the order in which a
//! process becomes a supervisor (signals before threads) and stops being one (the journal, then the log, each
//! within bounds). Refuses policy: what happens to a run is the core's to decide. Called by the command line.

use crate::config::{Code, Config, Loaded, LogFormat, Problem, Settings};
use crate::driver::Driver;
use crate::environment;
use crate::journal::{Journal, JournalError};
use crate::log::{self, Format, Log};
use crate::secrets::{self, Secrets};
use crate::serve::{Around, Manager, Marks, Open, Reload};
use crate::store::{Store, StoreError};
use crate::tree::{Screen, Tree};
use agentd_core::action::{Action, Costliest};
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::id::ConnId;
use agentd_core::note::{Level, Note};
use agentd_core::record::ResultObject;
use agentd_core::snapshot::Snapshot;
use agentd_core::store::{Class, Write};
use agentd_core::supervisor::Core;
use agentd_core::time::{Duration, Instant, Now};
use agentd_core::wire::message::{FailKind, ModelSwap, Spawn};
use agentd_core::wire::{Down, Encoder};
use agentd_host::Pid;
use agentd_host::clock::Clock;
use agentd_host::descriptors;
use agentd_host::error::{DriverError, OsError};
use agentd_host::mailbox::{PostError, Poster};
use agentd_host::outside::{Outside, StoreAnswer};
use agentd_host::reactor::{Ended, Options};
use agentd_host::service;
use agentd_host::signals::{self, Signals};
use agentd_host::spawner::Image;
use agentd_host::tree::{self as processes, Identity};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};

/// How long the journal may take to write what waits, at the end.
pub(crate) const JOURNAL_END: Duration = Duration::from_secs(5);

/// How long the log may take to write what waits, at the end: a reader that stopped reading delays no exit for
/// longer.
const LOG_END: Duration = Duration::from_secs(2);

/// How long the terminal may take to have the tree taken away.
const TREE_END: Duration = Duration::from_millis(500);

/// A process that is about to supervise, or has done so.
#[derive(Debug)]
pub struct Supervisor {
    config: Config,
    settings: Settings,
    driver: Driver,
    log: Log,
    tree: Option<Tree>,
    journal: Option<Journal>,
    /// Taken by the one run.
    signals: Option<Signals>,
    /// What ran below this process before it began, and is none of its own.
    before: BTreeSet<Identity>,
    /// The soft limit of descriptors that this process was started with: its children's.
    descriptors: Option<u64>,
    clock: Clock,
}

/// How a one-shot run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The answer, with the final sums of what was used; absent when a drain came before there was one.
    pub result: Option<ResultObject>,
    /// What gave out, when the conversation's worker said so.
    pub fault: Option<FailKind>,
    /// The signal that ended it early.
    pub interrupted: Option<SupervisorSignal>,
    /// Processes that could not be killed.
    pub leaked: u32,
    /// The run that used most by itself, the worker aside.
    pub costliest: Option<Costliest>,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process cannot become a supervisor.
    #[error("cannot {action}: {error}")]
    Start {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// No journal can be written where it is asked for.
    #[error("the journal {0}")]
    Journal(#[from] JournalError),
    /// The loop cannot be made.
    #[error("{0}")]
    System(#[from] OsError),
    /// The loop could not go on; what it ran has been killed.
    #[error("{0}")]
    Driver(#[from] DriverError),
    /// The prompt was not taken; a bug.
    #[error("the prompt was not taken: {0}")]
    Prompt(#[from] PostError),
    /// The store cannot be written to.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// It has run already; a bug.
    #[error("a one-shot supervisor runs once")]
    Spent,
}

impl Supervisor {
    /// Makes this process a supervisor that logs to stderr, with the live tree of runs below the log if `tree`
    /// (ask [`crate::tree::fits_stderr`]). Call it before the first thread.
    pub fn start(loaded: Loaded, driver: Driver, format: Format, tree: bool) -> Result<Supervisor, Error> {
        let Loaded { config, settings, warnings, effective: _ } = loaded;
        let failed = |action| move |error| Error::Start { action, error };
        let hangup_ignored = signals::hangup_is_ignored().map_err(failed("ask for SIGHUP"))?;
        signals::reset_inherited().map_err(failed("reset signals"))?;
        signals::survive_file_size_limit().map_err(failed("ignore SIGXFSZ"))?;
        let signals = Signals::take().map_err(failed("take signals"))?;
        // Started with nohup, it is to outlive its terminal.
        let signals = if hangup_ignored { signals.without_hangup() } else { signals };
        // Where it may not be raised it is as it was, and a spawn that finds no descriptor says so.
        let descriptors = descriptors::raise().unwrap_or(None);
        let before = processes::descendants(Pid::own()).map_err(failed("read /proc"))?;
        let clock = Clock::start();
        let journal = match &settings.journal {
            Some(path) => Some(Journal::create(path, &config, beginning(&clock))?),
            None => None,
        };
        let tree = match tree {
            true => Some(Tree::start(clock).map_err(failed("draw on stderr"))?),
            false => None,
        };
        let log = match &tree {
            Some(tree) => Log::start(format, settings.log_level, tree.lines()),
            None => log::stderr().and_then(|stderr| Log::start(format, settings.log_level, stderr)),
        };
        let log = log.map_err(failed("start the log"))?;
        report_warnings(&log, clock.now(), &warnings);
        let before = before.iter().map(processes::Stat::identity).collect();
        let signals = Some(signals);
        Ok(Supervisor { config, settings, driver, log, tree, journal, signals, before, descriptors, clock })
    }

    /// Runs one prompt to its end, everything it started included. `answered` is given the answer the moment there
    /// is one, while runs that nobody waits for may go on; it must not block, and what was used may still grow.
    pub fn run(&mut self, prompt: String, answered: &mut dyn FnMut(&ResultObject)) -> Result<Outcome, Error> {
        let signals = self.signals.take().ok_or(Error::Spent)?;
        let options = Options::new(self.image(), Some(signals))?;
        options.poster().post(Event::PromptSubmitted { text: prompt })?;
        let mut core = Core::new(self.config.clone(), beginning(&self.clock));
        let mut around = Surroundings {
            log: &self.log,
            tree: self.tree.as_ref(),
            journal: &mut self.journal,
            secrets: self.settings.secrets.clone(),
            answered,
            delivered: None,
            marks: None,
            store: None,
            manager: None,
            reload: None,
        };
        let ended = self.driver.run(&mut core, &mut around, options)?;
        let (result, fault) = around.delivered.unzip();
        let result = result.map(|result| ResultObject { usage: ended.usage, ..result });
        Ok(Outcome {
            result,
            fault: fault.flatten(),
            interrupted: ended.interrupted,
            leaked: ended.leaked,
            costliest: ended.costliest,
        })
    }

    /// What children are.
    fn image(&self) -> Image {
        Image::own(child_environment(&self.settings.env_passthrough)).with_descriptors(self.descriptors)
    }

    /// Runs a daemon until it has drained. `open` has its doors, which are closed then, `reload` where its configuration came
    /// from; `manager` is who wants to be told how it stands.
    pub(crate) fn serve(
        &mut self,
        mut open: Open,
        reload: Reload,
        mut manager: Option<Manager>,
    ) -> Result<Ended, Error> {
        let signals = self.signals.take().ok_or(Error::Spent)?;
        let mut options = Options::new(self.image(), Some(signals))?;
        options.listeners = std::mem::take(&mut open.listeners);
        let store = match open.store.take() {
            Some((opened, saved)) => {
                options.saved = Some(saved);
                Some(opened.answer_to(options.poster())?)
            }
            None => None,
        };
        let fields: Vec<(&str, serde_json::Value)> = vec![
            ("agent", self.config.agent.as_str().into()),
            ("listen", open.addresses.join(" ").into()),
            ("pid", std::process::id().into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
        ];
        self.log.say(self.clock.now().wall, Level::Info, "daemon.start", &fields);
        let mut core = Core::new(self.config.clone(), beginning(&self.clock));
        let mut around = Surroundings {
            log: &self.log,
            tree: None,
            journal: &mut self.journal,
            secrets: self.settings.secrets.clone(),
            answered: &mut |_| {},
            delivered: None,
            marks: Some(&mut open.marks),
            store: store.as_ref(),
            manager: manager.as_mut(),
            reload: Some((reload, options.poster())),
        };
        let ended = self.driver.run(&mut core, &mut around, options)?;
        if let Some(store) = store {
            store.close();
        }
        let fields = [("leaked", ended.leaked.into())];
        self.log.say(self.clock.now().wall, Level::Info, "daemon.end", &fields);
        Ok(ended)
    }

    /// Logs what a run cost in all, for those who read the log by machine.
    pub fn log_cost(&self, outcome: &Outcome) {
        let Some(sum) = outcome.result.as_ref().map(|result| &result.usage.subtree) else { return };
        let mut fields: Vec<(&str, serde_json::Value)> = vec![
            ("input_tokens", sum.input.into()),
            ("output_tokens", sum.output.into()),
            ("estimated", sum.estimated.into()),
            ("usd", sum.usd.dollars().into()),
            ("unpriced", sum.unpriced.into()),
        ];
        if let Some(most) = outcome.costliest {
            fields.push(("costliest", most.handle.to_string().into()));
            fields.push(("costliest_tokens", most.own.input.saturating_add(most.own.output).into()));
            fields.push(("costliest_usd", most.own.usd.dollars().into()));
        }
        self.log.say(self.clock.now().wall, Level::Info, "daemon.cost", &fields);
    }

    /// The terminal that the tree is on, for those who print to the same one.
    pub fn screen(&self) -> Option<Screen> {
        self.tree.as_ref().map(|tree| tree.screen().clone())
    }

    /// Writes a line for people to stderr, behind what is logged.
    pub fn print(&self, line: String) {
        self.log.print(line);
    }

    /// How many processes are below this one that were not there before it began. Counted in `/proc`, not
    /// remembered: zombies and what escaped included.
    pub fn processes_left(&self) -> io::Result<usize> {
        let below = processes::descendants(Pid::own())?;
        Ok(below.iter().filter(|process| !self.before.contains(&process.identity())).count())
    }

    /// Ends the journal and the log, within bounds.
    pub fn close(self) {
        let Supervisor { log, tree, journal, clock, .. } = self;
        if let Some(tree) = tree {
            tree.close(TREE_END);
        }
        if let Some(Err(error)) = journal.map(|journal| journal.close(JOURNAL_END)) {
            report_journal(&log, clock.now(), &error);
        }
        // Whoever does not read stderr has chosen to lose its end.
        let _ = log.close(LOG_END);
    }
}

/// What surrounds the reactor.
struct Surroundings<'a> {
    log: &'a Log,
    tree: Option<&'a Tree>,
    journal: &'a mut Option<Journal>,
    secrets: Secrets,
    answered: &'a mut dyn FnMut(&ResultObject),
    delivered: Option<(ResultObject, Option<FailKind>)>,
    /// Of a daemon: what tokens look like to the core.
    marks: Option<&'a mut Marks>,
    /// What outlives it; without one, the core keeps what it answers from.
    store: Option<&'a Store>,
    /// Who wants to be told how a daemon stands.
    manager: Option<&'a mut Manager>,
    /// Of a daemon: how its configuration is read again, and where that is told.
    reload: Option<(Reload, Poster)>,
}

impl Surroundings<'_> {
    /// Gives the journal, if there is one, something to keep.
    fn record(&mut self, now: Now, keep: impl FnOnce(&mut Journal) -> Option<JournalError>) {
        if let Some(error) = self.journal.as_mut().and_then(keep) {
            report_journal(self.log, now, &error);
        }
    }
}

impl Outside for Surroundings<'_> {
    fn hear(&mut self, conn: ConnId, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.marks {
            Some(marks) => marks.put_in(conn, &bytes),
            None => bytes,
        }
    }

    fn observe(&mut self, now: Now, event: &Event) {
        if let (Event::ConnClosed { conn, .. }, Some(marks)) = (event, &mut self.marks) {
            marks.forget(*conn);
        }
        self.record(now, |journal| journal.observe(now, event));
    }

    fn decided(&mut self, now: Now, actions: &[Action]) {
        self.record(now, |journal| journal.decided(actions));
    }

    fn wants_checkpoint(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::wants_checkpoint)
    }

    fn checkpointed(&mut self, now: Now, state: Result<Vec<u8>, String>) {
        self.record(now, |journal| journal.checkpointed(state));
    }

    fn note(&mut self, now: Now, note: Note) {
        if let Some(manager) = &mut self.manager {
            manager.noted(&note);
        }
        self.log.note(now.wall, note);
    }

    fn persist(&mut self, seq: u64, class: Class, writes: Vec<Write>) -> StoreAnswer {
        match self.store {
            Some(store) => store.persist(seq, class, writes),
            None => StoreAnswer::Stored,
        }
    }

    fn deliver(&mut self, _prompt: u64, result: &ResultObject, fault: Option<FailKind>) {
        (self.answered)(result);
        self.delivered = Some((result.clone(), fault));
    }

    fn looks(&self, now: Now, happened: bool) -> bool {
        (self.tree.is_some() && happened)
            || self.manager.as_ref().is_some_and(|manager| manager.looks(now, happened))
    }

    fn see(&mut self, snapshot: Snapshot) {
        if let Some(manager) = &mut self.manager {
            manager.see(&snapshot);
        }
        if let Some(tree) = self.tree {
            tree.show(snapshot);
        }
    }

    fn turned(&mut self, now: Now) -> Option<Instant> {
        let turned = self.manager.as_mut()?.turned(now);
        if let Some(fault) = turned.fault {
            self.log.say(now.wall, Level::Warn, "daemon.untold", &[("error", fault.into())]);
        }
        turned.wanted
    }

    fn load_config(&mut self) -> Result<(), String> {
        let begun = match &self.reload {
            Some((reload, poster)) => reload.begin(poster.clone()),
            None => Err("only a daemon's configuration is read again".to_owned()),
        };
        if let Some(manager) = &mut self.manager {
            // Who asked for it by SIGHUP waits for a word, whatever comes of it.
            manager.reloading();
            if begun.is_err() {
                manager.reloaded(None);
            }
        }
        begun
    }

    fn reload_ended(&mut self, now: Now, used: bool) {
        let around = self.reload.as_mut().and_then(|(reload, _)| reload.end(used));
        if let Some(manager) = &mut self.manager {
            manager.reloaded(around.as_ref().map(|around| around.drain_timeout));
        }
        let Some(Around { secrets, log_level, log_format, warnings, .. }) = around else { return };
        self.secrets = secrets;
        self.log.set_level(log_level);
        self.log.set_format(log_format_of_daemon(log_format));
        report_warnings(self.log, now, &warnings);
    }

    fn encode_model(&mut self, number: u64, swap: &ModelSwap) -> Result<Vec<u8>, String> {
        let filled = self.secrets.put_in_swap(swap)?;
        Encoder::at(number).encode_down(&Down::Model(Box::new(filled))).map_err(|error| error.to_string())
    }

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        let filled = self.secrets.put_in(spawn)?;
        Encoder::new().encode_down(&Down::Spawn(Box::new(filled))).map_err(|error| error.to_string())
    }
}

/// How a daemon's log looks, where the configuration does not say.
pub(crate) fn log_format_of_daemon(configured: Option<LogFormat>) -> Format {
    match configured {
        Some(LogFormat::Json) => Format::Json,
        Some(LogFormat::Text) => Format::Text,
        None if io::stderr().is_terminal() => Format::Text,
        None => Format::Json,
    }
}

/// Models that no run can be given. What else is wrong with a configuration that can be used is for `agentd check`,
/// or shows itself.
fn report_warnings(log: &Log, now: Now, warnings: &[Problem]) {
    for problem in warnings.iter().filter(|problem| problem.code == Code::NoCredential) {
        let fields = [
            ("key", problem.path.as_str().into()),
            ("file", problem.file.as_str().into()),
            ("line", problem.line.into()),
            ("text", problem.message.as_str().into()),
        ];
        log.say(now.wall, Level::Warn, "config.model_unusable", &fields);
    }
}

fn report_journal(log: &Log, now: Now, error: &JournalError) {
    log.say(now.wall, Level::Error, "journal.stopped", &[("error", error.to_string().into())]);
}

/// The clocks that the core is made with: its time begins with the driver's.
fn beginning(clock: &Clock) -> Now {
    Now { mono: Instant::ZERO, wall: clock.now().wall }
}

/// What children begin with: the baseline of S3.3 and what the configuration passes on. What is between this process and its
/// service manager is never passed on, the place of its credentials included.
pub(crate) fn child_environment(passthrough: &[String]) -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| environment::is_baseline(name) || passes(name, passthrough))
        .collect()
}

fn passes(name: &OsStr, patterns: &[String]) -> bool {
    if service::is_own(name) || name == secrets::CREDENTIALS {
        return false;
    }
    let Some(name) = name.to_str().filter(|name| !name.starts_with("AGENTD_")) else { return false };
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_passes_and_never_a_marker() {
        let patterns = ["EDITOR", "LANG_PACK_*", "A*", "NOTIFY_SOCKET", "LISTEN_*", "WATCHDOG_*", "CRED*"]
            .map(str::to_owned);
        for (name, wanted) in [
            ("EDITOR", true),
            ("EDITOR2", false),
            ("LANG_PACK_DE", true),
            ("LANG_PACK", false),
            ("AWS_REGION", true),
            ("AGENTD_SUBAGENT", false),
            ("AGENTD_INTELLIGENCE_TOKEN", false),
            ("NOTIFY_SOCKET", false),
            ("LISTEN_FDS", false),
            ("LISTEN_FDNAMES", false),
            ("LISTEN_ADDRESS", true),
            ("WATCHDOG_USEC", false),
            ("CREDENTIALS_DIRECTORY", false),
        ] {
            assert_eq!(passes(OsStr::new(name), &patterns), wanted, "{name}");
        }
    }
}

//! One run on the main thread: feeds the loop what happens, does what the loop wants done.
//!
//! Owns who is asked for what and which answers are still wanted. Refuses answers nobody waits for. Made by
//! [`super::run`], before any thread; [`super::connect`] and [`super::end`] are its first and last act.

mod models;
mod servers;

use super::Pipes;
use super::catalogue::event;
use super::clock::Clock;
use super::connect::{Connected, bug};
use super::control::{Control, Unread};
use super::inbox::{self, Inbox, panic_text};
use super::outbox::{Outbox, outbox};
use super::server::{self, Link, Order, ServerEvent};
use super::transcript::{self, Opened, Tape};
use agentd_core::agent::{Input, Loop, Output, Terminal, ToolOutcome, ToolSource, ToolValue};
use agentd_core::json::schema::Schema;
use agentd_core::mcp::{self, ToolInfo};
use agentd_core::model::ModelRequest;
use agentd_core::time::{Duration, Instant};
use agentd_core::transcript::Past;
use agentd_core::wire::message::{
    Event, FailKind, Failed, LoopEnd, ModelSwap, RunResult, Server, Spawn, Throttle, ToolRequest, ToolResult,
    Transport,
};
use agentd_core::wire::{DownDecoder, Encoder, Up};
use agentd_host::process::Pid;
use agentd_host::tree::{Below, Mode};
use models::Models;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

/// A run's process, with all its threads running.
pub(super) struct Session {
    pub(super) spawn: Box<Spawn>,
    pub(super) clock: Clock,
    /// When `ready` was said: the run's deadline counts from here.
    pub(super) began: Instant,
    pub(super) outbox: Outbox,
    pub(super) servers: Vec<Attached>,
    /// What each usable server offers, by index in the payload, as far as its settings let it through.
    pub(super) offered: BTreeMap<usize, Vec<ToolInfo>>,
    /// Nobody supervises this process any more.
    pub(super) orphaned: bool,
    pub(super) below: Option<Below>,
    /// What the supervisor said to the loop before there was one.
    pub(super) early: Vec<Input>,
    inbox: Receiver<Inbox>,
    unread: Unread,
    models: Models,
    /// For threads that begin later.
    sender: Sender<Inbox>,
    /// A model call that waits for room in the outbox.
    held: Option<(u64, Box<ModelRequest>)>,
    /// Tool calls that are still wanted, by the loop's number, and who was asked.
    open: BTreeMap<u64, Asked>,
    /// What is written of it, if anything is.
    tape: Option<Tape>,
}

/// A server's thread.
pub(super) struct Attached {
    pub(super) link: Link,
    /// Its keeper, as long as it is not gone.
    keeper: Option<Pid>,
    /// Its keeper is gone.
    pub(super) closed: bool,
}

/// Who was asked for a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Supervisor,
    /// By index in the payload.
    Server(usize),
}

/// Starts the keepers, then the threads, then works and ends.
pub(super) fn run(
    spawn: Box<Spawn>,
    clock: Clock,
    decoder: DownDecoder,
    encoder: Encoder,
    pipes: Pipes,
) -> ExitCode {
    let began = clock.now();
    let opened = transcript::open(&spawn, clock.wall());
    let below = if spawn.servers.is_empty() { None } else { Below::new(Mode::Subreaper).ok() };
    // A server at an address needs no keeper.
    let keep = |server: &Server| match server.transport {
        Transport::Stdio(_) | Transport::Files(_) => Some(server::launch().map_err(|e| e.to_string())),
        Transport::Http(_) => None,
    };
    let launched: Vec<_> = spawn.servers.iter().map(keep).collect();
    let (sender, inbox) = channel();
    let (outbox, pongs, writer) = outbox(pipes.stdout, encoder, sender.clone());
    let (control, unread) = Control::new(pipes.stdin, decoder, pongs, sender.clone());
    if let Err(error) = inbox::thread("writer".into(), sender.clone(), move || writer.run()) {
        // Nothing can be said on stdout any more.
        eprintln!("agentd: {error}");
        return ExitCode::FAILURE;
    }
    let mut session = Session {
        spawn,
        clock,
        began,
        outbox,
        servers: Vec::new(),
        offered: BTreeMap::new(),
        orphaned: false,
        below,
        early: Vec::new(),
        inbox,
        unread,
        models: Models::default(),
        sender: sender.clone(),
        held: None,
        open: BTreeMap::new(),
        tape: None,
    };
    let work = AssertUnwindSafe(|| {
        let control = inbox::thread("control".into(), sender.clone(), move || control.run());
        control.map_err(|error| failed(FailKind::Internal, error))?;
        let past =
            opened.map_err(|error| failed(FailKind::Spawn, error))?.and_then(|Opened { tape, past }| {
                session.tape = Some(tape);
                past
            });
        session.attach(launched, &sender)?;
        let schema = session.output_schema()?;
        session.open_model(&sender)?;
        session.work(schema, past)
    });
    let terminal = match catch_unwind(work) {
        Ok(Ok(terminal) | Err(terminal)) => terminal,
        Err(panic) => bug("main", &panic_text(panic.as_ref())),
    };
    session.end(terminal)
}

impl Session {
    fn open_model(&mut self, inbox: &Sender<Inbox>) -> Result<(), Up> {
        let opened = Models::open(&self.spawn, self.clock, inbox);
        self.models = opened.map_err(|(kind, error)| failed(kind, error))?;
        Ok(())
    }

    /// There is another model: what that is to the loop.
    pub(super) fn swap_model(&mut self, swap: ModelSwap) -> Option<Input> {
        match self.models.offer(swap, &self.spawn, self.clock, &self.sender) {
            Ok(input) => Some(input),
            Err(event) => {
                self.tell(Up::Event(event));
                None
            }
        }
    }

    /// What the answer must fit, read once.
    fn output_schema(&self) -> Result<Option<Schema>, Up> {
        let read = self.spawn.output_schema.as_ref().map(|text| Schema::read(&text.0)).transpose();
        read.map_err(|problem| failed(FailKind::Spawn, format!("output_schema cannot be used: {problem}")))
    }

    /// Drives the loop, over all its turns, to its terminal frame.
    fn work(&mut self, schema: Option<Schema>, past: Option<Past>) -> Result<Up, Up> {
        let Connected { tools, missing } = self.connect()?;
        let mut agent = Loop::new(&self.spawn, tools, missing, schema, self.began);
        if let Some(past) = past {
            self.tell(Up::Event(resumed(&past)));
            agent = agent.taking_up(past, &self.spawn);
        }
        let mut out = Vec::new();
        let early = std::mem::take(&mut self.early);
        for input in early.into_iter().chain([Input::Start]) {
            agent.handle(self.clock.now(), input, &mut out);
        }
        loop {
            for output in std::mem::take(&mut out) {
                if let Some(terminal) = self.perform(output) {
                    return Ok(terminal);
                }
            }
            let input = match self.receive(agent.poll_timeout()) {
                None => Some(Input::Tick),
                Some(message) => self.input_of(message)?,
            };
            if let Some(input) = input {
                if let Some(came) = self.models.came() {
                    agent.handle(self.clock.now(), came, &mut out);
                }
                agent.handle(self.clock.now(), input, &mut out);
            }
        }
    }

    /// The next message; `None` when `until` is reached first.
    pub(super) fn receive(&mut self, until: Option<Instant>) -> Option<Inbox> {
        let wait = until.map_or(Duration::MAX, |at| self.clock.until(at));
        // A flood of messages does not hold a deadline up.
        if wait.is_zero() {
            return None;
        }
        let message = match self.inbox.recv_timeout(wait) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return None,
            // Threads that live as long as the process hold senders, so this means that they all died.
            Err(RecvTimeoutError::Disconnected) => Inbox::OutputGone,
        };
        if message.is_counted() {
            self.unread.read_one();
        }
        Some(message)
    }

    /// What a message means to the loop. `Err` ends the run without it.
    fn input_of(&mut self, message: Inbox) -> Result<Option<Input>, Up> {
        Ok(match message {
            Inbox::Cancel(reason) => Some(Input::Cancel { reason }),
            Inbox::SupervisorGone | Inbox::OutputGone => {
                self.orphaned = true;
                Some(Input::Cancel { reason: ORPHANED.to_owned() })
            }
            Inbox::Model { call, reply } => Some(Input::ModelReply { call, reply }),
            Inbox::ModelWaits { call, until_ms } => Some(Input::ModelWaiting { call, until_ms }),
            Inbox::ModelCut { call, attempt, came } => Some(Input::ModelCut { call, attempt, came }),
            Inbox::ModelEvent(event) => {
                self.tell(Up::Event(event));
                None
            }
            Inbox::ModelHealth(report) => {
                self.outbox.push(Up::ModelHealth(report));
                None
            }
            Inbox::Throttle(throttle) => {
                self.throttle(&throttle);
                None
            }
            Inbox::ModelSwap(swap) => self.swap_model(*swap),
            Inbox::ToolResult(result) => self.answered(result),
            Inbox::ForLoop(input) => Some(input),
            Inbox::Server { index, event: ServerEvent::CallDone { key, outcome } } => {
                let wanted = self.open.remove(&key) == Some(Asked::Server(index));
                wanted.then(|| Input::ToolDone { call: key, outcome: outcome_of(outcome) })
            }
            Inbox::Server { index, event: ServerEvent::Changed { tools } } => {
                self.offer(index, tools);
                Some(Input::ToolsChanged { tools: self.catalogue() })
            }
            Inbox::Server { index, event } => {
                self.note_server(index, event);
                None
            }
            Inbox::Writable => {
                self.release_held();
                None
            }
            Inbox::TerminalWritten => None,
            Inbox::BadControl(error) => {
                return Err(failed(FailKind::Internal, format!("control protocol error: {error}")));
            }
            Inbox::Panicked { thread, message } => return Err(bug(&thread, &message)),
        })
    }

    fn answered(&mut self, result: ToolResult) -> Option<Input> {
        if self.open.get(&result.id) != Some(&Asked::Supervisor) {
            // Given up meanwhile, or never asked: nobody waits for it.
            return None;
        }
        self.open.remove(&result.id);
        // A text that a program's tool answers with is read as that text, not as JSON with its quotes and escapes.
        let value = match serde_json::from_slice(&result.value.0) {
            Ok(text) => ToolValue::Text(text),
            Err(_) => ToolValue::Json(result.value),
        };
        let outcome = ToolOutcome { error: result.error, value };
        Some(Input::ToolDone { call: result.id, outcome })
    }

    /// Does one thing the loop wants. `Some` is its end.
    fn perform(&mut self, output: Output) -> Option<Up> {
        match output {
            Output::CallModel { call, request } => {
                self.held = Some((call, request));
                self.release_held();
            }
            Output::AbandonModel { call } => {
                if self.held.take_if(|(held, _)| *held == call).is_none() {
                    self.models.abandon(call);
                }
            }
            Output::GoOnModel { call } => self.models.go_on(call),
            Output::UseModel { swap } => self.models.take(swap),
            Output::CallTool { call, call_id, source, args, name } => match source {
                ToolSource::Supervisor => {
                    self.open.insert(call, Asked::Supervisor);
                    self.outbox.push(Up::ToolRequest(ToolRequest { id: call, call_id, name, args }));
                }
                ToolSource::Server { server, tool } => self.call_server(call, &server, tool, args),
            },
            Output::AbandonTool { call } => {
                if let Some(Asked::Server(index)) = self.open.remove(&call) {
                    let reason = "the run no longer waits for it".to_owned();
                    self.servers[index].link.order(Order::Cancel { key: call, reason });
                }
            }
            Output::Record(item) => {
                let now = self.clock.wall();
                if let Some(ends) = self.tape.as_mut().and_then(|tape| tape.item(now, *item)) {
                    self.outbox.push(Up::Event(ends));
                }
            }
            Output::Emit(up) => self.tell(up),
            Output::Turn(turn) => self.outbox.push(Up::Turn(turn)),
            Output::Finish(Terminal::Result(result)) => return Some(Up::Result(result)),
            Output::Finish(Terminal::Failed(failed)) => return Some(Up::Failed(failed)),
        }
        None
    }

    /// Tells the supervisor, and the transcript what of it happened.
    pub(super) fn tell(&mut self, up: Up) {
        let now = self.clock.wall();
        if let Some(ends) = self.tape.as_mut().and_then(|tape| tape.told(now, &up)) {
            self.outbox.push(Up::Event(ends));
        }
        self.outbox.push(up);
    }

    /// Nothing new begins while the supervisor does not read.
    fn release_held(&mut self) {
        if self.outbox.is_full() {
            return;
        }
        if let Some((call, request)) = self.held.take() {
            self.models.call(call, request);
        }
    }

    /// Tells the models what other runs learned of an endpoint.
    pub(super) fn throttle(&self, throttle: &Throttle) {
        self.models.throttle(throttle);
    }

    /// The end of a run whose supervisor vanished before its loop began.
    pub(super) fn orphan(&mut self) -> Up {
        self.orphaned = true;
        cancelled(ORPHANED.to_owned())
    }
}

const ORPHANED: &str = "the supervisor is gone";

fn outcome_of(outcome: mcp::Outcome) -> ToolOutcome {
    let value = match outcome.value {
        mcp::Value::Text(text) => ToolValue::Text(text),
        mcp::Value::Json(json) => ToolValue::Json(json),
    };
    ToolOutcome { error: outcome.error, value }
}

/// The run goes on with what an earlier process wrote down.
fn resumed(past: &Past) -> Event {
    let text = format!(
        "goes on with {} messages of {} turns; {} calls have no result, {} lines could not be read",
        past.messages.len(),
        past.turns,
        past.orphans.len(),
        past.damaged
    );
    event("info", "agent.resumed", text)
}

/// The end of a run that was cancelled before its loop began.
pub(super) fn cancelled(reason: String) -> Up {
    let end = LoopEnd::Cancelled;
    Up::Result(RunResult {
        end,
        text: None,
        partial: false,
        error: Some(reason),
        evidence: Default::default(),
    })
}

/// The end of a run that the loop had no say in.
pub(super) fn failed(kind: FailKind, error: String) -> Up {
    Up::Failed(Failed { kind, error, text: None, evidence: Default::default() })
}

//! What surrounds the reactor inside an embedding program: callers who wait, the program's tools, its store, its
//! subscribers.
//!
//! Owns who waits for which answer. Refuses to wait for any of them. Called by the reactor, and by the driver, which
//! asks it for the events that come from the program.

use crate::link::{Command, Inbox, Reply};
use crate::news::News;
use crate::saving::Saving;
use crate::tools::Toolbox;
use agentd_core::action::{Action, HostCall};
use agentd_core::bytes::Json;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::note::{Level, Note};
use agentd_core::record::ResultObject;
use agentd_core::store::{Class, Write, record_in};
use agentd_core::time::Now;
use agentd_core::wire::message::{FailKind, Spawn};
use agentd_core::wire::{Down, Encoder};
use agentd_host::outside::{Outside, StoreAnswer};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use tokio::sync::broadcast;

/// Puts secrets into a child's first frame.
pub(crate) type PutIn = Box<dyn FnMut(&mut Spawn) -> Result<(), String> + Send>;

/// Keeps what the core is told, in the order it is told it, and what it answers: a flight recorder.
pub trait Recorder: Send {
    /// One event, before the core gets it. Must not block. A recorder that cannot go on says why, once: subscribers hear
    /// of it as `journal.stopped`.
    fn observe(&mut self, now: Now, event: &Event) -> Option<String>;

    /// What the core answered to the event that was observed last, before any of it is performed. As `observe`.
    fn decided(&mut self, _now: Now, _actions: &[Action]) -> Option<String> {
        None
    }

    /// Whether the core's whole state is wanted before the next event.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// The state that was wanted, or why there is none. As `observe`.
    fn checkpointed(&mut self, _now: Now, _state: Result<Vec<u8>, String>) -> Option<String> {
        None
    }
}

/// The signal that begins a drain which a handle asked for.
const DRAIN: Event = Event::Signalled { signal: SupervisorSignal::Term };

/// The rest of the program, as the reactor sees it.
pub(crate) struct Around {
    calls: BTreeMap<u64, Reply<Result<Value, Value>>>,
    prompts: BTreeMap<u64, Reply<ResultObject>>,
    tools: Toolbox,
    saving: Option<Saving>,
    put_in: Option<PutIn>,
    recorder: Option<Box<dyn Recorder>>,
    news: broadcast::Sender<News>,
    /// Learned and not yet told.
    learned: VecDeque<Event>,
    /// Every handle is gone.
    alone: bool,
    /// Last, so that whoever waits for the end of the driver hears of it when everything else is gone.
    inbox: Inbox,
}

impl Around {
    pub(crate) fn new(
        inbox: Inbox,
        news: broadcast::Sender<News>,
        tools: Toolbox,
        saving: Option<Saving>,
        put_in: Option<PutIn>,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Around {
        Around {
            calls: BTreeMap::new(),
            prompts: BTreeMap::new(),
            tools,
            saving,
            put_in,
            recorder,
            news,
            learned: VecDeque::new(),
            alone: false,
            inbox,
        }
    }

    /// The next event that comes from the program.
    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        while self.learned.is_empty() && !self.alone {
            match self.inbox.commands.poll_recv(context) {
                Poll::Ready(Some(command)) => self.take(command),
                Poll::Ready(None) => {
                    self.alone = true;
                    self.take(Command::Stop);
                }
                Poll::Pending => break,
            }
        }
        if let Some(event) = self.learned.pop_front() {
            return Poll::Ready(event);
        }
        if let Poll::Ready(event) = self.tools.poll_answer(context) {
            return Poll::Ready(event);
        }
        self.saving.as_mut().map_or(Poll::Pending, |saving| saving.poll_answer(context))
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Call { call, tool, args, reply } => {
                self.calls.insert(call, reply);
                let tool = tool.to_owned();
                self.learned.push_back(Event::OperatorCalled { call, tool, args: Json::of(&args) });
            }
            Command::HangUp { call } => {
                // One that was answered meanwhile is over for the core too.
                if self.calls.remove(&call).is_some() {
                    self.learned.push_back(Event::OperatorHungUp { call });
                }
            }
            Command::Prompt { prompt, text, reply } => {
                self.prompts.insert(prompt, reply);
                self.learned.push_back(Event::PromptSubmitted { text });
            }
            Command::TakeBack { prompt } => {
                if self.prompts.remove(&prompt).is_some() {
                    let reason = "the program took it back".to_owned();
                    self.learned.push_back(Event::TurnCancelled { prompt, reason });
                }
            }
            Command::Drain => self.learned.push_back(DRAIN),
            // The first begins a drain, the second ends it; where one is in progress the rest changes nothing.
            Command::Stop => self.learned.extend([DRAIN, DRAIN]),
        }
    }
}

impl Around {
    /// Gives the recorder, if there is one, something to keep.
    fn record(&mut self, now: Now, keep: impl FnOnce(&mut dyn Recorder) -> Option<String>) {
        let Some(recorder) = self.recorder.as_deref_mut() else { return };
        if let Some(why) = keep(recorder) {
            let mut note = Note::of_daemon(Level::Error, "journal.stopped");
            note.fields.insert("error".to_owned(), why.into());
            self.note(now, note);
        }
    }
}

impl Outside for Around {
    fn observe(&mut self, now: Now, event: &Event) {
        self.record(now, |recorder| recorder.observe(now, event));
    }

    fn decided(&mut self, now: Now, actions: &[Action]) {
        self.record(now, |recorder| recorder.decided(now, actions));
    }

    fn wants_checkpoint(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.wants_checkpoint())
    }

    fn checkpointed(&mut self, now: Now, state: Result<Vec<u8>, String>) {
        self.record(now, |recorder| recorder.checkpointed(now, state));
    }

    fn note(&mut self, _now: Now, note: Note) {
        if self.news.receiver_count() > 0 {
            let _nobody = self.news.send(News::Note(note));
        }
    }

    fn persist(&mut self, seq: u64, _class: Class, writes: Vec<Write>) -> StoreAnswer {
        match &mut self.saving {
            Some(saving) => match record_in(&writes) {
                Some(record) => {
                    saving.save(seq, record.clone());
                    StoreAnswer::Later
                }
                // A program's own store keeps records; nothing else is handed to one.
                None => StoreAnswer::Stored,
            },
            // Memory that nothing reads again: the core keeps what it answers from.
            None => StoreAnswer::Stored,
        }
    }

    fn deliver(&mut self, prompt: u64, result: &ResultObject, _fault: Option<FailKind>) {
        match self.prompts.remove(&prompt) {
            Some(reply) => reply.send(result.clone()),
            None if prompt == 0 => {
                let _nobody = self.news.send(News::Unprompted(result.clone()));
            }
            // It was taken back.
            None => {}
        }
    }

    fn answer(&mut self, call: u64, error: bool, value: Json) {
        let Some(reply) = self.calls.remove(&call) else { return };
        let value = value.parse().unwrap_or(Value::Null);
        reply.send(if error { Err(value) } else { Ok(value) });
    }

    fn call_tool(&mut self, call: HostCall) -> Result<(), String> {
        self.tools.call(call);
        Ok(())
    }

    fn cancel_tool(&mut self, call: u64) {
        self.tools.cancel(call);
    }

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        let mut spawn = spawn.clone();
        if let Some(put_in) = &mut self.put_in {
            // The program's code: a panic of it fails this one run.
            catch_unwind(AssertUnwindSafe(|| put_in(&mut spawn)))
                .unwrap_or_else(|_| Err("putting the secrets in broke off (a panic)".to_owned()))?;
        }
        Encoder::new().encode_down(&Down::Spawn(Box::new(spawn))).map_err(|error| error.to_string())
    }
}

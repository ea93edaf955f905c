//! One run's story, for somebody who never saw the code: who asked, what it was given, what it did, what was done to
//! it and why, how it ended, who was told. Times are since the daemon's start. Called by `agentd replay --explain`.

use super::cast::Cast;
use super::{Audience, Step, phrases, speech, words};
use crate::journal::Header;
use agentd_core::action::{Action, HostCall, SpawnFrame};
use agentd_core::event::Event;
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::note::Note;
use agentd_core::record::Record;
use agentd_core::store::record_in;
use agentd_core::supervisor::Core;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Health, Mode, Role, Spawn};
use agentd_core::wire::{Down, Up, down_of};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Whose story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The conversation: all of its workers.
    Root,
    /// The run of this handle.
    Handle(Handle),
    /// The run of this id.
    Run(RunId),
}

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Who, String> {
        if text == "root" {
            return Ok(Who::Root);
        }
        let handle = text.parse().map(Who::Handle).ok();
        handle
            .or_else(|| text.parse().map(Who::Run).ok())
            .ok_or_else(|| "accepted are root, a handle such as sub-7, or a run id".to_owned())
    }
}

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Milliseconds since the daemon's start.
    pub at_ms: u64,
    /// The event's number.
    pub event: u64,
    /// What happened.
    pub text: String,
}

/// A story as it is gathered.
#[derive(Debug)]
pub struct Story {
    who: Who,
    cast: Cast,
    /// The processes of the run.
    nodes: BTreeSet<NodeId>,
    run_ids: BTreeSet<RunId>,
    /// The run's saves that are out: what is saved.
    saves: BTreeMap<u64, Saved>,
    lines: Vec<Line>,
    /// Its outcome is final and its process gone.
    open: BTreeSet<NodeId>,
    ended_at: Instant,
}

#[derive(Debug)]
enum Saved {
    /// It is not over.
    Begun,
    /// It is, with this status.
    Over(&'static str),
}

impl Story {
    /// Nothing is told yet.
    pub fn of(who: Who) -> Story {
        Story {
            who,
            cast: Cast::default(),
            nodes: BTreeSet::new(),
            run_ids: BTreeSet::new(),
            saves: BTreeMap::new(),
            lines: Vec::new(),
            open: BTreeSet::new(),
            ended_at: Instant::ZERO,
        }
    }

    /// The story; empty when there was no such run.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How it stands where the journal ends, if it is not over there.
    pub fn open_end(&self) -> Option<String> {
        let open = !self.open.is_empty();
        open.then(|| format!("the journal ends at {} and the run is not over", words::time(self.ended_at)))
    }

    /// Names of all runs of the journal, for one who asked for none of them.
    pub fn known(&self) -> Vec<String> {
        let handles: BTreeSet<Handle> = self.cast.nodes().filter_map(|node| self.cast.handle(node)).collect();
        ["root".to_owned()].into_iter().chain(handles.iter().map(Handle::to_string)).collect()
    }

    fn is_mine(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Whether a node is one whose story is told, from now on.
    fn claim(&mut self, node: NodeId) -> bool {
        let mine = match self.who {
            Who::Root => self.cast.is_worker(node),
            Who::Handle(handle) => self.cast.handle(node) == Some(handle),
            Who::Run(run_id) => self.cast.node_of(run_id) == Some(node),
        };
        if mine {
            self.run_ids.extend(self.cast.run_id(node));
            if self.nodes.insert(node) {
                self.open.insert(node);
                return true;
            }
        }
        false
    }

    fn tell(&mut self, step: &Step<'_>, text: impl Into<String>) {
        self.lines.push(Line { at_ms: step.now.mono.millis(), event: step.number, text: text.into() });
    }

    fn heard(&mut self, step: &Step<'_>, messages: Vec<Up>) {
        for message in messages {
            match message {
                // Told by the supervisor's own words for it, or of no interest by itself.
                Up::Ready(_)
                | Up::Pong(_)
                | Up::State(_)
                | Up::Usage(_)
                | Up::Turn(_)
                | Up::BudgetRequest(_) => {}
                // Every call that is answered says so; what is told of it is the trouble.
                Up::ModelHealth(report) if report.health == Health::Answered => {}
                Up::ModelHealth(_) => self.tell(step, speech::up(&message)),
                Up::Event(event) => {
                    let told = phrases::of_child(&event);
                    told.into_iter().for_each(|text| self.tell(step, text));
                }
                Up::Tools(_) | Up::Ack(_) => self.tell(step, speech::up(&message)),
                Up::ToolRequest(_) => {
                    self.tell(step, format!("it asks the supervisor: {}", speech::up(&message)))
                }
                Up::Result(_) | Up::Failed(_) => {
                    self.tell(step, format!("it says its result: {}", speech::up(&message)));
                }
            }
        }
    }

    fn happened(&mut self, step: &Step<'_>) {
        match step.event {
            Event::ChildSpawned { node, pid } if self.is_mine(*node) => {
                self.tell(step, format!("its process is made: {pid}"));
            }
            Event::SpawnFailed { node, .. }
            | Event::SpawnFrameFailed { node, .. }
            | Event::ChildWriteFailed { node, .. }
                if self.is_mine(*node) =>
            {
                self.tell(step, words::event(step, &[], &self.cast));
            }
            Event::ExitObserved { node, exit } if self.is_mine(*node) => {
                self.tell(step, format!("its process ended {}", words::exit_words(*exit)));
            }
            Event::Reaped { node } if self.is_mine(*node) => {
                self.open.remove(node);
                self.tell(step, "nothing of it is left, and its pid is free");
            }
            Event::Stored { seq } => match self.saves.remove(seq) {
                Some(Saved::Over(status)) => self.tell(step, format!("that it is {status} is durable")),
                Some(Saved::Begun) => self.tell(step, "it is on record"),
                None => {}
            },
            Event::StoreFailed { seq, .. } if self.saves.remove(seq).is_some() => {
                self.tell(step, format!("its record: {}", words::event(step, &[], &self.cast)));
            }
            Event::PromptSubmitted { text } if self.who == Who::Root => {
                self.tell(step, format!("a person asks: {}", words::quoted(text)));
            }
            Event::TurnCancelled { .. } | Event::Signalled { .. } if self.who == Who::Root => {
                self.tell(step, words::event(step, &[], &self.cast));
            }
            _ => {}
        }
    }

    fn done(&mut self, step: &Step<'_>, action: &Action) {
        match action {
            Action::Persist { seq, writes, .. } => {
                if let Some(record) = record_in(writes) {
                    self.saved(step, *seq, record);
                }
            }
            Action::Spawn { node, .. } if self.is_mine(*node) => self.tell(step, "its process is asked for"),
            Action::SendSpawn { node, payload: SpawnFrame(payload) } if self.is_mine(*node) => {
                self.tell(step, given(payload));
            }
            Action::SendToChild { node, frame } => self.said(step, *node, frame),
            Action::SendModel { node, .. } if self.is_mine(*node) => {
                self.tell(step, words::action(action, &self.cast));
            }
            Action::Signal { node, signal } if self.is_mine(*node) => {
                self.tell(step, format!("{} to its process group", words::child_signal(*signal)));
            }
            Action::CallHostTool(HostCall { node, .. }) if self.is_mine(*node) => {
                self.tell(step, words::action(action, &self.cast));
            }
            Action::Answer { value, .. } if self.speaks_of_me(&value.0) => {
                self.tell(
                    step,
                    words::action(action, &self.cast).replacen("answer", "told: the answer to", 1),
                );
            }
            Action::Deliver { prompt, result, .. } if self.who == Who::Root => {
                let answer = words::value(&result.result);
                let error =
                    result.error.as_ref().map_or_else(String::new, |e| format!(", {}", words::quoted(e)));
                let status = result.status.name();
                self.tell(step, format!("prompt {prompt} is answered: {status}{error}, {answer}"));
            }
            Action::Note(note) => self.noted(step, note),
            _ => {}
        }
    }

    fn saved(&mut self, step: &Step<'_>, seq: u64, record: &Record) {
        if self.claim(record.node) {
            self.tell(step, self.asked_for(record));
        }
        if !self.is_mine(record.node) {
            return;
        }
        let status = record.status.name();
        if record.status.is_terminal() {
            if !self.saves.values().any(|saved| matches!(saved, Saved::Over(_))) {
                let why =
                    record.error.as_ref().map_or_else(String::new, |e| format!(": {}", words::quoted(e)));
                self.tell(step, format!("its outcome is decided, {status}{why}"));
            }
            self.saves.insert(seq, Saved::Over(status));
        } else {
            self.saves.insert(seq, Saved::Begun);
        }
    }

    fn asked_for(&self, record: &Record) -> String {
        let by = match record.parent {
            Some(parent) => match self.cast.node_of(parent) {
                Some(node) => self.cast.name(node),
                None => format!("run {parent}"),
            },
            None => record.principal.clone(),
        };
        let call = record
            .call_id
            .as_ref()
            .map_or_else(String::new, |id| format!(", in its tool call {}", words::quoted(id)));
        let kind = match record.role {
            Role::Worker => "a worker of the conversation",
            Role::Subagent => "a subagent",
        };
        let mode = match record.mode {
            Mode::Sync => "whose caller waits for it",
            Mode::Async => "whose caller goes on and collects the result",
            Mode::Detached => "that nobody waits for",
            Mode::Warm => "that stays for more messages",
        };
        format!("{by} asks for it{call}: {kind} {mode}, depth {}, run {}", record.depth, record.run_id)
    }

    fn said(&mut self, step: &Step<'_>, node: NodeId, frame: &[u8]) {
        let Some(message) = down_of(frame) else { return };
        if self.is_mine(node) {
            match message {
                Down::Ping(_) | Down::Spawn(_) => {}
                Down::ToolResult(_) => self.tell(step, format!("it gets {}", speech::down(&message))),
                _ => self.tell(step, format!("it is told: {}", speech::down(&message))),
            }
            return;
        }
        let about_me = match &message {
            Down::ToolResult(result) => self.speaks_of_me(&result.value.0),
            Down::Steer(text) | Down::Message(text) => self.speaks_of_me(text.text.as_bytes()),
            _ => false,
        };
        if about_me {
            self.tell(step, format!("{} is told: {}", self.cast.name(node), speech::down(&message)));
        }
    }

    /// Whether a text holds the run's id, or its handle as a word.
    fn speaks_of_me(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        if self.run_ids.iter().any(|run_id| text.contains(&run_id.to_string())) {
            return true;
        }
        let Who::Handle(handle) = self.who else { return false };
        let handle = handle.to_string();
        text.match_indices(&handle)
            .any(|(at, _)| !text[at + handle.len()..].starts_with(|next: char| next.is_ascii_digit()))
    }

    fn noted(&mut self, step: &Step<'_>, note: &Note) {
        let mine = note.node.is_some_and(|node| self.is_mine(node));
        // A child's own events are told as it says them.
        if phrases::is_of_child(note) {
            return;
        }
        if (mine || (phrases::concerns_all(note) && !self.open.is_empty()))
            && let Some(sentence) = phrases::sentence(note)
        {
            self.tell(step, sentence);
        }
    }
}

impl Audience for Story {
    fn begins(&mut self, header: &Header, core: &Core) {
        self.cast.begin(core);
        let living: Vec<NodeId> = self.cast.nodes().collect();
        for node in living {
            if self.claim(node) {
                let text =
                    format!("{} lives already where the oldest kept file begins", self.cast.name(node));
                self.lines.push(Line { at_ms: 0, event: header.events, text });
            }
        }
    }

    fn step(&mut self, step: &Step<'_>) -> bool {
        self.ended_at = step.now.mono;
        self.cast.learn(step.actions);
        let messages: Vec<Up> = self.cast.hear(step.event).into_iter().filter_map(Result::ok).collect();
        if matches!(step.event, Event::ChildBytes { node, .. } if self.is_mine(*node)) {
            self.heard(step, messages);
        } else {
            self.happened(step);
        }
        for action in step.actions {
            self.done(step, action);
        }
        true
    }
}

/// What a run is handed.
fn given(payload: &Spawn) -> String {
    let servers: Vec<&str> = payload.servers.iter().map(|server| server.name.as_str()).collect();
    let servers =
        if servers.is_empty() { "no servers".to_owned() } else { format!("servers {}", servers.join(", ")) };
    let tools = match &payload.tools {
        None => "all of their tools".to_owned(),
        Some(patterns) if patterns.is_empty() => "no tools".to_owned(),
        Some(patterns) => format!("tools {}", patterns.join(", ")),
    };
    let limits = &payload.limits;
    let context = match payload.context.len() {
        0 => String::new(),
        count => format!(", {count} messages of context"),
    };
    format!(
        "it is handed its work: {}; model {}, {servers}, {tools}{context}; at most {} steps, {} tokens, {}",
        words::quoted(&payload.instruction),
        payload.model.name,
        limits.steps,
        limits.tokens,
        words::span(Duration::from_millis(limits.deadline_ms)),
    )
}

//! What a scenario looks like from outside: for each process its life and the frames both ways, for each run its
//! records, the answers people get, and what the log says. Made from events and actions alone, in every arm alike;
//! `normal` has all that is left out.

mod frames;

use super::normal::{self, Names};
use super::watched::Turn;
use agentd_core::action::{Action, ChildSignal};
use agentd_core::event::{Event, Exit};
use agentd_core::id::{NodeId, RunId};
use agentd_core::note::Note;
use agentd_core::record::Record;
use agentd_core::store::record_in;
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder, UpDecoder};
use frames::{down_value, read, up_value};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// See the module. Lanes are in the order of things, logs are sorted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// By `node-1`.
    pub processes: BTreeMap<String, Process>,
    /// Records as they were saved, by `worker-1` or `sub-1`.
    pub runs: BTreeMap<String, Vec<Value>>,
    /// What was done to the conversation and to the supervisor.
    pub asked: Vec<Value>,
    /// Answers of the conversation.
    pub delivered: Vec<Value>,
    /// Answers of the operator's calls, by the call's number.
    pub answered: BTreeMap<u64, Vec<Value>>,
    /// What the log says of the daemon itself.
    pub log: Vec<Value>,
    /// How the loop ended.
    pub end: Value,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Process {
    /// Its making, its signals, its death and what it left.
    pub life: Vec<String>,
    /// Frames it was sent, but for answers.
    pub down: Vec<Value>,
    /// Answers of its calls, by the call's number; calls of one message are answered as each ends.
    pub answers: BTreeMap<u64, Vec<Value>>,
    /// Frames it sent.
    pub up: Vec<Value>,
    /// What the log says of it and of its run.
    pub log: Vec<Value>,
}

impl Transcript {
    /// The transcript of what was noted down.
    pub fn of(turns: &[Turn]) -> Transcript {
        let mut scribe = Scribe::default();
        for turn in turns {
            scribe.event(&turn.event);
            turn.actions.iter().for_each(|action| scribe.action(action));
        }
        scribe.finish()
    }

    /// Every event that the log has.
    pub fn log_names(&self) -> BTreeSet<&str> {
        let all = self.processes.values().flat_map(|p| &p.log).chain(&self.log);
        all.filter_map(|entry| entry["event"].as_str()).collect()
    }

    /// Where this one and another differ first, in words; `None` when they are equal.
    pub fn difference(&self, other: &Transcript) -> Option<String> {
        let (a, b) = (serde_json::to_value(self).ok()?, serde_json::to_value(other).ok()?);
        differ("", &a, &b)
    }
}

/// The first place where two values differ.
fn differ(at: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            let none = Value::Null;
            let of = |map: &serde_json::Map<String, Value>, key: &String| {
                map.get(key).cloned().unwrap_or(none.clone())
            };
            keys.into_iter().find_map(|key| differ(&format!("{at}/{key}"), &of(x, key), &of(y, key)))
        }
        (Value::Array(x), Value::Array(y)) => {
            let both = x.iter().zip(y).enumerate();
            let first = both.map(|(i, (x, y))| differ(&format!("{at}/{i}"), x, y)).find_map(|found| found);
            first.or_else(|| {
                let more = x.get(y.len()).or_else(|| y.get(x.len()))?;
                Some(format!("{at}: {} entries and {}; the first more: {more}", x.len(), y.len()))
            })
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{at}:\n    {a}\n    {b}")),
    }
}

#[derive(Default)]
struct Scribe {
    transcript: Transcript,
    names: Names,
    runs: BTreeMap<RunId, String>,
    workers: u32,
    saves: BTreeMap<u64, RunId>,
    down: BTreeMap<NodeId, DownDecoder>,
    up: BTreeMap<NodeId, UpDecoder>,
    /// Processes a sweep killed, until the reaping tells.
    killed: BTreeMap<NodeId, u32>,
    stderr: BTreeMap<NodeId, usize>,
}

impl Scribe {
    fn process(&mut self, node: NodeId) -> &mut Process {
        self.transcript.processes.entry(node.to_string()).or_default()
    }

    fn life(&mut self, node: NodeId, what: impl Into<String>) {
        self.process(node).life.push(what.into());
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::PromptSubmitted { text } => self.transcript.asked.push(json!({ "prompt": text })),
            Event::TurnCancelled { prompt, .. } => {
                self.transcript.asked.push(json!({ "cancelled": prompt }));
            }
            Event::Signalled { signal } => self.transcript.asked.push(json!({ "signal": signal })),
            Event::OperatorCalled { call, tool, args } => {
                self.transcript.asked.push(json!({ "call": call, "tool": tool, "args": read(args) }));
            }
            Event::OperatorHungUp { call } => self.transcript.asked.push(json!({ "hung up": call })),
            Event::HostToolAnswered { call, error, value } => {
                let answer = json!({ "host tool": call, "error": error, "value": read(value) });
                self.transcript.asked.push(answer);
            }
            Event::ChildSpawned { node, .. } => self.life(*node, "exists"),
            Event::SpawnFailed { node, error, transient } => {
                self.names.insert(error.clone(), "<the system's words>".to_owned());
                self.life(*node, if *transient { "could not be made this time" } else { "cannot be made" });
            }
            Event::SpawnFrameFailed { node, .. } => self.life(*node, "its first frame cannot be made"),
            Event::ChildBytes { node, bytes } => self.said(*node, bytes),
            Event::ExitObserved { node, exit } => {
                let how = match exit {
                    Exit::Code(code) => format!("ended with code {code}"),
                    Exit::Signal(signal) => format!("ended by signal {signal}"),
                    Exit::Unknown => "ended, and nobody knows how".to_owned(),
                };
                self.life(*node, how);
            }
            Event::Swept { node, killed, .. } => *self.killed.entry(*node).or_default() += killed,
            Event::Reaped { node } => {
                let killed = self.killed.remove(node).unwrap_or(0);
                self.life(
                    *node,
                    if killed > 0 { "left processes, which were killed" } else { "left nothing" },
                );
                self.life(*node, "is reaped");
            }
            Event::StoreFailed { seq, error, .. } => {
                if let Some(name) = self.saves.get(seq).and_then(|id| self.runs.get(id)) {
                    let lane = self.transcript.runs.entry(name.clone()).or_default();
                    lane.push(json!({ "not saved": error }));
                }
            }
            Event::ConfigReady(_) => self.transcript.asked.push(json!("another configuration")),
            Event::ConfigRefused { problems, .. } => {
                self.transcript.asked.push(json!({ "no other configuration": problems }));
            }
            Event::ModelFrameFailed { node, .. } => self.life(*node, "a model for it cannot be made"),
            Event::Seeded { .. }
            | Event::Restored(_)
            | Event::Tick
            | Event::ChildEof { .. }
            | Event::ChildStderr { .. }
            | Event::ChildWrote { .. }
            | Event::ChildWriteFailed { .. }
            | Event::Stored { .. }
            | Event::ConnOpened { .. }
            | Event::ConnBytes { .. }
            | Event::ConnWrote { .. }
            | Event::ConnEnded { .. }
            | Event::ConnClosed { .. } => {}
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Spawn { node, name, walls } => {
                self.life(*node, format!("is made as {name:?} in {walls:?}"))
            }
            Action::SendSpawn { node, payload } => {
                if let Ok(frame) = Encoder::new().encode_down(&Down::Spawn(payload.0.clone())) {
                    self.told(*node, &frame);
                }
            }
            Action::SendToChild { node, frame } => self.told(*node, frame),
            Action::SendModel { node, number, payload } => {
                if let Ok(frame) = Encoder::at(*number).encode_down(&Down::Model(payload.0.clone())) {
                    self.told(*node, &frame);
                }
            }
            Action::CloseStdin { node } => self.process(*node).down.push(json!("end of stdin")),
            Action::Signal { node, signal } => match signal {
                ChildSignal::TermCont => self.life(*node, "is sent SIGTERM and SIGCONT"),
                ChildSignal::Kill => self.life(*node, "is sent SIGKILL"),
            },
            Action::Persist { seq, writes, .. } => {
                if let Some(record) = record_in(writes) {
                    self.saved(*seq, record);
                }
            }
            Action::Note(note) => self.noted(note),
            Action::Deliver { prompt, result, fault } => {
                let answer = json!({ "prompt": prompt, "result": result, "fault": fault });
                self.transcript.delivered.push(answer);
            }
            Action::Answer { call, error, value } => {
                let answer = json!({ "error": error, "value": read(value) });
                self.transcript.answered.entry(*call).or_default().push(answer);
            }
            Action::CallHostTool(call) => {
                let tool = format!("{}.{}", call.server, call.tool);
                self.process(call.node).up.push(json!({ "calls": tool, "args": read(&call.args) }));
            }
            Action::CancelHostTool { call } => {
                self.transcript.asked.push(json!({ "host tool is not needed": call }));
            }
            Action::Exit { interrupted, leaked, usage, costliest } => {
                self.transcript.end = json!({
                    "interrupted": interrupted, "leaked": leaked, "usage": usage, "costliest": costliest,
                });
            }
            Action::Sweep { .. }
            | Action::LoadConfig
            | Action::EndReload { .. }
            | Action::Reap { .. }
            | Action::ReapOrphans
            | Action::ConnSend { .. }
            | Action::ConnShut { .. } => {}
        }
    }

    fn saved(&mut self, seq: u64, record: &Record) {
        self.saves.insert(seq, record.run_id);
        if !self.runs.contains_key(&record.run_id) {
            let name = record.handle.map(|h| h.to_string()).unwrap_or_else(|| {
                self.workers += 1;
                format!("worker-{}", self.workers)
            });
            self.names.insert(record.run_id.to_string(), name.clone());
            self.runs.insert(record.run_id, name);
        }
        let name = self.runs.get(&record.run_id).cloned().unwrap_or_default();
        let lane = self.transcript.runs.entry(name).or_default();
        lane.push(serde_json::to_value(record).unwrap_or_default());
    }

    fn noted(&mut self, note: &Note) {
        if !normal::keeps_note(note) {
            return;
        }
        let entry = json!({
            "event": note.event, "level": note.level, "handle": note.handle, "attempt": note.attempt,
            "fields": note.fields,
        });
        let Some(node) = note.node else { return self.transcript.log.push(entry) };
        if note.event == "child.stderr" {
            let line = note.fields.get("line").and_then(Value::as_str).map_or(0, str::len);
            let so_far = self.stderr.entry(node).or_default();
            *so_far += line;
            if *so_far > normal::STDERR_BYTES {
                return;
            }
        }
        self.process(node).log.push(entry);
    }

    fn told(&mut self, node: NodeId, frame: &[u8]) {
        let decoder = self.down.entry(node).or_default();
        decoder.push(frame);
        let (mut frames, mut answers) = (Vec::new(), Vec::new());
        for next in decoder.by_ref() {
            match next {
                Ok(Decoded::Message(Down::ToolResult(x))) => {
                    answers.push((x.id, json!({ "error": x.error, "value": read(&x.value) })));
                }
                Ok(Decoded::Message(down)) if normal::keeps_down(&down) => frames.push(down_value(&down)),
                Ok(Decoded::Message(_)) => {}
                Ok(Decoded::Ignored) => frames.push(json!("a frame of no known type")),
                Err(error) => {
                    frames.push(json!(format!("no frame: {error}")));
                    break;
                }
            }
        }
        let process = self.process(node);
        process.down.append(&mut frames);
        for (id, answer) in answers {
            process.answers.entry(id).or_default().push(answer);
        }
    }

    fn said(&mut self, node: NodeId, bytes: &[u8]) {
        let decoder = self.up.entry(node).or_default();
        decoder.push(bytes);
        let mut frames = Vec::new();
        for next in decoder.by_ref() {
            match next {
                Ok(Decoded::Message(up)) if normal::keeps_up(&up) => frames.push(up_value(&up)),
                Ok(Decoded::Message(_)) => {}
                Ok(Decoded::Ignored) => frames.push(json!("a frame of no known type")),
                Err(error) => {
                    frames.push(json!(format!("no frame: {error}")));
                    break;
                }
            }
        }
        self.process(node).up.append(&mut frames);
    }

    fn finish(self) -> Transcript {
        let Scribe { mut transcript, names, .. } = self;
        let alike = |lane: &mut Vec<Value>| {
            for entry in lane {
                *entry = normal::value(std::mem::take(entry), &names);
            }
        };
        let sort = |lane: &mut Vec<Value>| lane.sort_by_cached_key(Value::to_string);
        for process in transcript.processes.values_mut() {
            alike(&mut process.down);
            alike(&mut process.up);
            process.answers.values_mut().for_each(alike);
            alike(&mut process.log);
            sort(&mut process.log);
        }
        transcript.runs.values_mut().for_each(alike);
        alike(&mut transcript.delivered);
        transcript.answered.values_mut().for_each(alike);
        alike(&mut transcript.log);
        sort(&mut transcript.log);
        transcript.end = normal::value(transcript.end, &names);
        transcript
    }
}

#[cfg(test)]
mod tests;

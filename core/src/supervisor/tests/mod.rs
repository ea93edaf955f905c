//! The supervisor against a desk that performs actions in the simplest lawful way. Races in the order of events
//! are the simulator's; here each rule is looked at once, at its bound.

mod acknowledging;
mod admission;
mod budget;
mod checkpoints;
mod control;
mod drain;
mod endings;
mod following;
mod host_tools;
mod learning;
mod lifecycle;
mod models;
mod operator;
mod queue;
mod reload;
mod restart;
mod saving;
mod sums;
mod surface_plan;
mod throttling;
mod turns;
mod waits;
mod warm;
mod writing;

use super::*;
use crate::action::ChildSignal;
use crate::bytes::{Bytes, Json};
use crate::config::{ModelChoice, Rate, SubagentLimits};
use crate::event::Exit;
use crate::id::ConnId;
use crate::record::{ResultObject, Status, UsageSum};
use crate::store::{Entry, Kind, Saved, Write, record_in};
use crate::time::{Duration, Wall};
use crate::wire::message::{
    Dialect, Files, LoopEnd, LoopEvidence, Mode, Model, Pong, Ready, RunResult, Server, Spawn, State,
    ToolRequest, ToolResult, Tools, Transport, Turn, TurnOutcome, Usage, VERSION, WaitingOn,
};
use crate::wire::{Decoded, Down, DownDecoder, Encoder, Up};
use serde_json::{Value, json};

pub(super) fn config() -> Config {
    let server = |name: &str| Server {
        name: name.into(),
        ns: None,
        transport: Transport::Files(Files { root: "/srv".into(), write: false }),
        allow: None,
        exclude: vec![],
        timeout_ms: 60_000,
        start_timeout_ms: 60_000,
        required: true,
    };
    Config {
        instruction: "the agent's own text".into(),
        one_shot: true,
        servers: vec![server("files"), server("repo")],
        subagents: SubagentLimits {
            depth: 2,
            rate: Rate { burst: 100, per: Duration::from_secs(2) },
            ..SubagentLimits::default()
        },
        ..Config::of("test", Model { name: "mock".into(), dialect: Dialect::Mock(Bytes::default()) })
    }
}

impl Core {
    fn permits_out(&self) -> u32 {
        self.admission.permits_out()
    }

    /// Runs by handle with their status.
    fn statuses(&self) -> Vec<(Handle, Status)> {
        let status = |node| self.runs.get(node).map(|run| run.record.status);
        self.by_handle.iter().filter_map(|(handle, node)| Some((*handle, status(node)?))).collect()
    }
}

/// A child as the desk sees it.
#[derive(Default)]
struct Child {
    encoder: Encoder,
    decoder: DownDecoder,
    spawn: Option<Box<Spawn>>,
    heard: Vec<Down>,
    request: u64,
    signals: Vec<ChildSignal>,
    walls: crate::action::Walls,
}

/// Performs actions at once, unless told to hold some back.
pub(super) struct Desk {
    pub(super) core: Core,
    now_ms: u64,
    children: BTreeMap<NodeId, Child>,
    notes: Vec<Note>,
    delivered: Vec<ResultObject>,
    /// The prompts that have their answer, in the order of `delivered`.
    prompts: Vec<u64>,
    exit: Option<Action>,
    hold_stored: bool,
    held: Vec<Event>,
    hold_spawns: bool,
    records: Vec<crate::record::Record>,
    /// Saves that are out: what each holds.
    saves: BTreeMap<u64, Vec<Write>>,
    /// What is durable.
    disk: BTreeMap<(Kind, String), Vec<u8>>,
    /// What the store answers instead.
    fails: Option<(&'static str, bool)>,
    /// The operator's answers, by call.
    answers: BTreeMap<u64, (bool, Value)>,
    host_calls: Vec<crate::action::HostCall>,
    /// How often the configuration was to be read, and what became of it.
    loads: u32,
    reloads: Vec<bool>,
    cancelled: Vec<u64>,
    /// What each client was sent, and how its connection was shut, if it was.
    sent: BTreeMap<ConnId, Vec<u8>>,
    shut: BTreeMap<ConnId, bool>,
    /// Clients that read nothing.
    stalled: std::collections::BTreeSet<ConnId>,
}

impl Desk {
    pub(super) fn new(config: Config) -> Desk {
        Desk {
            core: Core::new(config, Now { mono: Instant::ZERO, wall: Wall(1_000_000) }),
            now_ms: 0,
            children: BTreeMap::new(),
            notes: vec![],
            delivered: vec![],
            prompts: vec![],
            exit: None,
            hold_stored: false,
            held: vec![],
            hold_spawns: false,
            records: vec![],
            saves: BTreeMap::new(),
            disk: BTreeMap::new(),
            fails: None,
            answers: BTreeMap::new(),
            host_calls: vec![],
            loads: 0,
            reloads: vec![],
            cancelled: vec![],
            sent: BTreeMap::new(),
            shut: BTreeMap::new(),
            stalled: Default::default(),
        }
    }

    /// A desk whose worker is up and ready; its node is 1.
    pub(super) fn with_worker(config: Config) -> (Desk, NodeId) {
        let mut desk = Desk::new(config);
        desk.event(Event::Seeded { seed: 7 });
        desk.event(Event::PromptSubmitted { text: "go".into() });
        let worker = NodeId(1);
        desk.up(worker, &Up::Ready(Ready { v: VERSION }));
        (desk, worker)
    }

    fn event(&mut self, event: Event) {
        let mut queue = std::collections::VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            self.answered(&event);
            let mut out = Actions::new();
            let now = Now { mono: Instant::from_millis(self.now_ms), wall: Wall(1_000_000 + self.now_ms) };
            self.core.handle(now, event, &mut out);
            for action in out {
                if let Some(answer) = self.perform(action) {
                    queue.push_back(answer);
                }
            }
        }
    }

    fn perform(&mut self, action: Action) -> Option<Event> {
        assert!(self.exit.is_none(), "an action after the exit: {action:?}");
        match action {
            Action::Spawn { node, walls, .. } => {
                self.children.insert(node, Child { walls, ..Child::default() });
                let event = Event::ChildSpawned { node, pid: 1000 + node.0 as u32 };
                if self.hold_spawns {
                    self.held.push(event);
                    None
                } else {
                    Some(event)
                }
            }
            Action::SendSpawn { node, payload } => {
                let child = self.child(node);
                child
                    .decoder
                    .push(&Encoder::new().encode_down(&Down::Spawn(payload.0.clone())).expect("fits"));
                assert!(matches!(child.decoder.next(), Some(Ok(Decoded::Message(_)))));
                child.spawn = Some(payload.0);
                None
            }
            Action::SendToChild { node, frame } => {
                let child = self.child(node);
                child.decoder.push(&frame);
                for next in child.decoder.by_ref() {
                    let Ok(Decoded::Message(down)) = next else { panic!("bad frame down: {next:?}") };
                    child.heard.push(down);
                }
                Some(Event::ChildWrote { node, bytes: frame.len() as u64 })
            }
            Action::SendModel { node, number, payload } => {
                let down = Down::Model(payload.0);
                let frame = Encoder::at(number).encode_down(&down).expect("fits");
                let child = self.child(node);
                child.decoder.push(&frame);
                assert!(matches!(child.decoder.next(), Some(Ok(Decoded::Message(read))) if read == down));
                child.heard.push(down);
                Some(Event::ChildWrote { node, bytes: frame.len() as u64 })
            }
            Action::LoadConfig => {
                self.loads += 1;
                None
            }
            Action::EndReload { used } => {
                self.reloads.push(used);
                None
            }
            Action::CloseStdin { .. } | Action::ReapOrphans => None,
            Action::Signal { node, signal } => {
                self.child(node).signals.push(signal);
                None
            }
            Action::Sweep { node, .. } => Some(Event::Swept { node, killed: 0, remaining: 0 }),
            Action::Reap { node } => Some(Event::Reaped { node }),
            Action::Persist { seq, writes, .. } => {
                self.records.extend(record_in(&writes).cloned());
                self.saves.insert(seq, writes);
                let event = match self.fails {
                    None => Event::Stored { seq },
                    Some((error, retryable)) => {
                        Event::StoreFailed { seq, error: error.to_owned(), retryable }
                    }
                };
                if self.hold_stored {
                    self.held.push(event);
                    None
                } else {
                    Some(event)
                }
            }
            Action::Note(note) => {
                assert!(note.level != Level::Error, "{note:?}");
                let known = crate::note::names::ALL.iter().any(|(name, _)| *name == note.event);
                assert!(known || note.event.contains('.'), "an event nobody documented: {}", note.event);
                self.notes.push(note);
                None
            }
            Action::Deliver { prompt, result, .. } => {
                self.prompts.push(prompt);
                self.delivered.push(*result);
                None
            }
            Action::Answer { call, error, value } => {
                let value = value.parse().expect("JSON");
                assert!(self.answers.insert(call, (error, value)).is_none(), "call {call} is answered twice");
                None
            }
            Action::CallHostTool(call) => {
                self.host_calls.push(call);
                None
            }
            Action::CancelHostTool { call } => {
                self.cancelled.push(call);
                None
            }
            Action::ConnSend { conn, bytes } => {
                assert!(self.shut.get(&conn) != Some(&true), "sent to {conn:?}, which is closed");
                self.sent.entry(conn).or_default().extend_from_slice(&bytes);
                let bytes = bytes.len() as u64;
                (!self.stalled.contains(&conn)).then_some(Event::ConnWrote { conn, bytes })
            }
            Action::ConnShut { conn, at_once } => {
                self.shut.insert(conn, at_once);
                at_once.then_some(Event::ConnClosed { conn, error: None })
            }
            exit @ Action::Exit { .. } => {
                self.exit = Some(exit);
                None
            }
        }
    }

    /// A store answers: what it has is on the disk from now on.
    fn answered(&mut self, event: &Event) {
        if let Event::StoreFailed { seq, .. } = event {
            self.saves.remove(seq);
        }
        let Event::Stored { seq } = event else { return };
        for write in self.saves.remove(seq).unwrap_or_default() {
            let Entry { kind, key, value } = Entry::of(&write).expect("it can be written");
            match value {
                Some(value) => drop(self.disk.insert((kind, key), value)),
                None => drop(self.disk.remove(&(kind, key))),
            }
        }
    }

    /// The next life of a daemon that was killed now, with what was durable.
    fn reborn(self) -> Desk {
        let config = self.core.config.clone();
        self.reborn_as(config)
    }

    fn reborn_as(self, config: Config) -> Desk {
        let mut desk = Desk::new(config);
        let entries =
            self.disk.iter().map(|((kind, key), value)| (kind.name(), key.as_str(), value.as_slice()));
        let saved = Saved::read(entries);
        desk.disk = self.disk;
        desk.event(Event::Seeded { seed: 8 });
        desk.event(Event::Restored(Box::new(saved)));
        desk
    }

    /// The process that serves `sub-<n>`.
    fn node_of(&self, n: u64) -> NodeId {
        self.core.by_handle[&Handle(n)]
    }

    /// The status of `sub-<n>`.
    fn statuses_of(&self, n: u64) -> Status {
        self.core.runs[&self.core.by_handle[&Handle(n)]].record.status
    }

    fn release(&mut self) {
        self.hold_stored = false;
        self.hold_spawns = false;
        for event in std::mem::take(&mut self.held) {
            self.event(event);
        }
    }

    fn child(&mut self, node: NodeId) -> &mut Child {
        self.children.get_mut(&node).unwrap_or_else(|| panic!("no process for {node}"))
    }

    fn up(&mut self, node: NodeId, up: &Up) {
        let bytes = self.child(node).encoder.encode_up(up).expect("fits");
        self.event(Event::ChildBytes { node, bytes: Bytes::from(bytes) });
    }

    /// A supervisor tool call; gives its id.
    fn call(&mut self, node: NodeId, name: &str, args: Value) -> u64 {
        let child = self.child(node);
        child.request += 1;
        let id = child.request;
        let call_id = format!("call-{id}");
        self.up(
            node,
            &Up::ToolRequest(ToolRequest { id, call_id, name: name.into(), args: Json::of(&args) }),
        );
        id
    }

    /// The one answer to a call, if it has come: whether it is an error, and its value.
    fn answer(&mut self, node: NodeId, id: u64) -> Option<(bool, Value)> {
        let answers: Vec<ToolResult> = self
            .child(node)
            .heard
            .iter()
            .filter_map(|d| {
                let Down::ToolResult(r) = d else { return None };
                (r.id == id).then(|| r.clone())
            })
            .collect();
        assert!(answers.len() <= 1, "call {id} was answered {} times", answers.len());
        answers.first().map(|r| (r.error, r.value.parse().expect("JSON")))
    }

    fn ready(&mut self, node: NodeId) {
        self.up(node, &Up::Ready(Ready { v: VERSION }));
    }

    fn ready_if_new(&mut self, node: NodeId) {
        if !matches!(&self.core.runs[&node].process, crate::run::process::Process::Alive(a) if a.liveness.is_ready())
        {
            self.ready(node);
        }
    }

    fn result(&mut self, node: NodeId, text: &str) {
        self.up(
            node,
            &Up::Result(RunResult {
                end: LoopEnd::Completed,
                text: Some(text.into()),
                partial: false,
                error: None,
                evidence: LoopEvidence { model_calls: 1, tool_calls: 0, tool_errors: 0 },
            }),
        );
    }

    fn exit(&mut self, node: NodeId, exit: Exit) {
        self.event(Event::ExitObserved { node, exit });
        self.event(Event::ChildEof { node });
    }

    fn finish(&mut self, node: NodeId, text: &str) {
        self.result(node, text);
        self.exit(node, Exit::Code(0));
    }

    /// A warm child's turn ends with this text.
    fn turn(&mut self, node: NodeId, id: u64, text: &str) {
        let outcome = TurnOutcome::Result(RunResult {
            end: LoopEnd::Completed,
            text: Some(text.into()),
            partial: false,
            error: None,
            evidence: LoopEvidence { model_calls: 1, tool_calls: 0, tool_errors: 0 },
        });
        self.up(node, &Up::Turn(Turn { id, outcome }));
    }

    /// The messages a child was handed, in order.
    fn messages(&mut self, node: NodeId) -> Vec<(u64, String)> {
        let heard = &self.child(node).heard;
        heard
            .iter()
            .filter_map(|d| {
                let Down::Message(text) = d else { return None };
                Some((text.id, text.text.clone()))
            })
            .collect()
    }

    /// A supervisor tool call that is answered at once, without an error.
    fn ask(&mut self, node: NodeId, name: &str, args: Value) -> Value {
        let id = self.call(node, name, args);
        match self.answer(node, id) {
            Some((false, value)) => value,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// A supervisor tool call that is refused at once: its message.
    fn refused(&mut self, node: NodeId, name: &str, args: Value) -> String {
        let id = self.call(node, name, args);
        match self.answer(node, id) {
            Some((true, value)) => value["error"]["message"].as_str().expect("a message").to_owned(),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Moves the clock to `ms`, ticking whenever the core asks.
    fn advance_to(&mut self, ms: u64) {
        while let Some(due) = self.core.poll_timeout().filter(|d| d.at <= Instant::from_millis(ms)) {
            self.now_ms = self.now_ms.max(due.at.nanos().div_ceil(1_000_000));
            self.event(Event::Tick);
            let next = self.core.poll_timeout();
            assert!(
                next.is_none_or(|d| d.at > Instant::from_millis(self.now_ms)),
                "{next:?} is past after a tick"
            );
        }
        self.now_ms = ms;
    }

    /// Answers every ping a child was sent and not yet answered.
    fn pong(&mut self, node: NodeId) {
        let seq = self.child(node).heard.iter().rev().find_map(|d| {
            let Down::Ping(p) = d else { return None };
            Some(p.seq)
        });
        if let Some(seq) = seq {
            self.up(node, &Up::Pong(Pong { seq }));
        }
    }

    /// A call of the operator; its answer is in `answers`.
    fn operator(&mut self, call: u64, tool: &str, args: Value) -> Option<(bool, Value)> {
        self.event(Event::OperatorCalled { call, tool: tool.into(), args: Json::of(&args) });
        self.answers.get(&call).cloned()
    }

    fn noted(&self, event: &str) -> usize {
        self.notes.iter().filter(|n| n.event == event).count()
    }
}

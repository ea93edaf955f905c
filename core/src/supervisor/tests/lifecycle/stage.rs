//! One run on a core of its own, and everything that can happen to it.

use super::{State, Step};
use crate::action::{Action, Actions, ChildSignal, Walls};
use crate::budget::Caps;
use crate::bytes::{Bytes, Json};
use crate::config::{Config, Priority};
use crate::event::{Event, Exit, SupervisorSignal};
use crate::id::{Handle, NodeId, RunId};
use crate::machine::Machine;
use crate::record::{Evidence, Record, Status, Tokens};
use crate::rng::Rng;
use crate::run::Run;
use crate::run::ladder::Rung;
use crate::run::process::Process;
use crate::store::{RunRow, Saved, Work, Write, record_in};
use crate::supervisor::Core;
use crate::supervisor::tests::config;
use crate::time::{Instant, Now, Wall};
use crate::wire::message::{
    Event as ChildEvent, FailKind, Failed, LoopEnd, LoopEvidence, Mode, Ready, Role, RunLimits, RunResult,
    Trace, VERSION,
};
use crate::wire::{Decoded, Down, DownDecoder, Encoder, Up};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};

/// What a ping is called among what is done.
const PING: &str = "`ping`";

/// Deadlines that are let pass until something comes of one.
const TICKS: usize = 2_000;

/// One thing that can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    Asked,
    AskedWhileFull,
    TakenUp,
    PermitFree,
    Saved,
    SaveFailed,
    SaveFailedForGood,
    Spawned,
    SpawnFailedForNow,
    SpawnFailed,
    FrameFailed,
    Ready,
    Progress,
    Result,
    Failed,
    Rubbish,
    OutputEnded,
    Exited,
    SweptSome,
    SweptAll,
    Reaped,
    Killed,
    Drained,
    TimePassed,
}

impl Happening {
    pub(super) const ALL: [Happening; 21] = [
        Happening::PermitFree,
        Happening::Saved,
        Happening::SaveFailed,
        Happening::SaveFailedForGood,
        Happening::Spawned,
        Happening::SpawnFailedForNow,
        Happening::SpawnFailed,
        Happening::FrameFailed,
        Happening::Ready,
        Happening::Progress,
        Happening::Result,
        Happening::Failed,
        Happening::Rubbish,
        Happening::OutputEnded,
        Happening::Exited,
        Happening::SweptSome,
        Happening::SweptAll,
        Happening::Reaped,
        Happening::Killed,
        Happening::Drained,
        Happening::TimePassed,
    ];

    /// As the page calls it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Happening::Asked => "asked for",
            Happening::AskedWhileFull => "asked for while all permits are out",
            Happening::TakenUp => "the daemon starts, and it had not ended",
            Happening::PermitFree => "a permit comes free",
            Happening::Saved => "the store has it",
            Happening::SaveFailed => "the store fails, for now",
            Happening::SaveFailedForGood => "the store fails, for good",
            Happening::Spawned => "the process exists",
            Happening::SpawnFailedForNow => "the fork fails, for now",
            Happening::SpawnFailed => "the fork fails",
            Happening::FrameFailed => "its first frame cannot be made",
            Happening::Ready => "`ready`",
            Happening::Progress => "a frame of progress",
            Happening::Result => "`result`",
            Happening::Failed => "`failed`",
            Happening::Rubbish => "bytes that are no frame",
            Happening::OutputEnded => "its output ends",
            Happening::Exited => "its exit is seen",
            Happening::SweptSome => "a sweep pass left some",
            Happening::SweptAll => "a sweep pass left none",
            Happening::Reaped => "the pid is free",
            Happening::Killed => "it is killed (`subagent.kill`)",
            Happening::Drained => "the daemon drains, second signal",
            Happening::TimePassed => "time passes, and nothing is heard",
        }
    }
}

/// See the module. What a driver owes the core is kept, so that only lawful events are tried.
pub(super) struct Stage {
    core: Core,
    now_ms: u64,
    node: NodeId,
    /// The run that holds the only permit while ours waits.
    other: Option<NodeId>,
    encoder: Encoder,
    /// Saves of our run that are out.
    saves: VecDeque<u64>,
    handed: bool,
    owes: Owes,
    calls: u64,
    decoder: DownDecoder,
}

/// What the driver may or must still say of our run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owes {
    /// Saves that are out.
    saves: usize,
    spawn: bool,
    sweep: bool,
    reap: bool,
    /// The process may write.
    output: bool,
    /// The process may end.
    exit: bool,
    /// It has said `ready`: what a process that is dead by now has written is read with that in mind.
    ready: bool,
    /// The daemon drains.
    drains: bool,
    /// How far the ladder has come.
    rung: Option<Rung>,
    /// Another run has the permit that ours waits for.
    full: bool,
}

impl Stage {
    /// A run to which all this has happened.
    pub(super) fn after(way: &[Happening]) -> Stage {
        let queued = way.first() == Some(&Happening::AskedWhileFull);
        let mut config = Config { one_shot: false, ..config() };
        if queued {
            config.subagents.breadth = 1;
            config.subagents.queue = 4;
        }
        let mut stage = Stage {
            core: Core::new(config, Now { mono: Instant::ZERO, wall: Wall(1_000_000) }),
            now_ms: 0,
            node: NodeId(if queued { 2 } else { 1 }),
            other: queued.then_some(NodeId(1)),
            encoder: Encoder::new(),
            saves: VecDeque::new(),
            handed: false,
            owes: Owes::default(),
            calls: 0,
            decoder: DownDecoder::new(),
        };
        stage.feed(Event::Seeded { seed: 7 });
        if queued {
            stage.call("subagent.run", json!({ "instruction": "before", "mode": "async" }));
        }
        for happening in way {
            stage.step(*happening);
        }
        stage
    }

    pub(super) fn run(&self) -> Option<&Run> {
        self.core.runs.get(&self.node)
    }

    pub(super) fn owes(&self) -> Owes {
        let rung = self.run().and_then(|run| {
            let Process::Alive(alive) = &run.process else { return None };
            Some(alive.ladder.rung())
        });
        Owes { saves: self.saves.len(), full: self.other.is_some(), rung, ..self.owes }
    }

    /// Whether a driver that keeps its contract can say this now.
    pub(super) fn allows(&self, happening: Happening) -> bool {
        match happening {
            Happening::Asked | Happening::AskedWhileFull | Happening::TakenUp => false,
            Happening::PermitFree => self.other.is_some(),
            Happening::Saved | Happening::SaveFailed | Happening::SaveFailedForGood => !self.saves.is_empty(),
            Happening::Spawned | Happening::SpawnFailedForNow | Happening::SpawnFailed => self.owes.spawn,
            Happening::FrameFailed => self.handed && self.owes.exit,
            Happening::Ready
            | Happening::Progress
            | Happening::Result
            | Happening::Failed
            | Happening::Rubbish
            | Happening::OutputEnded => self.owes.output,
            Happening::Exited => self.owes.exit,
            Happening::SweptSome | Happening::SweptAll => self.owes.sweep,
            Happening::Reaped => self.owes.reap,
            Happening::Killed => true,
            Happening::Drained => !self.owes.drains,
            Happening::TimePassed => self.core.poll_timeout().is_some(),
        }
    }

    /// One thing happens.
    pub(super) fn step(&mut self, happening: Happening) -> Step {
        let before = self.run().map(|run| run.outcome.is_decided());
        let did = self.happen(happening);
        let decided = self.run().filter(|run| run.outcome.is_decided() && before == Some(false));
        let became = decided.map(|run| match &run.record.error {
            Some(error) => format!("{}: {error}", run.record.status.name()),
            None => run.record.status.name().to_owned(),
        });
        Step { happening, to: State::of(self), did, became }
    }

    fn happen(&mut self, happening: Happening) -> Vec<String> {
        let node = self.node;
        match happening {
            Happening::Asked | Happening::AskedWhileFull => {
                self.call("subagent.run", json!({ "instruction": "look", "mode": "async" }))
            }
            Happening::TakenUp => self.feed(Event::Restored(Box::new(earlier_life()))),
            Happening::PermitFree => match self.other.take() {
                Some(other) => self.end_other(other),
                None => Vec::new(),
            },
            Happening::Saved => self.answer_save(|seq| Event::Stored { seq }),
            Happening::SaveFailed => {
                self.answer_save(|seq| Event::StoreFailed { seq, error: "disk full".into(), retryable: true })
            }
            Happening::SaveFailedForGood => self.answer_save(|seq| Event::StoreFailed {
                seq,
                error: "no such table".into(),
                retryable: false,
            }),
            Happening::Spawned => {
                self.owes.spawn = false;
                (self.owes.output, self.owes.exit) = (true, true);
                self.feed(Event::ChildSpawned { node, pid: 77 })
            }
            Happening::SpawnFailedForNow | Happening::SpawnFailed => {
                self.owes.spawn = false;
                let transient = happening == Happening::SpawnFailedForNow;
                self.feed(Event::SpawnFailed { node, error: "clone3(2): no".into(), transient })
            }
            Happening::FrameFailed => {
                self.handed = false;
                self.feed(Event::SpawnFrameFailed { node, error: "its secret is gone".into() })
            }
            Happening::Ready => {
                (self.handed, self.owes.ready) = (false, true);
                self.said(&Up::Ready(Ready { v: VERSION }))
            }
            Happening::Progress => self.said(&Up::Event(ChildEvent {
                name: "agent.step".into(),
                level: "info".into(),
                fields: BTreeMap::new(),
            })),
            Happening::Result => self.said(&Up::Result(RunResult {
                end: LoopEnd::Completed,
                text: Some("seen".into()),
                partial: false,
                error: None,
                evidence: LoopEvidence::default(),
            })),
            Happening::Failed => self.said(&Up::Failed(Failed {
                kind: FailKind::Model,
                text: None,
                error: "the model is down".into(),
                evidence: LoopEvidence::default(),
            })),
            Happening::Rubbish => self.feed(Event::ChildBytes { node, bytes: Bytes::from(vec![0; 4]) }),
            Happening::OutputEnded => {
                self.owes.output = false;
                self.feed(Event::ChildEof { node })
            }
            Happening::Exited => {
                self.owes.exit = false;
                self.feed(Event::ExitObserved { node, exit: Exit::Code(0) })
            }
            Happening::SweptSome | Happening::SweptAll => {
                self.owes.sweep = false;
                let remaining = u32::from(happening == Happening::SweptSome);
                self.feed(Event::Swept { node, killed: 0, remaining })
            }
            Happening::Reaped => {
                (self.owes.reap, self.owes.output) = (false, false);
                self.feed(Event::Reaped { node })
            }
            Happening::Killed => {
                let handle = format!("sub-{}", node.0);
                self.call("subagent.kill", json!({ "handle": handle, "reason": "enough" }))
            }
            Happening::Drained => {
                self.owes.drains = true;
                let mut did = self.feed(Event::Signalled { signal: SupervisorSignal::Term });
                did.extend(self.feed(Event::Signalled { signal: SupervisorSignal::Term }));
                did
            }
            Happening::TimePassed => {
                let before = State::of(self);
                // Pings that nobody answers are not what is waited for.
                for _ in 0..TICKS {
                    let Some(due) = self.core.poll_timeout() else { break };
                    self.now_ms = self.now_ms.max(due.at.nanos().div_ceil(1_000_000));
                    let mut did = self.feed(Event::Tick);
                    did.retain(|what| what != PING);
                    if !did.is_empty() || State::of(self) != before {
                        return did;
                    }
                }
                Vec::new()
            }
        }
    }

    fn said(&mut self, up: &Up) -> Vec<String> {
        let bytes = self.encoder.encode_up(up).expect("it fits");
        self.feed(Event::ChildBytes { node: self.node, bytes: Bytes::from(bytes) })
    }

    fn call(&mut self, tool: &str, args: serde_json::Value) -> Vec<String> {
        self.calls += 1;
        self.feed(Event::OperatorCalled { call: self.calls, tool: tool.into(), args: Json::of(&args) })
    }

    fn answer_save(&mut self, event: impl Fn(u64) -> Event) -> Vec<String> {
        let Some(seq) = self.saves.pop_front() else { return Vec::new() };
        self.feed(event(seq))
    }

    /// The run before ours ends and its pid becomes free.
    fn end_other(&mut self, node: NodeId) -> Vec<String> {
        let mut did = self.feed(Event::SpawnFailed { node, error: "no".into(), transient: false });
        did.retain(|what| !what.starts_with("log"));
        did
    }

    /// Tells the core one event, keeps the books, and says in words what it did about our run.
    fn feed(&mut self, event: Event) -> Vec<String> {
        let mut out = Actions::new();
        let now = Now { mono: Instant::from_millis(self.now_ms), wall: Wall(1_000_000 + self.now_ms) };
        self.core.handle(now, event, &mut out);
        let mut did = Vec::new();
        for action in out {
            did.extend(self.perform(action));
        }
        did
    }

    fn perform(&mut self, action: Action) -> Option<String> {
        let ours = self.node;
        match action {
            Action::Persist { seq, writes, .. } if is_of(&writes, ours) => {
                self.saves.push_back(seq);
                record_in(&writes).map(|record| format!("save `{}`", record.status.name()))
            }
            // Nothing is lost on a run that is only in the way.
            Action::Persist { seq, .. } => {
                self.feed(Event::Stored { seq });
                None
            }
            Action::Spawn { node, .. } if node == ours => {
                self.owes.spawn = true;
                Some("fork".into())
            }
            Action::SendSpawn { node, payload } if node == ours => {
                self.handed = true;
                let frame = Encoder::new().encode_down(&Down::Spawn(payload.0)).expect("it fits");
                self.decoder.push(&frame);
                assert!(matches!(self.decoder.next(), Some(Ok(Decoded::Message(Down::Spawn(_))))));
                Some("hand it its work".into())
            }
            Action::SendToChild { node, frame } if node == ours => Some(self.sent(&frame)),
            Action::Signal { node, signal } if node == ours => Some(match signal {
                ChildSignal::TermCont => "SIGTERM, SIGCONT".into(),
                ChildSignal::Kill => "SIGKILL".into(),
            }),
            Action::Sweep { node, .. } if node == ours => {
                self.owes.sweep = true;
                Some("sweep".into())
            }
            Action::Reap { node } if node == ours => {
                self.owes.reap = true;
                Some("reap".into())
            }
            Action::CloseStdin { node } if node == ours => Some("close its stdin".into()),
            Action::Answer { .. } => Some("answer".into()),
            Action::Spawn { .. }
            | Action::SendSpawn { .. }
            | Action::SendModel { .. }
            | Action::LoadConfig
            | Action::EndReload { .. }
            | Action::SendToChild { .. }
            | Action::Signal { .. }
            | Action::Sweep { .. }
            | Action::Reap { .. }
            | Action::CloseStdin { .. }
            | Action::ReapOrphans
            | Action::Note(_)
            | Action::Deliver { .. }
            | Action::CallHostTool(_)
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. }
            | Action::Exit { .. } => None,
        }
    }

    fn sent(&mut self, frame: &[u8]) -> String {
        self.decoder.push(frame);
        match self.decoder.next() {
            Some(Ok(Decoded::Message(Down::Cancel(_)))) => "`cancel`".into(),
            Some(Ok(Decoded::Message(Down::Ping(_)))) => PING.into(),
            other => panic!("a frame that no step asks for: {other:?}"),
        }
    }
}

/// A run that was at work when its daemon died.
fn earlier_life() -> Saved {
    let run_id = RunId::mint(Wall(5), &mut Rng::new(5));
    let record = Record {
        run_id,
        handle: Some(Handle(1)),
        node: NodeId(4),
        parent: None,
        call_id: None,
        depth: 1,
        principal: "operator".into(),
        role: Role::Subagent,
        mode: Mode::Async,
        status: Status::Running,
        result: serde_json::Value::Null,
        partial: false,
        error: None,
        usage: Tokens::default(),
        attempt: 1,
        created: Wall(5),
        ended: None,
    };
    let work = Work {
        run_id,
        instruction: "look".into(),
        context: Vec::new(),
        output_contract: None,
        output_schema: None,
        servers: Vec::new(),
        tools: None,
        delegates: false,
        model: "mock".into(),
        own_model: false,
        limits: RunLimits::default(),
        walls: Walls::default(),
        priority: Priority::Normal,
        caps: Caps::default(),
        trace: Trace { trace_id: "1".repeat(32), span_id: "2".repeat(16), parent_span_id: None },
        durable: true,
        resume: true,
        transcript: None,
    };
    let row = RunRow {
        record,
        subtree: Tokens::default(),
        evidence: Evidence::default(),
        restarts: 0,
        takes_below: false,
        turns: None,
        last_text: 1,
        title: "look".into(),
    };
    Saved { runs: vec![row], work: vec![work], handles: 1, ..Saved::default() }
}

fn is_of(writes: &[Write], node: NodeId) -> bool {
    record_in(writes).is_some_and(|record| record.node == node)
}

//! What must hold whatever children say: the body of the fuzz target `core_child`. Processes behave here, and obey
//! signals; what they write is drawn. The simulator has it the other way round.

use super::Core;
use crate::action::{Action, Actions, ChildSignal};
use crate::bytes::{Bytes, Json};
use crate::config::{Config, Rate, Store, SubagentLimits};
use crate::event::{Event, Exit, SupervisorSignal};
use crate::id::NodeId;
use crate::machine::Machine;
use crate::note::{Level, names};
use crate::store::record_in;
use crate::time::{Duration, Instant, Now, Wall};
use crate::wire::fuzzing::up_message;
use crate::wire::message::{Ack, Dialect, Model, Ready, RunLimits, ToolRequest, Turn, VERSION};
use crate::wire::{Encoder, Up};
use said::{call, outcome, result, usage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod said;

/// Steps of one input at most.
const STEPS: usize = 400;

/// Timers that the end may take: every ladder and every wait is over long before.
const ROUNDS: usize = 10_000;

/// Lives a conversation whose children write what `data` says. Gives what was noted, and the statuses of records.
///
/// # Panics
///
/// When the core does, when it notes an error, wants a `Tick` in the past, or does not end.
pub fn core_child(data: &[u8]) -> BTreeSet<&'static str> {
    let [shape, steps @ ..] = data else { return BTreeSet::new() };
    let mut desk = Desk::new(*shape);
    desk.feed(Event::Seeded { seed: 7 });
    desk.feed(Event::PromptSubmitted { text: "go".into() });
    for step in steps.chunks(4).take(STEPS) {
        let mut four = [0; 4];
        four[..step.len()].copy_from_slice(step);
        desk.step(four);
    }
    desk.end();
    desk.reached
}

/// One process.
#[derive(Default)]
struct Child {
    encoder: Encoder,
    /// Number of its last call.
    request: u64,
    /// It exists: its `Spawn` was answered.
    born: bool,
    gone: bool,
    closed: bool,
}

/// The driver's part: it performs every action in order, and answers some of them late.
struct Desk {
    core: Core,
    now: Instant,
    children: BTreeMap<NodeId, Child>,
    /// Answers that are not given yet.
    late: VecDeque<Event>,
    /// Whether records and spawns are answered late.
    is_slow: bool,
    over: bool,
    reached: BTreeSet<&'static str>,
}

impl Desk {
    fn new(shape: u8) -> Desk {
        let now = Now { mono: Instant::from_millis(1), wall: Wall(1_796_000_000_000) };
        Desk {
            core: Core::new(config(shape), now),
            now: now.mono,
            children: BTreeMap::new(),
            late: VecDeque::new(),
            is_slow: shape & 8 != 0,
            over: false,
            reached: BTreeSet::new(),
        }
    }

    fn feed(&mut self, event: Event) {
        let mut queue = VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            let now = Now { mono: self.now, wall: Wall(1_796_000_000_000 + self.now.millis()) };
            let was_tick = event == Event::Tick;
            let mut actions = Actions::new();
            self.core.handle(now, event, &mut actions);
            for action in actions {
                assert!(!self.over, "an action after the exit: {action:?}");
                queue.extend(self.perform(action));
            }
            let due = self.core.poll_timeout().map(|deadline| deadline.at);
            assert!(!was_tick || due.is_none_or(|at| at > self.now), "due in the past: {due:?}");
        }
        assert!(self.core.snapshot().is_some());
    }

    fn perform(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Spawn { node, .. } => {
                self.children.insert(node, Child::default());
                self.answer(Event::ChildSpawned { node, pid: 1_000 })
            }
            Action::SendToChild { node, frame } => {
                Some(Event::ChildWrote { node, bytes: u64::try_from(frame.len()).unwrap_or(u64::MAX) })
            }
            Action::Signal { node, signal } => {
                let how = match signal {
                    ChildSignal::TermCont => Exit::Signal(15),
                    ChildSignal::Kill => Exit::Signal(9),
                };
                self.exits(node, how);
                None
            }
            Action::Sweep { node, .. } => Some(Event::Swept { node, killed: 0, remaining: 0 }),
            Action::Reap { node } => {
                self.children.remove(&node);
                Some(Event::Reaped { node })
            }
            Action::Persist { seq, writes, .. } => {
                self.reached.extend(record_in(&writes).map(|record| record.status.name()));
                self.answer(Event::Stored { seq })
            }
            Action::Note(note) => {
                assert!(note.level != Level::Error, "{note:?}");
                self.reached
                    .extend(names::ALL.iter().map(|(name, _)| *name).find(|name| *name == note.event));
                None
            }
            Action::Exit { .. } => {
                self.over = true;
                None
            }
            Action::CallHostTool(call) => {
                let call = call.call;
                let value = Json(Bytes::from(b"\"told\"".as_slice()));
                self.answer(Event::HostToolAnswered { call, error: false, value })
            }
            Action::LoadConfig => self.answer(Event::ConfigRefused { problems: 1, text: "drawn".into() }),
            Action::SendSpawn { .. }
            | Action::SendModel { .. }
            | Action::EndReload { .. }
            | Action::CloseStdin { .. }
            | Action::ReapOrphans
            | Action::Deliver { .. }
            | Action::Answer { .. }
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. } => None,
        }
    }

    /// Now, or with the next step that lets it.
    fn answer(&mut self, event: Event) -> Option<Event> {
        if self.is_slow {
            self.late.push_back(event);
            return None;
        }
        self.learned(&event);
        Some(event)
    }

    fn learned(&mut self, event: &Event) {
        if let Event::ChildSpawned { node, .. } = event
            && let Some(child) = self.children.get_mut(node)
        {
            child.born = true;
        }
    }

    /// A process ends, if it has not: what the driver learns of it comes after what is being performed.
    fn exits(&mut self, node: NodeId, exit: Exit) {
        let Some(child) = self.children.get_mut(&node).filter(|child| child.born && !child.gone) else {
            return;
        };
        child.gone = true;
        self.late.push_back(Event::ExitObserved { node, exit });
        if !std::mem::replace(&mut child.closed, true) {
            self.late.push_back(Event::ChildEof { node });
        }
    }

    /// Gives so many of the answers that are late.
    fn catch_up(&mut self, most: usize) {
        for _ in 0..most {
            let Some(event) = self.late.pop_front() else { return };
            self.learned(&event);
            self.feed(event);
        }
    }

    fn step(&mut self, [what, who, which, with]: [u8; 4]) {
        let able: Vec<NodeId> =
            self.children.iter().filter(|(_, c)| c.born && !c.closed).map(|(node, _)| *node).collect();
        let Some(node) = able.get(usize::from(who) % able.len().max(1)).copied() else {
            return self.elsewhere(what, which, with);
        };
        match what % 16 {
            0 => self.says(node, &Up::Ready(Ready { v: VERSION })),
            1..=4 => self.calls(node, which, with),
            5 => self.says(node, &Up::Result(result(which))),
            6 => self.says(node, &Up::Turn(Turn { id: u64::from(with % 4), outcome: outcome(which) })),
            7 => self.says(node, &Up::Ack(Ack { id: u64::from(with % 8) })),
            8 => {
                let edits: &[u8] = if which & 32 == 0 { &[] } else { &[with, which, who] };
                if let Some(message) = up_message(which, edits) {
                    self.says(node, &message);
                }
            }
            9 if which < 64 => self.writes(node, &[0, 0, 0, which, with]),
            9 => self.says(node, &Up::Usage(usage(with))),
            10 => self.exits(node, if which & 1 == 0 { Exit::Code(0) } else { Exit::Signal(11) }),
            11 => self.feed(Event::ChildStderr { node, bytes: Bytes::from(vec![with, b'\n', which]) }),
            12 if which & 1 == 0 => {
                if let Some(child) = self.children.get_mut(&node) {
                    child.closed = true;
                }
                self.feed(Event::ChildEof { node });
            }
            12 => self.feed(Event::ChildWriteFailed { node, error: "EPIPE".into() }),
            _ => self.elsewhere(what, which, with),
        }
        self.catch_up(if self.is_slow { usize::from(with % 3) } else { usize::MAX });
    }

    /// What is no child's doing.
    fn elsewhere(&mut self, what: u8, which: u8, with: u8) {
        match what % 16 {
            13 => self.feed(Event::PromptSubmitted { text: "more".into() }),
            14 => match which % 8 {
                0 => self.feed(Event::Signalled { signal: SupervisorSignal::Term }),
                1 => self.feed(Event::TurnCancelled { prompt: u64::from(with % 4), reason: "why".into() }),
                2 => self.feed(Event::OperatorHungUp { call: u64::from(with % 4) }),
                _ => {
                    let (tool, args) = call(which, with);
                    self.feed(Event::OperatorCalled { call: u64::from(with % 4), tool, args });
                }
            },
            15 => {
                self.now = self.now + Duration::from_millis(u64::from(which) * 16);
                self.feed(Event::Tick);
            }
            _ => self.ticks(),
        }
        self.catch_up(usize::from(with));
    }

    /// The next timer passes.
    fn ticks(&mut self) {
        if let Some(due) = self.core.poll_timeout() {
            self.now = self.now.max(due.at);
            self.feed(Event::Tick);
        }
    }

    fn calls(&mut self, node: NodeId, which: u8, with: u8) {
        let Some(child) = self.children.get_mut(&node) else { return };
        child.request += 1;
        let id = child.request;
        let (name, args) = call(which, with);
        self.says(node, &Up::ToolRequest(ToolRequest { id, call_id: format!("c{id}"), name, args }));
    }

    fn says(&mut self, node: NodeId, message: &Up) {
        let encoded = self.children.get_mut(&node).map(|child| child.encoder.encode_up(message));
        if let Some(Ok(frame)) = encoded {
            self.writes(node, &frame);
        }
    }

    fn writes(&mut self, node: NodeId, bytes: &[u8]) {
        self.feed(Event::ChildBytes { node, bytes: Bytes::from(bytes) });
    }

    /// Whatever was said, a daemon that is told to stop twice stops.
    fn end(&mut self) {
        for _ in 0..2 {
            self.catch_up(usize::MAX);
            self.feed(Event::Signalled { signal: SupervisorSignal::Term });
        }
        for _ in 0..ROUNDS {
            self.catch_up(usize::MAX);
            if self.over {
                assert!(self.children.is_empty(), "the daemon has exited before its children");
                return;
            }
            self.ticks();
        }
        panic!("no end: {:?}", self.core.snapshot());
    }
}

fn config(shape: u8) -> Config {
    let tight = shape & 1 != 0;
    let dialect = Dialect::Mock(Bytes::from(b"{}".as_slice()));
    Config {
        one_shot: shape & 2 != 0,
        store: Store { keeps: shape & 64 != 0, ..Store::default() },
        worker_idle: Duration::from_secs(5),
        wake_on_results: shape & 4 != 0,
        run: RunLimits { deadline_ms: 60_000, ..RunLimits::default() },
        subagents: SubagentLimits {
            breadth: if tight { 2 } else { 8 },
            total: 64,
            depth: 2,
            rate: Rate { burst: if tight { 2 } else { 50 }, per: Duration::from_secs(2) },
            queue: if tight { 2 } else { 0 },
        },
        ..Config::of("fuzzed", Model { name: "mock".into(), dialect })
    }
}

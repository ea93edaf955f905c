//! A core with many live runs and what it hears of them, without any process: the conversation starts them all, each
//! says where it is, what a model call used, and answers its pings.

use agentd_core::action::{Action, Actions};
use agentd_core::bytes::{Bytes, Json};
use agentd_core::config::{Config, Liveness, Rate, SpawnDefaults, SubagentLimits};
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::Machine;
use agentd_core::supervisor::Core;
use agentd_core::time::{Duration, Instant, Now, Wall};
use agentd_core::wire::message::{
    Dialect, Mode, Model, Pong, Ready, RunLimits, State, ToolRequest, Usage, VERSION, WaitingOn,
};
use agentd_core::wire::{Down, Encoder, Up, down_of};
use std::collections::{BTreeMap, VecDeque};

/// The conversation's worker is the first process there is.
const WORKER: NodeId = NodeId(1);

pub(crate) fn config(runs: u32) -> Config {
    let mock = Model { name: "mock".into(), dialect: Dialect::Mock(Bytes::default()) };
    Config {
        instruction: "the agent's own text".into(),
        one_shot: true,
        run: RunLimits { tokens: 1 << 40, deadline_ms: 1 << 40, ..RunLimits::default() },
        subagents: SubagentLimits {
            breadth: runs,
            total: runs,
            rate: Rate { burst: runs, per: Duration::from_secs(1) },
            ..SubagentLimits::default()
        },
        defaults: SpawnDefaults { mode: Mode::Async, ..SpawnDefaults::default() },
        ..Config::of("bench", mock)
    }
}

/// The core, and the children's ends of their channels.
pub(crate) struct Crowd {
    pub(crate) core: Core,
    at: Instant,
    runs: u32,
    encoders: BTreeMap<NodeId, Encoder>,
    /// What is to be heard next.
    due: VecDeque<Event>,
    actions: Actions,
    /// What was decided and is not performed yet.
    decided: Actions,
    /// Whose turn it is to say something.
    next: u32,
    said: u64,
}

impl Crowd {
    /// A core whose conversation has started this many runs, all ready.
    pub(crate) fn of(runs: u32) -> Crowd {
        let begun = Now { mono: Instant::ZERO, wall: Wall(1_000_000) };
        let core = Core::new(config(runs), begun);
        let mut crowd = Crowd {
            core,
            at: Instant::ZERO,
            runs,
            encoders: BTreeMap::new(),
            due: VecDeque::from([Event::Seeded { seed: 7 }, Event::PromptSubmitted { text: "go".into() }]),
            actions: Actions::new(),
            decided: Actions::new(),
            next: 0,
            said: 0,
        };
        crowd.settle();
        for id in 1..=u64::from(runs) {
            let args = Json::of(&serde_json::json!({"instruction": "work", "mode": "async"}));
            let (call_id, name) = (format!("call-{id}"), "subagent.run".to_owned());
            crowd.says(WORKER, &Up::ToolRequest(ToolRequest { id, call_id, name, args }));
            crowd.settle();
            // So that their pings are not all due at once.
            crowd.at = crowd.at + Liveness::default().ping / runs;
        }
        assert_eq!(crowd.encoders.len(), runs as usize + 1, "all of them live");
        crowd
    }

    /// Feeds all that is due, unmeasured.
    fn settle(&mut self) {
        while let Some(event) = self.due.pop_front() {
            let now = self.now();
            self.core.handle(now, event, &mut self.actions);
            self.perform();
        }
    }

    /// The next events, made before they are measured: one a run, and what is due by then.
    pub(crate) fn events(&mut self, count: usize) -> Vec<Event> {
        while self.due.len() < count {
            let node = NodeId(2 + u64::from(self.next % self.runs));
            self.next = self.next.wrapping_add(1);
            self.said += 1;
            let up = if self.said.is_multiple_of(2) {
                let model = "a-provider/and-a-model-name".to_owned();
                Up::Usage(Usage { input: 1_200, output: 180, cached: 900, estimated: false, model })
            } else {
                Up::State(State::of(WaitingOn::Model, 3))
            };
            self.says(node, &up);
        }
        self.due.drain(..count).collect()
    }

    /// Time goes on, so that each run is heard about once a second.
    pub(crate) fn pass(&mut self) -> Now {
        self.at = self.at + Duration::from_nanos(1_000_000_000 / u64::from(self.runs));
        self.now()
    }

    pub(crate) fn due(&self) -> bool {
        self.core.poll_timeout().is_some_and(|deadline| deadline.at <= self.at)
    }

    /// Feeds one event; what came of it stays to be performed.
    pub(crate) fn feed(&mut self, now: Now, event: Event) -> &Actions {
        self.decided.append(&mut self.actions);
        self.core.handle(now, event, &mut self.actions);
        &self.actions
    }

    fn now(&self) -> Now {
        Now { mono: self.at, wall: Wall(1_000_000 + self.at.millis()) }
    }

    fn says(&mut self, node: NodeId, up: &Up) {
        let encoder = self.encoders.get_mut(&node).expect("it lives");
        let bytes = Bytes::from(encoder.encode_up(up).expect("small"));
        self.due.push_back(Event::ChildBytes { node, bytes });
    }

    /// Answers what was decided last; between measured rounds.
    pub(crate) fn perform(&mut self) {
        self.decided.append(&mut self.actions);
        for action in std::mem::take(&mut self.decided) {
            match action {
                Action::Spawn { node, .. } => {
                    self.encoders.insert(node, Encoder::new());
                    self.due.push_back(Event::ChildSpawned { node, pid: 42 });
                }
                Action::SendSpawn { node, .. } => self.says(node, &Up::Ready(Ready { v: VERSION })),
                Action::Persist { seq, .. } => self.due.push_back(Event::Stored { seq }),
                Action::SendToChild { node, frame } => {
                    let bytes = frame.len() as u64;
                    self.due.push_back(Event::ChildWrote { node, bytes });
                    if let Some(Down::Ping(ping)) = down_of(&frame) {
                        self.says(node, &Up::Pong(Pong { seq: ping.seq }));
                    }
                }
                _ => {}
            }
        }
    }
}

//! The small world of one life: a core, a kernel, puppets for children, and a store that answers when it is told to. Every
//! answer that no step is about (sweeps, reapings, written bytes) comes at once.

use super::puppet::Puppet;
use super::step::Step;
use super::{Case, Stage};
use crate::sim::disk::Disk;
use crate::sim::kernel::{Effect, Kernel, SIGKILL, SIGTERM};
use crate::sim::oracle::{Across, Misdeed, Oracles, Violation};
use crate::sim::plan::{Plan, START};
use crate::sim::program::instruction;
use crate::sim::replay::Keep;
use crate::sim::story::{Digest, Story};
use agentd_core::action::{Action, Actions, ChildSignal};
use agentd_core::bytes::{Bytes, Json};
use agentd_core::event::{Event, Exit, SupervisorSignal};
use agentd_core::id::NodeId;
use agentd_core::machine::Machine;
use agentd_core::time::{Instant, Now, Wall};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// The conversation's worker; the two runs are the processes after it.
const WORKER: NodeId = NodeId(1);
/// More than any life needs until it rests.
const MOST: u32 = 600;

/// See the module.
pub(super) struct Table<'a, M> {
    case: &'a Case,
    machine: M,
    kernel: Kernel,
    disk: Disk,
    oracles: Oracles,
    story: Story,
    now: Instant,
    puppets: BTreeMap<NodeId, Puppet>,
    /// Saves that are out, and processes that are asked for, in order.
    saves: VecDeque<u64>,
    spawns: VecDeque<NodeId>,
    killed: [bool; 2],
    terms: u32,
    over: bool,
}

impl<'a, M: Machine + Debug> Table<'a, M> {
    /// The world as the steps of a case begin.
    pub(super) fn at(case: &'a Case, machine: M, story: bool) -> Table<'a, M> {
        let plan = Plan {
            seed: 1,
            knobs: case.knobs.clone(),
            scripts: Vec::new(),
            prompts_ms: Vec::new(),
            faults: Vec::new(),
            heal_ms: None,
        };
        let mut table = Table {
            case,
            machine,
            kernel: Kernel::new(case.knobs.pids),
            disk: Disk::default(),
            oracles: Oracles::new(Arc::new(plan), Across::default()),
            story: Story::new(if story { Keep::Story } else { Keep::Verdict }),
            now: START,
            puppets: BTreeMap::new(),
            saves: VecDeque::new(),
            spawns: VecDeque::new(),
            killed: [false; 2],
            terms: 0,
            over: false,
        };
        table.begin();
        table
    }

    fn begin(&mut self) {
        self.feed(Event::Seeded { seed: 1 });
        self.feed(Event::PromptSubmitted { text: instruction(0, "r") });
        for step in [Step::Stored, Step::Spawned] {
            self.take(step);
        }
        let ready = self.puppet(WORKER).ready();
        self.says(WORKER, ready);
        self.asks(WORKER, 0);
        if self.case.nested {
            [Step::Stored, Step::Spawned, Step::Ready(0)].into_iter().for_each(|step| self.take(step));
            self.asks(node(0), 1);
        } else {
            self.asks(WORKER, 1);
        }
        let runs = if self.case.nested { 1..2 } else { 0..2 };
        if self.case.stage != Stage::Asked {
            runs.clone().for_each(|_| self.take(Step::Stored));
        }
        if self.case.stage == Stage::Working {
            runs.clone().for_each(|_| self.take(Step::Spawned));
            runs.for_each(|run| self.take(Step::Ready(run)));
        }
    }

    fn asks(&mut self, who: NodeId, run: usize) {
        let token = format!("t{run}");
        let mut args = json!({"instruction": instruction(1, &token), "mode": self.case.modes[run].name()});
        if self.case.nested && run == 0 {
            args["delegate"] = json!(true);
        }
        let call = self.puppet(who).call("subagent.run", &token, &args);
        self.says(who, call);
    }

    fn puppet(&mut self, node: NodeId) -> &mut Puppet {
        self.puppets.entry(node).or_default()
    }

    /// Whether a rule was broken.
    pub(super) fn is_broken(&self) -> bool {
        self.oracles.violation().is_some()
    }

    /// What was broken, and what happened.
    pub(super) fn end(mut self) -> (Option<Violation>, Vec<String>) {
        (self.oracles.take_violation(), self.story.lines())
    }

    /// A number that two equal worlds share.
    pub(super) fn state(&self) -> u64 {
        let mut digest = Digest::new();
        let asked = (self.killed, self.terms);
        digest.add(format_args!("{:?}{:?}{:?}", self.machine, self.kernel, self.puppets));
        digest.add(format_args!("{:?}{:?}{:?}{asked:?}", self.now, self.saves, self.spawns));
        digest.value()
    }

    /// What can happen next, of what may.
    pub(super) fn open(&self) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let kinds = self.case.kinds;
        let steps = kinds.iter().flat_map(|kind| {
            let runs = [0, 1].map(|run| Step::of_run(*kind, run));
            runs.into_iter().flatten().chain(Step::of_all(*kind))
        });
        steps.filter(|step| self.can(*step)).collect()
    }

    fn can(&self, step: Step) -> bool {
        let of = |run: usize| self.puppets.get(&node(run));
        let is = |run: usize, which: fn(&Puppet) -> bool| of(run).is_some_and(which);
        match step {
            Step::Stored | Step::StoreFails => !self.saves.is_empty(),
            Step::Spawned | Step::SpawnFails => !self.spawns.is_empty(),
            Step::Ready(run) => is(run, |p| p.speaks() && !p.is_ready),
            Step::Progress(run) => is(run, |p| p.speaks() && p.is_ready && p.reports < 2),
            Step::Result(run) => is(run, |p| p.speaks() && p.is_ready && p.said < 2),
            Step::Rubbish(run) => is(run, Puppet::speaks),
            Step::Eof(run) => is(run, |p| p.token.is_some() && !p.is_closed),
            Step::Exit(run) => is(run, |p| p.token.is_some() && !p.exit_told),
            Step::Killed(run) | Step::Hang(run) => {
                is(run, |p| p.token.is_some() && p.exit.is_none() && !p.is_hung)
            }
            Step::Kill(run) => !self.killed[run],
            Step::Timer => self.machine.poll_timeout().is_some(),
            Step::Term => self.terms < 2,
        }
    }

    /// One thing happens.
    pub(super) fn take(&mut self, step: Step) {
        if self.over || self.is_broken() {
            return;
        }
        match step {
            Step::Stored => self.saved(|seq| Event::Stored { seq }),
            Step::StoreFails => {
                self.saved(|seq| Event::StoreFailed { seq, error: "full".into(), retryable: true });
            }
            Step::Spawned => self.spawned(),
            Step::SpawnFails => {
                if let Some(node) = self.spawns.pop_front() {
                    self.feed(Event::SpawnFailed { node, error: "clone".into(), transient: false });
                }
            }
            Step::Ready(run) => self.does(run, Puppet::ready),
            Step::Progress(run) => self.does(run, Puppet::report),
            Step::Result(run) => self.does(run, Puppet::result),
            Step::Rubbish(run) => self.does(run, Puppet::rubbish),
            Step::Eof(run) => self.closes(node(run)),
            Step::Exit(run) => self.exits(node(run), Exit::Code(0)),
            Step::Killed(run) => self.exits(node(run), Exit::Signal(SIGKILL)),
            Step::Hang(run) => {
                self.puppet(node(run)).is_hung = true;
                self.oracles.misdeed(self.now, node(run), Misdeed::Silent);
            }
            Step::Kill(run) => {
                self.killed[run] = true;
                let args = json!({"handle": format!("sub-{}", run + 1), "reason": "enough"});
                let (call, tool) = (run as u64 + 1, "subagent.kill".to_owned());
                self.feed(Event::OperatorCalled { call, tool, args: Json::of(&args) });
            }
            Step::Timer => self.timer(),
            Step::Term => {
                self.terms += 1;
                self.feed(Event::Signalled { signal: SupervisorSignal::Term });
            }
        }
        self.oracles.look(self.now, &self.kernel);
    }

    fn saved(&mut self, answer: impl Fn(u64) -> Event) {
        if let Some(seq) = self.saves.pop_front() {
            self.feed(answer(seq));
        }
    }

    fn spawned(&mut self) {
        let Some(node) = self.spawns.pop_front() else { return };
        let Some((_, pid)) = self.kernel.spawn(node, 0) else { return };
        self.puppet(node);
        self.oracles.born(self.now, node, &self.kernel);
        self.feed(Event::ChildSpawned { node, pid });
    }

    fn does(&mut self, run: usize, what: fn(&mut Puppet) -> Vec<u8>) {
        let bytes = what(self.puppet(node(run)));
        self.says(node(run), bytes);
    }

    fn says(&mut self, node: NodeId, bytes: Vec<u8>) {
        self.feed(Event::ChildBytes { node, bytes: Bytes::from(bytes) });
    }

    fn closes(&mut self, node: NodeId) {
        let puppet = self.puppet(node);
        puppet.is_closed = true;
        if puppet.exit.is_none() {
            self.oracles.misdeed(self.now, node, Misdeed::ClosedStdout);
        }
        self.feed(Event::ChildEof { node });
    }

    /// A child ends, and the core learns of it; or it learns of an end that was.
    fn exits(&mut self, node: NodeId, exit: Exit) {
        self.ends(node, exit);
        let puppet = self.puppet(node);
        if let Some(exit) = puppet.exit.filter(|_| !puppet.exit_told) {
            puppet.exit_told = true;
            self.feed(Event::ExitObserved { node, exit });
        }
    }

    fn ends(&mut self, node: NodeId, exit: Exit) {
        let Some((serial, _)) = self.kernel.of(node) else { return };
        if self.kernel.end(serial).is_some() {
            self.puppet(node).exit = Some(exit);
            self.oracles.gone(self.now, node);
        }
    }

    /// The clock goes on to the next thing the core waits for. What is on its way meanwhile is late, by nobody's fault.
    fn timer(&mut self) {
        let Some(at) = self.machine.poll_timeout().map(|deadline| deadline.at) else { return };
        let at = at.max(self.now);
        self.oracles.late(at.since(self.now));
        self.now = at;
        self.feed(Event::Tick);
    }

    /// From here on all goes well, until everything rests.
    pub(super) fn heal(&mut self) {
        for _ in 0..MOST {
            if self.over || self.is_broken() {
                return;
            }
            self.heal_a_little();
        }
        self.oracles.never_rests(self.now, "it was let go on for long enough");
    }

    fn heal_a_little(&mut self) {
        if !self.saves.is_empty() {
            return self.take(Step::Stored);
        }
        if !self.spawns.is_empty() {
            return self.take(Step::Spawned);
        }
        let nodes: Vec<NodeId> = self.puppets.keys().copied().collect();
        for node in nodes {
            if self.goes_on(node) {
                return self.oracles.look(self.now, &self.kernel);
            }
        }
        if self.machine.poll_timeout().is_none() {
            return self.oracles.never_rests(self.now, "nothing is due, and the daemon has not exited");
        }
        self.take(Step::Timer);
    }

    /// A child does what it does when all goes well. `false` when it has nothing to do.
    fn goes_on(&mut self, node: NodeId) -> bool {
        let Some(puppet) = self.puppets.get_mut(&node) else { return false };
        if puppet.exit.is_some() {
            if !puppet.exit_told {
                self.exits(node, Exit::Code(0));
            } else if !puppet.is_closed {
                self.closes(node);
            } else {
                return false;
            }
            return true;
        }
        if puppet.said > 0 && !puppet.is_hung {
            self.exits(node, Exit::Code(0));
            return true;
        }
        if !puppet.speaks() {
            return false;
        }
        let waits = puppet.open > 0 && !puppet.is_cancelled;
        let idle = node != WORKER && puppet.is_ready && puppet.is_warm && puppet.turn.is_none();
        if waits || (idle && !puppet.is_cancelled) {
            return false;
        }
        let bytes = if puppet.is_ready { puppet.result() } else { puppet.ready() };
        self.says(node, bytes);
        true
    }

    /// Hands one event to the core and performs what it asks for; what is answered at once is fed as well.
    fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            if self.over || self.is_broken() {
                return;
            }
            self.story.event(self.now, &event);
            self.oracles.fed(self.now, &event);
            let was_tick = event == Event::Tick;
            let now = Now { mono: self.now, wall: Wall(1_796_000_000_000 + self.now.millis()) };
            let mut actions = Actions::new();
            self.machine.handle(now, event, &mut actions);
            for action in actions {
                self.story.action(&action);
                self.oracles.did(self.now, &action, &self.kernel, &self.disk);
                if self.is_broken() {
                    return;
                }
                self.perform(action, &mut events);
            }
            let next = self.machine.poll_timeout().map(|deadline| deadline.at);
            self.oracles.turned(self.now, was_tick, next);
        }
    }

    fn perform(&mut self, action: Action, events: &mut VecDeque<Event>) {
        match action {
            Action::Spawn { node, .. } => self.spawns.push_back(node),
            Action::SendSpawn { node, payload } => {
                self.puppet(node).begin(&payload.0);
                events.push_back(Event::ChildWrote { node, bytes: 1 });
            }
            Action::SendToChild { node, frame } => {
                let puppet = self.puppet(node);
                puppet.read(&frame);
                let owed = std::mem::take(&mut puppet.owed);
                if !owed.is_empty() {
                    events.push_back(Event::ChildBytes { node, bytes: Bytes::from(owed) });
                }
                events.push_back(Event::ChildWrote { node, bytes: frame.len() as u64 });
            }
            Action::Signal { node, signal } => {
                let effects = match signal {
                    ChildSignal::TermCont => self.kernel.terminate_group(node),
                    ChildSignal::Kill => self.kernel.kill_group(node),
                };
                effects.into_iter().for_each(|effect| self.follow(node, &effect));
            }
            Action::Sweep { node, keepers } => {
                let (killed, remaining, _) = self.kernel.sweep(node, keepers);
                events.push_back(Event::Swept { node, killed, remaining });
            }
            Action::Reap { node } => {
                self.kernel.reap(node);
                self.puppets.remove(&node);
                events.push_back(Event::Reaped { node });
            }
            Action::ReapOrphans => self.kernel.reap_orphans(),
            Action::Persist { seq, .. } => self.saves.push_back(seq),
            Action::Exit { .. } => self.over = true,
            Action::CloseStdin { .. }
            | Action::SendModel { .. }
            | Action::LoadConfig
            | Action::EndReload { .. }
            | Action::Note(_)
            | Action::Deliver { .. }
            | Action::Answer { .. }
            | Action::CallHostTool(_)
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. } => {}
        }
    }

    /// Of the two runs the first ignores SIGTERM and the second dies of it.
    fn follow(&mut self, who: NodeId, effect: &Effect) {
        match effect {
            Effect::Ends { exit, .. } => self.ends(who, *exit),
            Effect::Terminated(_) if who != node(0) => self.ends(who, Exit::Signal(SIGTERM)),
            Effect::Terminated(_) | Effect::Continued(_) => {}
        }
    }
}

/// The process of a run.
fn node(run: usize) -> NodeId {
    NodeId(run as u64 + 2)
}

//! What is done in a real arm besides driving: cues, and faults of the kernel that a plan asks for. A fault is put in
//! place when the core asks for the spawn that is to fail, and taken away when its failure is told; a scenario in
//! which another process is being made meanwhile would see that one fail too.

use super::Stage;
use crate::arms::gates;
use crate::arms::scenario::Scenario;
use crate::arms::watched::Stagehand;
use crate::sim::plan::{Fault, Interrupt};
use crate::sim::{Act, Blow};
use agentd_core::action::Action;
use agentd_core::bytes::Json;
use agentd_core::event::{Event, SupervisorSignal};
use agentd_core::id::NodeId;
use agentd_io_mio::Poster;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

/// For each first frame that is going to be encoded, whether that is to fail.
pub(super) type Frames = Rc<RefCell<VecDeque<bool>>>;

/// See the module.
pub(super) struct Crew {
    poster: Poster,
    /// Signals reach the supervisor as signals, not as mail.
    takes_signals: bool,
    gates: PathBuf,
    program: PathBuf,
    faults: Vec<Fault>,
    pids: BTreeMap<NodeId, u32>,
    /// Spawns so far; faults count them.
    spawns: u32,
    nth: BTreeMap<NodeId, u32>,
    broken: Option<Broken>,
    frames: Frames,
    /// What could not be done.
    pub(super) problems: Vec<String>,
}

/// What keeps processes from being made.
enum Broken {
    /// The program is elsewhere.
    Program,
    /// No descriptor is free; this was the limit.
    Descriptors(Rlimit),
}

impl Crew {
    pub(super) fn new(scenario: &Scenario, stage: &Stage, poster: Poster, takes_signals: bool) -> Crew {
        Crew {
            poster,
            takes_signals,
            gates: stage.gates.clone(),
            program: stage.program.clone(),
            faults: scenario.plan.faults.clone(),
            pids: BTreeMap::new(),
            spawns: 0,
            nth: BTreeMap::new(),
            broken: None,
            frames: Frames::default(),
            problems: Vec::new(),
        }
    }

    /// What the encoder of first frames has to know.
    pub(super) fn frames(&self) -> Frames {
        Frames::clone(&self.frames)
    }

    fn spawning(&mut self, node: NodeId) -> Result<(), String> {
        let nth = self.spawns;
        self.spawns += 1;
        self.nth.insert(node, nth);
        let fails = self.faults.iter().find_map(|fault| match fault {
            Fault::SpawnFails { nth: first, times, transient } if (*first..first + times).contains(&nth) => {
                Some(*transient)
            }
            _ => None,
        });
        let Some(transient) = fails else { return Ok(()) };
        self.broken = Some(if transient {
            let limit = getrlimit(Resource::Nofile);
            let low = Rlimit { current: Some(3), ..limit };
            setrlimit(Resource::Nofile, low).map_err(|e| format!("setrlimit: {e}"))?;
            Broken::Descriptors(limit)
        } else {
            let away = self.program.with_extension("away");
            std::fs::rename(&self.program, away).map_err(|e| format!("the program: {e}"))?;
            Broken::Program
        });
        Ok(())
    }

    fn mend(&mut self) -> Result<(), String> {
        match self.broken.take() {
            None => Ok(()),
            Some(Broken::Program) => std::fs::rename(self.program.with_extension("away"), &self.program)
                .map_err(|e| format!("the program: {e}")),
            Some(Broken::Descriptors(limit)) => {
                setrlimit(Resource::Nofile, limit).map_err(|e| format!("setrlimit: {e}"))
            }
        }
    }

    fn first_frame(&mut self, node: NodeId) {
        let nth = self.nth.get(&node).copied();
        let fails =
            self.faults.iter().any(|f| matches!(f, Fault::SpawnFrameFails { nth: n } if Some(*n) == nth));
        self.frames.borrow_mut().push_back(fails);
    }

    fn post(&self, event: Event) -> Result<(), String> {
        self.poster.post(event).map_err(|e| e.to_string())
    }

    fn interrupt(&self, signal: Interrupt) -> Result<(), String> {
        let (number, signal) = match signal {
            Interrupt::Term => (Signal::TERM, SupervisorSignal::Term),
            Interrupt::Int => (Signal::INT, SupervisorSignal::Int),
            Interrupt::Hup => (Signal::HUP, SupervisorSignal::Hup),
        };
        if self.takes_signals {
            kill_process(getpid(), number).map_err(|e| format!("kill: {e}"))
        } else {
            self.post(Event::Signalled { signal })
        }
    }

    fn strike(&self, node: NodeId, blow: Blow) -> Result<(), String> {
        let signal = match blow {
            Blow::Kill => Signal::KILL,
            Blow::Term => Signal::TERM,
            Blow::Stop => Signal::STOP,
        };
        let pid = self.pids.get(&node).and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        let pid = pid.ok_or_else(|| format!("{node} has no process to strike"))?;
        kill_process(pid, signal).map_err(|e| format!("kill: {e}"))
    }

    fn try_act(&self, act: Act) -> Result<(), String> {
        match act {
            Act::Signal(signal) => self.interrupt(signal),
            Act::Prompt(text) => self.post(Event::PromptSubmitted { text }),
            Act::CancelPrompt(prompt) => {
                self.post(Event::TurnCancelled { prompt, reason: "the plan says so".to_owned() })
            }
            Act::Call { call, tool, args } => {
                self.post(Event::OperatorCalled { call, tool, args: Json::of(&args) })
            }
            Act::HangUp(call) => self.post(Event::OperatorHungUp { call }),
            Act::Strike { node, blow } => self.strike(NodeId(node), blow),
            Act::Open(gate) => gates::open(&self.gates, &gate).map_err(|e| format!("gate {gate}: {e}")),
        }
    }
}

impl Stagehand for Crew {
    fn saw(&mut self, event: &Event, actions: &[Action]) {
        match event {
            Event::ChildSpawned { node, pid } => {
                self.pids.insert(*node, *pid);
            }
            // Its number may be a stranger's from now on.
            Event::Reaped { node } => {
                self.pids.remove(node);
            }
            Event::SpawnFailed { .. } => {
                let mended = self.mend();
                self.problems.extend(mended.err());
            }
            _ => {}
        }
        for action in actions {
            match action {
                Action::Spawn { node, .. } => {
                    let broken = self.spawning(*node);
                    self.problems.extend(broken.err());
                }
                Action::SendSpawn { node, .. } => self.first_frame(*node),
                _ => {}
            }
        }
    }

    fn act(&mut self, act: Act) {
        let done = self.try_act(act);
        self.problems.extend(done.err());
    }
}

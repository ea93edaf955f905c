//! A machine that stands in for the core: it walks every child through sweep and reap as the core would, leaves
//! the rest to a plan, keeps the trace, and ends when all it spawned is gone. After it, nothing may be left.

use agentd_core::action::{Action, Actions, Walls};
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note::Note;
use agentd_core::record::{ResultObject, UsageSum};
use agentd_core::store::{Class, Write};
use agentd_core::time::{Duration, Instant, Now};
use agentd_core::wire::message;
use agentd_host::Pid;
use agentd_host::spawner::Image;
use agentd_io_mio::{Ended, Options, Outside, StoreAnswer, run};
use std::collections::BTreeSet;

/// What happened, in order.
pub(crate) struct Trace {
    pub(crate) events: Vec<(Now, Event)>,
    pub(crate) ended: Ended,
}

/// Children are shells that run their own name.
pub(crate) fn shells() -> Image {
    let args = vec!["-c".into(), "eval \"$AGENTD_NAME\"".into()];
    Image::of("/bin/sh".as_ref(), args, path()).expect("it has a slash")
}

/// Children are this program.
pub(crate) fn actors() -> Image {
    Image::own(path())
}

fn path() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![("PATH".into(), "/usr/bin:/bin".into())]
}

/// Spawns the children named `scripts` as nodes 1, 2, … and follows `plan` for everything else.
pub(crate) fn play(scripts: &[&str], plan: impl FnMut(&Event, &mut Actions)) -> Trace {
    let before = open_descriptors();
    let trace = play_with(options(shells()), scripts, plan, Memory::default()).0;
    nothing_left(before);
    trace
}

pub(crate) fn options(image: Image) -> Options {
    Options::new(image, None).expect("eventfd works")
}

/// As [`play`], with everything chosen by the caller, who also checks for leaks.
pub(crate) fn play_with<O: Outside>(
    options: Options,
    scripts: &[&str],
    plan: impl FnMut(&Event, &mut Actions),
    mut outside: O,
) -> (Trace, O) {
    let scripts = scripts.iter().map(|s| (*s).to_owned()).collect();
    let mut stage = Stage {
        plan,
        scripts,
        trace: Vec::new(),
        open: BTreeSet::new(),
        sweeping: BTreeSet::new(),
        due: None,
    };
    let ended = run(&mut stage, &mut outside, options).expect("the loop runs");
    (Trace { events: stage.trace, ended }, outside)
}

/// No child and no descriptor is left.
pub(crate) fn nothing_left(descriptors_before: usize) {
    let left = agentd_host::tree::descendants(Pid::own()).expect("the walk works");
    assert!(left.is_empty(), "left: {left:?}");
    assert_eq!(open_descriptors(), descriptors_before, "descriptors");
}

pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the own descriptors").count()
}

pub(crate) fn spawn(node: u64, name: &str) -> Action {
    Action::Spawn { node: NodeId(node), name: name.to_owned(), walls: Walls::default() }
}

pub(crate) fn send(node: u64, text: &str) -> Action {
    Action::SendToChild { node: NodeId(node), frame: text.as_bytes().into() }
}

/// The child has written `text` and nothing else in this read.
pub(crate) fn said(event: &Event, node: u64, text: &str) -> bool {
    matches!(event, Event::ChildBytes { node: n, bytes } if n.0 == node && **bytes == *text.as_bytes())
}

impl Trace {
    /// All that a child wrote to its stdout.
    pub(crate) fn output(&self, node: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for (_, event) in &self.events {
            if let Event::ChildBytes { node: n, bytes } = event
                && n.0 == node
            {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    /// Where the first event that `is` stands.
    pub(crate) fn position(&self, is: impl Fn(&Event) -> bool) -> Option<usize> {
        self.events.iter().position(|(_, event)| is(event))
    }

    pub(crate) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|(_, event)| is(event)).count()
    }

    /// How a child ended; it must have been told exactly once.
    pub(crate) fn exit(&self, node: u64) -> Exit {
        let mut exits = self.events.iter().filter_map(|(_, event)| match event {
            Event::ExitObserved { node: n, exit } if n.0 == node => Some(*exit),
            _ => None,
        });
        let exit = exits.next().unwrap_or_else(|| panic!("node {node} has not ended"));
        assert!(exits.next().is_none(), "node {node} ended twice");
        exit
    }

    /// Processes killed by the sweeps of a child.
    pub(crate) fn killed(&self, node: u64) -> u32 {
        let swept = self.events.iter().map(|(_, event)| match event {
            Event::Swept { node: n, killed, .. } if n.0 == node => *killed,
            _ => 0,
        });
        swept.sum()
    }
}

/// Between passes over what is left; the core's own is as short.
const PAUSE: Duration = Duration::from_millis(2);

struct Stage<F> {
    plan: F,
    /// Spawned with the seed.
    scripts: Vec<String>,
    trace: Vec<(Now, Event)>,
    /// Asked for and not yet gone.
    open: BTreeSet<NodeId>,
    sweeping: BTreeSet<NodeId>,
    due: Option<Instant>,
}

impl<F: FnMut(&Event, &mut Actions)> Machine for Stage<F> {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        (self.plan)(&event, out);
        match &event {
            Event::Seeded { .. } => {
                let nodes = self.scripts.iter().zip(1..);
                out.extend(nodes.map(|(script, node)| spawn(node, script)));
            }
            Event::ExitObserved { node, .. } => out.push(Action::Sweep { node: *node, keepers: true }),
            Event::Swept { node, remaining: 0, .. } => out.push(Action::Reap { node: *node }),
            Event::Swept { node, .. } => {
                self.sweeping.insert(*node);
                self.due = Some(now.mono + PAUSE);
            }
            Event::Tick => {
                assert!(self.due.is_some_and(|due| due <= now.mono), "a tick before its time");
                self.due = None;
                let sweeping = std::mem::take(&mut self.sweeping);
                out.extend(sweeping.into_iter().map(|node| Action::Sweep { node, keepers: true }));
            }
            Event::SpawnFailed { node, .. } | Event::Reaped { node } => {
                assert!(self.open.remove(node), "{event:?} of a child that is not there");
            }
            _ => {}
        }
        for action in &*out {
            if let Action::Spawn { node, .. } = action {
                self.open.insert(*node);
            }
        }
        let ends = out.iter().any(|action| matches!(action, Action::Exit { .. }));
        if self.open.is_empty() && !self.trace.is_empty() && !ends {
            out.push(Action::Exit {
                interrupted: None,
                leaked: 0,
                usage: UsageSum::default(),
                costliest: None,
            });
        }
        self.trace.push((now, event));
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.due.map(|at| Deadline { at, why: "sweep" })
    }
}

/// The rest of the program: a store in memory, and a note of all that was observed and said.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) observed: Vec<Event>,
    pub(crate) notes: Vec<Note>,
    pub(crate) delivered: usize,
}

impl Outside for Memory {
    fn observe(&mut self, _now: Now, event: &Event) {
        self.observed.push(event.clone());
    }

    fn note(&mut self, _now: Now, note: Note) {
        self.notes.push(note);
    }

    fn persist(&mut self, _seq: u64, _class: Class, _writes: Vec<Write>) -> StoreAnswer {
        StoreAnswer::Stored
    }

    fn deliver(&mut self, _prompt: u64, _result: &ResultObject, _fault: Option<message::FailKind>) {
        self.delivered += 1;
    }

    fn encode_spawn(&mut self, spawn: &message::Spawn) -> Result<Vec<u8>, String> {
        if spawn.instruction.is_empty() {
            Err("no instruction".to_owned())
        } else {
            Ok(spawn.instruction.clone().into())
        }
    }
}

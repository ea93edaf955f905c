//! The process table and what is done to it: the hands that every driver shares, so that a driver is only ears.
//!
//! Owns the children between `ChildSpawned` and `Reaped`, and performs the core's actions on them; each answers
//! as [`Action`] says, by events in the order they were learned. Refuses policy: it never signals, sweeps or
//! reaps unasked. Called by the reactor.

mod child;

use crate::ears::{Ears, End};
use crate::error::OsError;
use crate::process::Pid;
use crate::spawner::{Image, Order, SpawnError, Spawner};
use crate::tree::{Below, Mode, Pass};
use agentd_core::action::{ChildSignal, Walls};
use agentd_core::bytes::Bytes;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use child::Child;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

#[cfg(doc)]
use agentd_core::action::Action;

/// Bytes read from all children in one turn; the rest is left for the next, beginning where this one ended.
const TURN: usize = 1024 * 1024;

/// The children, and the thread that makes them.
#[derive(Debug)]
pub struct Hands {
    children: BTreeMap<NodeId, Child>,
    /// Ordered from the spawner and not yet answered, with what is to be done once they exist.
    making: BTreeMap<NodeId, Vec<Early>>,
    /// Children with something to read or an exit to look at.
    ready: BTreeSet<NodeId>,
    /// Children with something to write.
    dirty: BTreeSet<NodeId>,
    /// The child that is served first in the next turn.
    first: NodeId,
    scratch: Vec<u8>,
    /// A sweep of this turn has found that nothing is left below that is nobody's.
    nothing_left: bool,
    below: Below,
    spawner: Spawner,
}

/// What can be asked of a child that is still being made. It waits for the child; if that cannot be made, its
/// failure answers for all.
#[derive(Debug)]
enum Early {
    Send(Bytes),
    CloseStdin,
    Signal(ChildSignal),
}

impl Hands {
    /// Starts the spawner's thread; `wake` is called from it after each of its answers. The caller's signal mask
    /// is the thread's, so signals are blocked before.
    ///
    /// # Errors
    /// `/proc` is not this namespace's, this process cannot be a subreaper, or there is no thread.
    pub fn new(image: Image, mode: Mode, wake: Box<dyn Fn() + Send>) -> Result<Hands, OsError> {
        let below = Below::new(mode).map_err(OsError::of("looking below", "this process"))?;
        let spawner = Spawner::start(image, below.nursery(), wake)
            .map_err(OsError::of("pthread_create(3)", "the spawner's thread"))?;
        Ok(Hands {
            children: BTreeMap::new(),
            making: BTreeMap::new(),
            ready: BTreeSet::new(),
            dirty: BTreeSet::new(),
            first: NodeId(0),
            scratch: vec![0; crate::pipes::READ],
            nothing_left: false,
            below,
            spawner,
        })
    }

    /// Performs [`Action::Spawn`].
    pub fn spawn(&mut self, node: NodeId, name: String, walls: Walls, learned: &mut VecDeque<Event>) {
        match self.spawner.order(Order { node, name, walls }) {
            Ok(()) => {
                self.making.insert(node, Vec::new());
            }
            Err(e) => learned.push_back(failed(node, &e)),
        }
    }

    /// Performs [`Action::SendToChild`]: queues, and writes at the end of the turn. A child that is reaped gets
    /// nothing and says nothing.
    pub fn send(&mut self, node: NodeId, frame: Bytes, learned: &mut VecDeque<Event>) {
        if let Some(early) = self.making.get_mut(&node) {
            early.push(Early::Send(frame));
        } else if let Some(child) = self.children.get_mut(&node) {
            if child.send(frame) {
                self.dirty.insert(node);
            } else {
                let error = "its stdin is closed".to_owned();
                learned.push_back(Event::ChildWriteFailed { node, error });
            }
        }
    }

    /// Performs [`Action::CloseStdin`].
    pub fn close_stdin(&mut self, node: NodeId) {
        if let Some(early) = self.making.get_mut(&node) {
            early.push(Early::CloseStdin);
        } else if let Some(child) = self.children.get_mut(&node) {
            child.close_stdin();
            self.dirty.insert(node);
        }
    }

    /// Performs [`Action::Signal`]. What is below the child is remembered first, since afterwards an orphan no
    /// longer tells whose it was.
    pub fn signal(&mut self, node: NodeId, signal: ChildSignal) {
        if let Some(early) = self.making.get_mut(&node) {
            early.push(Early::Signal(signal));
        } else if let Some(child) = self.children.get(&node) {
            // What cannot be remembered is found by other marks; what cannot be signalled is gone.
            let _unread = self.below.remember(child.process.pid());
            let _gone = child.process.signal_group(signal);
        }
    }

    /// Performs [`Action::Sweep`]: first what was orphaned, where each one is counted, then the dead child's own
    /// group, wherever its members are.
    pub fn sweep(&mut self, node: NodeId, keepers: bool, learned: &mut VecDeque<Event>) {
        let pass = self.pass(node, keepers);
        if let Some(child) = self.children.get(&node) {
            let _gone = child.process.signal_group(ChildSignal::Kill);
        }
        // Where /proc could not be read nothing is known to be gone.
        let (killed, remaining) = pass.map_or((0, 1), |pass| (pass.killed, pass.remaining));
        learned.push_back(Event::Swept { node, killed, remaining });
    }

    /// One pass for all whose death is known: what they left fell to this process as they died, so a pass that
    /// found nothing, earlier in the same turn, has found nothing of theirs either.
    fn pass(&mut self, node: NodeId, keepers: bool) -> io::Result<Pass> {
        let died_before = self.children.get(&node).is_some_and(Child::has_ended);
        if self.nothing_left && died_before {
            return Ok(Pass::default());
        }
        let pass = self.below.pass(&self.known(), keepers)?;
        self.nothing_left = pass.remaining == 0;
        Ok(pass)
    }

    /// Performs [`Action::Reap`]; of a child that still runs, as soon as its exit has been told.
    pub fn reap(&mut self, node: NodeId, ears: &mut impl Ears, learned: &mut VecDeque<Event>) {
        let Some(child) = self.children.get_mut(&node) else { return };
        if matches!(child.process.reap(), Ok(false)) {
            child.to_be_reaped = true;
            return;
        }
        child.close(ears);
        self.children.remove(&node);
        self.ready.remove(&node);
        self.dirty.remove(&node);
        learned.push_back(Event::Reaped { node });
    }

    /// Performs [`Action::ReapOrphans`].
    pub fn reap_orphans(&mut self) {
        // Where /proc could not be read, the next time will do.
        let _unread = self.below.reap_orphans(&self.known());
    }

    /// An edge on a child's descriptor.
    pub fn ready(&mut self, node: NodeId, end: End) {
        let Some(child) = self.children.get_mut(&node) else { return };
        if end == End::Stdin {
            self.dirty.insert(node);
        } else {
            child.ready(end);
            self.ready.insert(node);
        }
    }

    /// Takes what the spawner has answered.
    pub fn take_answers(&mut self, ears: &mut impl Ears, learned: &mut VecDeque<Event>) {
        while let Some((node, result)) = self.spawner.answer() {
            let early = self.making.remove(&node).unwrap_or_default();
            match result {
                Ok(born) => {
                    let pid = born.process.pid();
                    match Child::take(node, born, ears) {
                        Ok(child) => {
                            self.children.insert(node, child);
                            self.below.nursery().release(pid);
                            learned.push_back(Event::ChildSpawned { node, pid: pid.raw().unsigned_abs() });
                            self.catch_up(node, early, learned);
                        }
                        Err((process, e)) => {
                            if let Err(e) = self.spawner.discard(node, process, e.into()) {
                                learned.push_back(failed(node, &e));
                            }
                        }
                    }
                }
                Err(e) => learned.push_back(failed(node, &e)),
            }
        }
    }

    /// Does what was asked of a child before it existed.
    fn catch_up(&mut self, node: NodeId, early: Vec<Early>, learned: &mut VecDeque<Event>) {
        for action in early {
            match action {
                Early::Send(frame) => self.send(node, frame, learned),
                Early::CloseStdin => self.close_stdin(node),
                Early::Signal(signal) => self.signal(node, signal),
            }
        }
    }

    /// One bounded turn of reading: every ready child gets one read a pipe, in turn. Returns whether more waits.
    pub fn serve(&mut self, ears: &mut impl Ears, learned: &mut VecDeque<Event>) -> bool {
        // Whose exit is told from here on may have died after the last pass.
        self.nothing_left = false;
        let order: Vec<NodeId> =
            self.ready.range(self.first..).chain(self.ready.range(..self.first)).copied().collect();
        let mut bytes = 0;
        for node in order {
            if bytes >= TURN {
                self.first = node;
                break;
            }
            self.first = NodeId(node.0.wrapping_add(1));
            let Some(child) = self.children.get_mut(&node) else { continue };
            let (read, more) = child.serve(&mut self.scratch, ears, learned);
            bytes += read;
            if !more {
                self.ready.remove(&node);
            }
            if child.to_be_reaped && child.has_ended() {
                self.reap(node, ears, learned);
            }
        }
        !self.ready.is_empty()
    }

    /// Writes what is queued, as far as each child takes it. Returns whether to write again soon.
    pub fn flush(&mut self, ears: &mut impl Ears, learned: &mut VecDeque<Event>) -> bool {
        let children = &mut self.children;
        self.dirty.retain(|node| children.get_mut(node).is_some_and(|child| child.flush(ears, learned)));
        !self.dirty.is_empty()
    }

    /// The unreaped children.
    fn known(&self) -> BTreeSet<Pid> {
        self.children.values().map(|child| child.process.pid()).collect()
    }
}

/// Passes over what the last children leave when the loop ends, and the pause between two.
const LAST_PASSES: (u32, Duration) = (100, Duration::from_millis(2));

impl Drop for Hands {
    /// Whoever is left when the loop ends, after an error for instance, ends with it: all are killed and reaped,
    /// then what they orphaned, within bounds.
    fn drop(&mut self) {
        if self.children.is_empty() {
            return;
        }
        for child in self.children.values() {
            // As in `signal`: inside an embedding program an orphan lands elsewhere.
            let _unread = self.below.remember(child.process.pid());
        }
        for child in self.children.values() {
            let _gone = child.process.signal_group(ChildSignal::Kill);
        }
        for (_, child) in std::mem::take(&mut self.children) {
            let _reaped = child.process.kill_and_reap();
        }
        let (passes, pause) = LAST_PASSES;
        for _ in 0..passes {
            match self.below.pass(&BTreeSet::new(), true) {
                Ok(pass) if pass.remaining > 0 => std::thread::sleep(pause),
                Ok(_) | Err(_) => return,
            }
        }
    }
}

fn failed(node: NodeId, e: &SpawnError) -> Event {
    Event::SpawnFailed { node, error: e.to_string(), transient: e.transient }
}

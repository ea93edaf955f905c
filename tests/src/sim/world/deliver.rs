//! What comes due: notices to the core, reads, births, programs' turns, deaths, gaps.

use super::child::Child;
use super::{Due, World};
use crate::sim::agenda::Lane;
use crate::sim::kernel::{Owner, SIGKILL, Serial};
use crate::sim::oracle::Misdeed;
use crate::sim::plan::{Fault, Offspring};
use crate::sim::program::{Deed, Program};
use agentd_core::bytes::Bytes;
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_core::time::Duration;
use std::sync::Arc;

impl World<'_> {
    pub(super) fn carry_out(&mut self, due: Due) {
        match due {
            Due::Notice(event) => self.feed(event),
            Due::Read(node) => self.read(node),
            Due::Born(node, nth) => self.born(node, nth),
            Due::Turn(node) => self.turn(node),
            Due::Dies(serial, exit) => self.dies(serial, exit),
            Due::Orphan => self.kernel.land_orphan(),
            Due::Gap { length, machine } => self.gap(length, machine),
            Due::Room(node) => {
                if let Some(child) = self.children.get_mut(&node) {
                    child.writing = false;
                }
                self.pump(node);
            }
            Due::KillAll => self.kill_all(),
            Due::Wall(by_ms) => self.wall_ms = self.wall_ms.saturating_add(by_ms),
        }
    }

    fn born(&mut self, node: NodeId, nth: u32) {
        let died = |fault: &Fault| match fault {
            Fault::ExecFails { nth: n, ms } if *n == nth => Some(*ms),
            _ => None,
        };
        if let Some(ms) = self.fault(died) {
            return self.dies_before_exec(node, ms);
        }
        let dying_ms = self.chance.below((Lane::Dying, node.0), 3);
        let Some((serial, pid)) = self.kernel.spawn(node, dying_ms) else {
            let error = "clone: EAGAIN (no pid is free)".to_owned();
            return self.feed(Event::SpawnFailed { node, error, transient: true });
        };
        let mut program = Program::new(Arc::clone(&self.plan));
        self.gates.iter().for_each(|gate| program.gate_opened(gate));
        self.children.insert(node, Child::new(nth, program, self.plan.knobs.pipe));
        self.oracles.born(self.now, node, &self.kernel);
        self.notice((Lane::Life, node.0), Event::ChildSpawned { node, pid });
        let stillborn = |f: &Fault| matches!(f, Fault::Stillborn { nth: n } if *n == nth).then_some(());
        if self.fault(stillborn).is_some() {
            self.agenda.push_alone(self.now, Due::Dies(serial, Exit::Signal(11)));
        }
    }

    /// The spawner waits for what it forked and could not make a child of, and says so.
    fn dies_before_exec(&mut self, node: NodeId, ms: u64) {
        let at = self.now + Duration::from_millis(ms);
        if let Some(serial) = self.kernel.fork_stranger() {
            self.agenda.push_alone(at, Due::Dies(serial, Exit::Signal(9)));
        }
        let error = "exec: the child died before it (SIGKILL)".to_owned();
        let failed = Event::SpawnFailed { node, error, transient: false };
        self.later(at, (Lane::Spawner, 0), Due::Notice(failed));
    }

    /// The first planned fault that is meant, as long as anything goes wrong.
    pub(super) fn fault<T>(&self, meant: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        if self.plan.is_healed(self.now) { None } else { self.plan.faults.iter().find_map(meant) }
    }

    /// How much later something is by all planned faults that are meant.
    pub(super) fn lateness(&self, meant: impl Fn(&Fault) -> Option<u64>) -> Duration {
        if self.plan.is_healed(self.now) {
            return Duration::ZERO;
        }
        // The worst of them: together they could be later than a child that is well may be.
        Duration::from_millis(self.plan.faults.iter().filter_map(meant).max().unwrap_or(0))
    }

    fn read(&mut self, node: NodeId) {
        let most = self.plan.knobs.read;
        let alive = self.kernel.alive(node);
        let held = self.kernel.stdout_held(node);
        let Some(child) = self.children.get_mut(&node) else { return };
        child.reading = false;
        let bytes = child.read_stdout(most);
        if bytes.is_empty() {
            let ended = child.stdout_closed || !alive;
            if ended && !held && !child.eof_told {
                child.eof_told = true;
                self.feed(Event::ChildEof { node });
            }
            return;
        }
        let more = !child.program.out.is_empty();
        if child.stdout_empty() {
            self.read_soon(node);
        } else {
            // What is left is read in the same turn or the next.
            child.reading = true;
            let soon = if self.plan.knobs.turn_ms > 0 { Duration::ZERO } else { Duration::from_micros(30) };
            self.later(self.now + soon, (Lane::Read, node.0), Due::Read(node));
        }
        if more {
            self.turn_soon(node);
        }
        self.feed(Event::ChildBytes { node, bytes: Bytes::from(bytes) });
    }

    /// The driver sees a child's stdout readable, or at its end.
    fn read_soon(&mut self, node: NodeId) {
        let Some(child) = self.children.get_mut(&node).filter(|c| !c.reading) else { return };
        child.reading = true;
        let mut at = self.now + self.chance.delay((Lane::Read, node.0));
        if self.kernel.alive(node) && child.program.has_ended() && !child.was_late {
            child.was_late = true;
            let nth = child.nth;
            at = at
                + self.lateness(|fault| match fault {
                    Fault::ReadLate { nth: n, ms } if *n == nth => Some(*ms),
                    _ => None,
                });
        }
        self.later(at, (Lane::Read, node.0), Due::Read(node));
    }

    fn turn(&mut self, node: NodeId) {
        if !self.kernel.running(node) {
            return;
        }
        let now = self.programs_now();
        let Some(child) = self.children.get_mut(&node) else { return };
        let mut deeds = Vec::new();
        if child.program.reads() {
            let bytes = child.read_stdin();
            child.program.received(now, &bytes);
            if child.stdin_ended() && !child.stdin_end_told {
                child.stdin_end_told = true;
                child.program.stdin_ended(now);
            }
        }
        deeds.extend(child.program.turn(now));
        child.write_stdout();
        let goes_on =
            deeds.iter().all(|deed| matches!(deed, Deed::Forks(_) | Deed::ClosesStdout | Deed::Mutters(_)));
        if child.program.out.is_empty() && goes_on {
            // What it wrote is in the pipe: it may exit now.
            deeds.extend(child.program.turn(now));
            child.write_stdout();
        }
        if let Some(what) = child.program.complaint.take() {
            return self.oracles.child_complains(self.now, node, &what);
        }
        if !child.stdout_empty() {
            self.read_soon(node);
        }
        if let Some(at) = self.children.get(&node).and_then(|c| c.program.next_turn())
            && at > now
        {
            self.agenda.push_alone(at + self.slept, Due::Turn(node));
        }
        self.pump(node);
        for deed in deeds {
            self.commit(node, deed);
        }
    }

    fn commit(&mut self, node: NodeId, deed: Deed) {
        match deed {
            Deed::Ends(exit) => {
                if let Some((serial, _)) = self.kernel.of(node) {
                    self.dies(serial, exit);
                }
            }
            Deed::ClosesStdout => {
                if let Some(child) = self.children.get_mut(&node) {
                    child.stdout_closed = true;
                }
                self.oracles.misdeed(self.now, node, Misdeed::ClosedStdout);
                self.read_soon(node);
            }
            Deed::Forks(what) => self.fork(node, &what),
            Deed::Stops => {
                self.kernel.stop(node);
                self.oracles.misdeed(self.now, node, Misdeed::Silent);
            }
            Deed::Mutters(bytes) => {
                for bytes in bytes.chunks(61 + self.plan.knobs.read * 64) {
                    let bytes = Bytes::from(bytes);
                    self.notice((Lane::Stderr, node.0), Event::ChildStderr { node, bytes });
                }
            }
            Deed::Hangs => self.oracles.misdeed(self.now, node, Misdeed::Silent),
        }
    }

    fn fork(&mut self, node: NodeId, what: &Offspring) {
        if let Some(serial) = self.kernel.fork_below(node, what)
            && let Some(ms) = what.exits_ms
        {
            let at = self.now + Duration::from_millis(ms);
            self.agenda.push_alone(at, Due::Dies(serial, Exit::Code(0)));
        }
    }

    fn dies(&mut self, serial: Serial, exit: Exit) {
        let Some(ended) = self.kernel.end(serial) else { return };
        match ended.owner {
            Owner::Node(node) => self.node_died(node, exit),
            Owner::Below(node, what) => {
                if what.holds {
                    self.read_soon(node);
                }
            }
            Owner::Stranger | Owner::Foundling => {}
        }
        self.follow(ended.effects);
    }

    fn kill_all(&mut self) {
        let nodes: Vec<NodeId> = self.children.iter().filter(|(_, c)| c.nth > 0).map(|(n, _)| *n).collect();
        for node in nodes {
            if let Some((serial, _)) = self.kernel.of(node) {
                self.dies(serial, Exit::Signal(SIGKILL));
            }
        }
    }

    fn node_died(&mut self, node: NodeId, exit: Exit) {
        self.oracles.gone(self.now, node);
        let Some(child) = self.children.get(&node) else { return };
        let nth = child.nth;
        let late = self.lateness(|fault| match fault {
            Fault::ExitLate { nth: n, ms } if *n == nth => Some(*ms),
            _ => None,
        });
        let at = self.now + self.chance.delay((Lane::Exit, node.0)) + late;
        let unknown = |f: &Fault| matches!(f, Fault::ExitUnknown { nth: n } if *n == nth).then_some(());
        let exit = if self.fault(unknown).is_some() { Exit::Unknown } else { exit };
        self.later(at, (Lane::Life, node.0), Due::Notice(Event::ExitObserved { node, exit }));
        self.read_soon(node);
        self.pump(node);
    }

    fn gap(&mut self, length: Duration, machine: bool) {
        self.oracles.gap(self.now, length);
        if machine {
            self.agenda.postpone(length);
            self.stopped_until = self.stopped_until + length;
            self.slept += length;
            self.now = self.now + length;
        } else {
            self.stopped_until = self.stopped_until.max(self.now + length);
        }
    }
}

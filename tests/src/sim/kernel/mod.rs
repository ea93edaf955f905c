//! A small machine: processes, groups, pids that are used again at once, zombies, orphans. It does what it is
//! told, physically and without judgement; whether that was right is for the oracles. It imports nothing of the
//! core but the names of things in events and actions.

#[cfg(test)]
mod tests;

use crate::sim::plan::Offspring;
use agentd_core::event::Exit;
use agentd_core::id::NodeId;
use std::collections::BTreeMap;

/// A process number, soon somebody else's.
pub(crate) type Pid = u32;

/// One process for ever, unlike its pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Serial(pub(crate) u64);

pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;

/// Whose a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The daemon's child of this node.
    Node(NodeId),
    /// Started below that node.
    Below(NodeId, Offspring),
    /// Nobody the daemon knows.
    Stranger,
    /// A stranger's orphan that landed on the daemon and has ended.
    Foundling,
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    /// By SIGSTOP.
    Stopped,
    /// Ended and not reaped: it pins its pid.
    Zombie,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// Pid of the group's leader, dead or alive.
    pub(crate) group: Pid,
    pub(crate) owner: Owner,
    pub(crate) life: Life,
    /// SIGKILL is on its way.
    doomed: bool,
    /// Its parent is the daemon, by birth or because its parent died.
    orphan: bool,
    dying_ms: u64,
}

/// What follows from a call, for the world to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// SIGTERM reached this node's own program.
    Terminated(NodeId),
    /// It may run again.
    Continued(NodeId),
    /// It ends so many milliseconds from now, if it has not before.
    Ends { serial: Serial, after_ms: u64, exit: Exit },
}

/// Who ended, and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) owner: Owner,
    pub(crate) effects: Vec<Effect>,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Kernel {
    processes: BTreeMap<Serial, Process>,
    nodes: BTreeMap<NodeId, Serial>,
    /// Free pids, the one freed last on top: reuse is as eager as it can be.
    free: Vec<Pid>,
    next: u64,
    /// The daemon is dead: keepers take down what they keep as soon as their child is.
    daemon_lost: bool,
}

impl Kernel {
    /// A machine with so many pids.
    pub(crate) fn new(pids: u32) -> Kernel {
        Kernel {
            processes: BTreeMap::new(),
            nodes: BTreeMap::new(),
            free: (1..=pids).rev().collect(),
            next: 0,
            daemon_lost: false,
        }
    }

    /// Makes a node's process, its own group; `None` when there is no pid left.
    pub(crate) fn spawn(&mut self, node: NodeId, dying_ms: u64) -> Option<(Serial, Pid)> {
        let (serial, pid) = self.add(Owner::Node(node), None, dying_ms)?;
        self.nodes.insert(node, serial);
        Some((serial, pid))
    }

    /// Makes a process below a node, in its group or out of it.
    pub(crate) fn fork_below(&mut self, node: NodeId, what: &Offspring) -> Option<Serial> {
        let parent = self.nodes.get(&node).and_then(|s| self.processes.get(s));
        let (group, orphan) = match parent {
            Some(p) => (p.group, p.life == Life::Zombie),
            // A group outlives its leader; nobody can join one whose pid was freed, so it is a group of its own.
            None => (0, true),
        };
        let group = (group != 0 && !what.escapes).then_some(group);
        let (serial, _) = self.add(Owner::Below(node, what.clone()), group, what.dying_ms)?;
        if let Some(process) = self.processes.get_mut(&serial) {
            process.orphan = orphan;
        }
        Some(serial)
    }

    /// A stranger takes the pid that was freed last.
    pub(crate) fn fork_stranger(&mut self) -> Option<Serial> {
        self.add(Owner::Stranger, None, 0).map(|(serial, _)| serial)
    }

    /// A stranger's orphan ends on the daemon.
    pub(crate) fn land_orphan(&mut self) {
        let Some((serial, _)) = self.add(Owner::Foundling, None, 0) else { return };
        if let Some(process) = self.processes.get_mut(&serial) {
            process.orphan = true;
            process.life = Life::Zombie;
        }
    }

    fn add(&mut self, owner: Owner, group: Option<Pid>, dying_ms: u64) -> Option<(Serial, Pid)> {
        let pid = self.free.pop()?;
        let serial = Serial(self.next);
        self.next += 1;
        let orphan = matches!(owner, Owner::Node(_));
        let group = group.unwrap_or(pid);
        let process = Process { pid, group, owner, life: Life::Running, doomed: false, orphan, dying_ms };
        self.processes.insert(serial, process);
        Some((serial, pid))
    }

    /// The process of a node, until it is reaped.
    pub(crate) fn of(&self, node: NodeId) -> Option<(Serial, &Process)> {
        let serial = *self.nodes.get(&node)?;
        self.processes.get(&serial).map(|p| (serial, p))
    }

    /// Whether the node's own process runs or could run again.
    pub(crate) fn alive(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|(_, p)| p.life != Life::Zombie)
    }

    /// Whether the node's own process can act right now.
    pub(crate) fn running(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|(_, p)| p.life == Life::Running)
    }

    /// Processes below a node that have not ended.
    pub(crate) fn below(&self, node: NodeId) -> impl Iterator<Item = (Serial, &Process, &Offspring)> {
        self.processes.iter().filter_map(move |(serial, p)| match &p.owner {
            Owner::Below(n, what) if *n == node && p.life != Life::Zombie => Some((*serial, p, what)),
            Owner::Below(..) | Owner::Node(_) | Owner::Stranger | Owner::Foundling => None,
        })
    }

    /// Every process of the daemon that has not ended.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|p| p.owner != Owner::Stranger && p.life != Life::Zombie)
    }

    /// The oldest zombie whose parent is the daemon and which is no node: an orphan sweep takes it.
    pub(crate) fn orphan_zombie(&self) -> Option<Serial> {
        self.processes
            .iter()
            .find(|(_, p)| p.life == Life::Zombie && p.orphan && !matches!(p.owner, Owner::Node(_)))
            .map(|(serial, _)| *serial)
    }

    /// Whether that one is a stranger's.
    pub(crate) fn is_foundling_zombie(&self) -> bool {
        let owner = self.orphan_zombie().and_then(|serial| self.processes.get(&serial)).map(|p| &p.owner);
        owner == Some(&Owner::Foundling)
    }

    /// Whether the end of the node's stdout is still held open by somebody below it.
    pub(crate) fn stdout_held(&self, node: NodeId) -> bool {
        self.below(node).any(|(_, _, what)| what.holds)
    }

    /// SIGSTOP from a stranger.
    pub(crate) fn stop(&mut self, node: NodeId) {
        let Some(process) = self.nodes.get(&node).and_then(|s| self.processes.get_mut(s)) else { return };
        if process.life == Life::Running {
            process.life = Life::Stopped;
        }
    }

    /// SIGTERM and SIGCONT to the group that the node's process leads.
    pub(crate) fn terminate_group(&mut self, node: NodeId) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (serial, process) in self.group_of(node) {
            let was = process.life;
            process.life = Life::Running;
            match &process.owner {
                Owner::Node(n) => {
                    if was == Life::Stopped {
                        effects.push(Effect::Continued(*n));
                    }
                    effects.push(Effect::Terminated(*n));
                }
                Owner::Below(_, what) if !what.ignores_term => {
                    effects.push(Effect::Ends { serial, after_ms: 0, exit: Exit::Signal(SIGTERM) });
                }
                Owner::Below(..) | Owner::Stranger | Owner::Foundling => {}
            }
        }
        effects
    }

    /// SIGKILL to the group that the node's process leads.
    pub(crate) fn kill_group(&mut self, node: NodeId) -> Vec<Effect> {
        self.group_of(node).into_iter().filter_map(|(serial, p)| doom(serial, p)).collect()
    }

    fn group_of(&mut self, node: NodeId) -> Vec<(Serial, &mut Process)> {
        let Some(group) = self.of(node).map(|(_, p)| p.group) else { return Vec::new() };
        self.processes
            .iter_mut()
            .filter(|(_, p)| p.group == group && p.life != Life::Zombie)
            .map(|(serial, p)| (*serial, p))
            .collect()
    }

    /// The daemon is dead. Its children get the parent-death signal, if they have it, and keepers of children that were
    /// dead already are on their way.
    pub(crate) fn lose_daemon(&mut self, parent_death: bool) -> Vec<Effect> {
        self.daemon_lost = true;
        let mut effects = Vec::new();
        for (serial, process) in &mut self.processes {
            let dies = match &process.owner {
                Owner::Node(_) => parent_death,
                Owner::Below(..) => process.orphan,
                Owner::Stranger | Owner::Foundling => false,
            };
            if dies {
                effects.extend(doom(*serial, process));
            }
        }
        effects
    }

    /// One pass over what a dead node left: who is killed now, and how many were seen that are not gone.
    /// Keepers are left to finish unless `keepers`. What has ended already is reaped.
    pub(crate) fn sweep(&mut self, node: NodeId, keepers: bool) -> (u32, u32, Vec<Effect>) {
        self.reap_dead(|owner| matches!(owner, Owner::Below(n, _) if *n == node));
        let (mut killed, mut remaining, mut effects) = (0, 0, Vec::new());
        for (serial, process) in &mut self.processes {
            let Owner::Below(n, what) = &process.owner else { continue };
            if *n != node {
                continue;
            }
            remaining += 1;
            let spared = what.keeper_ms.is_some() && !keepers;
            if !spared && let Some(effect) = doom(*serial, process) {
                killed += 1;
                effects.push(effect);
            }
        }
        (killed, remaining, effects)
    }

    /// The process has ended. `None` when it had before.
    pub(crate) fn end(&mut self, serial: Serial) -> Option<Ended> {
        let process = self.processes.get_mut(&serial).filter(|p| p.life != Life::Zombie)?;
        process.life = Life::Zombie;
        let owner = process.owner.clone();
        let (pid, orphan, doomed) = (process.pid, process.orphan, process.doomed);
        let mut effects = Vec::new();
        match &owner {
            Owner::Node(node) => effects = self.orphan_below(*node),
            Owner::Below(node, what) => {
                if !orphan {
                    // Its parent lives and waits for it, as every child and keeper does.
                    self.processes.remove(&serial);
                    self.free.push(pid);
                }
                if doomed && what.respawns > 0 {
                    let again = Offspring { respawns: what.respawns - 1, ..what.clone() };
                    let again = self.fork_below(*node, &again).filter(|_| self.daemon_lost);
                    if let Some(serial) = again
                        && let Some(process) = self.processes.get_mut(&serial)
                    {
                        effects.extend(doom(serial, process));
                    }
                }
            }
            Owner::Stranger | Owner::Foundling => {
                self.processes.remove(&serial);
                self.free.push(pid);
            }
        }
        Some(Ended { owner, effects })
    }

    /// A node died: what is below lands on the daemon, and keepers see their lifeline end.
    fn orphan_below(&mut self, node: NodeId) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (serial, process) in &mut self.processes {
            let Owner::Below(n, what) = &process.owner else { continue };
            if *n != node {
                continue;
            }
            let keeper_ms = what.keeper_ms;
            process.orphan = true;
            if self.daemon_lost {
                effects.extend(doom(*serial, process));
            } else if let Some(after_ms) = keeper_ms {
                effects.push(Effect::Ends { serial: *serial, after_ms, exit: Exit::Code(0) });
            }
        }
        effects
    }

    /// The daemon waits for a node's process: its pid is free. `false` when there was nothing to wait for.
    pub(crate) fn reap(&mut self, node: NodeId) -> bool {
        let Some((serial, process)) = self.of(node) else { return false };
        if process.life != Life::Zombie {
            return false;
        }
        let pid = process.pid;
        self.processes.remove(&serial);
        self.nodes.remove(&node);
        self.free.push(pid);
        true
    }

    /// The daemon waits for every orphan that has ended.
    pub(crate) fn reap_orphans(&mut self) {
        self.reap_dead(|owner| !matches!(owner, Owner::Node(_)));
    }

    fn reap_dead(&mut self, whose: impl Fn(&Owner) -> bool) {
        let gone: Vec<(Serial, Pid)> = self
            .processes
            .iter()
            .filter(|(_, p)| p.life == Life::Zombie && p.orphan && whose(&p.owner))
            .map(|(serial, p)| (*serial, p.pid))
            .collect();
        for (serial, pid) in gone {
            self.processes.remove(&serial);
            self.free.push(pid);
        }
    }
}

/// SIGKILL to one process; `None` when it is on its way already.
fn doom(serial: Serial, process: &mut Process) -> Option<Effect> {
    if process.doomed || process.life == Life::Zombie {
        return None;
    }
    process.doomed = true;
    Some(Effect::Ends { serial, after_ms: process.dying_ms, exit: Exit::Signal(SIGKILL) })
}

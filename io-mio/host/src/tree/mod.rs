//! The processes below this one: who is an orphan that this process answers for, one kill pass over them, and
//! reaping what ended.
//!
//! Owns the judgement "ours or not". Refuses to signal a number: every victim is held by a pidfd whose start
//! time is the one that was judged. Without a cgroup a pass is a race and not a proof, so it is bounded and
//! says what it left; whoever calls it repeats it. Called by the hands of both drivers and by keepers.

mod procfs;
mod strays;
mod victim;

pub use procfs::{Stat, children, descendants, stat};
pub use victim::Identity;

use crate::nursery::Nursery;
use crate::process::Pid;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use strays::Strays;

/// What this process answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A supervisor, child or keeper with a process of its own: it is a subreaper, and every child that it does
    /// not know escaped from below it. When something ran below it before it began (a script that started a
    /// program and then executed this one), orphans may be that one's, and are judged by evidence as for `Init`.
    Subreaper,
    /// PID 1 of its namespace: strangers' orphans land here too. All zombies are reaped; killed is only what
    /// is proven ours: a keeper, a member of a known child's group, or seen below a child before it died.
    Init,
    /// Inside another program: nothing process-wide is changed, and its children are neither killed nor reaped.
    /// Orphans are judged by evidence as for `Init`, wherever they land.
    Embedded,
}

impl Mode {
    /// The mode of a program that owns its process.
    pub fn of_own_process() -> Mode {
        if Pid::own().raw() == 1 { Mode::Init } else { Mode::Subreaper }
    }
}

/// What one pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pass {
    /// Processes that got their SIGKILL in this pass.
    pub killed: u32,
    /// Processes that answer to this one and are not gone yet, those just killed included.
    pub remaining: u32,
}

/// Everything below this process that is nobody's known child.
#[derive(Debug)]
pub struct Below {
    mode: Mode,
    /// Where the lists of own children are.
    threads: Option<procfs::Threads>,
    /// What ran below this process before it began; never touched.
    bystanders: BTreeSet<Identity>,
    nursery: Arc<Nursery>,
    /// Processes seen below a child: after its death they are ours wherever they land.
    seen: BTreeSet<Identity>,
    /// Keepers that were asked to finish.
    asked: BTreeSet<Identity>,
    /// Processes that got their SIGKILL, so that none is counted twice.
    killed: BTreeSet<Identity>,
}

/// Walks of one pass: each finds what was born before its parents were stopped.
const ROUNDS: usize = 8;

/// Stopped processes beyond which a pass walks no more: the next pass goes on, and the reactor gets its turn.
const REWALK: usize = 1_024;

/// Processes seen below children that are remembered; beyond, the keepers and groups must do.
const SEEN: usize = 8_192;

impl Below {
    /// Takes what is below this process now as bystanders, who are never touched, and in `Subreaper` mode makes
    /// this process the one that orphans from below it land on.
    ///
    /// # Errors
    /// `/proc` is absent, or shows another PID namespace, so that its numbers would name strangers; or
    /// `prctl(PR_SET_CHILD_SUBREAPER)` failed.
    pub fn new(mode: Mode) -> io::Result<Below> {
        procfs::check_namespace()?;
        if mode == Mode::Subreaper {
            rustix::process::set_child_subreaper(Some(Pid::own().rustix()))?;
        }
        Ok(Below {
            mode,
            threads: procfs::Threads::own()?,
            bystanders: descendants(Pid::own())?.iter().map(Stat::identity).collect(),
            nursery: Arc::default(),
            seen: BTreeSet::new(),
            asked: BTreeSet::new(),
            killed: BTreeSet::new(),
        })
    }

    /// Shares the note of children in the making with the spawner.
    pub fn nursery(&self) -> Arc<Nursery> {
        Arc::clone(&self.nursery)
    }

    /// Remembers what is below the living child `root`. Called just before it is signalled: once it is dead an
    /// orphan no longer tells whose it was. Does nothing where all orphans are ours anyway.
    ///
    /// # Errors
    /// `/proc` could not be read; what was seen so far is remembered.
    pub fn remember(&mut self, root: Pid) -> io::Result<()> {
        if !self.by_evidence() {
            return Ok(());
        }
        self.seen.retain(Identity::is_alive);
        for process in descendants(root)? {
            if self.seen.len() >= SEEN {
                break;
            }
            self.seen.insert(process.identity());
        }
        Ok(())
    }

    /// One kill pass: stops every stray, walks again until nothing new is found, then kills all it has found.
    /// What has ended is reaped. `known` are the unreaped children of this process and are left alone, with all
    /// below them. Keepers clean up by themselves: unless `keepers_too`, an orphaned one gets a SIGTERM, is left
    /// alone with all below it, and counts as remaining.
    ///
    /// # Errors
    /// `/proc` could not be read; nothing is known of what remains.
    pub fn pass(&mut self, known: &BTreeSet<Pid>, keepers_too: bool) -> io::Result<Pass> {
        let mut stopped = BTreeSet::new();
        let mut settled = false;
        let mut strays = Strays::default();
        for _ in 0..ROUNDS {
            strays = self.strays(known, keepers_too)?;
            // A process whose parent ends while the list is read may be on neither's; so a walk that met a
            // death proves nothing, and one more is made.
            let mut news = self.reap(&mut strays) > 0;
            for process in strays.doomed.iter().filter(|p| !p.is_dead()) {
                if stopped.insert(process.identity()) {
                    process.identity().stop();
                    news = true;
                }
            }
            settled = !news;
            if settled || stopped.len() > REWALK {
                break;
            }
        }
        let killed = self.kill(&strays);
        self.ask(&strays);
        let remaining = self.remaining(&strays).max(usize::from(!settled));
        Ok(Pass { killed, remaining: u32::try_from(remaining).unwrap_or(u32::MAX) })
    }

    /// Reaps the orphans of this process that have ended, kills nothing, and says how many it reaped.
    ///
    /// # Errors
    /// `/proc` could not be read.
    pub fn reap_orphans(&mut self, known: &BTreeSet<Pid>) -> io::Result<u32> {
        let mut strays = self.strays(known, true)?;
        Ok(u32::try_from(self.reap(&mut strays)).unwrap_or(u32::MAX))
    }

    /// Kills what is doomed and says how many were not killed before.
    fn kill(&mut self, strays: &Strays) -> u32 {
        let mut killed = 0;
        for process in strays.doomed.iter().filter(|p| !p.is_dead()) {
            if process.identity().kill() && self.killed.insert(process.identity()) {
                killed += 1;
            }
        }
        killed
    }

    /// What is not gone: all that the last walk met, and the killed that it missed on their way to a new parent.
    /// The dead below a stranger are that one's to reap.
    fn remaining(&mut self, strays: &Strays) -> usize {
        let mut left: BTreeSet<Identity> = strays.doomed.iter().map(Stat::identity).collect();
        let ours: BTreeSet<Pid> =
            left.iter().chain(&self.killed).map(|i| i.pid).chain([Pid::own()]).collect();
        self.killed.retain(|identity| {
            identity.stat().is_some_and(|p| !p.is_dead() || p.parent.is_some_and(|pid| ours.contains(&pid)))
        });
        left.extend(&self.killed);
        left.len() + strays.spared
    }

    /// Asks keepers that were not asked yet.
    fn ask(&mut self, strays: &Strays) {
        self.asked.retain(|identity| strays.keepers.contains(identity));
        for keeper in &strays.keepers {
            if self.asked.insert(*keeper) {
                keeper.terminate();
            }
        }
    }

    /// Reaps the dead among the direct children, one by one and by number, and takes them off the list: a zombie
    /// of ours holds its number until this very call. Returns how many it reaped.
    fn reap(&mut self, strays: &mut Strays) -> usize {
        let own = Some(Pid::own());
        let before = strays.doomed.len();
        strays.doomed.retain(|p| !(p.is_dead() && p.parent == own && victim::reap(p.pid)));
        let strangers = strays.strangers.iter().filter(|pid| victim::reap(**pid)).count();
        before - strays.doomed.len() + strangers
    }
}

#[cfg(test)]
mod tests;

//! Who of the processes below this one is a stray: alive or dead, nobody's known child, and ours to end.
//!
//! Owns the rules of [`super::Mode`]. Called by [`super::Below`].

use super::procfs::{self, Stat};
use super::{Below, Identity, Mode};
use crate::nursery::Fresh;
use crate::process::Pid;
use std::collections::BTreeSet;
use std::io;

/// The variable by which a keeper is told, and told from others.
const KEEPER: &str = "AGENTD_KEEPER";

/// What one walk found.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// To be killed and reaped, parents before their children.
    pub(super) doomed: Vec<Stat>,
    /// Orphaned keepers that are left to finish.
    pub(super) keepers: BTreeSet<Identity>,
    /// Processes that are left alone for now and are not gone: keepers, all below them, and young children of
    /// which it is not yet known whether they are strays.
    pub(super) spared: usize,
    /// Zombies that are not ours to kill but that only this process can reap.
    pub(super) strangers: Vec<Pid>,
}

impl Below {
    /// Walks once. `known` children and all below them are left out.
    pub(super) fn strays(&mut self, known: &BTreeSet<Pid>, keepers_too: bool) -> io::Result<Strays> {
        let own = Pid::own();
        let mut strays = Strays::default();
        let mut visited: BTreeSet<Pid> = known.iter().copied().chain([own]).collect();
        let mut roots: Vec<Stat> = Vec::new();
        for pid in self.own_children()? {
            if !known.contains(&pid)
                && let Some(process) = procfs::stat(pid)?
            {
                roots.push(process);
            }
        }
        // The list is complete; only now may the spawner be asked what it has made meanwhile.
        roots.retain(|process| self.is_ours(process, known, &mut strays));
        self.add_seen(known, &mut roots)?;
        for root in roots {
            let keeper = !keepers_too && procfs::has_variable(root.pid, KEEPER);
            let mut found = Vec::new();
            let bystanders = &self.bystanders;
            procfs::walk(vec![root.pid], &mut visited, |p| !bystanders.contains(&p.identity()), &mut found)?;
            if keeper {
                strays.keepers.insert(root.identity());
                strays.spared += found.len();
            } else {
                strays.doomed.append(&mut found);
            }
        }
        Ok(strays)
    }

    fn own_children(&mut self) -> io::Result<Vec<Pid>> {
        match &mut self.threads {
            Some(threads) => threads.children(),
            None => procfs::children(Pid::own()),
        }
    }

    /// Judges a child of this process that is in no table.
    fn is_ours(&self, process: &Stat, known: &BTreeSet<Pid>, strays: &mut Strays) -> bool {
        match self.nursery.knows(process.pid, process.start) {
            Fresh::Yes => return false,
            Fresh::Perhaps => {
                strays.spared += 1;
                return false;
            }
            Fresh::No => {}
        }
        let bystander = self.bystanders.contains(&process.identity());
        let ours = !bystander && (!self.by_evidence() || self.is_proven(process, known));
        let reapable = match self.mode {
            Mode::Init => true,
            Mode::Subreaper => !bystander,
            Mode::Embedded => false,
        };
        if !ours && reapable && process.is_dead() {
            strays.strangers.push(process.pid);
        }
        ours
    }

    /// Whether an orphan may be a stranger's. A subreaper that began with nothing below it has only its own.
    pub(super) fn by_evidence(&self) -> bool {
        self.mode != Mode::Subreaper || !self.bystanders.is_empty()
    }

    /// Whether something tells that `process` escaped from a child of ours.
    fn is_proven(&self, process: &Stat, known: &BTreeSet<Pid>) -> bool {
        self.seen.contains(&process.identity())
            || process.group.is_some_and(|group| known.contains(&group))
            || procfs::has_variable(process.pid, KEEPER)
    }

    /// Adds what was seen below a child that is dead by now, wherever it landed: the uppermost of each tree, so
    /// that a keeper is judged before what it keeps.
    fn add_seen(&mut self, known: &BTreeSet<Pid>, roots: &mut Vec<Stat>) -> io::Result<()> {
        let mut living = Vec::new();
        let mut above: BTreeSet<Pid> = known.iter().copied().chain(roots.iter().map(|p| p.pid)).collect();
        for identity in std::mem::take(&mut self.seen) {
            if let Some(process) = procfs::stat(identity.pid)?.filter(|p| p.identity() == identity) {
                self.seen.insert(identity);
                living.push(process);
            }
        }
        let unmet = living.iter().filter(|p| !above.contains(&p.pid)).cloned().collect::<Vec<_>>();
        above.extend(living.iter().map(|p| p.pid));
        for process in unmet {
            // A zombie below somebody else waits for that one, and there is nothing left of it to kill.
            let ours = !process.is_dead() || process.parent == Some(Pid::own());
            if ours && !is_below(&process, &above)? {
                roots.push(process);
            }
        }
        Ok(())
    }
}

/// Whether one of `above` is among the ancestors of `process`: then it is found, or left alone, with that one.
fn is_below(process: &Stat, above: &BTreeSet<Pid>) -> io::Result<bool> {
    let mut parent = process.parent;
    // A chain of parents is as long as the tree is deep; the bound only guards against a list that changes
    // under the walk.
    for _ in 0..procfs::WALK {
        let Some(pid) = parent else { return Ok(false) };
        if above.contains(&pid) {
            return Ok(true);
        }
        parent = procfs::stat(pid)?.and_then(|stat| stat.parent);
    }
    Ok(false)
}

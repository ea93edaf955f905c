//! Children between their making and the process table.
//!
//! A sweep runs on the reactor while the spawner's thread makes children, so a walk of `/proc` can meet a child
//! that no table knows yet, and must not take it for an orphan. The spawner says here when it begins and what
//! came of it; a sweep looks here after its walk. Called by the spawner, the hands and [`crate::tree`].

use crate::process::Pid;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared between the spawner's thread and whoever sweeps.
#[derive(Debug, Default)]
pub struct Nursery {
    inner: Mutex<Inner>,
}

/// Whether a process is a child that was just made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// It is.
    Yes,
    /// A spawn is in hand and the process is as young as that: an orphan or the child, told apart later.
    Perhaps,
    /// It is not.
    No,
}

#[derive(Debug, Default)]
struct Inner {
    /// When the spawn in hand began, in clock ticks since boot.
    began: Option<u64>,
    /// Made, and not yet taken over by a table.
    made: BTreeSet<Pid>,
}

impl Nursery {
    /// A spawn begins: whatever starts from now on may be its child.
    pub fn begin(&self) {
        self.lock().began = Some(ticks_since_boot());
    }

    /// The spawn in hand made `pid`, or nothing that still exists.
    pub fn end(&self, made: Option<Pid>) {
        let mut inner = self.lock();
        inner.made.extend(made);
        inner.began = None;
    }

    /// A table knows `pid` from now on.
    pub fn release(&self, pid: Pid) {
        self.lock().made.remove(&pid);
    }

    /// What a child of this process that started at `start` (clock ticks since boot) is to the spawner. Only an
    /// answer for what a walk that ended before this call has met.
    pub fn knows(&self, pid: Pid, start: u64) -> Fresh {
        let inner = self.lock();
        if inner.made.contains(&pid) {
            Fresh::Yes
        } else if inner.began.is_some_and(|began| start >= began) {
            Fresh::Perhaps
        } else {
            Fresh::No
        }
    }

    /// No code here can panic while it holds the lock, so a poisoned lock still guards whole data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of `starttime` in `/proc/<pid>/stat`, rounded down as the kernel rounds it.
fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * per_second + nanos / (1_000_000_000 / per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::stat;

    #[test]
    fn a_child_is_held_from_before_its_birth_until_a_table_has_it() {
        let nursery = Nursery::default();
        nursery.begin();
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let pid = Pid::new(child.id() as i32).expect("a pid is positive");
        let start = stat(pid).expect("stat reads").expect("cat lives").start;
        assert_eq!(nursery.knows(pid, start), Fresh::Perhaps, "as young as the spawn in hand");
        nursery.end(Some(pid));
        assert_eq!(nursery.knows(pid, start), Fresh::Yes, "made, and nobody's yet");
        nursery.release(pid);
        assert_eq!(nursery.knows(pid, start), Fresh::No);
        child.kill().and_then(|()| child.wait()).expect("cat ends");
    }

    #[test]
    fn an_old_orphan_is_not_taken_for_a_fresh_child() {
        let nursery = Nursery::default();
        let own = stat(Pid::own()).expect("stat reads").expect("this process lives");
        nursery.begin();
        assert_eq!(nursery.knows(own.pid, own.start.saturating_sub(1)), Fresh::No);
        assert!(own.start <= ticks_since_boot());
    }
}

//! The kernel limits of one child (S5.6), set by its parent on the new pid, before its first frame.
//!
//! Owns the mapping of [`Walls`] to rlimits and nice. Refuses to start a child whose walls cannot be set; nice
//! alone is best effort. Called by the spawner.

use crate::process::Pid;
use agentd_core::action::Walls;
use rustix::process::{Resource, Rlimit};
use std::io;

/// From the soft limit of CPU seconds, where SIGXCPU says so, to the hard one, where SIGKILL ends it.
const CPU_GRACE_SECONDS: u64 = 5;

/// Which limit could not be set.
#[derive(Debug, thiserror::Error)]
#[error("prlimit({limit}) on process {pid}: {source}")]
pub struct WallError {
    limit: &'static str,
    pid: Pid,
    source: io::Error,
}

/// Sets the limits of `pid`, an unreaped child of this process.
///
/// # Errors
/// `prlimit(2)`: without it the child is not walled and must not run.
pub fn apply(pid: Pid, walls: &Walls) -> Result<(), WallError> {
    limit(pid, Resource::Core, "RLIMIT_CORE", 0, 0)?;
    if let Some(bytes) = walls.memory {
        limit(pid, Resource::Data, "RLIMIT_DATA", bytes, bytes)?;
    }
    if let Some(seconds) = walls.cpu_seconds {
        limit(pid, Resource::Cpu, "RLIMIT_CPU", seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
    }
    if walls.nice != 0 {
        // Best effort: a negative value needs a right that most daemons do not have.
        let _refused = rustix::process::setpriority_process(Some(pid.rustix()), walls.nice);
    }
    Ok(())
}

/// Gives `pid` back the soft limit of descriptors that its parent was started with: programs that call `select(2)` rely on
/// it, and a child passes it on to its servers.
///
/// # Errors
/// `prlimit(2)`.
pub fn lower_descriptors(pid: Pid, soft: u64) -> Result<(), WallError> {
    limit(pid, Resource::Nofile, "RLIMIT_NOFILE", soft, u64::MAX)
}

/// Sets soft and hard limit, neither above the hard limit that the child was born with: raising that needs a
/// right, and the tighter wall is the one to keep.
fn limit(pid: Pid, resource: Resource, name: &'static str, soft: u64, hard: u64) -> Result<(), WallError> {
    let born_with = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let hard = hard.min(born_with);
    let wanted = Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) };
    match rustix::process::prlimit(Some(pid.rustix()), resource, wanted) {
        Ok(_) => Ok(()),
        Err(e) => Err(WallError { limit: name, pid, source: e.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn cat() -> (Child, Pid) {
        let child =
            Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts");
        let pid = Pid::new(child.id() as i32).expect("a pid is positive");
        (child, pid)
    }

    /// Soft and hard limit as `/proc/<pid>/limits` prints them.
    fn limits(pid: Pid, name: &str) -> (String, String) {
        let all = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("the child's limits");
        let line = all.lines().find_map(|l| l.strip_prefix(name)).expect("the limit is listed");
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().expect("soft"), words.next().expect("hard"))
    }

    #[test]
    fn every_wall_stands_on_the_child_and_none_on_the_parent() {
        let (mut child, pid) = cat();
        let own = |name| limits(Pid::own(), name);
        let before = (own("Max data size"), own("Max cpu time"), own("Max core file size"));
        let walls = Walls { memory: Some(200 << 20), cpu_seconds: Some(7), nice: 10 };
        apply(pid, &walls).expect("the walls are set");
        let both = |n: &str| (n.to_owned(), n.to_owned());
        assert_eq!(limits(pid, "Max data size"), both("209715200"));
        assert_eq!(limits(pid, "Max cpu time"), ("7".to_owned(), "12".to_owned()));
        assert_eq!(limits(pid, "Max core file size"), both("0"));
        assert_eq!(rustix::process::getpriority_process(Some(pid.rustix())).expect("nice is read"), 10);
        assert_eq!(before, (own("Max data size"), own("Max cpu time"), own("Max core file size")));
        child.kill().and_then(|()| child.wait()).expect("cat ends");
    }

    #[test]
    fn walls_that_are_not_asked_for_stay_as_inherited() {
        let (mut child, pid) = cat();
        apply(pid, &Walls::default()).expect("the walls are set");
        assert_eq!(limits(pid, "Max data size"), limits(Pid::own(), "Max data size"));
        assert_eq!(limits(pid, "Max cpu time"), limits(Pid::own(), "Max cpu time"));
        child.kill().and_then(|()| child.wait()).expect("cat ends");
    }

    #[test]
    fn the_soft_limit_of_descriptors_is_given_back_and_the_hard_one_stays() {
        let (mut child, pid) = cat();
        let (own_soft, hard) = limits(Pid::own(), "Max open files");
        lower_descriptors(pid, 77).expect("lowered");
        assert_eq!(limits(pid, "Max open files"), ("77".to_owned(), hard.clone()));
        assert_eq!(limits(Pid::own(), "Max open files"), (own_soft, hard));
        child.kill().and_then(|()| child.wait()).expect("cat ends");
    }

    #[test]
    fn extremes_do_not_overflow_and_a_dead_child_is_named() {
        let (mut child, pid) = cat();
        let walls = Walls { memory: Some(u64::MAX), cpu_seconds: Some(u64::MAX), nice: i32::MIN };
        apply(pid, &walls).expect("the largest numbers are no limit");
        child.kill().and_then(|()| child.wait()).expect("cat ends");
        let text = apply(pid, &walls).expect_err("nobody has this pid").to_string();
        assert!(text.contains("RLIMIT_CORE") && text.contains(&pid.to_string()), "{text}");
    }
}

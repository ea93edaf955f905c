//! Reading `/proc`: one process's `stat` line, its children over all its threads, a walk of a subtree.
//!
//! Owns the parsing and its tolerance of processes that vanish between two reads. Refuses a `/proc` of another
//! PID namespace. Called by the rest of [`crate::tree`] and by tests.

use super::victim::Identity;
use crate::process::Pid;
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

/// What `/proc/<pid>/stat` says, as far as supervision needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Whose line it is.
    pub pid: Pid,
    /// Its name, up to 15 bytes that the process chose itself.
    pub comm: Vec<u8>,
    /// `R`, `S`, `D`, `Z`, `T`, ….
    pub state: u8,
    /// `None` when the parent is outside this PID namespace.
    pub parent: Option<Pid>,
    /// `None` when the group's leader is outside this PID namespace.
    pub group: Option<Pid>,
    /// Threads that have not ended.
    pub threads: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl Stat {
    /// The process behind the number.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start: self.start }
    }

    /// Whether the whole process has ended and only waits to be reaped. A leader that ended before its other
    /// threads reads as a zombie too, and lives.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// Parses one line. The name may hold spaces and parentheses, so it ends at the last `)`.
    pub(super) fn parse(line: &[u8]) -> Option<Stat> {
        let open = line.iter().position(|b| *b == b'(')?;
        let close = line.iter().rposition(|b| *b == b')')?;
        let comm = line.get(open + 1..close)?.to_vec();
        let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok().and_then(Pid::new)?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        // The third field of proc_pid_stat(5) is the first one here.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3).and_then(|f| f.parse::<i64>().ok());
        let pid_at = |field| number(field).and_then(|n| i32::try_from(n).ok());
        Some(Stat {
            pid,
            comm,
            state: *fields.first()?.as_bytes().first()?,
            parent: Pid::new(pid_at(4)?),
            group: Pid::new(pid_at(5)?),
            threads: u32::try_from(number(20)?).ok()?,
            start: u64::try_from(number(22)?).ok()?,
        })
    }
}

/// Reads the `stat` line of `pid`; `None` when there is no such process.
///
/// # Errors
/// `/proc` could not be read for another reason, `EMFILE` for one.
pub fn stat(pid: Pid) -> io::Result<Option<Stat>> {
    let Some(line) = gone(fs::read(format!("/proc/{pid}/stat")))? else { return Ok(None) };
    match Stat::parse(&line) {
        Some(stat) => Ok(Some(stat)),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/{pid}/stat has no line of proc_pid_stat(5): {:?}", String::from_utf8_lossy(&line)),
        )),
    }
}

/// The children of every thread of `pid`, zombies included; empty when there is no such process. The kernel
/// may skip some while the list changes.
///
/// # Errors
/// `/proc` could not be read for another reason than that the process is gone.
pub fn children(pid: Pid) -> io::Result<Vec<Pid>> {
    if has_children_files() {
        children_of_threads(pid)
    } else {
        Ok(parents()?.remove(&pid).unwrap_or_default())
    }
}

/// Everything below `root`, parents before their children, at most `WALK` processes.
///
/// # Errors
/// As [`children`].
pub fn descendants(root: Pid) -> io::Result<Vec<Stat>> {
    let mut below = Vec::new();
    walk(children(root)?, &mut BTreeSet::from([root]), |_| true, &mut below)?;
    Ok(below)
}

/// Processes in one walk. What is beyond it is met by the next walk, when these are gone.
pub(super) const WALK: usize = 4_096;

/// Appends `roots` and all below them for which `enter` says yes; what it refuses is neither listed nor walked.
pub(super) fn walk(
    roots: Vec<Pid>,
    visited: &mut BTreeSet<Pid>,
    mut enter: impl FnMut(&Stat) -> bool,
    found: &mut Vec<Stat>,
) -> io::Result<()> {
    let mut table = if has_children_files() { None } else { Some(parents()?) };
    let mut open = std::collections::VecDeque::from(roots);
    while let Some(pid) = open.pop_front() {
        if found.len() >= WALK {
            break;
        }
        if !visited.insert(pid) {
            continue;
        }
        let Some(process) = stat(pid)? else { continue };
        if !enter(&process) {
            continue;
        }
        found.push(process);
        match &mut table {
            None => open.extend(children_of_threads(pid)?),
            Some(table) => open.extend(table.remove(&pid).unwrap_or_default()),
        }
    }
    Ok(())
}

/// Refuses a `/proc` in which this process has another number, or none: its numbers would name strangers.
pub(super) fn check_namespace() -> io::Result<()> {
    let seen = fs::read("/proc/self/stat").map_err(|e| {
        io::Error::new(e.kind(), format!("reading /proc/self/stat: {e}; mount a proc file system at /proc"))
    })?;
    match Stat::parse(&seen) {
        Some(stat) if stat.pid == Pid::own() => Ok(()),
        Some(stat) => Err(io::Error::other(format!(
            "/proc belongs to another PID namespace: it calls this process {}, which is {} here; \
             mount a fresh proc file system at /proc",
            stat.pid,
            Pid::own()
        ))),
        None => Err(io::Error::other("/proc/self/stat has no line of proc_pid_stat(5)")),
    }
}

/// Whether `pid` was started with the variable `name`; no, when it is gone, a zombie, or not ours to look into.
pub(super) fn has_variable(pid: Pid, name: &str) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|b| *b == 0).any(|v| v.strip_prefix(name.as_bytes()).is_some_and(|v| v.starts_with(b"=")))
}

fn children_of_threads(pid: Pid) -> io::Result<Vec<Pid>> {
    match gone(Threads::of(&pid.to_string()))? {
        Some(mut threads) => threads.children(),
        None => Ok(Vec::new()),
    }
}

/// The threads of one process, whose lists of children are read again and again.
#[derive(Debug)]
pub(super) struct Threads(OwnedFd);

impl Threads {
    /// This process's; `None` where the kernel does not have the lists.
    pub(super) fn own() -> io::Result<Option<Threads>> {
        if has_children_files() { Threads::of("self").map(Some) } else { Ok(None) }
    }

    fn of(process: &str) -> io::Result<Threads> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Threads(rustix::fs::open(format!("/proc/{process}/task"), flags, Mode::empty())?))
    }

    /// The children of all threads, zombies included; a thread or a process that is gone has none.
    pub(super) fn children(&mut self) -> io::Result<Vec<Pid>> {
        let mut children = Vec::new();
        let mut names = [MaybeUninit::uninit(); 2_048];
        let mut list = Vec::new();
        rustix::fs::seek(&self.0, SeekFrom::Start(0))?;
        let mut threads = RawDir::new(&self.0, &mut names);
        while let Some(thread) = threads.next() {
            let Some(thread) = gone(thread.map_err(io::Error::from))? else { break };
            let name = thread.file_name().to_bytes();
            if name.first().is_some_and(u8::is_ascii_digit) {
                self.read_list(name, &mut list)?;
                let numbers = list.split(u8::is_ascii_whitespace).map(std::str::from_utf8);
                children.extend(numbers.filter_map(|n| n.ok()?.parse().ok()).filter_map(Pid::new));
            }
        }
        Ok(children)
    }

    /// Reads the list of one thread, without the look at its size that a file of `/proc` has no use for.
    fn read_list(&self, thread: &[u8], list: &mut Vec<u8>) -> io::Result<()> {
        list.clear();
        let path = [thread, b"/children"].concat();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, path, flags, Mode::empty()).map_err(io::Error::from);
        let Some(file) = gone(file)? else { return Ok(()) };
        loop {
            list.reserve(4_096);
            let read = rustix::io::read(&file, rustix::buffer::spare_capacity(list));
            match gone(read.map_err(io::Error::from))? {
                Some(0) | None => return Ok(()),
                Some(_) => {}
            }
        }
    }
}

/// Whether the kernel has `/proc/<pid>/task/<tid>/children` (CONFIG_PROC_CHILDREN).
fn has_children_files() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| Path::new("/proc/thread-self/children").exists())
}

/// Everybody's children, from one reading of the whole of `/proc`.
fn parents() -> io::Result<BTreeMap<Pid, Vec<Pid>>> {
    let mut table: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse().ok()).and_then(Pid::new) else { continue };
        if let Some(Stat { parent: Some(parent), .. }) = stat(pid)? {
            table.entry(parent).or_default().push(pid);
        }
    }
    Ok(table)
}

/// `None` for what a process that vanished leaves: a missing file, or `ESRCH` in the middle of one.
fn gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if e.raw_os_error() == Some(nix::libc::ESRCH) => Ok(None),
        Err(e) => Err(e),
    }
}

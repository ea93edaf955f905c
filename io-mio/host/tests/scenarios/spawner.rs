//! Making children (S1.1, S3.3, S5.1, S5.2, S5.10; F30).

use crate::harness::{Part, Scenario, skip};
use agentd_core::action::Walls;
use agentd_core::event::Exit;
use agentd_core::id::NodeId;
use agentd_host::Pid;
use agentd_host::nursery::Nursery;
use agentd_host::spawner::{Answer, Born, Image, Order, SpawnError, Spawner};
use agentd_host::tree::{children, stat};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_child_has_its_group_its_walls_its_name_and_nothing_else", born),
    ("a_program_that_cannot_run_is_one_failed_answer", cannot_run),
    ("out_of_descriptors_is_transient_and_leaves_nothing", out_of_descriptors),
    ("every_order_is_answered_once_in_order_with_a_wake", answered_once),
    ("dropping_the_spawner_ends_what_nobody_took", dropped),
    ("a_name_with_a_zero_byte_is_refused", zero_byte),
    ("no_spawn_forks", no_fork),
];

pub(crate) const PARTS: &[Part] = &[("spawn-ten", spawn_ten)];

const PATIENCE: Duration = Duration::from_secs(30);

/// A spawner of shells that run their own name, and its wake-ups.
fn spawner(program: &str) -> (Spawner, Receiver<()>) {
    let args = vec!["-c".into(), "eval \"$AGENTD_NAME\"".into()];
    let env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("EMPTY".into(), "".into())];
    let image = Image::of(program.as_ref(), args, env).expect("it has a slash");
    let (wake, woken) = channel();
    let wake = Box::new(move || wake.send(()).unwrap_or(()));
    let spawner = Spawner::start(image, Arc::new(Nursery::default()), wake).expect("the thread starts");
    (spawner, woken)
}

fn order(spawner: &Spawner, node: u64, name: &str, walls: Walls) {
    spawner.order(Order { node: NodeId(node), name: name.to_owned(), walls }).expect("there is room");
}

fn answer(spawner: &Spawner, woken: &Receiver<()>) -> Answer {
    woken.recv_timeout(PATIENCE).expect("a wake in time");
    spawner.answer().expect("a wake means an answer")
}

fn spawn(spawner: &Spawner, woken: &Receiver<()>, name: &str, walls: Walls) -> Result<Born, SpawnError> {
    order(spawner, 1, name, walls);
    answer(spawner, woken).1
}

/// All that a child writes until it closes its stdout.
fn all_of(fd: std::os::fd::OwnedFd) -> String {
    let flags = rustix::fs::fcntl_getfl(&fd).expect("flags are read");
    rustix::fs::fcntl_setfl(&fd, flags - OFlags::NONBLOCK).expect("flags are set");
    let mut text = String::new();
    std::fs::File::from(fd).read_to_string(&mut text).expect("the child writes text");
    text
}

fn ended(born: &mut Born) -> Exit {
    readable(born.process.as_fd(), "an exit");
    born.process.exit().expect("waitid works").expect("it ended")
}

fn readable(fd: BorrowedFd<'_>, what: &str) {
    let limit = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).expect("poll works"), 1, "no {what} in 30 s");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the own descriptors").count()
}

fn born() {
    let inherited = pipes_of("self");
    let (spawner, woken) = spawner("/bin/sh");
    let walls = Walls { memory: Some(64 << 20), cpu_seconds: Some(11), nice: 5 };
    let script = "echo up >&2; read _; ulimit -d; ulimit -t; ulimit -c; nice; echo no-error >&2";
    let mut child = spawn(&spawner, &woken, script, walls).expect("sh starts");
    let pid = child.process.pid();
    let seen = stat(pid).expect("stat reads").expect("it lives");
    readable(child.stderr.as_fd(), "its execution is complete");
    assert_eq!((seen.group, seen.parent), (Some(pid), Some(Pid::own())), "its own group before the answer");
    for ours in [&child.stdin, &child.stdout, &child.stderr] {
        assert!(rustix::fs::fcntl_getfl(ours).expect("flags are read").contains(OFlags::NONBLOCK));
    }
    for theirs in 0..3 {
        let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{theirs}")).expect("its descriptors");
        let flags = info.lines().find_map(|l| l.strip_prefix("flags:")).expect("flags are listed").trim();
        let flags = u32::from_str_radix(flags, 8).expect("octal");
        assert_eq!(flags & OFlags::NONBLOCK.bits(), 0, "its descriptor {theirs} waits as usual");
    }
    // What this program itself was started with is the child's own to close; nothing we open is among it.
    let theirs = pipes_of(&pid.to_string());
    assert_eq!(theirs.difference(&inherited).count(), 3);
    let own_name = format!("AGENTD_NAME={script}");
    let parent = format!("AGENTD_PARENT_PID={}", Pid::own());
    assert_eq!(
        zero_ended(pid, "environ"),
        [&own_name, &parent, "AGENTD_SUBAGENT=1", "EMPTY=", "PATH=/usr/bin:/bin"]
    );
    assert_eq!(zero_ended(pid, "cmdline")[0], script, "ps shows its name");
    rustix::io::write(&child.stdin, b"go\n").expect("it has not read yet");
    assert_eq!(ended(&mut child), Exit::Code(0));
    let out = all_of(child.stdout);
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(words, ["65536", "11", "0", "5"], "its walls stand before it reads");
    assert_eq!(all_of(child.stderr), "up\nno-error\n");
    assert!(child.process.reap().expect("waitid works"));
}

/// The pipes that a process has open.
fn pipes_of(process: &str) -> BTreeSet<String> {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    let links = descriptors.filter_map(|entry| std::fs::read_link(entry.expect("an entry").path()).ok());
    links.map(|l| l.to_string_lossy().into_owned()).filter(|l| l.starts_with("pipe:")).collect()
}

/// The sorted entries of a file of `/proc/<pid>` that ends each with a zero byte.
fn zero_ended(pid: Pid, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the child's own");
    let mut entries: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    if file == "environ" {
        entries.sort_unstable();
    }
    entries
}

fn cannot_run() {
    let before = open_descriptors();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = dir.path().join("not-executable");
    std::fs::write(&text, "hello").expect("a file");
    for (program, said) in
        [(text.to_str().expect("text"), "Permission denied"), ("/nonexistent/program", "No such file")]
    {
        let (spawner, woken) = spawner(program);
        for _ in 0..3 {
            let e = spawn(&spawner, &woken, "exit 0", Walls::default()).expect_err("it cannot start");
            assert!(!e.transient && e.what.contains(program) && e.what.contains(said), "{e}");
        }
    }
    assert_eq!(open_descriptors(), before);
    assert!(children(Pid::own()).expect("the walk works").is_empty());
    assert!(Image::of("sh".as_ref(), Vec::new(), Vec::new()).is_none(), "a bare name would fork");
}

fn out_of_descriptors() {
    let (spawner, woken) = spawner("/bin/sh");
    let before = open_descriptors();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let mut failed = BTreeSet::new();
    // Each further descriptor that is to be had lets a later call fail.
    for soft in 3.. {
        let low = rustix::process::Rlimit { current: Some(soft), ..limit };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, low).expect("the limit is lowered");
        let result = spawn(&spawner, &woken, "read _", Walls::default());
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("the limit is raised");
        let made = result.is_ok();
        match result {
            Ok(born) => born.process.kill_and_reap().expect("waitid works"),
            Err(e) => {
                assert!(e.transient, "with {soft} descriptors: {e}");
                failed.insert(e.what);
            }
        }
        assert_eq!(open_descriptors(), before, "with {soft} descriptors");
        assert!(children(Pid::own()).expect("the walk works").is_empty(), "with {soft} descriptors");
        if made {
            break;
        }
    }
    assert_eq!(failed.len(), 3, "each of three pipes has failed: {failed:?}");
    let born = spawn(&spawner, &woken, "read _", Walls::default()).expect("a later spawn works");
    born.process.kill_and_reap().expect("waitid works");
}

fn answered_once() {
    let (spawner, woken) = spawner("/bin/sh");
    for node in 0..50 {
        order(&spawner, node, "read _", Walls::default());
    }
    let mut all = Vec::new();
    for node in 0..50 {
        let (answered, born) = answer(&spawner, &woken);
        assert_eq!(answered, NodeId(node));
        all.push(born.expect("sh starts"));
    }
    assert!(spawner.answer().is_none() && woken.try_recv().is_err());
    for born in all {
        born.process.kill_and_reap().expect("waitid works");
    }
}

fn dropped() {
    let (spawner, woken) = spawner("/bin/sh");
    for node in 0..5 {
        order(&spawner, node, "trap '' TERM; read _; sleep 1000", Walls::default());
    }
    woken.recv_timeout(PATIENCE).expect("one was made");
    drop(spawner);
    assert!(children(Pid::own()).expect("the walk works").is_empty(), "made or not, none is left");
}

fn zero_byte() {
    let (spawner, woken) = spawner("/bin/sh");
    let e = spawn(&spawner, &woken, "exit\0 0", Walls::default()).expect_err("no argument holds a zero byte");
    assert!(!e.transient, "{e}");
    let born = spawn(&spawner, &woken, "read _", Walls::default()).expect("the thread lives on");
    born.process.kill_and_reap().expect("waitid works");
}

fn spawn_ten(_: &[String]) -> ExitCode {
    let (spawner, woken) = spawner("/bin/true");
    for _ in 0..10 {
        let mut born = spawn(&spawner, &woken, "x", Walls::default()).expect("true starts");
        ended(&mut born);
        born.process.reap().expect("waitid works");
    }
    ExitCode::SUCCESS
}

/// A fork copies the page tables of the whole supervisor; this shows that std still takes the short way.
fn no_fork() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let log = dir.path().join("strace");
    let me = std::env::current_exe().expect("this program has a path");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fork,vfork,clone,clone3", "-o"]).arg(&log);
    strace.arg(me).args(["--play", "spawn-ten"]).stderr(Stdio::null());
    match strace.status() {
        Ok(status) if status.success() => {}
        Ok(_) | Err(_) => skip("strace cannot trace here"),
    }
    let log = std::fs::read_to_string(&log).expect("strace wrote its log");
    let made: Vec<&str> = log
        .lines()
        .filter(|l| (l.contains("fork(") || l.contains("clone")) && !l.contains("resumed"))
        .collect();
    let (threads, processes): (Vec<&str>, Vec<&str>) = made.iter().partition(|l| l.contains("CLONE_THREAD"));
    assert_eq!((threads.len(), processes.len()), (1, 10), "{log}");
    for line in processes {
        assert!(line.contains("vfork(") || line.contains("CLONE_VM|CLONE_VFORK"), "{line}");
    }
}

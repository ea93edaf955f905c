//! Sweeps below this process (S5.3, S5.4, S5.5; F01, F07, F39).

use crate::harness::{Part, Scenario, lines, skip};
use agentd_core::event::Exit;
use agentd_host::Pid;
use agentd_host::process::Process;
use agentd_host::tree::{Below, Mode, Pass, descendants, stat};
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("escapees_are_killed_and_reaped_while_the_zombie_pins_the_pid", escapees),
    ("a_known_child_keeps_its_own_subtree", known_subtree),
    ("bystanders_from_before_the_start_are_neither_killed_nor_reaped", bystanders),
    ("inside_another_program_only_what_was_seen_is_killed", embedded),
    ("a_keeper_is_asked_once_and_killed_only_when_told", keeper),
    ("a_process_that_keeps_forking_is_caught", forker),
    ("orphans_that_ended_are_reaped_and_statuses_stay_apart", reaping),
    ("a_child_in_the_making_is_not_taken_for_an_orphan", fresh),
    ("pid_1_reaps_strangers_and_kills_only_its_own", || in_namespace("init")),
    ("a_proc_of_another_namespace_is_refused", foreign_proc),
];

pub(crate) const PARTS: &[Part] = &[("init", init), ("foreign-proc", foreign_proc_part)];

/// Long enough for a loaded machine, short of the harness's own limit.
const PATIENCE: Duration = Duration::from_secs(30);

/// A child that runs `script` in sh, in a group of its own, and the lines that it and its offspring write.
fn sh(script: &str) -> (Child, Process, Receiver<String>) {
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("sh starts");
    let process = Process::open(Pid::new(child.id() as i32).expect("positive")).expect("the pidfd opens");
    let out = lines(child.stdout.take().expect("stdout is piped"));
    (child, process, out)
}

/// The next line, as a pid when it is a number.
fn line(out: &Receiver<String>) -> String {
    out.recv_timeout(PATIENCE).expect("a line in time")
}

fn pid(out: &Receiver<String>) -> Pid {
    line(out).parse().ok().and_then(Pid::new).expect("a pid")
}

/// Waits for the exit without reaping.
fn ended(process: &mut Process) -> Exit {
    let limit = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(process.as_fd(), rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).expect("poll works"), 1, "no exit in 30 s");
    process.exit().expect("waitid works").expect("it ended")
}

/// Passes until nothing remains; all that was killed, and how many passes it took.
fn sweep(below: &mut Below, known: &BTreeSet<Pid>) -> (u32, u32) {
    let (mut killed, mut passes) = (0, 0);
    loop {
        let pass = below.pass(known, true).expect("the pass works");
        killed += pass.killed;
        passes += 1;
        if pass.remaining == 0 {
            return (killed, passes);
        }
        assert!(passes < 10_000, "{} remain after {passes} passes", pass.remaining);
        std::thread::yield_now();
    }
}

fn is_gone(pid: Pid) -> bool {
    stat(pid).expect("stat reads").is_none()
}

fn escapees() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    // One leaves by setsid, one by a double fork as well, one ignores SIGTERM, one has a child of its own.
    let (child, mut process, out) = sh("
        setsid sh -c 'echo $$; exec sleep 1000' &
        (setsid sh -c 'echo $$; exec sleep 1000' &)
        (setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &)
        (setsid sh -c 'sleep 1000 & echo $$; wait' &)
        read _
        exit 5");
    let escaped: Vec<Pid> = (0..4).map(|_| pid(&out)).collect();
    let known = BTreeSet::from([process.pid()]);
    drop(child.stdin);
    assert_eq!(ended(&mut process), Exit::Code(5));
    let (killed, _) = sweep(&mut below, &known);
    assert_eq!(killed, 5, "four escapees and the child of one");
    assert!(escaped.iter().all(|pid| is_gone(*pid)));
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(5)), "the sweep took no status");
    assert!(process.reap().expect("waitid works"));
    assert_eq!(below.pass(&BTreeSet::new(), true).expect("the pass works"), Pass::default());
}

fn known_subtree() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    let (child, mut process, out) = sh("setsid sh -c 'echo $$; exec sleep 1000' & read _; exit 0");
    let grandchild = pid(&out);
    let known = BTreeSet::from([process.pid()]);
    assert_eq!(below.pass(&known, true).expect("the pass works"), Pass::default());
    assert!(!is_gone(grandchild));
    drop(child.stdin);
    ended(&mut process);
    assert_eq!(sweep(&mut below, &known).0, 1, "now it is an orphan");
    assert!(is_gone(grandchild));
    assert!(process.reap().expect("waitid works"));
}

fn bystanders() {
    // One lives on and forks later, one is a zombie already.
    let (living, mut alive, out) = sh("echo up; read _; (setsid sleep 1000 & echo $!); read _");
    assert_eq!(line(&out), "up");
    let (_zombie, mut dead, _) = sh("exit 6");
    assert_eq!(ended(&mut dead), Exit::Code(6));
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    assert_eq!(sweep(&mut below, &BTreeSet::new()).0, 0);
    assert_eq!(below.reap_orphans(&BTreeSet::new()).expect("reaping works"), 0);
    let mut stdin = living.stdin.expect("stdin is piped");
    std::io::Write::write_all(&mut stdin, b"\n").expect("sh reads");
    let orphan = pid(&out);
    assert_eq!(sweep(&mut below, &BTreeSet::new()).0, 0, "a bystander's orphan is not taken for ours");
    assert_eq!(dead.exit().expect("waitid works"), Some(Exit::Code(6)), "its status is still there");
    assert_eq!(alive.exit().expect("waitid works"), None);
    assert!(!is_gone(orphan));
    drop(stdin);
    assert_eq!(ended(&mut alive), Exit::Code(1));
    assert!(alive.reap().expect("waitid works") && dead.reap().expect("waitid works"));
    let orphan = Process::open(orphan).expect("the orphan lives, below this subreaper");
    orphan.kill_and_reap().expect("waitid works");
}

fn embedded() {
    let mut below = Below::new(Mode::Embedded).expect("/proc is there");
    let (child, mut process, out) = sh("setsid sh -c 'echo $$; exec sleep 1000' & read _; exit 1");
    let escaped = pid(&out);
    let (own, mut own_process, _) = sh("read _; exit 9");
    let (_ended, mut own_zombie, _) = sh("exit 8");
    assert_eq!(ended(&mut own_zombie), Exit::Code(8));
    let known = BTreeSet::from([process.pid()]);
    below.remember(process.pid()).expect("the walk works");
    assert_eq!(below.pass(&known, true).expect("the pass works"), Pass::default(), "it is still the child's");
    drop(child.stdin);
    assert_eq!(ended(&mut process), Exit::Code(1));
    let pass = below.pass(&known, true).expect("the pass works");
    assert_eq!(pass.killed, 1, "the orphan landed elsewhere and was seen before");
    sweep(&mut below, &known);
    below.reap_orphans(&known).expect("reaping works");
    assert!(stat(escaped).expect("stat reads").is_none_or(|p| p.is_dead()));
    assert_eq!(own_process.exit().expect("waitid works"), None, "the program's own child lives");
    assert_eq!(
        own_zombie.exit().expect("waitid works"),
        Some(Exit::Code(8)),
        "and this one's status is kept"
    );
    drop(own.stdin);
    assert_eq!(ended(&mut own_process), Exit::Code(9));
    for mut process in [process, own_process, own_zombie] {
        assert!(process.reap().expect("waitid works"));
    }
}

fn keeper() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    let (child, mut process, out) = sh("
        AGENTD_KEEPER=3 setsid sh -c '
            trap \"echo asked\" TERM; sleep 1000 & echo up; while :; do wait; done' &
        read _");
    assert_eq!(line(&out), "up");
    let known = BTreeSet::from([process.pid()]);
    drop(child.stdin);
    ended(&mut process);
    for _ in 0..3 {
        let pass = below.pass(&known, false).expect("the pass works");
        assert_eq!(pass, Pass { killed: 0, remaining: 2 }, "the keeper and its server are left to it");
    }
    assert_eq!(line(&out), "asked");
    let (killed, _) = sweep(&mut below, &known);
    assert_eq!(killed, 2);
    assert!(out.recv_timeout(PATIENCE).is_err(), "it was asked once, and the pipe ends with it");
    assert!(process.reap().expect("waitid works"));
}

fn forker() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    // Each generation starts the next and ends; every tenth leaves a sleeper.
    let dir = tempfile::tempdir().expect("a temporary directory");
    let next = dir.path().join("next");
    let (child, mut process, out) = sh(&format!(
        "NEXT={}
        echo 'i=$1; [ $((i % 10)) = 0 ] && sleep 1000 & sh $0 $(($1 + 1)) & ' > $NEXT
        setsid sh $NEXT 1; echo up; read _",
        next.display()
    ));
    assert_eq!(line(&out), "up");
    let known = BTreeSet::from([process.pid()]);
    drop(child.stdin);
    ended(&mut process);
    let (killed, passes) = sweep(&mut below, &known);
    assert!(killed >= 1, "{killed} killed in {passes} passes");
    assert!(process.reap().expect("waitid works"));
}

fn reaping() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    let (child, mut process, out) = sh("
        exec 3<&0
        for i in 1 2 3 4 5; do (sh -c 'read _ <&3; exit 7' & echo $!); done
        echo up; read _; exit 4");
    let orphans: Vec<Pid> = (0..5).map(|_| pid(&out)).collect();
    assert_eq!(line(&out), "up", "their parents are gone");
    let known = BTreeSet::from([process.pid()]);
    drop(child.stdin);
    assert_eq!(ended(&mut process), Exit::Code(4));
    let mut reaped = 0;
    while reaped < 5 {
        reaped += below.reap_orphans(&known).expect("reaping works");
        std::thread::yield_now();
    }
    assert!(orphans.iter().all(|pid| is_gone(*pid)));
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(4)));
    assert!(process.reap().expect("waitid works"));
}

fn fresh() {
    let mut below = Below::new(Mode::Subreaper).expect("this process can be a subreaper");
    let nursery = below.nursery();
    nursery.begin();
    let (_child, mut process, _) = sh("read _");
    let pass = below.pass(&BTreeSet::new(), true).expect("the pass works");
    assert_eq!(pass, Pass { killed: 0, remaining: 1 }, "it may be an orphan: the next pass knows");
    nursery.end(Some(process.pid()));
    assert_eq!(below.pass(&BTreeSet::new(), true).expect("the pass works"), Pass::default());
    nursery.release(process.pid());
    let known = BTreeSet::from([process.pid()]);
    assert_eq!(below.pass(&known, true).expect("the pass works"), Pass::default());
    assert_eq!(process.exit().expect("waitid works"), None, "nothing has touched it");
    process.kill_and_reap().expect("waitid works");
}

/// Plays `part` as PID 1 of a namespace with its own `/proc`.
fn in_namespace(part: &str) {
    let me = std::env::current_exe().expect("this program has a path");
    let mut unshare = Command::new("unshare");
    let status = unshare.args(["-pf", "--mount-proc", "true"]).stderr(Stdio::null()).status();
    if !status.is_ok_and(|s| s.success()) {
        skip("this user cannot make a PID namespace (unshare -pf --mount-proc)");
    }
    let mut unshare = Command::new("unshare");
    let status = unshare.args(["-pf", "--mount-proc", "--"]).arg(me).args(["--play", part]).status();
    assert!(status.expect("unshare starts").success());
}

fn init(_: &[String]) -> ExitCode {
    assert_eq!(Mode::of_own_process(), Mode::Init);
    let mut below = Below::new(Mode::Init).expect("/proc is ours");
    // A stranger's orphan that lives, and 50 that end (F39), below a child that is none of ours to know.
    let (stranger, mut foreign, out) = sh("
        (setsid sh -c 'echo $$; exec sleep 1000' &)
        i=0; while [ $i -lt 50 ]; do (setsid true &); i=$((i + 1)); done; echo done; read _");
    let mut orphan = None;
    for _ in 0..2 {
        let said = line(&out);
        orphan = orphan.or(said.parse().ok().and_then(Pid::new));
    }
    let orphan = orphan.expect("the orphan told its pid");
    let (child, mut process, out) = sh("setsid sh -c 'echo $$; exec sleep 1000' & read _; exit 3");
    let escaped = pid(&out);
    let known = BTreeSet::from([process.pid()]);
    below.remember(process.pid()).expect("the walk works");
    drop(child.stdin);
    assert_eq!(ended(&mut process), Exit::Code(3));
    let (killed, _) = sweep(&mut below, &known);
    assert_eq!(killed, 1);
    assert!(is_gone(escaped) && !is_gone(orphan), "ours is gone, the stranger's lives");
    drop(stranger.stdin);
    while foreign.exit().expect("waitid works").is_none() || !zombies(&known).is_empty() {
        below.reap_orphans(&known).expect("reaping works");
        std::thread::yield_now();
    }
    assert_eq!(process.exit().expect("waitid works"), Some(Exit::Code(3)), "no status was mixed up");
    assert!(process.reap().expect("waitid works"));
    // The namespace ends with its PID 1, and the stranger's orphan with it.
    ExitCode::SUCCESS
}

fn zombies(known: &BTreeSet<Pid>) -> Vec<Pid> {
    let all = descendants(Pid::own()).expect("the walk works");
    all.iter().filter(|p| p.is_dead() && !known.contains(&p.pid)).map(|p| p.pid).collect()
}

fn foreign_proc() {
    let me = std::env::current_exe().expect("this program has a path");
    let mut unshare = Command::new("unshare");
    if !unshare.args(["-pf", "true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        skip("this user cannot make a PID namespace (unshare -pf)");
    }
    let mut unshare = Command::new("unshare");
    let status = unshare.args(["-pf", "--"]).arg(me).args(["--play", "foreign-proc"]).status();
    assert!(status.expect("unshare starts").success());
}

fn foreign_proc_part(_: &[String]) -> ExitCode {
    let refused = Below::new(Mode::Init).expect_err("the numbers of this /proc are not ours");
    let text = refused.to_string();
    assert!(text.contains("/proc") && text.contains("mount"), "{text}");
    ExitCode::SUCCESS
}

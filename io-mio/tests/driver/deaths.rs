//! Deaths, and what the dead leave behind (S5.3, S5.4, S5.5; F01, F28).

use crate::harness::Scenario;
use crate::stage::{Memory, actors, nothing_left, open_descriptors, play, play_with, said, shells};
use agentd_core::action::{Action, ChildSignal};
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_host::Pid;
use agentd_host::tree::stat;
use agentd_io_mio::Options;
use std::process::{Command, Stdio};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("forty_children_killed_at_once_are_told_apart", forty_killed),
    ("forty_children_that_end_at_once_are_told_apart", forty_ended),
    ("escapees_are_gone_before_their_run_is_reaped", escapees),
    ("the_escapees_of_many_that_die_at_once_are_all_gone", many_escapees),
    ("inside_another_program_its_own_children_are_left_alone", embedded),
    ("a_stopped_child_gets_its_sigterm", stopped),
    ("the_kill_reaches_the_whole_group", whole_group),
];

fn kill(node: u64) -> Action {
    Action::Signal { node: NodeId(node), signal: ChildSignal::Kill }
}

fn forty_killed() {
    let mut up = 0;
    let trace = play(&["echo up; read _; exit 1"; 40], |event, out| {
        if matches!(event, Event::ChildBytes { .. }) {
            up += 1;
            if up == 40 {
                out.extend((1..=40).map(kill));
            }
        }
    });
    for node in 1..=40 {
        assert_eq!(trace.exit(node), Exit::Signal(9), "node {node}");
    }
}

fn forty_ended() {
    // All wait at one pipe and end when it closes.
    let dir = tempfile::tempdir().expect("a temporary directory");
    let gate = dir.path().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().expect("mkfifo starts");
    assert!(made.success());
    let scripts: Vec<String> =
        (1..=40).map(|n| format!("exec 9<{}; echo up; read _ <&9; exit {n}", gate.display())).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let mut open = Some(std::fs::File::options().read(true).write(true).open(&gate).expect("the gate opens"));
    let before = open_descriptors();
    let mut up = 0;
    let plan = |event: &Event, _: &mut Vec<Action>| {
        if matches!(event, Event::ChildBytes { .. }) {
            up += 1;
            if up == 40 {
                open = None;
            }
        }
    };
    let options = crate::stage::options(shells());
    let (trace, _) = play_with(options, &scripts, plan, Memory::default());
    for node in 1..=40 {
        assert_eq!(trace.exit(node), Exit::Code(node as i32), "node {node}");
    }
    nothing_left(before - 1);
}

/// By setsid, by setsid and a double fork, and one with a child of its own that ignores SIGTERM.
const ESCAPE: &str = "
    setsid sh -c 'echo $$; exec sleep 1000' &
    (setsid sh -c 'echo $$; exec sleep 1000' &)
    (setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $$; wait' &)
    read _";

fn escapees() {
    let mut lines = 0;
    let mut escaped = Vec::new();
    let trace = play(&[ESCAPE], |event, out| match event {
        Event::ChildBytes { bytes, .. } => {
            lines += bytes.iter().filter(|b| **b == b'\n').count();
            escaped.extend_from_slice(bytes);
            if lines == 3 {
                out.push(kill(1));
            }
        }
        // Nothing of it is left when the core lets go of the pid.
        Event::Swept { remaining: 0, .. } => {
            let text = String::from_utf8_lossy(&escaped);
            for pid in text.lines().filter_map(|l| l.parse().ok()).filter_map(Pid::new) {
                assert_eq!(stat(pid).expect("stat reads"), None, "{pid} is gone, and reaped");
            }
        }
        _ => {}
    });
    assert_eq!((trace.exit(1), trace.killed(1)), (Exit::Signal(9), 4));
}

fn many_escapees() {
    let mut lines = 0;
    let trace = play(&[ESCAPE; 10], |event, out| {
        if let Event::ChildBytes { bytes, .. } = event {
            lines += bytes.iter().filter(|b| **b == b'\n').count();
            if lines == 30 {
                out.extend((1..=10).map(kill));
                lines += 1;
            }
        }
    });
    let killed: u32 = (1..=10).map(|node| trace.killed(node)).sum();
    assert_eq!(killed, 40, "each of them once");
}

fn embedded() {
    let own = |script: &str| {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("sh starts")
    };
    let before = open_descriptors();
    let mut early = own("read _; exit 7");
    let mut late = None;
    let mut zombie = None;
    let mut lines = 0;
    let options = Options::embedded(actors()).expect("eventfd works");
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        Event::ChildSpawned { .. } => {
            late = Some(own("read _; exit 8"));
            let dead = own("exit 9");
            let pid = Pid::new(dead.id() as i32).expect("positive");
            let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
            let id = rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&dead));
            rustix::process::waitid(id, options).expect("it ends");
            assert!(stat(pid).expect("stat reads").is_some_and(|p| p.is_dead()));
            zombie = Some(dead);
        }
        Event::ChildBytes { bytes, .. } => {
            lines += bytes.iter().filter(|b| **b == b'\n').count();
            if lines == 3 {
                out.extend([kill(1), Action::ReapOrphans]);
            }
        }
        _ => {}
    };
    let (trace, _) = play_with(options, &[&format!("subreaper:{ESCAPE}")], plan, Memory::default());
    // The shell between it and them is in its group and may still be dying.
    assert!((4..=5).contains(&trace.killed(1)), "{} of what was seen below it", trace.killed(1));
    let code = |child: std::process::Child| {
        let mut child = child;
        drop(child.stdin.take());
        child.wait().expect("its status is still there").code()
    };
    assert_eq!(early.try_wait().expect("waitpid works"), None);
    assert_eq!(code(early), Some(7));
    assert_eq!(late.map(code), Some(Some(8)));
    assert_eq!(zombie.map(code), Some(Some(9)));
    nothing_left(before);
}

fn stopped() {
    let trace = play(&["trap 'exit 5' TERM; echo up; kill -STOP $$; read _"], |event, out| {
        if said(event, 1, "up\n") {
            let Some(pid) = stopped_child() else { return };
            assert!(pid.raw() > 1);
            out.push(Action::Signal { node: NodeId(1), signal: ChildSignal::TermCont });
        }
    });
    assert_eq!(trace.exit(1), Exit::Code(5));
}

/// Waits until one child of this process is stopped.
fn stopped_child() -> Option<Pid> {
    let options = rustix::process::WaitIdOptions::STOPPED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::All, options).expect("a child stops");
    let children = agentd_host::tree::children(Pid::own()).expect("the walk works");
    children.into_iter().find(|pid| stat(*pid).ok().flatten().is_some_and(|p| p.state == b'T'))
}

fn whole_group() {
    let trace = play(&["sleep 1000 & sleep 1000 & echo up; wait"], |event, out| {
        if said(event, 1, "up\n") {
            out.push(kill(1));
        }
    });
    assert_eq!(trace.exit(1), Exit::Signal(9));
}

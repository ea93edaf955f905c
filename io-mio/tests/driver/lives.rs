//! Lives of children, from spawn to reap (S5.1, S5.4, S5.6, S5.10; F29, F30).

use crate::harness::{Part, Scenario, skip};
use crate::stage::{
    Memory, actors, nothing_left, open_descriptors, options, play, play_with, said, send, shells, spawn,
};
use agentd_core::action::{Action, Walls};
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_core::record::UsageSum;
use agentd_host::spawner::Image;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_life_is_told_in_order_and_observed_before_it_is_handled", in_order),
    ("a_failed_start_is_told_and_a_later_one_works", cannot_start),
    ("out_of_descriptors_is_transient_and_a_later_start_works", out_of_descriptors),
    ("a_deleted_binary_still_makes_children", || deleted("deleted-binary")),
    ("three_hundred_children_end_each_in_its_own_way", many),
    ("the_cpu_wall_ends_a_child_that_spins", cpu_wall),
    ("children_that_are_left_end_with_the_loop", left_behind),
    ("a_reap_that_comes_too_early_waits_for_the_exit", early_reap),
    ("a_status_lost_to_an_ignored_sigchld_is_unknown", || lost_status("lost-status")),
    ("actions_on_a_child_that_is_gone_do_nothing", after_the_end),
];

pub(crate) const PARTS: &[Part] = &[("deleted-binary", deleted_part), ("lost-status", lost_status_part)];

fn in_order() {
    let before = open_descriptors();
    let plan = |event: &Event, out: &mut Vec<Action>| {
        if said(event, 1, "hello\n") {
            out.extend([send(1, "good"), send(1, "bye\n")]);
        }
    };
    let scripts = ["echo hello; read x; echo $x >&2; exit 4"];
    let (trace, outside) = play_with(options(shells()), &scripts, plan, Memory::default());
    nothing_left(before);
    let told: Vec<&Event> =
        trace.events.iter().map(|(_, event)| event).filter(|e| **e != Event::Tick).collect();
    assert_eq!(told.iter().map(|e| (*e).clone()).collect::<Vec<_>>(), without_ticks(&outside.observed));
    let node = NodeId(1);
    let [Event::Seeded { .. }, Event::ChildSpawned { node: NodeId(1), pid }, rest @ ..] = &told[..] else {
        panic!("{told:?}")
    };
    assert!(*pid > 1);
    let hello = Event::ChildBytes { node, bytes: b"hello\n".as_slice().into() };
    let goodbye = Event::ChildStderr { node, bytes: b"goodbye\n".as_slice().into() };
    let eof = Event::ChildEof { node };
    let expected = [
        &hello,
        &Event::ChildWrote { node, bytes: 8 },
        &goodbye,
        &Event::ExitObserved { node, exit: Exit::Code(4) },
        &Event::Swept { node, killed: 0, remaining: 0 },
        &Event::Reaped { node },
    ];
    let without_eof: Vec<&Event> = rest.iter().copied().filter(|e| **e != eof).collect();
    assert_eq!(without_eof, expected, "its end of file may come before or after its exit");
    assert!(trace.events.windows(2).all(|pair| pair[0].0.mono <= pair[1].0.mono));
}

fn without_ticks(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|e| **e != Event::Tick).cloned().collect()
}

fn cannot_start() {
    let before = open_descriptors();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("program");
    std::fs::write(&program, "#!/bin/sh\nexit 5\n").expect("a file");
    let image = Image::of(&program, Vec::new(), Vec::new()).expect("it has a slash");
    let plan = |event: &Event, out: &mut Vec<Action>| {
        if let Event::SpawnFailed { node: NodeId(1), error, transient } = event {
            assert!(!transient && error.contains("program") && error.contains("Permission"), "{error}");
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("the mode is set");
            out.push(spawn(2, "program"));
        }
    };
    let (trace, _) = play_with(options(image), &["program"], plan, Memory::default());
    assert_eq!(trace.exit(2), Exit::Code(5));
    assert_eq!(trace.count(|e| matches!(e, Event::ChildSpawned { .. })), 1);
    nothing_left(before);
}

fn out_of_descriptors() {
    let before = open_descriptors();
    let limit = getrlimit(Resource::Nofile);
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        // All that is open stays open; nothing more can be.
        Event::Seeded { .. } => {
            let low = Rlimit { current: Some(3), ..limit };
            setrlimit(Resource::Nofile, low).expect("the limit is lowered");
        }
        Event::SpawnFailed { node: NodeId(1), error, transient } => {
            assert!(*transient && error.contains("pipe2"), "{error}");
            setrlimit(Resource::Nofile, limit).expect("the limit is raised");
            out.push(spawn(2, "exit 6"));
        }
        _ => {}
    };
    let (trace, _) = play_with(options(shells()), &["exit 0"], plan, Memory::default());
    assert_eq!(trace.exit(2), Exit::Code(6));
    nothing_left(before);
}

/// Runs a copy of this program that deletes itself.
fn deleted(part: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let copy = dir.path().join("copy");
    std::fs::copy("/proc/self/exe", &copy).expect("a copy");
    let status = Command::new(&copy).args(["--play", part]).status().expect("the copy starts");
    assert!(status.success(), "{status}");
}

fn deleted_part(_: &[String]) -> ExitCode {
    std::fs::remove_file(std::env::current_exe().expect("this program has a path")).expect("it is removed");
    let before = open_descriptors();
    let (trace, _) = play_with(options(actors()), &["hello"], |_, _| {}, Memory::default());
    assert_eq!((trace.exit(1), trace.output(1)), (Exit::Code(0), b"hello\n".to_vec()));
    nothing_left(before);
    ExitCode::SUCCESS
}

fn many() {
    let scripts: Vec<String> = (1..=300)
        .map(|n| if n % 3 == 0 { "kill -9 $$".to_owned() } else { format!("exit {}", n % 256) })
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let trace = play(&scripts, |_, _| {});
    for n in 1..=300 {
        let wanted = if n % 3 == 0 { Exit::Signal(9) } else { Exit::Code(n % 256) };
        assert_eq!(trace.exit(n as u64), wanted, "node {n}");
    }
}

fn cpu_wall() {
    let trace = play(&[], |event, out| {
        if matches!(event, Event::Seeded { .. }) {
            let walls = Walls { memory: None, cpu_seconds: Some(1), nice: 0 };
            out.push(Action::Spawn { node: NodeId(1), name: "while :; do :; done".to_owned(), walls });
        }
    });
    assert_eq!(trace.exit(1), Exit::Signal(24), "SIGXCPU");
}

fn left_behind() {
    let plan = |event: &Event, out: &mut Vec<Action>| {
        if matches!(event, Event::ChildSpawned { node: NodeId(3), .. }) {
            out.push(Action::Exit {
                interrupted: None,
                leaked: 3,
                usage: UsageSum::default(),
                costliest: None,
            });
        }
    };
    // None of them would end by itself, nor by the end of its stdin; one is stopped.
    let trace = play(&["trap '' TERM; sleep 1000 & wait", "kill -STOP $$", "sleep 1000"], plan);
    assert_eq!(trace.ended.leaked, 3);
}

fn early_reap() {
    let trace = play(&["read _; exit 2"], |event, out| {
        if matches!(event, Event::ChildSpawned { .. }) {
            out.extend([Action::Reap { node: NodeId(1) }, Action::CloseStdin { node: NodeId(1) }]);
        }
    });
    assert_eq!(trace.exit(1), Exit::Code(2));
    let told = trace.position(|e| matches!(e, Event::ExitObserved { .. }));
    assert!(told < trace.position(|e| matches!(e, Event::Reaped { .. })));
}

/// Runs this program with SIGCHLD ignored, as inside a program that never waits.
fn lost_status(part: &str) {
    let mut env = Command::new("env");
    let me = std::env::current_exe().expect("this program has a path");
    match env.arg("--ignore-signal=CHLD").arg(me).args(["--play", part]).status() {
        Ok(status) if status.code() != Some(125) => assert!(status.success(), "{status}"),
        Ok(_) | Err(_) => skip("env(1) cannot ignore signals here"),
    }
}

fn lost_status_part(_: &[String]) -> ExitCode {
    let mut up = 0;
    let trace = play(&["echo up; read _; echo last words; exit 3", "echo up; read _"], |event, out| {
        if said(event, 1, "up\n") || said(event, 2, "up\n") {
            up += 1;
            if up == 2 {
                let signal = agentd_core::action::ChildSignal::Kill;
                out.extend([send(1, "go\n"), Action::Signal { node: NodeId(2), signal }]);
            }
        }
    });
    assert_eq!((trace.exit(1), trace.exit(2)), (Exit::Unknown, Exit::Unknown));
    assert_eq!(trace.output(1), b"up\nlast words\n");
    ExitCode::SUCCESS
}

fn after_the_end() {
    let trace = play(&["exit 0"], |event, out| {
        if matches!(event, Event::Reaped { node: NodeId(1) }) {
            let node = NodeId(1);
            let signal = agentd_core::action::ChildSignal::Kill;
            out.extend([send(1, "late"), Action::CloseStdin { node }, Action::Signal { node, signal }]);
            out.extend([Action::Reap { node }, spawn(2, "exit 0")]);
        }
    });
    let last = trace.position(|e| matches!(e, Event::Reaped { node: NodeId(1) })).expect("it was reaped");
    let after = &trace.events[last + 1..];
    assert!(after.iter().all(|(_, e)| !format!("{e:?}").contains("NodeId(1)")), "{after:?}");
}

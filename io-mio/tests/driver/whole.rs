//! The loop as a whole: its wake-ups, its mail, its signals, its end (F29, F39).

use crate::harness::{Part, Scenario, skip};
use crate::stage::{Memory, nothing_left, open_descriptors, options, play_with, said, send, shells};
use agentd_core::action::{Action, Actions};
use agentd_core::event::{Event, Exit, SupervisorSignal};
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note::{Level, Note};
use agentd_core::record::UsageSum;
use agentd_core::time::{Duration, Instant, Now};
use agentd_host::Pid;
use agentd_host::signals::{Signals, reset_inherited};
use agentd_host::tree::{Stat, stat};
use agentd_io_mio::{Options, run};
use std::process::{Command, ExitCode, Stdio};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("an_idle_loop_wakes_for_its_deadline_only", idle),
    ("mail_comes_in_order_and_wakes_the_loop", mail),
    ("the_end_comes_after_all_actions_before_it", the_end),
    ("what_an_action_answers_is_told_after_the_batch", after_the_batch),
    ("a_wrapper_that_ignores_and_blocks_signals_changes_nothing", || wrapped("wrapped")),
    ("pid_1_reaps_fifty_orphans_and_keeps_its_own_statuses", || in_namespace("init")),
];

pub(crate) const PARTS: &[Part] = &[("wrapped", wrapped_part), ("init", init_part)];

fn idle() {
    /// Asks for one tick, 200 ms after the child is up.
    struct Once {
        due: Option<Instant>,
        turns: std::cell::Cell<u32>,
    }
    impl Machine for Once {
        fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
            let node = NodeId(1);
            match event {
                Event::Seeded { .. } => out.push(crate::stage::spawn(1, "echo up; read _")),
                Event::ChildBytes { .. } => {
                    self.due = Some(now.mono + Duration::from_millis(200));
                    self.turns.set(0);
                }
                Event::Tick => {
                    assert!(self.due.take().is_some_and(|due| due <= now.mono));
                    assert!(self.turns.get() <= 4, "asked {} times while nothing happened", self.turns.get());
                    out.push(Action::CloseStdin { node });
                }
                Event::ExitObserved { .. } => out.push(Action::Reap { node }),
                Event::Reaped { .. } => out.push(Action::Exit {
                    interrupted: None,
                    leaked: 0,
                    usage: UsageSum::default(),
                    costliest: None,
                }),
                _ => {}
            }
        }
        fn poll_timeout(&self) -> Option<Deadline> {
            self.turns.set(self.turns.get() + 1);
            self.due.map(|at| Deadline { at, why: "once" })
        }
    }
    let before = open_descriptors();
    let mut machine = Once { due: None, turns: std::cell::Cell::new(0) };
    run(&mut machine, &mut Memory::default(), options(shells())).expect("the loop runs");
    nothing_left(before);
}

fn mail() {
    let before = open_descriptors();
    let options = options(shells());
    let poster = options.poster();
    // Before the loop runs, and from a thread while it waits for nothing else.
    poster.post(Event::PromptSubmitted { text: "first".to_owned() }).expect("there is room");
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        gone.recv().expect("the loop runs");
        for seq in 0..1_000 {
            poster.post(Event::Stored { seq }).expect("there is room");
        }
        poster
    });
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        Event::PromptSubmitted { text } => {
            assert_eq!(text, "first");
            go.send(()).expect("the thread waits");
        }
        Event::Stored { seq: 999 } => out.push(Action::CloseStdin { node: NodeId(1) }),
        _ => {}
    };
    let (trace, _) = play_with(options, &["read _"], plan, Memory::default());
    let seqs: Vec<u64> = trace
        .events
        .iter()
        .filter_map(|(_, e)| if let Event::Stored { seq } = e { Some(*seq) } else { None })
        .collect();
    assert_eq!(seqs, (0..1_000).collect::<Vec<u64>>());
    let poster = thread.join().expect("the thread ends");
    assert!(poster.post(Event::Tick).is_err(), "nobody reads any more");
    drop(poster);
    nothing_left(before);
}

fn note(event: &str) -> Action {
    Action::Note(Note::of_daemon(Level::Info, event))
}

fn the_end() {
    let before = open_descriptors();
    let plan = |event: &Event, out: &mut Vec<Action>| {
        if matches!(event, Event::Seeded { .. }) {
            out.extend([note("first"), note("second")]);
            out.push(Action::Exit {
                interrupted: Some(SupervisorSignal::Int),
                leaked: 2,
                usage: UsageSum::default(),
                costliest: None,
            });
        }
    };
    let (trace, outside) = play_with(options(shells()), &[], plan, Memory::default());
    assert_eq!(outside.notes.iter().map(|n| n.event.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!((trace.ended.interrupted, trace.ended.leaked), (Some(SupervisorSignal::Int), 2));
    assert_eq!(trace.events.len(), 1);
    nothing_left(before);
}

fn after_the_batch() {
    let before = open_descriptors();
    let options = options(shells());
    let poster = options.poster();
    for text in ["a", "b", "c"] {
        poster.post(Event::PromptSubmitted { text: text.to_owned() }).expect("there is room");
    }
    // Each letter is answered at once; the answers are told after the letters.
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        Event::Seeded { .. } | Event::PromptSubmitted { .. } => {
            out.push(Action::Sweep { node: NodeId(77), keepers: true });
        }
        _ => {}
    };
    let (trace, _) = play_with(options, &["exit 0"], plan, Memory::default());
    let swept = trace.position(|e| matches!(e, Event::Swept { node: NodeId(77), .. })).expect("answered");
    let letters = trace.events.iter().rposition(|(_, e)| matches!(e, Event::PromptSubmitted { .. }));
    assert!(letters.is_some_and(|at| at < swept), "learned later, told later");
    assert_eq!(trace.count(|e| matches!(e, Event::Swept { node: NodeId(77), .. })), 4);
    drop(poster);
    nothing_left(before);
}

fn wrapped(part: &str) {
    let me = std::env::current_exe().expect("this program has a path");
    let mut env = Command::new("env");
    env.args(["--ignore-signal=CHLD,PIPE,TERM,HUP,INT", "--block-signal"]);
    match env.arg(me).args(["--play", part]).status() {
        Ok(status) if status.code() != Some(125) => assert!(status.success(), "{status}"),
        Ok(_) | Err(_) => skip("env(1) cannot ignore and block signals here"),
    }
}

fn wrapped_part(_: &[String]) -> ExitCode {
    reset_inherited().expect("the mask is set");
    let before = open_descriptors();
    let signals = Signals::take().expect("signalfd works");
    let options = Options::new(shells(), Some(signals)).expect("eventfd works");
    let (mut up, mut signalled) = (0, Vec::new());
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        _ if said(event, 1, "up\n") || said(event, 2, "up\n") => {
            up += 1;
            if up < 2 {
                return;
            }
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::TERM).expect("to oneself");
        }
        Event::Signalled { signal } => {
            signalled.push(*signal);
            // EPIPE and not an end: it closed its stdin long ago.
            out.extend([send(1, "x"), Action::CloseStdin { node: NodeId(2) }]);
        }
        Event::ChildWriteFailed { node: NodeId(1), .. } => {
            let signal = agentd_core::action::ChildSignal::Kill;
            out.push(Action::Signal { node: NodeId(1), signal });
        }
        _ => {}
    };
    let scripts = ["exec <&-; echo up; sleep 1000", "echo up; read _; exit 3"];
    let (trace, _) = play_with(options, &scripts, plan, Memory::default());
    assert_eq!(signalled, [SupervisorSignal::Term]);
    assert_eq!((trace.exit(1), trace.exit(2)), (Exit::Signal(9), Exit::Code(3)));
    nothing_left(before);
    ExitCode::SUCCESS
}

fn in_namespace(part: &str) {
    let unshare = |with: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-pf", "--mount-proc", "--"]).args(with);
        unshare
    };
    if !unshare(&["true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        skip("this user cannot make a PID namespace (unshare -pf --mount-proc)");
    }
    let me = std::env::current_exe().expect("this program has a path");
    let me = me.to_str().expect("a path of text");
    assert!(unshare(&[me, "--play", part]).status().expect("unshare starts").success());
}

fn init_part(_: &[String]) -> ExitCode {
    reset_inherited().expect("the mask is set");
    let before = open_descriptors();
    let signals = Signals::take().expect("signalfd works");
    let options = Options::new(shells(), Some(signals)).expect("eventfd works");
    // Fifty orphans that end, below a child that goes on; the end comes by a SIGTERM to PID 1.
    let script =
        "i=0; while [ $i -lt 50 ]; do (setsid true &); i=$((i + 1)); done; echo done; read _; exit 4";
    let (mut signalled, mut zombies, mut child) = (0, None, 0);
    let plan = |event: &Event, out: &mut Vec<Action>| match event {
        Event::ChildSpawned { pid, .. } => child = *pid,
        _ if said(event, 1, "done\n") => {
            while orphans(child).iter().any(|p| !p.is_dead()) {
                std::thread::yield_now();
            }
            out.push(Action::ReapOrphans);
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::TERM).expect("to oneself");
        }
        Event::Signalled { signal: SupervisorSignal::Term } => {
            signalled += 1;
            out.push(Action::CloseStdin { node: NodeId(1) });
        }
        Event::ExitObserved { .. } => zombies = Some(orphans(child).len()),
        _ => {}
    };
    let (trace, _) = play_with(options, &[script], plan, Memory::default());
    assert_eq!((signalled, zombies), (1, Some(0)));
    assert_eq!(trace.exit(1), Exit::Code(4));
    nothing_left(before);
    ExitCode::SUCCESS
}

/// The children of this process but for `known`.
fn orphans(known: u32) -> Vec<Stat> {
    let all = agentd_host::tree::children(Pid::own()).expect("the walk works");
    let orphans = all.into_iter().filter(|pid| pid.raw().unsigned_abs() != known);
    orphans.filter_map(|pid| stat(pid).expect("stat reads")).collect()
}

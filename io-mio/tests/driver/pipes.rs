//! What children write and read (S2.6, S2.7; F09, F12, F15).

use crate::harness::Scenario;
use crate::stage::{
    Memory, actors, nothing_left, open_descriptors, options, play, play_with, said, send, spawn,
};
use agentd_core::action::{Action, ChildSignal};
use agentd_core::bytes::Bytes;
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("what_was_written_before_death_comes_before_the_exit", last_words),
    ("a_grandchild_that_holds_the_pipe_does_not_hold_up_the_exit", held_pipe),
    ("an_enlarged_or_packet_pipe_is_read_to_its_end", odd_pipes),
    ("end_of_file_is_not_death", end_of_file),
    ("writing_to_a_stopped_child_never_waits", stopped),
    ("a_child_that_closed_its_stdin_fails_its_writes_only", closed_stdin),
    ("what_is_asked_of_a_child_in_the_making_waits_for_it", too_early),
    ("a_stdin_to_be_closed_is_closed_after_what_is_queued", close_after_queue),
    ("floods_leave_others_their_turn", floods),
];

fn last_words() {
    let trace = play(&["head -c 60000 /dev/zero; echo end; echo err >&2; kill -9 $$"; 20], |_, _| {});
    for node in 1..=20 {
        assert_eq!(trace.exit(node), Exit::Signal(9));
        let of = |e: &Event| matches!(e, Event::ExitObserved { node: n, .. } if n.0 == node);
        let told = trace.position(of).expect("it ended");
        let bytes = |(_, e): &(_, Event)| match e {
            Event::ChildBytes { node: n, bytes } if n.0 == node => bytes.len(),
            _ => 0,
        };
        let before: usize = trace.events[..told].iter().map(bytes).sum();
        assert_eq!(before, 60_004, "node {node}");
        let stderr = |e: &Event| matches!(e, Event::ChildStderr { node: n, .. } if n.0 == node);
        assert!(trace.position(stderr).is_some_and(|at| at < told), "its stderr too");
    }
}

fn held_pipe() {
    // The sleeper left the group; it writes on and on into the dead child's pipe until it is swept.
    let script = "setsid sh -c 'echo up; exec yes' & read _; kill -9 $$";
    let mut asked = false;
    let trace = play(&[script], |event, out| {
        if matches!(event, Event::ChildBytes { .. }) && !asked {
            asked = true;
            out.push(send(1, "\n"));
        }
    });
    assert_eq!((trace.exit(1), trace.killed(1)), (Exit::Signal(9), 1));
}

fn odd_pipes() {
    let before = open_descriptors();
    let (trace, _) = play_with(options(actors()), &["packets", "much"], |_, _| {}, Memory::default());
    nothing_left(before);
    assert_eq!((trace.exit(1), trace.exit(2)), (Exit::Signal(6), Exit::Signal(6)));
    for (node, wanted) in [(1, 30), (2, 1 << 20)] {
        let told = trace.position(|e| matches!(e, Event::ExitObserved { node: n, .. } if n.0 == node));
        let last = trace
            .events
            .iter()
            .rposition(|(_, e)| matches!(e, Event::ChildBytes { node: n, .. } if n.0 == node));
        assert!(last < told, "all of node {node} before its exit");
        assert_eq!(trace.output(node).len(), wanted);
    }
    assert_eq!(trace.output(1), b"000111222333444555666777888999");
    assert!(
        trace
            .events
            .iter()
            .all(|(_, e)| !matches!(e, Event::ChildBytes { bytes, .. } if bytes.len() > 65_536))
    );
}

fn end_of_file() {
    let trace = play(&["echo last; exec >&-; read x; echo $x >&2; exit 3"], |event, out| {
        if matches!(event, Event::ChildEof { .. }) {
            out.push(send(1, "still here\n"));
        }
    });
    let eof = trace.position(|e| matches!(e, Event::ChildEof { .. }));
    let alive = trace.position(|e| matches!(e, Event::ChildStderr { .. }));
    assert!(eof < alive, "it went on");
    assert_eq!(trace.exit(1), Exit::Code(3));
    assert_eq!(trace.count(|e| matches!(e, Event::ChildEof { .. })), 1);
}

fn stopped() {
    let (mut up, mut rounds, mut wrote) = (0, 0, 0);
    let scripts = ["echo up; kill -STOP $$", "echo up; while read x; do echo $x; done"];
    let trace = play(&scripts, |event, out| match event {
        _ if said(event, 1, "up\n") || said(event, 2, "up\n") => {
            up += 1;
            if up == 2 {
                // 16 MiB, all that may ever be queued, for a child that reads nothing of it.
                let frame = Bytes::from(vec![b'x'; 1 << 20]);
                out.extend((0..16).map(|_| Action::SendToChild { node: NodeId(1), frame: frame.clone() }));
                out.push(send(2, "round\n"));
            }
        }
        Event::ChildWrote { node: NodeId(1), bytes } => wrote += bytes,
        _ if said(event, 2, "round\n") && rounds < 100 => {
            rounds += 1;
            out.push(send(2, "round\n"));
        }
        _ if said(event, 2, "round\n") => {
            out.push(Action::Signal { node: NodeId(1), signal: ChildSignal::Kill });
            out.push(Action::CloseStdin { node: NodeId(2) });
        }
        _ => {}
    });
    assert_eq!(rounds, 100, "the other child was served all the while");
    assert!((1..=1 << 20).contains(&wrote), "{wrote} bytes are what the pipe holds");
    assert_eq!((trace.exit(1), trace.exit(2)), (Exit::Signal(9), Exit::Code(0)));
    assert_eq!(trace.count(|e| matches!(e, Event::ChildWriteFailed { node: NodeId(2), .. })), 0);
}

fn closed_stdin() {
    let (mut up, mut failures) = (0, Vec::new());
    let scripts = ["exec <&-; echo up; sleep 1000", "echo up; read x; echo $x"];
    let trace = play(&scripts, |event, out| match event {
        _ if said(event, 1, "up\n") || said(event, 2, "up\n") => {
            up += 1;
            if up == 2 {
                out.extend([send(1, "one"), send(1, "two")]);
            }
        }
        Event::ChildWriteFailed { node: NodeId(1), error } => {
            failures.push(error.clone());
            out.push(if failures.len() == 1 { send(1, "three") } else { send(2, "fine\n") });
        }
        _ if said(event, 2, "fine\n") => {
            out.push(Action::Signal { node: NodeId(1), signal: ChildSignal::TermCont });
        }
        _ => {}
    });
    assert_eq!(failures.len(), 2, "what was queued fails as one, what comes later fails again: {failures:?}");
    assert!(failures[0].contains("Broken pipe"), "{failures:?}");
    assert_eq!((trace.exit(1), trace.exit(2)), (Exit::Signal(15), Exit::Code(0)));
}

fn too_early() {
    let node = NodeId(7);
    let trace = play(&[], |event, out| {
        if matches!(event, Event::Seeded { .. }) {
            let signal = ChildSignal::Kill;
            out.extend([spawn(7, "cat"), send(7, "early "), send(7, "words"), Action::CloseStdin { node }]);
            out.extend([spawn(8, "sleep 1000"), Action::Signal { node: NodeId(8), signal }]);
        }
    });
    assert_eq!(trace.output(7), b"early words");
    assert_eq!((trace.exit(7), trace.exit(8)), (Exit::Code(0), Exit::Signal(9)));
}

fn close_after_queue() {
    let trace = play(&["wc -c"], |event, out| {
        if matches!(event, Event::ChildSpawned { .. }) {
            let frame = Bytes::from(vec![b'x'; 1_000_000]);
            out.extend((0..5).map(|_| Action::SendToChild { node: NodeId(1), frame: frame.clone() }));
            out.push(Action::CloseStdin { node: NodeId(1) });
        }
    });
    assert_eq!(trace.output(1), b"5000000\n");
    let wrote = trace.events.iter().map(|(_, e)| match e {
        Event::ChildWrote { bytes, .. } => *bytes,
        _ => 0,
    });
    assert_eq!(wrote.sum::<u64>(), 5_000_000);
}

fn floods() {
    let mut rounds = 0;
    let mut flood = [0_u64; 4];
    let scripts = ["while read x; do echo $x; done", "yes", "yes >&2", "yes | tr -d '\\n'"];
    let trace = play(&scripts, |event, out| match event {
        Event::ChildBytes { node: NodeId(n @ (2 | 4)), bytes }
        | Event::ChildStderr { node: NodeId(n @ 3), bytes } => {
            assert!(bytes.len() <= 65_536);
            flood[*n as usize - 1] += bytes.len() as u64;
            if rounds == 0 && flood[1] > 0 && flood[2] > 0 && flood[3] > 0 {
                rounds = 1;
                out.push(send(1, "round\n"));
            }
        }
        _ if said(event, 1, "round\n") && rounds < 50 => {
            rounds += 1;
            out.push(send(1, "round\n"));
        }
        _ if said(event, 1, "round\n") => {
            out.extend((2..=4).map(|n| Action::Signal { node: NodeId(n), signal: ChildSignal::Kill }));
            out.push(Action::CloseStdin { node: NodeId(1) });
        }
        _ => {}
    });
    assert_eq!(rounds, 50);
    // Between two reads of one flooding child each other one that is ready was read.
    let turns = |node| trace.count(|e| matches!(e, Event::ChildBytes { node: NodeId(n), .. } if *n == node));
    assert!(turns(2) > 0 && turns(4) > 0);
}

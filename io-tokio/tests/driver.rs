//! Real children under the tokio driver: a machine that stands in for the core walks forty of them from spawn to
//! reap inside a runtime with one thread, while other tasks of that runtime go on.

use agentd_core::action::{Action, Actions, ChildSignal, Walls};
use agentd_core::bytes::Bytes;
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note::Note;
use agentd_core::record::{ResultObject, UsageSum};
use agentd_core::store::{Class, Write};
use agentd_core::time::{Duration, Instant, Now};
use agentd_core::wire::message::{FailKind, Spawn};
use agentd_host::spawner::Image;
use agentd_host::{Pid, tree};
use agentd_io_tokio::{Options, Outside, StoreAnswer, run};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

const CHILDREN: u64 = 40;

/// What one child said and how it ended.
#[derive(Debug, Default)]
struct Seen {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Option<Exit>,
    reaped: bool,
}

/// Spawns children that answer a line, and one that is killed at a tick.
#[derive(Default)]
struct Stage {
    seen: BTreeMap<NodeId, Seen>,
    due: Option<Instant>,
    ticks: u32,
}

impl Stage {
    fn child(&mut self, node: NodeId) -> &mut Seen {
        self.seen.entry(node).or_default()
    }
}

impl Machine for Stage {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        match event {
            Event::Seeded { .. } => {
                for n in 1..=CHILDREN {
                    let node = NodeId(n);
                    let name = if n == 1 {
                        "exec sleep 1000"
                    } else {
                        "read x; echo got $x; echo no >&2; exit $((x % 50))"
                    };
                    out.push(Action::Spawn { node, name: name.into(), walls: Walls::default() });
                }
            }
            Event::ChildSpawned { node: NodeId(1), .. } => {
                self.due = Some(now.mono + Duration::from_millis(30))
            }
            Event::ChildSpawned { node, .. } => {
                let line = format!("{}\n", node.0).into_bytes();
                out.push(Action::SendToChild { node, frame: Bytes::from(line) });
                out.push(Action::CloseStdin { node });
            }
            Event::Tick => {
                self.ticks += 1;
                self.due = None;
                out.push(Action::Signal { node: NodeId(1), signal: ChildSignal::TermCont });
            }
            Event::ChildBytes { node, bytes } => self.child(node).stdout.extend_from_slice(&bytes),
            Event::ChildStderr { node, bytes } => self.child(node).stderr.extend_from_slice(&bytes),
            Event::ExitObserved { node, exit } => {
                assert_eq!(self.child(node).exit.replace(exit), None, "told once");
                out.push(Action::Sweep { node, keepers: true });
            }
            Event::Swept { node, .. } => out.push(Action::Reap { node }),
            Event::Reaped { node } => {
                self.child(node).reaped = true;
                if self.seen.values().filter(|seen| seen.reaped).count() as u64 == CHILDREN {
                    out.push(Action::Exit {
                        interrupted: None,
                        leaked: 0,
                        usage: UsageSum::default(),
                        costliest: None,
                    });
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.due.map(|at| Deadline { at, why: "the test" })
    }
}

/// No store, no log, no journal.
struct Nothing;

impl Outside for Nothing {
    fn observe(&mut self, _now: Now, _event: &Event) {}

    fn note(&mut self, _now: Now, _note: Note) {}

    fn persist(&mut self, _seq: u64, _class: Class, _writes: Vec<Write>) -> StoreAnswer {
        StoreAnswer::Stored
    }

    fn deliver(&mut self, _prompt: u64, _result: &ResultObject, _fault: Option<FailKind>) {}

    fn encode_spawn(&mut self, _spawn: &Spawn) -> Result<Vec<u8>, String> {
        Err("no child here is handed anything".into())
    }
}

fn shells() -> Image {
    let args = vec!["-c".into(), "eval \"$AGENTD_NAME\"".into()];
    Image::of("/bin/sh".as_ref(), args, vec![("PATH".into(), "/usr/bin:/bin".into())])
        .expect("it has a slash")
}

#[tokio::test(flavor = "current_thread")]
async fn forty_children_beside_other_tasks() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let turns = Rc::new(Cell::new(0u32));
            let counted = Rc::clone(&turns);
            let other = tokio::task::spawn_local(async move {
                loop {
                    counted.set(counted.get() + 1);
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            });
            let mut stage = Stage::default();
            let options = Options::embedded(shells()).expect("an eventfd");
            let ended = run(&mut stage, &mut Nothing, options).await.expect("drives");
            other.abort();
            assert_eq!((ended.leaked, stage.ticks), (0, 1));
            assert!(turns.get() > 1, "others on this thread had their turn");
            for (NodeId(n), seen) in &stage.seen {
                assert!(seen.reaped, "node-{n}");
                if *n == 1 {
                    assert_eq!(seen.exit, Some(Exit::Signal(15)));
                } else {
                    assert_eq!(String::from_utf8_lossy(&seen.stdout), format!("got {n}\n"));
                    assert_eq!(seen.stderr, b"no\n");
                    assert_eq!(seen.exit, Some(Exit::Code(i32::try_from(n % 50).expect("small"))));
                }
            }
            let left = tree::descendants(Pid::own()).expect("the walk works");
            assert!(left.is_empty(), "left: {left:?}");
        })
        .await;
}

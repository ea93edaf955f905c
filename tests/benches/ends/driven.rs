//! The same through the spawner, the hands and the driver, as the core would have it: a sweep between the exit and
//! the reap included.

use agentd_core::action::{Action, Actions, ChildSignal, Walls};
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::record::UsageSum;
use agentd_core::time::Now;
use agentd_host::spawner::Image;
use agentd_io_mio::{Options, run};
use agentd_tests::kit::Nothing;
use std::time::{Duration, Instant};

pub(super) fn kill(rounds: usize, children: usize) -> Vec<Duration> {
    drive(What::Kill, rounds, children)
}

pub(super) fn exit(rounds: usize, _: usize) -> Vec<Duration> {
    drive(What::Exit, rounds, 1)
}

pub(super) fn echo(rounds: usize, _: usize) -> Vec<Duration> {
    drive(What::Echo, rounds, 1)
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Kill,
    Exit,
    Echo,
}

fn drive(what: What, rounds: usize, children: usize) -> Vec<Duration> {
    let options = Options::new(Image::own(Vec::new()), None).expect("eventfd works");
    let began = Instant::now();
    let mut ends = Ends { what, rounds, children, last: 0, up: 0, back: 0, gone: 0, began, took: Vec::new() };
    run(&mut ends, &mut Nothing, options).expect("the loop runs");
    assert_eq!(ends.took.len(), rounds);
    ends.took
}

/// Stands in for the core: brings a wave of children up, does to it what is measured, and again.
struct Ends {
    what: What,
    rounds: usize,
    children: usize,
    /// The last node spawned.
    last: u64,
    /// Of the wave, so many are up.
    up: usize,
    /// Bytes that came back of the echo in hand.
    back: usize,
    /// Of the wave, so many are reaped.
    gone: usize,
    began: Instant,
    took: Vec<Duration>,
}

impl Ends {
    fn wave(&mut self, out: &mut Actions) {
        (self.up, self.gone) = (0, 0);
        if self.took.len() == self.rounds {
            out.push(Action::Exit {
                interrupted: None,
                leaked: 0,
                usage: UsageSum::default(),
                costliest: None,
            });
            return;
        }
        for _ in 0..self.children {
            self.last += 1;
            let (node, name) = (NodeId(self.last), "agentd:bench".to_owned());
            out.push(Action::Spawn { node, name, walls: Walls::default() });
        }
    }

    /// The whole wave is up.
    fn begin(&mut self, out: &mut Actions) {
        let first = self.last + 1 - self.children as u64;
        let wave = (first..=self.last).map(NodeId);
        self.began = Instant::now();
        match self.what {
            What::Kill => {
                out.extend(wave.map(|node| Action::Signal { node, signal: ChildSignal::Kill }));
            }
            What::Exit => out.extend(wave.map(|node| Action::CloseStdin { node })),
            What::Echo => self.say(out),
        }
    }

    fn say(&mut self, out: &mut Actions) {
        self.back = 0;
        self.began = Instant::now();
        out.push(Action::SendToChild { node: NodeId(self.last), frame: [b'e'; 32].as_slice().into() });
    }

    fn came_back(&mut self, bytes: usize, out: &mut Actions) {
        self.back += bytes;
        if self.back < 32 {
            return;
        }
        self.took.push(self.began.elapsed());
        if self.took.len() < self.rounds {
            self.say(out);
        } else {
            out.push(Action::CloseStdin { node: NodeId(self.last) });
        }
    }
}

impl Machine for Ends {
    fn handle(&mut self, _now: Now, event: Event, out: &mut Actions) {
        match event {
            Event::Seeded { .. } => self.wave(out),
            Event::SpawnFailed { node, error, .. } => panic!("{node}: {error}"),
            Event::ChildBytes { bytes, .. } if self.up == self.children => self.came_back(bytes.len(), out),
            Event::ChildBytes { .. } => {
                self.up += 1;
                if self.up == self.children {
                    self.begin(out);
                }
            }
            Event::ExitObserved { node, exit } => {
                if self.what == What::Exit {
                    self.took.push(self.began.elapsed());
                    assert_eq!(exit, Exit::Code(0));
                }
                out.push(Action::Sweep { node, keepers: true });
            }
            Event::Swept { node, remaining: 0, .. } => out.push(Action::Reap { node }),
            Event::Swept { node, .. } => out.push(Action::Sweep { node, keepers: true }),
            Event::Reaped { .. } => {
                self.gone += 1;
                if self.gone == self.children {
                    if self.what == What::Kill {
                        self.took.push(self.began.elapsed());
                    }
                    self.wave(out);
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }
}

//! Actions, carried out as the contract in `action.rs` says: in order, and each that can fail answers once.

use super::{Due, World, is_exit};
use crate::sim::agenda::Lane;
use crate::sim::kernel::Effect;
use crate::sim::plan::Fault;
use agentd_core::action::{Action, ChildSignal};
use agentd_core::config::NOT_READ_AGAIN;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::store::Write;
use agentd_core::time::Duration;
use agentd_core::wire::{Down, Encoder};

impl World<'_> {
    pub(super) fn perform(&mut self, action: Action) {
        self.over |= is_exit(&action);
        match action {
            Action::Spawn { node, .. } => self.spawn(node),
            Action::SendSpawn { node, .. } if self.frame_fails(node) => {
                let error = "{{secret:KEY}}: a planned fault".to_owned();
                self.notice((Lane::Down, node.0), Event::SpawnFrameFailed { node, error });
            }
            Action::SendSpawn { node, payload } => {
                match Encoder::new().encode_down(&Down::Spawn(payload.0)) {
                    Ok(frame) => self.send(node, &frame),
                    Err(_) => {
                        self.notice((Lane::Down, node.0), write_failed(node, "the spawn frame is too large"))
                    }
                }
            }
            Action::SendToChild { node, frame } => self.send(node, &frame),
            Action::SendModel { node, number, payload } => {
                if let Ok(frame) = Encoder::at(number).encode_down(&Down::Model(payload.0)) {
                    self.send(node, &frame);
                }
            }
            Action::LoadConfig => {
                let text = NOT_READ_AGAIN.to_owned();
                self.notice((Lane::Operator, 1), Event::ConfigRefused { problems: 1, text });
            }
            Action::CloseStdin { node } => {
                if let Some(child) = self.children.get_mut(&node) {
                    child.closing = true;
                }
                self.turn_soon(node);
            }
            Action::Signal { node, signal } => {
                let effects = match signal {
                    ChildSignal::TermCont => self.kernel.terminate_group(node),
                    ChildSignal::Kill => self.kernel.kill_group(node),
                };
                self.follow(effects);
            }
            Action::Sweep { node, keepers } => {
                let (killed, remaining, effects) = self.kernel.sweep(node, keepers);
                self.follow(effects);
                self.notice((Lane::Life, node.0), Event::Swept { node, killed, remaining });
            }
            Action::Reap { node } => self.reap(node),
            Action::ReapOrphans => self.kernel.reap_orphans(),
            Action::Persist { seq, writes, .. } => self.persist(seq, writes),
            Action::Note(_)
            | Action::EndReload { .. }
            | Action::Deliver { .. }
            | Action::Answer { .. }
            | Action::CallHostTool(_)
            | Action::CancelHostTool { .. }
            | Action::ConnSend { .. }
            | Action::ConnShut { .. }
            | Action::Exit { .. } => {}
        }
    }

    fn spawn(&mut self, node: NodeId) {
        let nth = self.spawns;
        self.spawns += 1;
        let slow = self.lateness(|fault| match fault {
            Fault::SpawnSlow { nth: n, ms } if *n == nth => Some(*ms),
            _ => None,
        });
        let at = self.now + self.chance.delay((Lane::Spawner, 0)) + slow;
        let failing = self.fault(|fault| match fault {
            Fault::SpawnFails { nth: n, times, transient } if (*n..n + times).contains(&nth) => {
                Some(*transient)
            }
            _ => None,
        });
        // One spawner thread: one request after the other.
        match failing {
            Some(transient) => {
                let error = "clone: a planned fault".to_owned();
                let failed = Event::SpawnFailed { node, error, transient };
                self.later(at, (Lane::Spawner, 0), Due::Notice(failed));
            }
            None => self.later(at, (Lane::Spawner, 0), Due::Born(node, nth)),
        }
    }

    /// Whether the plan says that this process's first frame cannot be made.
    fn frame_fails(&mut self, node: NodeId) -> bool {
        let Some(nth) = self.children.get(&node).map(|child| child.nth) else { return false };
        let fails = |f: &Fault| matches!(f, Fault::SpawnFrameFails { nth: n } if *n == nth).then_some(());
        let unspoken = self.fault(fails).is_some();
        if let Some(child) = self.children.get_mut(&node) {
            child.program.unspoken = unspoken;
        }
        unspoken
    }

    fn send(&mut self, node: NodeId, frame: &[u8]) {
        let Some(child) = self.children.get_mut(&node) else { return };
        child.queue(frame);
        self.pump(node);
    }

    /// Moves what fits from the queue into the child's stdin.
    pub(super) fn pump(&mut self, node: NodeId) {
        let alive = self.kernel.alive(node);
        let most = self.plan.knobs.write.max(1);
        let Some(child) = self.children.get_mut(&node) else { return };
        if !alive {
            if child.queued() > 0 {
                child.drop_queue();
                self.notice((Lane::Down, node.0), write_failed(node, "write: EPIPE"));
            }
            return;
        }
        if child.writing {
            return;
        }
        let bytes = child.flush(most);
        // The rest met a full pipe: there is room again in a moment.
        child.writing = bytes == most as u64 && child.queued() > 0;
        if child.writing {
            let at = self.now + self.chance.delay((Lane::Down, node.0));
            self.later(at, (Lane::Down, node.0), Due::Room(node));
        }
        if bytes > 0 {
            self.notice((Lane::Down, node.0), Event::ChildWrote { node, bytes });
            self.turn_soon(node);
        }
    }

    pub(super) fn turn_soon(&mut self, node: NodeId) {
        let at = self.now + self.chance.delay((Lane::Turn, node.0));
        self.agenda.push_alone(at, Due::Turn(node));
    }

    pub(super) fn follow(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Terminated(node) => {
                    let now = self.programs_now();
                    if let Some(child) = self.children.get_mut(&node) {
                        child.program.terminated(now);
                    }
                    self.agenda.push_alone(self.now, Due::Turn(node));
                }
                Effect::Continued(node) => self.agenda.push_alone(self.now, Due::Turn(node)),
                Effect::Ends { serial, after_ms, exit } => {
                    let at = self.now + Duration::from_millis(after_ms);
                    self.agenda.push_alone(at, Due::Dies(serial, exit));
                }
            }
        }
    }

    fn reap(&mut self, node: NodeId) {
        self.kernel.reap(node);
        self.children.remove(&node);
        self.agenda.cancel(|due| match due {
            Due::Notice(event) => is_about(event, node),
            Due::Read(n) | Due::Turn(n) | Due::Room(n) => *n == node,
            Due::Born(..) | Due::Dies(..) | Due::Orphan | Due::Gap { .. } | Due::Wall(_) | Due::KillAll => {
                false
            }
        });
        self.notice((Lane::Life, node.0), Event::Reaped { node });
        if self.plan.knobs.strangers
            && let Some(serial) = self.kernel.fork_stranger()
        {
            let at = self.now + Duration::from_millis(self.chance.below((Lane::Stranger, 0), 400));
            self.agenda.push_alone(at, Due::Dies(serial, agentd_core::event::Exit::Code(0)));
        }
    }

    fn persist(&mut self, seq: u64, writes: Vec<Write>) {
        let nth = self.persists;
        self.persists += 1;
        let slow = self.lateness(|fault| match fault {
            Fault::StoreSlow { nth: n, times, ms } if (*n..n + times).contains(&nth) => Some(*ms),
            _ => None,
        });
        let at = self.now + self.chance.delay((Lane::Store, 0)) + slow;
        let fails = self.fault(|fault| match fault {
            Fault::StoreFails { nth: n, times, retryable } if (*n..n + times).contains(&nth) => {
                Some(*retryable)
            }
            _ => None,
        });
        self.disk.begin(seq, writes, fails.is_none());
        let answer = match fails {
            Some(retryable) => {
                Event::StoreFailed { seq, error: "write: a planned fault".to_owned(), retryable }
            }
            None => Event::Stored { seq },
        };
        self.later(at, (Lane::Store, 0), Due::Notice(answer));
    }
}

fn write_failed(node: NodeId, error: &str) -> Event {
    Event::ChildWriteFailed { node, error: error.to_owned() }
}

/// Whether the event is one that ends with a node's reaping.
fn is_about(event: &Event, node: NodeId) -> bool {
    match event {
        Event::ChildSpawned { node: n, .. }
        | Event::SpawnFailed { node: n, .. }
        | Event::SpawnFrameFailed { node: n, .. }
        | Event::ChildBytes { node: n, .. }
        | Event::ChildEof { node: n }
        | Event::ChildStderr { node: n, .. }
        | Event::ChildWrote { node: n, .. }
        | Event::ChildWriteFailed { node: n, .. }
        | Event::ModelFrameFailed { node: n, .. }
        | Event::ExitObserved { node: n, .. }
        | Event::Swept { node: n, .. }
        | Event::Reaped { node: n } => *n == node,
        Event::Seeded { .. }
        | Event::PromptSubmitted { .. }
        | Event::TurnCancelled { .. }
        | Event::Tick
        | Event::Stored { .. }
        | Event::StoreFailed { .. }
        | Event::Signalled { .. }
        | Event::OperatorCalled { .. }
        | Event::OperatorHungUp { .. }
        | Event::ConfigReady(_)
        | Event::ConfigRefused { .. }
        | Event::Restored(_)
        | Event::HostToolAnswered { .. }
        | Event::ConnOpened { .. }
        | Event::ConnBytes { .. }
        | Event::ConnWrote { .. }
        | Event::ConnEnded { .. }
        | Event::ConnClosed { .. } => false,
    }
}

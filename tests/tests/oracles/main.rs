//! The oracles see: a core that is wrong in one way is caught, by the rule that names that way. Without this a
//! green simulation could mean that nobody looks.

mod budgets;
mod prompts;
mod queue;
mod tamper;
mod throttles;
mod trouble;
mod turns;

use agentd_core::action::{Action, ChildSignal};
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note::{Level, Note};
use agentd_core::record::Status;
use agentd_core::store::record_in;
use agentd_core::time::{Duration, Instant, Now};
use tamper::{Tampered, add, caught, misled, persisted, tampered};

const LIMITS: &[&str] = &["limits are never passed"];
const GHOST: &[&str] = &["only who is over a limit is refused"];
const OWN: &[&str] = &["only our own unreaped children are touched"];
const REST: &[&str] = &["everything comes to rest"];
const IN_TIME: &[&str] = &["a process is gone in time"];

#[test]
fn one_more_than_the_limit() {
    misled(|c| c.subagents.breadth += 1, LIMITS);
    misled(|c| c.subagents.total += 1, LIMITS);
    misled(|c| c.subagents.depth += 1, LIMITS);
    misled(|c| c.subagents.rate.per /= 2, LIMITS);
}

#[test]
fn one_fewer_than_the_limit() {
    misled(|c| c.subagents.breadth = c.subagents.breadth.saturating_sub(1).max(1), GHOST);
    misled(|c| c.subagents.total -= 1, GHOST);
    misled(|c| c.subagents.rate.per *= 2, GHOST);
}

#[test]
fn a_ladder_that_dawdles_or_hurries() {
    misled(|c| c.kill.term_after *= 5, IN_TIME);
    misled(|c| c.kill.kill_after *= 20, IN_TIME);
    misled(|c| c.kill.exit_after_result *= 5, IN_TIME);
    misled(|c| c.kill.term_after /= 3, &["a signal has a reason"]);
    misled(|c| c.kill.kill_after /= 3, &["SIGKILL comes after SIGTERM"]);
}

#[test]
fn a_judge_that_dawdles_or_hurries() {
    misled(|c| c.liveness.ready *= 4, IN_TIME);
    misled(|c| c.liveness.pong = Duration::from_secs(100_000), IN_TIME);
    misled(|c| c.liveness.progress *= 50, IN_TIME);
    misled(|c| c.liveness.hard_deadline_grace = Duration::from_secs(100_000), IN_TIME);
    let hasty: fn(&mut Config) = |c| {
        c.liveness.progress = Duration::ZERO;
        c.liveness.pong = c.liveness.ping / 2;
    };
    misled(hasty, &["an outcome has a cause", "a signal has a reason"]);
}

#[test]
fn a_drain_that_does_not_end() {
    misled(|c| c.drain_timeout *= 10, &["a drain ends in time", "a process is gone in time"]);
}

#[test]
fn a_hand_on_who_is_not_ours() {
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::Reap { node } => Some(Action::Signal { node: *node, signal: ChildSignal::Kill }),
                _ => None,
            });
        },
        OWN,
    );
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::Spawn { node, .. } => Some(Action::Signal { node: *node, signal: ChildSignal::Kill }),
                _ => None,
            });
        },
        OWN,
    );
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::Spawn { .. } => Some(Action::Reap { node: NodeId(77) }),
                _ => None,
            });
        },
        OWN,
    );
}

#[test]
fn a_reaping_in_the_wrong_place() {
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::Sweep { node, .. } => Some(Action::Reap { node: *node }),
                _ => None,
            });
        },
        &["reaped only after its subtree is swept"],
    );
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::SendSpawn { node, .. } => Some(Action::Reap { node: *node }),
                _ => None,
            });
        },
        &["reaped only after its exit was observed"],
    );
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::SendSpawn { node, .. } => Some(Action::Sweep { node: *node, keepers: true }),
                _ => None,
            });
        },
        &["only what a dead child left is swept"],
    );
}

#[test]
fn something_left_undone() {
    tampered(|_, out| out.retain(|a| !matches!(a, Action::Exit { .. })), REST);
    tampered(
        |_, out| out.retain(|a| !matches!(a, Action::Reap { .. })),
        &["what is swept and read is reaped at once"],
    );
    tampered(|_, out| out.retain(|a| !matches!(a, Action::Signal { .. })), IN_TIME);
    tampered(|_, out| out.retain(|a| !matches!(a, Action::Deliver { .. })), &["the answer is delivered"]);
    tampered(|_, out| out.retain(|a| !matches!(a, Action::ReapOrphans)), &["orphans are reaped"]);
    tampered(
        |event, out| {
            if let Event::ChildBytes { .. } = event {
                out.retain(|a| !matches!(a, Action::SendToChild { .. }));
            }
        },
        // The next frame to that child shows the gap, or its call is never answered.
        &["a child is sent what it can use", "a request is answered in time"],
    );
}

#[test]
fn something_done_twice() {
    tampered(
        |_, out| add(out, |a| matches!(a, Action::SendToChild { .. }).then(|| a.clone())),
        &["a child is sent what it can use"],
    );
    tampered(
        |_, out| add(out, |a| matches!(a, Action::Spawn { .. }).then(|| a.clone())),
        &["a node is one process life"],
    );
    tampered(
        |_, out| add(out, |a| matches!(a, Action::SendSpawn { .. }).then(|| a.clone())),
        &["the spawn frame is sent once"],
    );
    tampered(
        |_, out| add(out, |a| matches!(a, Action::Deliver { .. }).then(|| a.clone())),
        &["the answer is delivered once"],
    );
    tampered(
        |_, out| add(out, |a| matches!(a, Action::Exit { .. }).then_some(Action::ReapOrphans)),
        &["exit is the last action"],
    );
}

#[test]
fn a_record_that_lies() {
    tampered(
        |_, out| {
            persisted(out, |r| {
                r.status = if r.status == Status::Failed { Status::Completed } else { r.status }
            })
        },
        &["an outcome has a cause", "the first terminal frame stands"],
    );
    tampered(
        |_, out| {
            persisted(out, |r| {
                r.status = if r.status == Status::Completed { Status::Cancelled } else { r.status }
            })
        },
        &["the first terminal frame stands"],
    );
    tampered(
        |_, out| {
            persisted(out, |r| {
                if r.status == Status::Completed {
                    r.result = "token=9.9".into();
                }
            });
        },
        &["a result is the run's own"],
    );
    tampered(|_, out| persisted(out, |r| r.depth = 0), &["depth is minted from the requester's record"]);
    tampered(
        |event, out| {
            if let Event::Stored { .. } = event {
                return;
            }
            add(out, |a| match a {
                Action::Persist { writes, .. } => record_in(writes).map(|record| Action::Spawn {
                    node: record.node,
                    name: "agentd:early".into(),
                    walls: Default::default(),
                }),
                _ => None,
            });
        },
        &["intent is durable before the effect"],
    );
}

#[test]
fn an_error_in_the_log() {
    tampered(
        |_, out| {
            add(out, |a| match a {
                Action::Note(note) if note.event == "child.exit" => {
                    Some(Action::Note(Note { level: Level::Error, ..note.clone() }))
                }
                _ => None,
            });
        },
        &["no error is logged"],
    );
}

#[test]
fn a_timer_that_does_not_move() {
    let stuck = |config: Config, now: Now| -> Box<dyn Machine> {
        let timer: fn(Option<Deadline>) -> Option<Deadline> =
            |due| due.map(|d| Deadline { at: Instant::from_millis(1), ..d });
        Box::new(Tampered::new(config, now).with_timer(timer))
    };
    caught(&stuck, &["no timer is due right after a Tick"]);
    let none = |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered::new(config, now).with_timer(|_| None))
    };
    caught(&none, &["everything comes to rest", "a process is gone in time"]);
}

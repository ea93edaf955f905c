//! The oracles see: a core that is wrong in one way is caught, by the rule that names that way. Without this a
//! green simulation could mean that nobody looks.

use agentd_core::action::{Action, Actions, ChildSignal};
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note::{Level, Note};
use agentd_core::record::Status;
use agentd_core::supervisor::Core;
use agentd_core::time::{Duration, Instant, Now};
use agentd_tests::sim::draw;
use agentd_tests::sim::replay::{self, Keep};
use std::collections::BTreeMap;

/// Lives that a fault may hide in.
const LIVES: u64 = 300;

/// A core whose configuration is not the one the plan says.
fn misled(change: fn(&mut Config), rules: &[&str]) {
    let make = move |mut config: Config, now: Now| -> Box<dyn Machine> {
        change(&mut config);
        Box::new(Core::new(config, now))
    };
    caught(&make, rules);
}

/// A core whose actions are changed on the way.
fn tampered(change: fn(&Event, &mut Actions), rules: &[&str]) {
    let make = move |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { core: Core::new(config, now), change, timer: None })
    };
    caught(&make, rules);
}

fn caught(make: &dyn Fn(Config, Now) -> Box<dyn Machine>, rules: &[&str]) {
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for seed in 0..LIVES {
        let Some(violation) = replay::live(&draw::plan(seed), make, Keep::Verdict).violation else {
            continue;
        };
        if rules.contains(&violation.rule) {
            return;
        }
        seen.insert(violation.rule, violation.to_string());
    }
    panic!("none of {rules:?} was broken in {LIVES} lives; broken were {seen:#?}");
}

struct Tampered {
    core: Core,
    change: fn(&Event, &mut Actions),
    timer: Option<fn(Option<Deadline>) -> Option<Deadline>>,
}

impl Machine for Tampered {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        self.core.handle(now, event.clone(), out);
        (self.change)(&event, out);
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let due = self.core.poll_timeout();
        self.timer.map_or(due, |change| change(due))
    }
}

/// After every action that `after` names, another.
fn add(out: &mut Actions, after: impl Fn(&Action) -> Option<Action>) {
    *out = std::mem::take(out)
        .into_iter()
        .flat_map(|a| [after(&a), Some(a)].into_iter().rev().flatten())
        .collect();
}

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
    fn persisted(out: &mut Actions, change: impl Fn(&mut agentd_core::record::Record)) {
        for action in out {
            if let Action::Persist { record, .. } = action {
                change(record);
            }
        }
    }
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
                Action::Persist { record, .. } => Some(Action::Spawn {
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
        Box::new(Tampered { core: Core::new(config, now), change: |_, _| {}, timer: Some(timer) })
    };
    caught(&stuck, &["no timer is due right after a Tick"]);
    let none = |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { core: Core::new(config, now), change: |_, _| {}, timer: Some(|_| None) })
    };
    caught(&none, &["everything comes to rest", "a process is gone in time"]);
}

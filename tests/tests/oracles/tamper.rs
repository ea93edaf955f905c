//! A core that is wrong in one way: its configuration, the events it is fed, the actions it takes, single frames either
//! way. The oracles see what the driver sees, which is what is fed and done around the change.

use agentd_core::action::{Action, Actions};
use agentd_core::bytes::Bytes;
use agentd_core::config::Config;
use agentd_core::event::Event;
use agentd_core::id::NodeId;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::record::Record;
use agentd_core::snapshot::Snapshot;
use agentd_core::store::Write;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder, Up, UpDecoder};
use agentd_tests::sim::draw;
use agentd_tests::sim::replay::{self, Keep};
use std::collections::BTreeMap;

/// Lives that a fault may hide in: those of an ordinary run.
const LIVES: u64 = 5_000;

/// A core whose configuration is not the one the plan says.
pub(crate) fn misled(change: fn(&mut Config), rules: &[&str]) {
    let make = move |mut config: Config, now: Now| -> Box<dyn Machine> {
        change(&mut config);
        Box::new(Core::new(config, now))
    };
    caught(&make, rules);
}

/// A core whose actions are changed on the way.
pub(crate) fn tampered(change: fn(&Event, &mut Actions), rules: &[&str]) {
    let make = move |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { change, ..Tampered::new(config, now) })
    };
    caught(&make, rules);
}

/// A core that is not told the events that happened, but these.
pub(crate) fn deceived(events: fn(Event, &mut Vec<Event>) -> Vec<Event>, rules: &[&str]) {
    let make = move |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { events, ..Tampered::new(config, now) })
    };
    caught(&make, rules);
}

/// A core whose frames to children are changed on the way.
pub(crate) fn misquoted(down: fn(Down) -> Vec<Down>, rules: &[&str]) {
    let make = move |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { down: Some(down), ..Tampered::new(config, now) })
    };
    caught(&make, rules);
}

/// A core that misreads the frames of children.
pub(crate) fn misread(up: fn(Up) -> Up, rules: &[&str]) {
    let make = move |config: Config, now: Now| -> Box<dyn Machine> {
        Box::new(Tampered { up: Some(up), ..Tampered::new(config, now) })
    };
    caught(&make, rules);
}

pub(crate) fn caught(make: replay::Maker<'_>, rules: &[&str]) {
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

/// See the module.
pub(crate) struct Tampered {
    core: Core,
    change: fn(&Event, &mut Actions),
    timer: Option<fn(Option<Deadline>) -> Option<Deadline>>,
    shown: fn(Snapshot) -> Snapshot,
    events: fn(Event, &mut Vec<Event>) -> Vec<Event>,
    /// What `events` keeps back.
    kept: Vec<Event>,
    down: Option<fn(Down) -> Vec<Down>>,
    up: Option<fn(Up) -> Up>,
    lines: BTreeMap<NodeId, Line>,
}

/// One child's frames, read and written anew.
#[derive(Default)]
struct Line {
    from_core: DownDecoder,
    to_child: Encoder,
    from_child: UpDecoder,
    to_core: Encoder,
}

impl Tampered {
    pub(crate) fn new(config: Config, now: Now) -> Tampered {
        Tampered {
            core: Core::new(config, now),
            change: |_, _| {},
            timer: None,
            shown: |snapshot| snapshot,
            events: |event, _| vec![event],
            kept: Vec::new(),
            down: None,
            up: None,
            lines: BTreeMap::new(),
        }
    }

    /// With another answer to when it wants a tick.
    pub(crate) fn with_timer(self, timer: fn(Option<Deadline>) -> Option<Deadline>) -> Tampered {
        Tampered { timer: Some(timer), ..self }
    }

    /// With other snapshots.
    pub(crate) fn with_shown(self, shown: fn(Snapshot) -> Snapshot) -> Tampered {
        Tampered { shown, ..self }
    }

    fn read(&mut self, event: Event) -> Event {
        let (Some(change), Event::ChildBytes { node, bytes }) = (self.up, &event) else { return event };
        let line = self.lines.entry(*node).or_default();
        line.from_child.push(bytes);
        let mut all = Vec::new();
        while let Some(Ok(Decoded::Message(up))) = line.from_child.next() {
            all.extend(line.to_core.encode_up(&change(up)).expect("a frame that fits"));
        }
        Event::ChildBytes { node: *node, bytes: Bytes::from(all) }
    }

    fn quote(&mut self, out: &mut Actions) {
        let Some(change) = self.down else { return };
        for action in std::mem::take(out) {
            match action {
                Action::SendSpawn { node, payload } => {
                    let line = self.lines.entry(node).or_default();
                    let first = Down::Spawn(payload.0.clone());
                    let frame = line.to_child.encode_down(&first).expect("a frame that fits");
                    line.from_core.push(&frame);
                    assert!(line.from_core.next().is_some());
                    out.push(Action::SendSpawn { node, payload });
                }
                Action::SendToChild { node, frame } => {
                    let line = self.lines.entry(node).or_default();
                    line.from_core.push(&frame);
                    while let Some(Ok(Decoded::Message(down))) = line.from_core.next() {
                        for down in change(down) {
                            let frame = line.to_child.encode_down(&down).expect("a frame that fits");
                            out.push(Action::SendToChild { node, frame: Bytes::from(frame) });
                        }
                    }
                }
                other => out.push(other),
            }
        }
    }
}

impl Machine for Tampered {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        for event in (self.events)(event, &mut self.kept) {
            let event = self.read(event);
            self.core.handle(now, event.clone(), out);
            (self.change)(&event, out);
        }
        self.quote(out);
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let due = self.core.poll_timeout();
        self.timer.map_or(due, |change| change(due))
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.core.snapshot().map(self.shown)
    }
}

/// After every action that `after` names, another.
pub(crate) fn add(out: &mut Actions, after: impl Fn(&Action) -> Option<Action>) {
    *out = std::mem::take(out)
        .into_iter()
        .flat_map(|a| [after(&a), Some(a)].into_iter().rev().flatten())
        .collect();
}

/// Changes every record on its way to the store.
pub(crate) fn persisted(out: &mut Actions, change: impl Fn(&mut Record)) {
    for action in out {
        let Action::Persist { writes, .. } = action else { continue };
        for write in writes {
            if let Write::Run(row) = write {
                change(&mut row.record);
            }
        }
    }
}

//! What happened, for the person who reads a failure; and a digest of it, by which two lives can be told equal.

use super::replay::Keep;
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::store::record_in;
use agentd_core::time::Instant;
use std::fmt::{self, Write};

/// See the module.
pub(crate) struct Story {
    keep: Keep,
    lines: Vec<String>,
    digest: Digest,
}

impl Story {
    pub(crate) fn new(keep: Keep) -> Story {
        Story { keep, lines: Vec::new(), digest: Digest::new() }
    }

    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        match self.keep {
            Keep::Verdict => {}
            // What is kept has dates.
            Keep::Decisions if matches!(event, Event::Restored(_)) => {}
            Keep::Digest | Keep::Decisions => self.digest.add(format_args!("{now:?}{event:?}")),
            Keep::Story => self.lines.push(format!("{:>10.3} s  {event:?}", now.nanos() as f64 / 1e9)),
        }
    }

    pub(crate) fn action(&mut self, action: &Action) {
        match self.keep {
            Keep::Verdict => {}
            Keep::Digest => self.digest.add(format_args!("{action:?}")),
            Keep::Decisions => self.digest.add(format_args!("{}", decision(action))),
            Keep::Story => self.lines.push(format!("              -> {}", short(action))),
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.0
    }

    pub(crate) fn lines(self) -> Vec<String> {
        self.lines
    }
}

/// FNV-1a over what is written into it.
pub(crate) struct Digest(u64);

impl Digest {
    /// Of nothing.
    pub(crate) const fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    /// Takes in what these come to.
    pub(crate) fn add(&mut self, what: fmt::Arguments<'_>) {
        // Formatting into a digest cannot fail: it has no end.
        let _always_fits = self.write_fmt(what);
    }

    /// What it is.
    pub(crate) const fn value(&self) -> u64 {
        self.0
    }
}

impl Write for Digest {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for b in s.bytes() {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

/// An action without what the wall clock may be seen in: ids and dates.
fn decision(action: &Action) -> String {
    match action {
        Action::Persist { seq, writes, .. } => match record_in(writes) {
            Some(r) => format!("{seq} {:?} {:?} {:?} {} {:?}", r.node, r.status, r.error, r.result, r.usage),
            None => format!("{seq} {}", writes.len()),
        },
        Action::SendSpawn { node, payload } => format!("{node} {}", payload.0.instruction),
        Action::SendToChild { node, frame } => format!("{node} {}", frame.len()),
        Action::Answer { call, error, value } => format!("{call} {error} {}", value.0.len()),
        Action::Deliver { prompt, result, fault } => {
            format!("{prompt} {:?} {:?} {:?} {fault:?}", result.status, result.error, result.result)
        }
        Action::Note(note) => format!("{} {:?}", note.event, note.node),
        other => format!("{other:?}"),
    }
}

fn short(action: &Action) -> String {
    match action {
        Action::Persist { seq, class, writes } => match record_in(writes) {
            Some(record) => {
                let handle = record.handle.map_or("root".to_owned(), |h| h.to_string());
                let more = writes.len() - 1;
                format!("Persist {seq}: {handle} {} {:?} and {more}", record.status.name(), record.error)
            }
            None => format!("Persist {seq} {class:?}: {writes:?}"),
        },
        Action::SendSpawn { node, payload } => format!("SendSpawn {node}: {:?}", payload.0.instruction),
        Action::Note(note) => {
            format!("Note {:?} {} {:?} {:?}", note.level, note.event, note.handle, note.fields)
        }
        other => format!("{other:?}"),
    }
}

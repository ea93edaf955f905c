//! What happened, for the person who reads a failure; and a digest of it, by which two lives can be told equal.

use super::replay::Keep;
use agentd_core::action::Action;
use agentd_core::event::Event;
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
        Story { keep, lines: Vec::new(), digest: Digest(0xcbf2_9ce4_8422_2325) }
    }

    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        match self.keep {
            Keep::Verdict => {}
            // Formatting into the digest cannot fail: it has no end.
            Keep::Digest => drop(write!(self.digest, "{now:?}{event:?}")),
            Keep::Story => self.lines.push(format!("{:>10.3} s  {event:?}", now.nanos() as f64 / 1e9)),
        }
    }

    pub(crate) fn action(&mut self, action: &Action) {
        match self.keep {
            Keep::Verdict => {}
            Keep::Digest => drop(write!(self.digest, "{action:?}")),
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
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for b in s.bytes() {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

fn short(action: &Action) -> String {
    match action {
        Action::Persist { seq, record } => {
            let handle = record.handle.map_or("root".to_owned(), |h| h.to_string());
            format!("Persist {seq}: {handle} {} {:?}", record.status.name(), record.error)
        }
        Action::SendSpawn { node, payload } => format!("SendSpawn {node}: {:?}", payload.0.instruction),
        Action::Note(note) => {
            format!("Note {:?} {} {:?} {:?}", note.level, note.event, note.handle, note.fields)
        }
        other => format!("{other:?}"),
    }
}

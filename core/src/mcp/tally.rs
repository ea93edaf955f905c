//! What a client skips: the first of each kind is told at once, the rest is counted and told once at the end, so
//! that no server can fill the log. Rates are judged by the time of the input, never by how it was cut.

use super::Output;
use super::preview::preview;
use crate::limits;
use crate::note::Level;
use crate::time::{Duration, Instant};

/// Kinds of things that are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skipped {
    /// A line that is no JSON-RPC message.
    Junk,
    /// A response to nothing that is open: an unknown id, a second answer, a late one.
    Stray,
    /// A request of the server that we do not serve; it was told so.
    Refused,
    /// A request of the server over the rate; it got no answer.
    Unanswered,
    /// A notification we have no use for.
    Notification,
    /// A log message over the rate.
    Message,
}

const KINDS: [Skipped; 6] = [
    Skipped::Junk,
    Skipped::Stray,
    Skipped::Refused,
    Skipped::Unanswered,
    Skipped::Notification,
    Skipped::Message,
];

impl Skipped {
    const fn event(self) -> &'static str {
        match self {
            Skipped::Junk => "mcp.junk",
            Skipped::Stray => "mcp.stray",
            Skipped::Refused => "mcp.request.refused",
            Skipped::Unanswered => "mcp.request.dropped",
            Skipped::Notification => "mcp.notification.ignored",
            Skipped::Message => "mcp.message.dropped",
        }
    }

    const fn level(self) -> Level {
        match self {
            Skipped::Junk | Skipped::Stray | Skipped::Unanswered => Level::Warn,
            Skipped::Refused => Level::Info,
            Skipped::Notification | Skipped::Message => Level::Debug,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Skipped::Junk => "lines that are not JSON-RPC messages were skipped",
            Skipped::Stray => "responses that answer nothing open were dropped",
            Skipped::Refused => "requests of the server were answered with method-not-found",
            Skipped::Unanswered => "requests of the server came too fast and were dropped",
            Skipped::Notification => "notifications were ignored",
            Skipped::Message => "log messages of the server came too fast and were dropped",
        }
    }
}

/// The counts of one connection.
#[derive(Debug)]
pub(super) struct Tally {
    counts: [u64; KINDS.len()],
    replies: PerSecond,
    messages: PerSecond,
}

impl Tally {
    /// All zero.
    pub(super) const fn new() -> Tally {
        Tally {
            counts: [0; KINDS.len()],
            replies: PerSecond::new(limits::MCP_REPLIES_PER_SECOND),
            messages: PerSecond::new(limits::MCP_MESSAGES_PER_SECOND),
        }
    }

    /// Counts one more of `kind`; the first gives a log line that shows what it was.
    pub(super) fn skip(&mut self, kind: Skipped, what: &str, seen: &str) -> Option<Output> {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        (*count == 1).then(|| {
            let text = match seen.trim() {
                "" => what.to_owned(),
                seen => format!("{what}: {:?}", preview(seen)),
            };
            Output::Log {
                level: kind.level(),
                event: kind.event(),
                text: format!("{text}; more are only counted"),
            }
        })
    }

    /// Whether one more request of the server may be answered now.
    pub(super) fn may_reply(&mut self, now: Instant) -> bool {
        self.replies.take(now)
    }

    /// Whether one more log message of the server may be passed on now.
    pub(super) fn may_log(&mut self, now: Instant) -> bool {
        self.messages.take(now)
    }

    /// The counts of kinds that were met more than once; asked for at the end.
    pub(super) fn summary(&self) -> impl Iterator<Item = Output> {
        KINDS.into_iter().zip(self.counts).filter(|&(_, count)| count > 1).map(|(kind, count)| Output::Log {
            level: kind.level(),
            event: kind.event(),
            text: format!("{count} {} in all", kind.noun()),
        })
    }
}

/// So many in each second of the input's clock.
#[derive(Debug)]
struct PerSecond {
    most: u32,
    since: Option<Instant>,
    taken: u32,
}

impl PerSecond {
    const fn new(most: u32) -> PerSecond {
        PerSecond { most, since: None, taken: 0 }
    }

    fn take(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.since(since) >= Duration::from_secs(1)) {
            self.since = Some(now);
            self.taken = 0;
        }
        let some_left = self.taken < self.most;
        self.taken += u32::from(some_left);
        some_left
    }
}

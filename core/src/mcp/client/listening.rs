//! The stream on which a server says what nobody asked for: that its lists have changed, in either era.
//!
//! Owns when it is opened again, and that a server is not ready before its first stream is answered. Refuses to insist: a
//! server that does not offer one, or ends it again and again without a word, goes without. Pipes of the `initialize` era need
//! none.

use super::{Client, Wire};
use crate::limits;
use crate::mcp::Output;
use crate::mcp::era::Era;
use crate::mcp::http::{End, What};
use crate::note::Level;
use crate::time::Instant;
use serde_json::json;

/// Where the stream stands.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The request it answers, in the stateless era.
    request: Option<u64>,
    /// It is opened again then.
    again: Option<Instant>,
    /// Times in a row that it ended without a word.
    fruitless: u32,
    /// The server is told to be ready once the stream is.
    announcement: Option<Announcement>,
}

/// A server that has all it needs but the stream. Until that is open, some servers say into the void what a call makes them
/// ask, and wait for an answer for ever.
#[derive(Debug)]
struct Announcement {
    ready: Output,
    /// The exchange that is to be the stream.
    stream: u64,
    /// It is told then, whatever comes of that.
    by: Instant,
}

impl Listening {
    /// Whether this is the request that the stream answers.
    pub(super) fn is(&self, id: u64) -> bool {
        self.request == Some(id)
    }

    /// When something is due: the stream is to be opened again, or the server is told to be ready without it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.again.into_iter().chain(self.announcement.as_ref().map(|held| held.by)).min()
    }

    /// Whether nobody knows yet that the server is ready.
    pub(super) fn is_unannounced(&self) -> bool {
        self.announcement.is_some()
    }

    /// Something came.
    pub(super) fn heard(&mut self) {
        self.fruitless = 0;
    }
}

impl Client {
    /// Tells that the server is ready: at once, or when the stream of the `initialize` era is answered.
    pub(super) fn announce(&mut self, ready: Output) {
        let before = self.out.len();
        match self.listen() {
            Some(stream) => {
                let by = self.now + limits::MCP_LISTEN_WAIT;
                self.listening.announcement = Some(Announcement { ready, stream, by });
            }
            None => self.out.insert(before, ready),
        }
    }

    /// An exchange was answered, or will not be.
    pub(super) fn stream_answered(&mut self, exchange: u64) {
        if self.listening.announcement.as_ref().is_some_and(|held| held.stream == exchange) {
            self.announce_now();
        }
    }

    /// Tells what is held back, if anything is.
    pub(super) fn announce_now(&mut self) {
        self.out.extend(self.listening.announcement.take().map(|held| held.ready));
    }

    /// Opens the stream, where there can be one; its exchange, where it is one of its own.
    pub(super) fn listen(&mut self) -> Option<u64> {
        let hello = self.hello()?;
        let (tools, resources) = (hello.tells("tools"), hello.tells("resources"));
        match (hello.era, &mut self.wire) {
            (Era::Stateless, _) if tools || resources => {
                let mut wanted = serde_json::Map::new();
                for (name, wants) in [("toolsListChanged", tools), ("resourcesListChanged", resources)] {
                    wanted.extend(wants.then(|| (name.to_owned(), true.into())));
                }
                self.listening.request =
                    Some(self.request("subscriptions/listen", json!({"notifications": wanted})));
                None
            }
            (Era::Initialize, Wire::Http(http)) => {
                let exchange = http.get(What::Listen, None)?;
                let number = exchange.number;
                self.out.push_back(Output::Open(exchange));
                Some(number)
            }
            (Era::Stateless | Era::Initialize, _) => None,
        }
    }

    /// The stream of the `initialize` era ended.
    pub(super) fn unlistened(&mut self, end: &End) {
        match end {
            // Most servers have none.
            End::Refused { .. } | End::Odd(_) => {
                let text = format!("there is no stream for what the server says unasked: {}", end.words());
                self.log(Level::Debug, "mcp.listen.none", text);
            }
            End::Whole { .. } | End::Broken(_) => self.unheard(&end.words()),
        }
    }

    /// The stream ended, and may be opened again.
    pub(super) fn unheard(&mut self, why: &str) {
        self.listening.request = None;
        self.listening.fruitless += 1;
        if self.listening.fruitless > limits::MCP_RESUMES {
            let text = format!(
                "the stream for what the server says unasked ends again and again and is given up: {why}"
            );
            return self.log(Level::Info, "mcp.listen.none", text);
        }
        let wait =
            limits::MCP_RETRY.0.saturating_mul(1 << (self.listening.fruitless - 1)).min(limits::MCP_RETRY.1);
        self.listening.again = Some(self.now + wait);
        // What was said meanwhile is not said again.
        self.changed();
    }

    /// The server does not offer the stream after all.
    pub(super) fn not_offered(&mut self, why: &str) {
        self.listening.request = None;
        self.log(Level::Debug, "mcp.listen.none", format!("the server does not tell of changes: {why}"));
    }

    pub(super) fn tick_listening(&mut self) {
        if self.listening.announcement.as_ref().is_some_and(|held| held.by <= self.now) {
            self.announce_now();
        }
        if self.listening.again.is_some_and(|at| at <= self.now) {
            self.listening.again = None;
            self.listen();
        }
    }
}

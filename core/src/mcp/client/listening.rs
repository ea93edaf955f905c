//! The stream on which a server says what nobody asked for: that its lists have changed, in either era.
//!
//! Owns when it is opened again. Refuses to insist: a server that does not offer one, or ends it again and again without
//! a word, goes without. Pipes of the `initialize` era need none.

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
}

impl Listening {
    /// Whether this is the request that the stream answers.
    pub(super) fn is(&self, id: u64) -> bool {
        self.request == Some(id)
    }

    /// When the stream is to be opened again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.again
    }

    /// Something came.
    pub(super) fn heard(&mut self) {
        self.fruitless = 0;
    }
}

impl Client {
    /// Opens the stream, where there can be one.
    pub(super) fn listen(&mut self) {
        let Some(hello) = self.hello() else { return };
        let (tools, resources) = (hello.tells("tools"), hello.tells("resources"));
        match (hello.era, &mut self.wire) {
            (Era::Stateless, _) if tools || resources => {
                let mut wanted = serde_json::Map::new();
                for (name, wants) in [("toolsListChanged", tools), ("resourcesListChanged", resources)] {
                    wanted.extend(wants.then(|| (name.to_owned(), true.into())));
                }
                self.listening.request =
                    Some(self.request("subscriptions/listen", json!({"notifications": wanted})));
            }
            (Era::Initialize, Wire::Http(http)) => {
                let exchange = http.get(What::Listen, None);
                self.out.extend(exchange.map(Output::Open));
            }
            (Era::Stateless | Era::Initialize, _) => {}
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
        if self.listening.again.is_some_and(|at| at <= self.now) {
            self.listening.again = None;
            self.listen();
        }
    }
}

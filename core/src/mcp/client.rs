//! One server of the `initialize` era: handshake, tool list, calls. Owns every request that is open and answers
//! each call exactly once, whatever the server does. Called by the child's thread for this server, which moves
//! the bytes, keeps the clock and takes the server down when told to.

use super::calls::{Call, Calls};
use super::catalogue::Catalogue;
use super::handshake::{self, BATCHING, ClientInfo, Hello};
use super::jsonrpc::{self, Answer, First, Incoming};
use super::lines::{Lines, TooLong};
use super::preview::preview;
use super::tally::{Skipped, Tally};
use super::{Outcome, Output, content};
use crate::bytes::Json;
use crate::limits;
use crate::note::Level;
use crate::time::{Duration, Instant};
use serde_json::json;
use std::collections::VecDeque;

mod startup;
mod unasked;

/// A client of one server, over one connection's life.
#[derive(Debug)]
pub struct Client {
    info: ClientInfo,
    phase: Phase,
    /// The latest time any input came with.
    now: Instant,
    /// When start-up must be over, and how long that is in words.
    start_by: Instant,
    start_timeout: Duration,
    lines: Lines,
    /// The last request id that was used; none is used twice.
    last_id: u64,
    calls: Calls,
    tally: Tally,
    out: VecDeque<Output>,
}

/// Where the connection is; each holds only what is legal there.
#[derive(Debug)]
enum Phase {
    /// Nothing was sent.
    New,
    /// `initialize` is out.
    Initializing { id: u64 },
    /// `tools/list` is out.
    Listing { id: u64, hello: Hello, catalogue: Box<Catalogue> },
    /// Calls are taken.
    Ready { protocol: &'static str },
    /// Over, and why.
    Closed { why: String },
}

impl Client {
    /// A client that has not spoken yet. `start_timeout` runs from `now` and bounds handshake and tool list.
    pub fn new(info: ClientInfo, now: Instant, start_timeout: Duration) -> Client {
        Client {
            info,
            phase: Phase::New,
            now,
            start_by: now + start_timeout,
            start_timeout,
            lines: Lines::new(limits::MCP_LINE_BYTES),
            last_id: 0,
            calls: Calls::default(),
            tally: Tally::new(),
            out: VecDeque::new(),
        }
    }

    /// Begins the handshake. Only the first time does anything.
    pub fn start(&mut self) {
        if matches!(self.phase, Phase::New) {
            let params = handshake::params(&self.info);
            let id = self.request("initialize", params);
            self.phase = Phase::Initializing { id };
        }
    }

    /// Takes bytes from the server, cut anywhere.
    pub fn received(&mut self, now: Instant, bytes: &[u8]) {
        self.now = now;
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(limits::MCP_LINE_BYTES));
        lines.push(bytes);
        while !self.is_closed() {
            match lines.next() {
                Some(Ok(line)) => self.line(line),
                Some(Err(TooLong)) => self.give_up(format!(
                    "the server sent a line over {} bytes; what follows cannot be told apart",
                    limits::MCP_LINE_BYTES
                )),
                None => break,
            }
        }
        self.lines = lines;
    }

    /// Calls a tool by the server's own name. `key` is the caller's and comes back in the one `CallDone`;
    /// a key that is still open is a caller's error and gets no second answer.
    pub fn call(&mut self, now: Instant, key: u64, tool: &str, args: &Json, timeout: Duration) {
        self.now = now;
        if self.calls.id_of(key).is_some() {
            let text = format!("call key {key} is open already; the second call was not made");
            return self.log(Level::Error, "mcp.call.duplicate", text);
        }
        if let Some(refusal) = self.refusal() {
            return self.answer(key, Outcome::failed(format!("{refusal}; nothing was called")));
        }
        let args = match args.parse() {
            Ok(args) if args.is_object() => args,
            Ok(_) => {
                return self
                    .answer(key, Outcome::failed("arguments must be a JSON object; nothing was called"));
            }
            Err(e) => {
                let text = format!("arguments are not JSON ({e}); nothing was called");
                return self.answer(key, Outcome::failed(text));
            }
        };
        let meta = json!({"progressToken": self.last_id + 1});
        let id = self.request("tools/call", json!({"name": tool, "arguments": args, "_meta": meta}));
        self.calls.open(id, key, tool, now, timeout);
    }

    /// Gives a call up: the server is told, the call is answered with an error, a late answer is dropped. An
    /// unknown or answered key does nothing.
    pub fn cancel(&mut self, key: u64, reason: &str) {
        if let Some(id) = self.calls.id_of(key) {
            self.abandon(id, reason, |call| {
                format!(
                    "the call of `{}` was cancelled: {reason}; it may have had an effect",
                    preview(&call.tool)
                )
            });
        }
    }

    /// The connection is over: the server ended, its output did, or it was taken down. `why` is told to
    /// whoever waits, so it should name command, exit status and the last of stderr.
    pub fn closed(&mut self, why: &str) {
        if self.is_closed() {
            return;
        }
        let rest = self.lines.finish();
        if !rest.is_empty() && rest.len() <= limits::MCP_LINE_BYTES {
            self.line(&rest);
        }
        self.end(why.to_owned());
    }

    /// Time has passed: what is due by now times out.
    pub fn tick(&mut self, now: Instant) {
        self.now = now;
        if self.starting() && now >= self.start_by {
            let waited = match self.phase {
                Phase::Listing { .. } => "tools/list",
                Phase::New | Phase::Initializing { .. } | Phase::Ready { .. } | Phase::Closed { .. } => {
                    "initialize"
                }
            };
            return self.give_up(format!(
                "the server did not answer `{waited}` within {:?} of its start",
                self.start_timeout
            ));
        }
        for id in self.calls.due(now) {
            self.abandon(id, "timed out", |call| {
                format!(
                    "the server did not answer `{}` within {:?}; the call was cancelled, but it may have had an effect",
                    preview(&call.tool),
                    call.timeout
                )
            });
        }
    }

    /// When `tick` is next needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let start = self.starting().then_some(self.start_by);
        self.calls.next_due().into_iter().chain(start).min()
    }

    /// The next thing to do; ask until there is none.
    pub fn pop(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Why no call can be made now, if none can.
    fn refusal(&self) -> Option<String> {
        match &self.phase {
            Phase::Ready { .. } if self.calls.is_full() => {
                Some(format!("{} calls are open at this server; wait for one to end", limits::MCP_OPEN_CALLS))
            }
            Phase::Ready { .. } => None,
            Phase::Closed { why } => Some(format!("the server is gone: {why}")),
            Phase::New | Phase::Initializing { .. } | Phase::Listing { .. } => {
                Some("the server has not started yet".into())
            }
        }
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    fn starting(&self) -> bool {
        matches!(self.phase, Phase::New | Phase::Initializing { .. } | Phase::Listing { .. })
    }

    /// One line. Bytes that are not UTF-8 are replaced rather than refused: an answer with a foreign file name
    /// in it is worth more to the caller than a time limit.
    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let batching = matches!(self.phase, Phase::Ready { protocol: BATCHING })
            || matches!(&self.phase, Phase::Listing { hello, .. } if hello.protocol == BATCHING);
        if batching && text.trim_start().starts_with('[') {
            self.batch(&text);
        } else {
            self.message(&text);
        }
    }

    fn batch(&mut self, text: &str) {
        let Ok(batch) = serde_json::from_str::<First<'_, { limits::MCP_BATCH }>>(text) else {
            return self.skip(Skipped::Junk, "a line from the server is not JSON", text);
        };
        for raw in batch.items {
            self.message(raw.get());
        }
        if batch.more > 0 {
            self.skip(Skipped::Junk, "a batch is longer than is read", text);
        }
    }

    fn message(&mut self, text: &str) {
        match jsonrpc::read(text) {
            Ok(Incoming::Response { id, answer }) => self.response(id, answer),
            Ok(Incoming::Request { id, method }) => self.asked(id, &method),
            Ok(Incoming::Notification { method, params }) => self.notified(&method, params),
            Err(why) => self.skip(Skipped::Junk, &format!("a line from the server is {why}"), text),
        }
    }

    fn response(&mut self, id: Option<u64>, answer: Answer<'_>) {
        let Some(id) = id else {
            let seen = match answer {
                Answer::Error(e) => e.to_string(),
                Answer::Result(raw) => raw.get().to_owned(),
            };
            return self.skip(Skipped::Stray, "the server answered with an id that is none of ours", &seen);
        };
        if let Some(call) = self.calls.take(id) {
            let outcome = match answer {
                Answer::Result(raw) => content::outcome(&call.tool, raw),
                Answer::Error(e) => {
                    Outcome::failed(format!("the server answered `{}` with {e}", preview(&call.tool)))
                }
            };
            return self.answer(call.key, outcome);
        }
        match std::mem::replace(&mut self.phase, Phase::New) {
            Phase::Initializing { id: ours } if ours == id => self.initialized(answer),
            Phase::Listing { id: ours, hello, catalogue } if ours == id => {
                self.listed(hello, catalogue, answer)
            }
            other @ (Phase::New
            | Phase::Initializing { .. }
            | Phase::Listing { .. }
            | Phase::Ready { .. }
            | Phase::Closed { .. }) => {
                self.phase = other;
                let what = if id <= self.last_id {
                    "the server answered a request that is not open (answered before, or given up)"
                } else {
                    "the server answered a request that was never made"
                };
                self.skip(Skipped::Stray, what, &format!("id {id}"));
            }
        }
    }

    /// Drops an open call: tells the server, answers the caller.
    fn abandon(&mut self, id: u64, reason: &str, text: impl FnOnce(&Call) -> String) {
        let Some(call) = self.calls.take(id) else { return };
        let params = json!({"requestId": id, "reason": preview(reason)});
        self.out.push_back(Output::Send(jsonrpc::notification("notifications/cancelled", params)));
        self.answer(call.key, Outcome::failed(text(&call)));
    }

    /// Ends a connection that cannot go on.
    fn give_up(&mut self, why: String) {
        self.end(why.clone());
        self.out.push_back(Output::Close { why });
    }

    /// Answers everything that is open and takes nothing more.
    fn end(&mut self, why: String) {
        if self.starting() {
            self.out.push_back(Output::Failed { error: why.clone() });
        }
        for call in self.calls.take_all() {
            let text = format!("the server was gone before it answered `{}`: {why}", preview(&call.tool));
            self.answer(call.key, Outcome::failed(text));
        }
        self.out.extend(self.tally.summary());
        self.phase = Phase::Closed { why };
    }

    fn request(&mut self, method: &str, params: serde_json::Value) -> u64 {
        self.last_id += 1;
        self.out.push_back(Output::Send(jsonrpc::request(self.last_id, method, params)));
        self.last_id
    }

    fn answer(&mut self, key: u64, outcome: Outcome) {
        self.out.push_back(Output::CallDone { key, outcome });
    }

    fn log(&mut self, level: Level, event: &'static str, text: String) {
        self.out.push_back(Output::Log { level, event, text });
    }

    fn skip(&mut self, kind: Skipped, what: &str, seen: &str) {
        self.out.extend(self.tally.skip(kind, what, seen));
    }
}

#[cfg(test)]
mod tests;

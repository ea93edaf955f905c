//! One server: which era it is of, what it offers, the calls to it. Owns every request that is open and answers each
//! call exactly once, whatever the server does. Called by the child's thread for this server, which moves the bytes,
//! keeps the clock and takes the server down when told to; and by `agentd mcp probe`.
//!
//! Over pipes it is fed with [`Client::received`] and [`Client::closed`], over HTTP with [`Client::head`],
//! [`Client::body`] and [`Client::ended`] of each exchange it asked for.

use super::calls::Calls;
use super::catalogue::Traits;
use super::elicit::Reply;
use super::era::Era;
use super::handshake::{ClientInfo, Hello};
use super::http::Http;
use super::jsonrpc;
use super::lines::{Lines, TooLong};
use super::tally::{Skipped, Tally};
use super::{Outcome, Output};
use crate::limits;
use crate::note::Level;
use crate::time::{Duration, Instant};
use lists::Lists;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};

mod calling;
mod listening;
mod lists;
mod reading;
mod renewing;
mod startup;
mod unasked;
mod wire;

/// A client of one server, over one connection's life.
#[derive(Debug)]
pub struct Client {
    info: ClientInfo,
    /// The era that is assumed instead of found out.
    only: Option<Era>,
    phase: Phase,
    /// The latest time any input came with.
    now: Instant,
    /// When start-up must be over, and how long that is in words.
    start_by: Instant,
    start_timeout: Duration,
    wire: Wire,
    /// The last request id that was used; none is used twice.
    last_id: u64,
    calls: Calls,
    /// What calls need to know of the tools, by name.
    traits: BTreeMap<String, Traits>,
    /// `resource.read` stands for the server's resources.
    reads_resources: bool,
    /// The lists are read again.
    relisting: Option<(u64, Box<Lists>, Instant)>,
    /// They are to be read again then.
    relist_at: Option<Instant>,
    listed_at: Instant,
    listening: listening::Listening,
    renewal: renewing::Renewal,
    questions: BTreeMap<u64, Asker>,
    last_question: u64,
    tally: Tally,
    out: VecDeque<Output>,
}

/// How messages travel.
#[derive(Debug)]
enum Wire {
    Lines(Lines),
    Http(Box<Http>),
}

/// Where the connection is; each holds only what is legal there.
#[derive(Debug)]
enum Phase {
    /// Nothing was sent.
    New,
    /// `server/discover` is out. Silence until then counts as an answer, where silence is possible.
    Discovering { id: u64, until: Option<Instant>, again: bool },
    /// `initialize` is out. What came late on `server/discover` counts if this is refused.
    Initializing { id: u64, discover: Option<u64>, late: Option<Box<Hello>> },
    /// The end of the handshake is told; over HTTP the server has to have taken that before it is asked anything.
    Settling { hello: Hello },
    /// It refused to begin; whether that is because it has another transport is being looked at.
    Sniffing { why: String },
    /// A list is asked for.
    Listing { id: u64, hello: Hello, lists: Box<Lists> },
    /// Calls are taken.
    Ready { hello: Hello },
    /// Over, and why.
    Closed { why: String },
}

/// Who asked a person something.
#[derive(Debug)]
enum Asker {
    /// A request of the server, by its id.
    Request(Box<RawValue>),
    /// A call that goes on when it is answered: its id, and the server's name for the question.
    Call { id: u64, name: String },
}

impl Client {
    /// A client over pipes that has not spoken yet. `start_timeout` runs from `now` and bounds handshake and lists.
    pub fn lines(info: ClientInfo, now: Instant, start_timeout: Duration) -> Client {
        Client::new(info, Wire::Lines(Lines::new(limits::MCP_LINE_BYTES)), now, start_timeout)
    }

    /// A client over HTTP that has not spoken yet.
    pub fn http(info: ClientInfo, now: Instant, start_timeout: Duration) -> Client {
        Client::new(info, Wire::Http(Box::default()), now, start_timeout)
    }

    fn new(info: ClientInfo, wire: Wire, now: Instant, start_timeout: Duration) -> Client {
        Client {
            info,
            only: None,
            phase: Phase::New,
            now,
            start_by: now + start_timeout,
            start_timeout,
            wire,
            last_id: 0,
            calls: Calls::default(),
            traits: BTreeMap::new(),
            reads_resources: false,
            relisting: None,
            relist_at: None,
            listed_at: now,
            listening: listening::Listening::default(),
            renewal: renewing::Renewal::default(),
            questions: BTreeMap::new(),
            last_question: 0,
            tally: Tally::new(),
            out: VecDeque::new(),
        }
    }

    /// Takes the server to be of this era without finding out.
    #[must_use]
    pub fn only(mut self, era: Era) -> Client {
        self.only = Some(era);
        self
    }

    /// Takes bytes from the server's output, cut anywhere.
    pub fn received(&mut self, now: Instant, bytes: &[u8]) {
        self.now = now;
        let Wire::Lines(lines) = &mut self.wire else { return };
        let mut lines = std::mem::replace(lines, Lines::new(limits::MCP_LINE_BYTES));
        lines.push(bytes);
        while !self.is_closed() {
            match lines.next() {
                // Bytes that are not UTF-8 are replaced rather than refused: an answer with a foreign file name in it
                // is worth more to the caller than a time limit.
                Some(Ok(line)) => self.text(&String::from_utf8_lossy(line)),
                Some(Err(TooLong)) => self.give_up(format!(
                    "the server sent a line over {} bytes; what follows cannot be told apart",
                    limits::MCP_LINE_BYTES
                )),
                None => break,
            }
        }
        self.wire = Wire::Lines(lines);
    }

    /// The connection is over: the server ended, its output did, or it was taken down. `why` is told to whoever
    /// waits, so it should name command, exit status and the last of stderr.
    pub fn closed(&mut self, why: &str) {
        if self.is_closed() {
            return;
        }
        if let Wire::Lines(lines) = &mut self.wire {
            let rest = lines.finish();
            if !rest.is_empty() && rest.len() <= limits::MCP_LINE_BYTES {
                self.text(&String::from_utf8_lossy(&rest));
            }
        }
        if !self.is_closed() {
            self.end(why.to_owned());
        }
    }

    /// Says goodbye where the protocol has a word for it, and takes nothing more. An exchange that is asked for after
    /// this may be given [`limits::MCP_FAREWELL`].
    pub fn farewell(&mut self, now: Instant) {
        self.now = now;
        if self.is_closed() {
            return;
        }
        let farewell = match &mut self.wire {
            Wire::Lines(_) => None,
            Wire::Http(http) => http.farewell(),
        };
        self.end("it was ended".to_owned());
        self.out.extend(farewell.map(Output::Open));
    }

    /// Answers a question of the server. A question that is not open, or not any more, is passed over.
    pub fn reply(&mut self, now: Instant, question: u64, reply: &Reply) {
        self.now = now;
        match self.questions.remove(&question) {
            Some(Asker::Request(id)) => {
                let answer = jsonrpc::result(&id, &reply.result());
                self.send(answer);
            }
            Some(Asker::Call { id, name }) => self.input(id, name, reply.result()),
            None => {}
        }
    }

    /// Time has passed: what is due by now happens.
    pub fn tick(&mut self, now: Instant) {
        self.now = now;
        if let Phase::Discovering { until: Some(until), id, .. } = self.phase
            && now >= until
        {
            self.initialize(Some(id));
        }
        if self.starting() && now >= self.start_by {
            let waited = match &self.phase {
                Phase::Listing { lists, .. } => lists.method(),
                Phase::Discovering { .. } => "server/discover",
                Phase::Settling { .. } => "notifications/initialized",
                Phase::New
                | Phase::Initializing { .. }
                | Phase::Sniffing { .. }
                | Phase::Ready { .. }
                | Phase::Closed { .. } => "initialize",
            };
            return self.give_up(format!(
                "the server did not answer `{waited}` within {:?} of its start",
                self.start_timeout
            ));
        }
        self.expire_calls();
        self.tick_lists();
        self.tick_renewal();
        self.tick_listening();
        self.take_up_streams();
    }

    /// When `tick` is next needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut due: Vec<Instant> = Vec::new();
        due.extend(self.starting().then_some(self.start_by));
        if let Phase::Discovering { until: Some(until), .. } = self.phase {
            due.push(until);
        }
        due.extend(self.calls.next_due());
        due.extend(self.relist_at);
        due.extend(self.relisting.as_ref().map(|(_, _, by)| *by));
        due.extend(self.renewal.due());
        due.extend(self.listening.due());
        if let Wire::Http(http) = &self.wire {
            due.extend(http.next_due());
        }
        due.into_iter().min()
    }

    /// The next thing to do; ask until there is none.
    pub fn pop(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    fn starting(&self) -> bool {
        !matches!(self.phase, Phase::Ready { .. } | Phase::Closed { .. })
    }

    /// What is known of the server, once it is.
    fn hello(&self) -> Option<&Hello> {
        match &self.phase {
            Phase::Settling { hello } | Phase::Listing { hello, .. } | Phase::Ready { hello } => Some(hello),
            Phase::New
            | Phase::Discovering { .. }
            | Phase::Initializing { .. }
            | Phase::Sniffing { .. }
            | Phase::Closed { .. } => None,
        }
    }

    fn is_stateless(&self) -> bool {
        match &self.phase {
            Phase::Discovering { .. } => true,
            Phase::New | Phase::Initializing { .. } | Phase::Sniffing { .. } | Phase::Closed { .. } => false,
            Phase::Settling { hello } | Phase::Listing { hello, .. } | Phase::Ready { hello } => {
                hello.era == Era::Stateless
            }
        }
    }

    /// Ends a connection that cannot go on.
    fn give_up(&mut self, why: String) {
        self.end(why.clone());
        self.out.push_back(Output::Close { why });
    }

    /// Answers everything that is open and takes nothing more.
    fn end(&mut self, why: String) {
        if self.starting() || self.listening.is_unannounced() {
            self.out.push_back(Output::Failed { error: why.clone() });
        }
        for call in self.calls.take_all() {
            let text = format!("the server was gone before it answered `{}`: {why}", call.ask.label());
            self.answer(call.key, Outcome::failed(text));
        }
        if let Wire::Http(http) = &mut self.wire {
            self.out.extend(http.drop_all().into_iter().map(|exchange| Output::Shut { exchange }));
        }
        self.relisting = None;
        self.relist_at = None;
        self.listening = listening::Listening::default();
        self.renewal = renewing::Renewal::default();
        self.questions.clear();
        self.out.extend(self.tally.summary());
        self.phase = Phase::Closed { why };
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

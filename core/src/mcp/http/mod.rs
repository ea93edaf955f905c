//! Streamable HTTP as a machine: which exchanges are wanted, and which messages came out of them. No connection is made
//! here: whoever drives the client makes each exchange, and says what came of it, in pieces of any size.
//!
//! Owns the session of the `initialize` era, the streams that are to be taken up again, and the bound on exchanges that
//! are open at once. Refuses answers that are neither JSON nor an event stream, and bodies over their bound. It does
//! not know what a message means: that is the client's.

mod exchange;

use crate::limits;
use crate::time::{Duration, Instant};
use exchange::Reading;
use std::collections::{BTreeMap, VecDeque};

/// An HTTP exchange that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Its number; none is used twice.
    pub number: u64,
    /// Its method.
    pub method: Method,
    /// Headers on top of those of the configuration: names in small letters, each once.
    pub headers: Vec<(String, String)>,
    /// Its body; empty but for a POST.
    pub body: Vec<u8>,
}

/// A method that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// For messages to the server.
    Post,
    /// For messages that the server sends unasked, and for what is left of a stream that broke.
    Get,
    /// For the end of a session.
    Delete,
}

/// Why an exchange did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Whether the server can have seen the request.
    pub reached: bool,
    /// One sentence without an end.
    pub why: String,
}

/// What an exchange is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The request with this id, or what is left of its answer.
    Request(u64),
    /// A notification, or an answer to the server.
    Note,
    /// Messages that nobody asked for.
    Listen,
    /// Whether this is the transport of 2024-11-05.
    Sniff,
    /// The end of the session.
    Farewell,
}

/// What came of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// A message, or what should be one.
    Message(String),
    /// A stream's first event names an address: only the transport of 2024-11-05 does that.
    Endpoint,
    /// An exchange is over.
    Over { what: What, end: End, resume: Option<Resume> },
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// As it should, after this status.
    Whole { status: u16 },
    /// With a status that refuses, and what was said with it.
    /// `session` is the number of the session that it was in. With `resumed` only the rest of an answer was refused: the
    /// request itself had been taken before.
    Refused { status: u16, body: String, session: Option<u64>, resumed: bool },
    /// With something that is no answer: words that follow "the server".
    Odd(String),
    /// In the middle, or before it began.
    Broken(Broken),
}

/// How a stream goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resume {
    /// The last event that came.
    pub(super) last_id: String,
    /// The least time to wait.
    pub(super) after: Duration,
    /// Times in a row that it was taken up without an event on it.
    fruitless: u32,
}

/// The exchanges with one server.
#[derive(Debug, Default)]
pub(super) struct Http {
    /// The session that the server began; sent with everything.
    session: Option<String>,
    /// Sessions that were begun.
    sessions: u64,
    /// The request that begins one: only its answer names it.
    begins: Option<u64>,
    /// The version that is agreed on; sent with everything.
    pub(super) protocol: Option<&'static str>,
    last: u64,
    open: BTreeMap<u64, (What, Reading)>,
    /// With the times in a row that a stream was taken up, where it is one that is.
    waiting: VecDeque<(What, Option<u32>, Exchange)>,
    /// Streams to be taken up again: when, for what, how.
    later: Vec<(Instant, What, Resume)>,
}

impl Http {
    /// There is no session from here on, but for one that the answer to `begins` names.
    pub(super) fn leave_session(&mut self, begins: Option<u64>) {
        self.session = None;
        self.sessions += 1;
        self.begins = begins;
    }

    /// The number of the session there is.
    pub(super) fn in_session(&self) -> Option<u64> {
        self.session.is_some().then_some(self.sessions)
    }

    /// Sends a message.
    pub(super) fn post(
        &mut self,
        what: What,
        more: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Option<Exchange> {
        let mut headers = self.headers("application/json, text/event-stream");
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        headers.extend(more);
        self.begin(what, Method::Post, headers, body, None)
    }

    /// Asks for messages.
    pub(super) fn get(&mut self, what: What, resume: Option<&Resume>) -> Option<Exchange> {
        let mut headers = self.headers("text/event-stream");
        headers.extend(resume.map(|resume| ("last-event-id".to_owned(), resume.last_id.clone())));
        self.begin(what, Method::Get, headers, Vec::new(), resume.map(|resume| resume.fruitless + 1))
    }

    /// Ends the session, if there is one.
    pub(super) fn farewell(&mut self) -> Option<Exchange> {
        self.session.as_ref()?;
        let headers = self.headers("*/*");
        self.session = None;
        self.last += 1;
        let exchange = Exchange { number: self.last, method: Method::Delete, headers, body: Vec::new() };
        self.open.insert(self.last, (What::Farewell, Reading::new(Some(self.sessions), None)));
        Some(exchange)
    }

    fn headers(&self, accept: &str) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), accept.to_owned())];
        headers.extend(self.protocol.map(|p| ("mcp-protocol-version".to_owned(), p.to_owned())));
        headers.extend(self.session.iter().map(|s| ("mcp-session-id".to_owned(), s.clone())));
        headers
    }

    fn begin(
        &mut self,
        what: What,
        method: Method,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        resumes: Option<u32>,
    ) -> Option<Exchange> {
        self.last += 1;
        let exchange = Exchange { number: self.last, method, headers, body };
        if self.open.len() >= limits::MCP_EXCHANGES {
            self.waiting.push_back((what, resumes, exchange));
            return None;
        }
        self.open.insert(self.last, (what, Reading::new(self.in_session(), resumes)));
        Some(exchange)
    }

    /// An exchange that waited and can be made now.
    pub(super) fn next(&mut self) -> Option<Exchange> {
        if self.open.len() >= limits::MCP_EXCHANGES {
            return None;
        }
        let (what, resumes, exchange) = self.waiting.pop_front()?;
        self.open.insert(exchange.number, (what, Reading::new(self.in_session(), resumes)));
        Some(exchange)
    }

    /// The status and the headers came. `true`: shut it, nothing more of it is wanted.
    pub(super) fn head(
        &mut self,
        number: u64,
        status: u16,
        headers: &[(String, String)],
        facts: &mut Vec<Fact>,
    ) -> bool {
        let Some((what, reading)) = self.open.get_mut(&number) else { return false };
        let header = |name: &str| {
            headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        let visible = |id: &&str| {
            !id.is_empty() && id.len() <= limits::MCP_HEADER_BYTES && id.bytes().all(|b| b.is_ascii_graphic())
        };
        if let (What::Request(request), 200..=299) = (&*what, status)
            && self.begins == Some(*request)
        {
            self.begins = None;
            self.session = header("mcp-session-id").filter(visible).map(str::to_owned);
        }
        let kind = header("content-type").unwrap_or_default();
        reading.head(what, status, kind);
        self.settle(number, facts)
    }

    /// More of the body came. `true`: shut it, nothing more of it is wanted.
    pub(super) fn body(&mut self, number: u64, bytes: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Some((what, reading)) = self.open.get_mut(&number) else { return false };
        reading.body(what, bytes, facts);
        self.settle(number, facts)
    }

    /// The exchange is over.
    pub(super) fn ended(&mut self, number: u64, how: Result<(), Broken>, facts: &mut Vec<Fact>) {
        if let Some((what, reading)) = self.open.remove(&number) {
            let (end, resume) = reading.finish(&what, how, facts);
            facts.push(Fact::Over { what, end, resume });
        }
    }

    /// An exchange whose verdict is known before its end is over now.
    fn settle(&mut self, number: u64, facts: &mut Vec<Fact>) -> bool {
        let Some((_, reading)) = self.open.get_mut(&number) else { return false };
        let Some(end) = reading.verdict.take() else { return false };
        if let Some((what, _)) = self.open.remove(&number) {
            facts.push(Fact::Over { what, end, resume: None });
        }
        true
    }

    /// Nothing more is wanted of what this was for. The number of the exchange to shut, when it was begun.
    pub(super) fn drop_what(&mut self, what: &What) -> Option<u64> {
        self.waiting.retain(|(waits, ..)| waits != what);
        self.later.retain(|(_, waits, _)| waits != what);
        let number = self.open.iter().find(|(_, (open, _))| open == what).map(|(number, _)| *number)?;
        self.open.remove(&number);
        Some(number)
    }

    /// Nothing more is wanted at all. The numbers of the exchanges to shut: not of what the server is only told, such as
    /// that a call was cancelled, for that may just be on its way.
    pub(super) fn drop_all(&mut self) -> Vec<u64> {
        self.waiting.clear();
        self.later.clear();
        let open = std::mem::take(&mut self.open).into_iter();
        open.filter(|(_, (what, _))| *what != What::Note).map(|(number, _)| number).collect()
    }

    /// Takes a stream up again at its time. `false`: that was tried too often.
    pub(super) fn take_up(&mut self, now: Instant, what: What, resume: Resume) -> bool {
        let goes_on = resume.fruitless < limits::MCP_RESUMES;
        if goes_on {
            self.later.push((now + resume.after, what, resume));
        }
        goes_on
    }

    /// The next stream that is to be taken up by `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<(What, Resume)> {
        let at = self.later.iter().position(|(at, ..)| *at <= now)?;
        let (_, what, resume) = self.later.remove(at);
        Some((what, resume))
    }

    /// When the next stream is to be taken up.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.later.iter().map(|(at, ..)| *at).min()
    }
}

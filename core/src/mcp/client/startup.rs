//! From the first word to a server that is usable: which era it is of, the handshake where there is one.

use super::{Client, Phase, Wire};
use crate::limits;
use crate::mcp::Output;
use crate::mcp::era::{self, Era, STATELESS, Verdict};
use crate::mcp::handshake::{self, Hello};
use crate::mcp::http::{End, What};
use crate::mcp::jsonrpc::Answer;
use crate::mcp::lines::Lines;
use crate::time::Instant;
use serde_json::json;

impl Client {
    /// Begins. Only the first time does anything.
    pub fn start(&mut self) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        match self.only {
            Some(Era::Initialize) => self.initialize(None),
            Some(Era::Stateless) | None => self.discover(false),
        }
    }

    /// Whether a program that ended now should be started once more: some older ones end over a first request that they
    /// do not know.
    pub fn may_begin_again(&self) -> bool {
        let early = matches!(self.phase, Phase::Discovering { .. } | Phase::Initializing { .. });
        early && self.only.is_none() && matches!(self.wire, Wire::Lines(_))
    }

    /// The program was started once more, and is spoken to with `initialize` only. The time for the start runs on.
    pub fn begin_again(&mut self, now: Instant) {
        if !self.may_begin_again() {
            return;
        }
        self.now = now;
        self.only = Some(Era::Initialize);
        // What was half said, by either side, was said to a program that is gone.
        self.wire = Wire::Lines(Lines::new(limits::MCP_LINE_BYTES));
        self.out.retain(|output| !matches!(output, Output::Send(_)));
        self.initialize(None);
    }

    fn discover(&mut self, again: bool) {
        // A program may ignore what it does not know. Over HTTP there is mostly an answer, if only a refusal.
        let wait = match self.wire {
            Wire::Lines(_) => limits::MCP_DISCOVER_WAIT.0,
            Wire::Http(_) => limits::MCP_DISCOVER_WAIT.1,
        };
        let until = self.only.is_none().then(|| self.now + wait);
        if let Wire::Http(http) = &mut self.wire {
            http.protocol = Some(STATELESS);
        }
        self.phase = Phase::Discovering { id: 0, until, again };
        let sent = self.request("server/discover", json!({}));
        if let Phase::Discovering { id, .. } = &mut self.phase {
            *id = sent;
        }
    }

    /// Begins as the other era does. `discover` may still be answered.
    pub(super) fn initialize(&mut self, discover: Option<u64>) {
        if let Wire::Http(http) = &mut self.wire {
            http.leave_session(Some(self.last_id + 1));
            http.protocol = None;
        }
        self.phase = Phase::Initializing { id: 0, discover, late: None };
        let sent = self.request("initialize", handshake::params(&self.info));
        if let Phase::Initializing { id, .. } = &mut self.phase {
            *id = sent;
        }
    }

    /// Whether this id is the start's. The answer is used up then.
    pub(super) fn started_with(&mut self, id: u64, answer: &Answer<'_>) -> bool {
        if !self.starts_with(id) {
            return false;
        }
        self.shut(id);
        match std::mem::replace(&mut self.phase, Phase::New) {
            Phase::Discovering { again, .. } => self.discovered(again, answer),
            Phase::Initializing { id: ours, late, .. } if ours == id => self.initialized(late, answer),
            Phase::Initializing { id, .. } => {
                let late = match answer {
                    Answer::Result(raw) => match era::discovered(raw) {
                        Verdict::Stateless(hello) => Some(hello),
                        Verdict::Again | Verdict::Initialize | Verdict::Useless(_) => None,
                    },
                    Answer::Error(_) => None,
                };
                self.phase = Phase::Initializing { id, discover: None, late };
            }
            Phase::Listing { hello, lists, .. } => self.listed(hello, lists, answer),
            phase @ (Phase::New
            | Phase::Settling { .. }
            | Phase::Sniffing { .. }
            | Phase::Ready { .. }
            | Phase::Closed { .. }) => self.phase = phase,
        }
        true
    }

    /// Whether the start waits for an answer with this id.
    pub(super) fn starts_with(&self, id: u64) -> bool {
        match &self.phase {
            Phase::Discovering { id: ours, .. } | Phase::Listing { id: ours, .. } => *ours == id,
            Phase::Initializing { id: ours, discover, .. } => *ours == id || *discover == Some(id),
            Phase::New
            | Phase::Settling { .. }
            | Phase::Sniffing { .. }
            | Phase::Ready { .. }
            | Phase::Closed { .. } => false,
        }
    }

    fn discovered(&mut self, again: bool, answer: &Answer<'_>) {
        let verdict = match answer {
            Answer::Result(raw) => era::discovered(raw),
            Answer::Error(error) => era::refused(error),
        };
        match verdict {
            Verdict::Stateless(hello) => self.stateless(*hello),
            Verdict::Again if !again => self.discover(true),
            Verdict::Again => self.give_up(format!(
                "the server refused protocol version {STATELESS} and named it as one that it speaks"
            )),
            Verdict::Initialize if self.only.is_none() => self.initialize(None),
            Verdict::Initialize => {
                self.give_up(format!("the server does not speak protocol version {STATELESS}"));
            }
            Verdict::Useless(why) => self.give_up(why),
        }
    }

    fn stateless(&mut self, hello: Hello) {
        if let Wire::Http(http) = &mut self.wire {
            http.leave_session(None);
            http.protocol = Some(STATELESS);
        }
        self.list_first(hello);
    }

    fn initialized(&mut self, late: Option<Box<Hello>>, answer: &Answer<'_>) {
        let hello = match answer {
            Answer::Result(raw) => handshake::hello(raw),
            Answer::Error(error) => Err(handshake::refused(error)),
        };
        match (hello, late) {
            (Ok(hello), _) => {
                if let Wire::Http(http) = &mut self.wire {
                    http.protocol = Some(hello.protocol);
                }
                let over_http = matches!(self.wire, Wire::Http(_));
                self.phase = Phase::Settling { hello };
                self.notify("notifications/initialized", json!({}));
                if !over_http {
                    self.settled();
                }
            }
            (Err(_), Some(late)) => self.stateless(*late),
            (Err(error), None) => self.give_up(error),
        }
    }

    /// The server knows that the handshake is over.
    pub(super) fn settled(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::New) {
            Phase::Settling { hello } => self.list_first(hello),
            phase @ (Phase::New
            | Phase::Discovering { .. }
            | Phase::Initializing { .. }
            | Phase::Sniffing { .. }
            | Phase::Listing { .. }
            | Phase::Ready { .. }
            | Phase::Closed { .. }) => self.phase = phase,
        }
    }

    /// The exchange of a request of the start ended without its answer.
    pub(super) fn start_lost(&mut self, id: u64, end: &End) {
        match std::mem::replace(&mut self.phase, Phase::New) {
            // Silence was taken for the answer already.
            Phase::Initializing { id: ours, late, .. } if ours != id => {
                self.phase = Phase::Initializing { id: ours, discover: None, late };
            }
            // A refusal is what a server of the other era has for a request that it does not know.
            Phase::Discovering { .. }
                if self.only.is_none()
                    && !matches!(end, End::Broken(_) | End::Refused { status: 401 | 403 | 502.., .. }) =>
            {
                self.initialize(None);
            }
            // So does a server that has the transport of 2024-11-05: it says so on a GET.
            Phase::Initializing { .. } if matches!(end, End::Refused { status: 400 | 404 | 405, .. }) => {
                self.phase = Phase::Sniffing { why: end.words() };
                if let Wire::Http(http) = &mut self.wire {
                    let exchange = http.get(What::Sniff, None);
                    self.out.extend(exchange.map(Output::Open));
                }
            }
            phase @ (Phase::New
            | Phase::Discovering { .. }
            | Phase::Initializing { .. }
            | Phase::Settling { .. }
            | Phase::Sniffing { .. }
            | Phase::Listing { .. }
            | Phase::Ready { .. }
            | Phase::Closed { .. }) => {
                self.phase = phase;
                self.give_up(end.words());
            }
        }
    }

    /// Nothing speaks for the transport of 2024-11-05.
    pub(super) fn sniffed(&mut self) {
        if let Phase::Sniffing { why } = &self.phase {
            let why = why.clone();
            self.give_up(why);
        }
    }

    /// The stream's first event names an address to post to.
    pub(super) fn old_transport(&mut self) {
        if matches!(self.phase, Phase::Sniffing { .. }) {
            self.give_up(
                "the server has the HTTP+SSE transport of 2024-11-05, which agentd does not speak; ask for its \
                 streamable HTTP address, often the same with /mcp in place of /sse"
                    .to_owned(),
            );
        }
    }
}

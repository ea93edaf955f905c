//! How messages go out and come in: as lines, or each in an HTTP exchange of its own.

use super::{Client, Phase, Wire};
use crate::mcp::calls::Ask;
use crate::mcp::era;
use crate::mcp::headers;
use crate::mcp::http::{Broken, End, Fact, Http, Resume, What};
use crate::mcp::jsonrpc::{self, Answer, Incoming, RpcError};
use crate::mcp::{Output, calls};
use crate::note::Level;
use crate::time::Instant;
use serde_json::{Map, Value};

impl Client {
    /// An exchange's status and headers came.
    pub fn head(&mut self, now: Instant, exchange: u64, status: u16, headers: &[(String, String)]) {
        self.now = now;
        self.fed(exchange, |http, facts| http.head(exchange, status, headers, facts));
        self.stream_answered(exchange);
    }

    /// More of an exchange's body came, cut anywhere.
    pub fn body(&mut self, now: Instant, exchange: u64, bytes: &[u8]) {
        self.now = now;
        self.fed(exchange, |http, facts| http.body(exchange, bytes, facts));
    }

    /// An exchange is over: its body is whole, or why not. Of one that was shut nothing is wanted.
    pub fn ended(&mut self, now: Instant, exchange: u64, how: Result<(), Broken>) {
        self.now = now;
        self.fed(exchange, |http, facts| {
            http.ended(exchange, how, facts);
            false
        });
        self.stream_answered(exchange);
    }

    fn fed(&mut self, exchange: u64, feed: impl FnOnce(&mut Http, &mut Vec<Fact>) -> bool) {
        let Wire::Http(http) = &mut self.wire else { return };
        let mut facts = Vec::new();
        let shut = feed(http, &mut facts);
        if shut {
            self.out.push_back(Output::Shut { exchange });
        }
        for fact in facts {
            if self.is_closed() {
                break;
            }
            match fact {
                Fact::Message(text) => self.text(&text),
                Fact::Endpoint => self.old_transport(),
                Fact::Over { what, end, resume } => {
                    let goes_on =
                        matches!(&end, End::Whole { .. } | End::Broken(Broken { reached: true, .. }));
                    let taken = goes_on
                        && self.is_wanted(&what)
                        && resume.is_some_and(|resume| self.take_up(&what, resume));
                    if !taken {
                        self.over(what, &end);
                    }
                }
            }
        }
        self.start_waiting();
    }

    /// Whether somebody still waits for what an exchange was for.
    fn is_wanted(&mut self, what: &What) -> bool {
        match what {
            What::Request(id) => {
                self.calls.find(*id).is_some() || self.starts_with(*id) || self.relists_with(*id)
            }
            What::Listen => !self.is_closed(),
            What::Note | What::Sniff | What::Farewell => false,
        }
    }

    /// Goes on with a stream of the `initialize` era; the other one has no such thing.
    fn take_up(&mut self, what: &What, resume: Resume) -> bool {
        let (now, stateless) = (self.now, self.is_stateless());
        match &mut self.wire {
            Wire::Http(http) if !stateless => http.take_up(now, what.clone(), resume),
            Wire::Http(_) | Wire::Lines(_) => false,
        }
    }

    /// Streams whose time has come.
    pub(super) fn take_up_streams(&mut self) {
        loop {
            let now = self.now;
            let Wire::Http(http) = &mut self.wire else { return };
            let Some((what, resume)) = http.due(now) else { return };
            let exchange = http.get(what, Some(&resume));
            self.out.extend(exchange.map(Output::Open));
        }
    }

    /// Exchanges that can be made now because others ended.
    pub(super) fn start_waiting(&mut self) {
        if let Wire::Http(http) = &mut self.wire {
            while let Some(exchange) = http.next() {
                self.out.push_back(Output::Open(exchange));
            }
        }
    }

    /// An exchange ended. Whoever still waits for what it should have brought is told.
    fn over(&mut self, what: What, end: &End) {
        match what {
            What::Request(id) => self.unanswered(id, end),
            What::Note => self.noted(end),
            What::Listen => self.unlistened(end),
            What::Sniff => self.sniffed(),
            What::Farewell => {}
        }
    }

    /// The exchange of a request is over, and the request may still be open.
    fn unanswered(&mut self, id: u64, end: &End) {
        // What is said with a refusal can be the very answer. A refusal to go on with one answers something else, unless it
        // names the request.
        if let End::Refused { body, resumed, .. } = end
            && let Ok(Incoming::Response { id: answers, answer: Answer::Error(error) }) = jsonrpc::read(body)
            && answers.map_or(!resumed, |answers| answers == id)
        {
            return self.refused(id, &error, end);
        }
        self.lost(id, end);
    }

    /// A refusal with an error in it. A session that is not known is no answer to what was asked.
    fn refused(&mut self, id: u64, error: &RpcError, end: &End) {
        if matches!(end, End::Refused { status: 404, session: Some(_), .. }) && !self.is_stateless() {
            return self.lost(id, end);
        }
        let discovering = matches!(self.phase, Phase::Discovering { id: ours, .. } if ours == id);
        if !discovering && era::is_stateless_error(error) && !self.is_stateless() {
            return self.lost(id, end);
        }
        self.response(Some(id), Answer::Error(error.clone()));
    }

    /// The id of a new request.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Sends a request under a new id.
    pub(super) fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id();
        let params = params.as_object().cloned().unwrap_or_default();
        self.send_request(id, method, None, params, Vec::new());
        id
    }

    /// Sends a call under the id it is open with.
    pub(super) fn send_call(
        &mut self,
        id: u64,
        ask: &Ask,
        inputs: Option<calls::Inputs>,
    ) -> Result<(), String> {
        let stateless = self.is_stateless();
        let mut params = ask.params();
        if let Some(inputs) = inputs {
            inputs.add_to(&mut params);
        }
        params.insert("_meta".into(), serde_json::json!({"progressToken": id}));
        let mirrored = match (ask, self.traits.get(ask.name())) {
            (Ask::Tool { args, .. }, Some(traits)) if stateless => headers::mirrored(&traits.mirrors, args)?,
            (Ask::Tool { .. } | Ask::Resource { .. }, _) => Vec::new(),
        };
        self.send_request(id, ask.method(), Some(ask.name()), params, mirrored);
        Ok(())
    }

    fn send_request(
        &mut self,
        id: u64,
        method: &str,
        name: Option<&str>,
        mut params: Map<String, Value>,
        more: Vec<(String, String)>,
    ) {
        let stateless = self.is_stateless();
        if stateless {
            era::stamp(&mut params, &self.info);
        }
        let message = jsonrpc::request(id, method, params);
        match &mut self.wire {
            Wire::Lines(_) => self.line(message),
            Wire::Http(http) => {
                let mut headers = Vec::new();
                if stateless {
                    headers.push(("mcp-method".to_owned(), method.to_owned()));
                    headers.extend(name.map(|name| ("mcp-name".to_owned(), headers::encoded(name))));
                }
                headers.extend(more);
                let exchange = http.post(What::Request(id), headers, message);
                self.out.extend(exchange.map(Output::Open));
            }
        }
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let message = jsonrpc::notification(method, params);
        self.send(message);
    }

    /// Sends what nothing comes back for.
    pub(super) fn send(&mut self, message: Vec<u8>) {
        match &mut self.wire {
            Wire::Lines(_) => self.line(message),
            Wire::Http(http) => {
                let exchange = http.post(What::Note, Vec::new(), message);
                self.out.extend(exchange.map(Output::Open));
            }
        }
    }

    fn line(&mut self, mut message: Vec<u8>) {
        message.push(b'\n');
        self.out.push_back(Output::Send(message));
    }

    /// Nothing more is wanted of a request: its exchange is shut where it has one.
    pub(super) fn shut(&mut self, id: u64) {
        if let Wire::Http(http) = &mut self.wire {
            let exchange = http.drop_what(&What::Request(id));
            self.out.extend(exchange.map(|exchange| Output::Shut { exchange }));
        }
        self.start_waiting();
    }

    /// A notification, or an answer to the server, was delivered or not.
    fn noted(&mut self, end: &End) {
        let delivered = matches!(end, End::Whole { .. });
        if !delivered {
            let text = format!("a notification was not taken: {}", end.words());
            self.log(Level::Debug, "mcp.notification.refused", text);
        }
        self.settled();
        self.resettled();
    }
}

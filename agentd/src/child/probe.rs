//! One server, connected to exactly as a child connects to it, and asked by a person: `agentd mcp probe`. What it shows is
//! what a run would see, keeper and all.
//!
//! Owns the order of things: connect, calls one after another, the end. Refuses nothing that a run would not.

use super::clock::Clock;
use super::inbox::{self, Inbox};
use super::server::{self, Answers, Link, Offer, Order, Pump, Remote, RemoteSetup, ServerEvent, Setup};
use agentd_core::bytes::Json;
use agentd_core::mcp::{Era, Outcome, ResourceInfo, ToolInfo};
use agentd_core::note::Level;
use agentd_core::wire::message::{Server, Transport};
use serde_json::{Map, Value};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long the end of a server may take: its keeper's whole ladder.
const CLOSE_WAIT: Duration = Duration::from_millis(4_500);

/// What is to be connected to.
pub(crate) struct Ask {
    /// How it is reached.
    pub(crate) transport: Transport,
    /// What it is told when it asks a person; declined when there is nothing.
    pub(crate) script: Option<Map<String, Value>>,
    /// The era it is taken to be of, instead of finding out.
    pub(crate) only: Option<Era>,
    /// For its start, and for each call.
    pub(crate) timeout: Duration,
}

/// Who a server is and what it offers.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) protocol: String,
    pub(crate) era: Era,
    pub(crate) capabilities: Json,
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) resources: Vec<ResourceInfo>,
}

/// A server that is connected, or being connected to.
pub(crate) struct Probe {
    link: Link,
    inbox: Receiver<Inbox>,
    calls: u64,
    /// The server and all that it started are gone: that is said once, whoever listens.
    closed: bool,
    /// What a log would have been told: what is wrong, and what is worth knowing.
    pub(crate) remarks: Vec<(Level, String)>,
}

impl Probe {
    /// Begins. Only while this process has a single thread: see [`server::launch`].
    ///
    /// # Errors
    /// The kernel gives no keeper, descriptor or thread: one sentence.
    pub(crate) fn begin(ask: Ask) -> Result<Probe, String> {
        let timeout_ms = u64::try_from(ask.timeout.as_millis()).unwrap_or(u64::MAX);
        let server = Server {
            name: "probe".to_owned(),
            ns: None,
            transport: ask.transport,
            allow: None,
            exclude: Vec::new(),
            timeout_ms,
            start_timeout_ms: timeout_ms,
            required: true,
        };
        let (clock, only) = (Clock::start(), ask.only);
        let answers = ask.script.map_or(Answers::Decline, Answers::Script);
        let (sender, inbox) = channel();
        let to = sender.clone();
        let (link, body): (Link, Box<dyn FnOnce() + Send>) = match server.transport.clone() {
            Transport::Http(at) => {
                let (remote, link) =
                    Remote::new(RemoteSetup { index: 0, server, at, inbox: to, clock, answers, only });
                (link, Box::new(move || remote.run()))
            }
            Transport::Stdio(_) | Transport::Files(_) => {
                let launched = server::launch().map_err(|e| e.to_string());
                let setup = Setup { index: 0, server, launched, inbox: to, clock, answers, only };
                let (pump, link) = Pump::new(setup).map_err(|e| e.to_string())?;
                (link, Box::new(move || pump.run()))
            }
        };
        inbox::thread("server".to_owned(), sender, body)?;
        Ok(Probe { link, inbox, calls: 0, closed: false, remarks: Vec::new() })
    }

    /// Waits until the server is usable, or why it is not.
    pub(crate) fn found(&mut self) -> Result<Found, String> {
        loop {
            match self.next()? {
                ServerEvent::Ready(offer) => {
                    let Offer { name, version, protocol, era, capabilities, tools, resources } = *offer;
                    return Ok(Found { name, version, protocol, era, capabilities, tools, resources });
                }
                ServerEvent::Failed { error } => return Err(error),
                event => self.remark(event),
            }
        }
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&mut self, tool: &str, args: &Json) -> Result<Outcome, String> {
        self.calls += 1;
        let key = self.calls;
        self.link.order(Order::Call { key, tool: tool.to_owned(), args: args.clone() });
        loop {
            match self.next()? {
                ServerEvent::CallDone { key: done, outcome } if done == key => return Ok(outcome),
                event => self.remark(event),
            }
        }
    }

    /// Ends the server, and waits until what it started is gone.
    pub(crate) fn end(mut self) -> Vec<(Level, String)> {
        self.link.order(Order::Close);
        while !self.closed {
            match self.inbox.recv_timeout(CLOSE_WAIT) {
                Ok(Inbox::Server { event, .. }) => self.remark(event),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!("the server was not seen to end within {CLOSE_WAIT:?}");
                    self.remarks.push((Level::Warn, text));
                    break;
                }
            }
        }
        self.remarks
    }

    /// What the server's thread says next. It bounds every wait itself.
    fn next(&mut self) -> Result<ServerEvent, String> {
        match self.inbox.recv_timeout(Duration::MAX) {
            Ok(Inbox::Server { event, .. }) => Ok(event),
            Ok(Inbox::Panicked { thread, message }) => {
                Err(format!("a bug in agentd: the {thread} thread panicked: {message}"))
            }
            Ok(_) => Err("a bug in agentd: a message that is none of a server's".to_owned()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err("a bug in agentd: the server's thread is gone".to_owned())
            }
        }
    }

    fn remark(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Log { level, text, .. } => self.remarks.push((level, text)),
            ServerEvent::Changed { tools } => {
                let text = format!("its tools changed meanwhile; it has {} now", tools.len());
                self.remarks.push((Level::Info, text));
            }
            ServerEvent::Closed => self.closed = true,
            ServerEvent::Ready(_)
            | ServerEvent::Failed { .. }
            | ServerEvent::CallDone { .. }
            | ServerEvent::Progress { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::wire::message::HttpServer;
    use std::collections::BTreeMap;

    /// The end of a server that dies between two calls is said while the second one waits for its answer.
    #[test]
    fn an_end_that_was_said_is_not_waited_for_again() {
        // Port 1 of loopback: nothing listens there.
        let at = HttpServer { url: "http://127.0.0.1:1/mcp".into(), headers: BTreeMap::new(), ca: None };
        let ask = Ask {
            transport: Transport::Http(at),
            script: None,
            only: None,
            timeout: Duration::from_secs(30),
        };
        let mut probe = Probe::begin(ask).expect("a thread");
        assert!(probe.found().is_err());
        while !probe.closed {
            let event = probe.next().expect("an event");
            probe.remark(event);
        }
        let called = probe.call("echo", &Json::of(&serde_json::json!({}))).expect("an answer");
        assert!(called.error && called.own, "{called:?}");
        let warned: Vec<_> = probe.end().into_iter().filter(|(level, _)| *level == Level::Warn).collect();
        assert_eq!(warned, []);
    }
}

//! The thread of one server at an address: makes the exchanges that the MCP machine asks for, each in a thread of its own,
//! and feeds it what comes of them.
//!
//! Owns those threads' connections. Refuses to hold what a server sends ahead: the queue to this thread is bounded, and a
//! flood waits on the wire. As many exchanges as [`limits::MCP_EXCHANGES`] are open at once.

use super::account::Account;
use super::{Answers, Link, Offer, Order, ServerEvent, To, client_info};
use crate::child::clock::Clock;
use crate::child::inbox::{self, Inbox};
use crate::http::exchange::{self, Heard, Target};
use crate::http::line::Line;
use crate::http::mask::Mask;
use agentd_core::limits;
use agentd_core::mcp::{Broken, Client, Era, Exchange, Output};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{HttpServer, Server};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};

/// Things that may wait for this thread; one more waits where it comes from.
const QUEUE: usize = 64;

/// What a thread is made of.
pub(in crate::child) struct RemoteSetup {
    /// Which server this is, in the payload's order.
    pub(in crate::child) index: usize,
    /// As the payload describes it.
    pub(in crate::child) server: Server,
    /// Where it is.
    pub(in crate::child) at: HttpServer,
    /// Where to tell.
    pub(in crate::child) inbox: Sender<Inbox>,
    /// The process's clock.
    pub(in crate::child) clock: Clock,
    /// What it is told when it asks a person.
    pub(in crate::child) answers: Answers,
    /// The era it is taken to be of, instead of finding out.
    pub(in crate::child) only: Option<Era>,
}

/// One thing that happened.
pub(super) enum Happened {
    /// The main thread wants something.
    Ordered(Order),
    /// An exchange has come on.
    Heard { exchange: u64, heard: Heard },
}

/// One server's thread.
pub(in crate::child) struct Remote {
    index: usize,
    server: Server,
    mask: Mask,
    inbox: Sender<Inbox>,
    clock: Clock,
    client: Client,
    answers: Answers,
    target: Arc<Target>,
    happened: Receiver<Happened>,
    /// For exchanges.
    queue: SyncSender<Happened>,
    open: BTreeMap<u64, Arc<Line>>,
    account: Account,
    /// The session is over, or about to be: until then its end may take.
    closing: Option<Instant>,
}

impl Remote {
    /// A thread's state and the link to it.
    pub(in crate::child) fn new(setup: RemoteSetup) -> (Remote, Link) {
        let RemoteSetup { index, server, at, inbox, clock, answers, only } = setup;
        let (queue, happened) = sync_channel(QUEUE);
        let client = Client::http(client_info(), clock.now(), Duration::from_millis(server.start_timeout_ms));
        let mut client = only.into_iter().fold(client, Client::only);
        client.start();
        let remote = Remote {
            index,
            mask: Mask::of(&server.transport),
            account: Account::new(&server),
            server,
            inbox,
            clock,
            client,
            answers,
            target: Arc::new(Target::new(&at.url, &at.headers, at.ca.as_deref())),
            happened,
            queue: queue.clone(),
            open: BTreeMap::new(),
            closing: None,
        };
        (remote, Link(To::Remote(queue)))
    }

    /// Speaks with the server until the child has enough of it, then answers for it until the child ends.
    pub(in crate::child) fn run(mut self) {
        self.settle();
        while !self.is_over() {
            self.turn();
        }
        for (_, line) in std::mem::take(&mut self.open) {
            line.shut();
        }
        self.tell(ServerEvent::Closed);
        while let Ok(happened) = self.happened.recv() {
            if let Happened::Ordered(order) = happened {
                self.obey(order);
                self.settle();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.closing.is_some_and(|until| self.open.is_empty() || self.clock.now() >= until)
    }

    /// One thing that happens next, or time.
    fn turn(&mut self) {
        let until = self.client.poll_timeout().into_iter().chain(self.closing).min();
        let wait = until.map_or(Duration::MAX, |at| self.clock.until(at));
        match self.happened.recv_timeout(wait) {
            Ok(Happened::Ordered(order)) => self.obey(order),
            Ok(Happened::Heard { exchange, heard }) => self.heard(exchange, heard),
            // This thread holds a sender itself, so the queue is never without one.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        self.client.tick(self.clock.now());
        self.settle();
    }

    fn heard(&mut self, exchange: u64, heard: Heard) {
        // What was shut still says what it had on its lips.
        if !self.open.contains_key(&exchange) {
            return;
        }
        let now = self.clock.now();
        match heard {
            Heard::Head { status, headers } => self.client.head(now, exchange, status, &headers),
            Heard::Body(bytes) => self.client.body(now, exchange, &bytes),
            Heard::Ended(how) => {
                self.open.remove(&exchange);
                self.client.ended(now, exchange, how);
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let now = self.clock.now();
        match order {
            Order::Call { key, tool, args } => {
                self.client.call(now, key, &tool, &args, Duration::from_millis(self.server.timeout_ms));
            }
            Order::Cancel { key, reason } => self.client.cancel(key, &reason),
            Order::Close => {
                self.closing.get_or_insert(now + limits::MCP_FAREWELL);
                self.client.farewell(now);
            }
        }
    }

    /// Does all that the machine wants done.
    fn settle(&mut self) {
        while let Some(output) = self.client.pop() {
            match output {
                Output::Open(exchange) => self.make(exchange),
                Output::Shut { exchange } => {
                    if let Some(line) = self.open.remove(&exchange) {
                        line.shut();
                    }
                }
                Output::Ready { server_name, version, protocol, era, capabilities, tools, resources } => {
                    let name = server_name;
                    let offer = Offer { name, version, protocol, era, capabilities, tools, resources };
                    self.tell(ServerEvent::Ready(Box::new(offer)));
                }
                Output::Changed { tools, .. } => self.tell(ServerEvent::Changed { tools }),
                Output::Failed { error } => {
                    let error = self.account.short_sentence(&error);
                    self.tell(ServerEvent::Failed { error });
                }
                Output::CallDone { key, outcome } => self.tell(ServerEvent::CallDone { key, outcome }),
                Output::Progress { key } => self.tell(ServerEvent::Progress { key }),
                Output::Elicit { question, elicitation } => {
                    let (reply, event) = self.answers.to(&elicitation);
                    self.tell(event);
                    self.client.reply(self.clock.now(), question, &reply);
                }
                Output::Log { level, event, text } => {
                    self.tell(ServerEvent::Log { level, name: event, text });
                }
                Output::Close { .. } => {
                    self.closing.get_or_insert(self.clock.now() + limits::MCP_FAREWELL);
                }
                // Of a client over pipes.
                Output::Send(_) => {}
            }
        }
    }

    /// Makes an exchange in a thread of its own.
    fn make(&mut self, exchange: Exchange) {
        let number = exchange.number;
        let line = Arc::new(Line::default());
        self.open.insert(number, Arc::clone(&line));
        let (target, queue) = (Arc::clone(&self.target), self.queue.clone());
        let body = move || {
            exchange::make(&target, &line, exchange, |heard| {
                queue.send(Happened::Heard { exchange: number, heard }).is_ok()
            });
        };
        let name = format!("exchange {}", self.server.name.replace('\0', " "));
        if let Err(why) = inbox::thread(name, self.inbox.clone(), body) {
            self.open.remove(&number);
            self.client.ended(self.clock.now(), number, Err(Broken { reached: false, why }));
        }
    }

    fn tell(&self, event: ServerEvent) {
        // Without a receiver the process is ending.
        let event = event.masked(&self.mask);
        let _ended = self.inbox.send(Inbox::Server { index: self.index, event });
    }
}

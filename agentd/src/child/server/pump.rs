//! The thread of one server: moves bytes between its pipes and the MCP machine, and knows how it ended.
//!
//! Owns the pipes, the lifeline and the keeper's process. Refuses to buffer without bound in either direction, to
//! wait for anything but all of its descriptors at once, and to leave a call without its answer. A server that has
//! ended is not started again within a run: its tools go on answering with the reason.

use super::launch::Launched;
use super::pipes::{read_some, write_some};
use super::tail::Tail;
use super::{Link, Order, ServerEvent};
use crate::child::clock::Clock;
use crate::child::inbox::Inbox;
use crate::keeper::message::{self, CLOSE, KeeperReport, KeeperSpec};
use crate::poll;
use agentd_core::event::Exit;
use agentd_core::limits;
use agentd_core::mcp::{Client, ClientInfo, Output};
use agentd_core::note::Level;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Server, Transport};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Bytes read from a pipe at a time.
const READ_BYTES: usize = 64 * 1024;

/// How long a server whose pipe broke may take to be reported dead, before it counts as alive and useless.
const OBITUARY_WAIT: Duration = Duration::from_millis(500);

/// What a dead server's pipes may still hold. Something else may be writing to them.
const LAST_WORDS_BYTES: usize = 2 * limits::MCP_LINE_BYTES;

/// What a thread is made of.
pub(in crate::child) struct Setup {
    /// Which server this is, in the payload's order.
    pub(in crate::child) index: usize,
    /// As the payload describes it.
    pub(in crate::child) server: Server,
    /// Its keeper, or why there is none.
    pub(in crate::child) launched: Result<Launched, String>,
    /// Where to tell.
    pub(in crate::child) inbox: Sender<Inbox>,
    /// The process's clock.
    pub(in crate::child) clock: Clock,
}

/// One server's thread.
pub(in crate::child) struct Pump {
    index: usize,
    server: Server,
    inbox: Sender<Inbox>,
    clock: Clock,
    orders: Receiver<Order>,
    bell: Arc<OwnedFd>,
    client: Client,
    keeper: Option<Child>,
    lifeline: Option<UnixStream>,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    to_server: Vec<u8>,
    to_keeper: Vec<u8>,
    from_keeper: Vec<u8>,
    tail: Tail,
    /// A pipe of the server broke: when, and how that is said.
    broken: Option<(Instant, &'static str)>,
    /// The keeper is asked to close.
    closing: bool,
    /// The server was usable once.
    ready: bool,
    /// The whole sentence on why it is of no more use.
    obituary: Option<String>,
}

impl Pump {
    /// A thread's state and the link to it.
    ///
    /// # Errors
    /// The kernel gives no descriptor, or the server's description is longer than a keeper takes.
    pub(in crate::child) fn new(setup: Setup) -> io::Result<(Pump, Link)> {
        let Setup { index, server, launched, inbox, clock } = setup;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, orders) = channel();
        let mut to_keeper = Vec::new();
        let spec = KeeperSpec { server: server.name.clone(), transport: server.transport.clone() };
        message::write(&mut to_keeper, &spec)?;
        let link = Link { orders: sender, bell: Arc::clone(&bell) };
        let mut pump = Pump {
            client: Client::new(client_info(), clock.now(), Duration::from_millis(server.start_timeout_ms)),
            tail: Tail::new(own_env(&server.transport)),
            index,
            server,
            inbox,
            clock,
            orders,
            bell,
            keeper: None,
            lifeline: None,
            stdin: None,
            stdout: None,
            stderr: None,
            to_server: Vec::new(),
            to_keeper,
            from_keeper: Vec::new(),
            broken: None,
            closing: false,
            ready: false,
            obituary: None,
        };
        pump.adopt(launched);
        Ok((pump, link))
    }

    fn adopt(&mut self, launched: Result<Launched, String>) {
        match launched {
            Ok(launched) => {
                self.keeper = Some(launched.keeper);
                self.lifeline = Some(launched.lifeline);
                self.stdin = Some(launched.stdin);
                self.stdout = Some(launched.stdout);
                self.stderr = Some(launched.stderr);
                self.client.start();
            }
            Err(error) => self.never_was(&format!("its keeper cannot be started: {error}")),
        }
    }

    /// Speaks with the server until its keeper is gone, then answers for it until the child ends.
    pub(in crate::child) fn run(mut self) {
        self.settle();
        while self.lifeline.is_some() {
            if let Err(e) = self.wait() {
                // Without poll nothing can be known of the server any more. Its keeper sees the lifeline end.
                self.over(&format!("its pipes cannot be watched: {e}"));
                self.lifeline = None;
            }
            self.take_orders();
            self.write_keeper();
            self.write_server();
            self.read_stdout(READ_BYTES);
            self.read_stderr(READ_BYTES);
            self.read_reports();
            self.client.tick(self.clock.now());
            self.judge_broken_pipe();
            self.settle();
        }
        self.bury();
        self.settle();
        self.tell(ServerEvent::Closed);
        while let Ok(order) = self.orders.recv() {
            self.obey(order);
            self.settle();
        }
    }

    /// Waits for any descriptor or for the next thing that is due.
    fn wait(&self) -> io::Result<()> {
        let obituary = self.broken.map(|(at, _)| at + OBITUARY_WAIT);
        let until = self.client.poll_timeout().into_iter().chain(obituary).min();
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        for readable in [&self.stdout, &self.stderr].into_iter().flatten() {
            fds.push(PollFd::new(readable, PollFlags::IN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| !self.to_server.is_empty()) {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if let Some(lifeline) = &self.lifeline {
            let out = if self.to_keeper.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            fds.push(PollFd::new(lifeline, PollFlags::IN | out));
        }
        poll::wait_for(&mut fds, until.map(|at| self.clock.until(at)))
    }

    fn take_orders(&mut self) {
        let mut rings = [0; 8];
        // Reading resets the bell; one that did not ring is as good.
        let _silent = rustix::io::read(&*self.bell, &mut rings);
        loop {
            match self.orders.try_recv() {
                Ok(order) => self.obey(order),
                Err(TryRecvError::Empty) => return,
                // The main thread is gone without a word: the process is ending.
                Err(TryRecvError::Disconnected) => return self.close(),
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
                // What waits is word of cancelled calls: it goes out if it can, before the input ends.
                self.settle();
                self.write_server();
                self.close();
            }
        }
    }

    /// Does all that the machine wants done.
    fn settle(&mut self) {
        while let Some(output) = self.client.pop() {
            match output {
                Output::Send(bytes) => self.queue(&bytes),
                Output::Ready { server_name, version, protocol, tools } => {
                    self.ready = true;
                    let introduction = format!("{server_name} {version}, protocol {protocol}");
                    self.tell(ServerEvent::Ready { introduction, tools });
                }
                Output::Failed { error } => self.failed(&error),
                Output::CallDone { key, outcome } => self.tell(ServerEvent::CallDone { key, outcome }),
                Output::Progress { key } => self.tell(ServerEvent::Progress { key }),
                Output::Log { level, event, text } => {
                    self.tell(ServerEvent::Log { level, name: event, text })
                }
                Output::Close { why } => {
                    self.note_end(self.sentence(&why));
                    self.close();
                }
            }
        }
    }

    fn queue(&mut self, bytes: &[u8]) {
        if self.stdin.is_none() {
            return;
        }
        let waiting = self.to_server.len() + bytes.len();
        if waiting as u64 > limits::CHILD_QUEUE_BYTES {
            self.over(&format!("it does not read its input: {waiting} bytes wait"));
            return self.close();
        }
        self.to_server.extend_from_slice(bytes);
    }

    /// It will not become usable: it has ended, or it is there and does not do what a server does.
    fn failed(&mut self, error: &str) {
        self.read_stderr(LAST_WORDS_BYTES);
        let error = self.obituary.clone().unwrap_or_else(|| self.sentence(error));
        self.tell(ServerEvent::Failed { error });
        self.close();
    }

    /// Ends the server in its own time: its input first, then the word to its keeper.
    fn close(&mut self) {
        self.stdin = None;
        self.to_server.clear();
        if !std::mem::replace(&mut self.closing, true) {
            self.to_keeper.push(CLOSE);
            self.write_keeper();
        }
    }

    fn write_keeper(&mut self) {
        let Some(lifeline) = &mut self.lifeline else { return };
        // A keeper that no longer reads has ended, which is read from the same lifeline.
        if write_some(lifeline, &mut self.to_keeper).is_err() {
            self.to_keeper.clear();
        } else if self.closing && self.to_keeper.is_empty() {
            let _half_closed = lifeline.shutdown(Shutdown::Write);
        }
    }

    fn write_server(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        if write_some(stdin, &mut self.to_server).is_err() {
            self.stdin = None;
            self.to_server.clear();
            self.broke("closed its input");
        }
    }

    fn read_stdout(&mut self, at_most: usize) {
        let Some(stdout) = self.stdout.take() else { return };
        let (now, client) = (self.clock.now(), &mut self.client);
        if read_some(&stdout, at_most, |bytes| client.received(now, bytes)) {
            self.stdout = Some(stdout);
        } else {
            self.broke("closed its output");
        }
    }

    fn read_stderr(&mut self, at_most: usize) {
        let Some(stderr) = self.stderr.take() else { return };
        let tail = &mut self.tail;
        if read_some(&stderr, at_most, |bytes| tail.push(bytes)) {
            self.stderr = Some(stderr);
        }
    }

    fn read_reports(&mut self) {
        let Some(lifeline) = self.lifeline.take() else { return };
        let reports = &mut self.from_keeper;
        let open = read_some(&lifeline, READ_BYTES, |bytes| reports.extend_from_slice(bytes));
        loop {
            match message::take(&mut self.from_keeper) {
                Ok(Some(report)) => self.heed(report),
                Ok(None) => break,
                // Dropping the lifeline is what makes a keeper of another kind end too.
                Err(e) => return self.over(&format!("its keeper makes no sense: {e}")),
            }
        }
        if open {
            self.lifeline = Some(lifeline);
        }
    }

    fn heed(&mut self, report: KeeperReport) {
        match report {
            KeeperReport::Started { .. } => {}
            KeeperReport::ExecFailed { error } => self.never_was(&error),
            KeeperReport::Exited(exit) => self.ended(exit),
        }
    }

    fn never_was(&mut self, why: &str) {
        let why = format!("{}: {why}", self.name());
        self.obituary.get_or_insert_with(|| why.clone());
        self.client.closed(&why);
    }

    /// The server's process is gone. What it wrote before that is still in the pipes; whoever else holds them is
    /// not waited for.
    fn ended(&mut self, exit: Exit) {
        self.read_stdout(LAST_WORDS_BYTES);
        self.over(&format!("it ended with {}", message::describe(exit)));
        self.let_go();
    }

    fn broke(&mut self, how: &'static str) {
        if self.broken.is_none() {
            self.broken = Some((self.clock.now(), how));
        }
    }

    /// A broken pipe is mostly a dead server, which its keeper is about to report.
    fn judge_broken_pipe(&mut self) {
        let Some((since, how)) = self.broken else { return };
        if self.clock.now().since(since) >= OBITUARY_WAIT {
            self.broken = None;
            self.over(&format!("it {how} and is of no more use; it is being ended"));
            self.close();
        }
    }

    /// Tells everyone who waits that nothing more will come. Only the first reason counts.
    fn over(&mut self, why: &str) {
        self.read_stderr(LAST_WORDS_BYTES);
        let why = self.sentence(why);
        self.note_end(why.clone());
        self.client.closed(&why);
    }

    /// Keeps the first reason, and logs it when it comes unasked.
    fn note_end(&mut self, why: String) {
        if self.obituary.is_some() {
            return;
        }
        if self.ready && !self.closing {
            self.tell(ServerEvent::Log { level: Level::Warn, name: "mcp.exit", text: why.clone() });
        }
        self.obituary = Some(why);
    }

    /// The lifeline has ended, so the keeper has, or is about to. Its zombie is this thread's to reap.
    fn bury(&mut self) {
        self.over("its keeper ended without a report of it");
        self.let_go();
        if let Some(mut keeper) = self.keeper.take() {
            // An error says that somebody else reaped it, which is as good.
            let _reaped = keeper.wait();
        }
    }

    fn let_go(&mut self) {
        self.stdin = None;
        self.stdout = None;
        self.stderr = None;
        self.to_server.clear();
        self.broken = None;
    }

    fn sentence(&self, what: &str) -> String {
        format!("{}: {what}{}", self.name(), self.tail.words())
    }

    /// Who it is; never its arguments, which can hold secrets.
    fn name(&self) -> String {
        let program = match &self.server.transport {
            Transport::Stdio(stdio) => stdio.command.as_str(),
            Transport::Files(_) => "built-in files",
        };
        format!("server {} ({program})", self.server.name)
    }

    fn tell(&self, event: ServerEvent) {
        // Without a receiver the process is ending.
        let _ended = self.inbox.send(Inbox::Server { index: self.index, event });
    }
}

fn client_info() -> ClientInfo {
    ClientInfo { name: "agentd".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn own_env(transport: &Transport) -> impl Iterator<Item = (&String, &String)> {
    let env: Option<&BTreeMap<String, String>> = match transport {
        Transport::Stdio(stdio) => Some(&stdio.env),
        Transport::Files(_) => None,
    };
    env.into_iter().flatten()
}

//! The thread of one server: moves bytes between its pipes and the MCP machine, and knows how it ended.
//!
//! Owns the pipes, the lifeline and the keeper's process. Refuses to buffer without bound in either direction, to
//! wait for anything but all of its descriptors at once, and to leave a call without its answer. A server that has
//! ended is not started again within a run: its tools go on answering with the reason. Only one that ends over the first
//! request, which older servers may not know, is started once more and spoken to as they expect.

use super::account::Account;
use super::launch::Launched;
use super::lifeline::Lifeline;
use super::pipes::{read_some, write_some};
use super::{Answers, Link, Offer, Order, ServerEvent, To, client_info};
use crate::child::clock::Clock;
use crate::child::inbox::Inbox;
use crate::http::mask::Mask;
use crate::keeper::message::{self, KeeperReport, KeeperSpec};
use crate::poll;
use agentd_core::event::Exit;
use agentd_core::limits;
use agentd_core::mcp::{Client, Era, Output};
use agentd_core::note::Level;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::Server;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::pipe::PipeFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
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
    /// What it is told when it asks a person.
    pub(in crate::child) answers: Answers,
    /// The era it is taken to be of, instead of finding out.
    pub(in crate::child) only: Option<Era>,
}

/// Whether anybody can still read what a server is sent.
enum Input {
    Open,
    Broken,
}

/// One server's thread.
pub(in crate::child) struct Pump {
    index: usize,
    server: Server,
    mask: Mask,
    inbox: Sender<Inbox>,
    clock: Clock,
    orders: Receiver<Order>,
    bell: Arc<OwnedFd>,
    client: Client,
    answers: Answers,
    lifeline: Option<Lifeline>,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    to_server: Vec<u8>,
    account: Account,
    /// A pipe of the server broke: when, and how that is said.
    broken: Option<(Instant, &'static str)>,
    /// The server is being ended.
    closing: bool,
    /// The server was usable once.
    ready: bool,
    /// It ended over the first request and was started once more.
    again: bool,
}

impl Pump {
    /// A thread's state and the link to it.
    ///
    /// # Errors
    /// The kernel gives no descriptor, or the server's description is longer than a keeper takes.
    pub(in crate::child) fn new(setup: Setup) -> io::Result<(Pump, Link)> {
        let Setup { index, server, launched, inbox, clock, answers, only } = setup;
        let client =
            Client::lines(client_info(), clock.now(), Duration::from_millis(server.start_timeout_ms));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, orders) = channel();
        let link = Link(To::Pump { orders: sender, bell: Arc::clone(&bell) });
        let mut pump = Pump {
            client: only.into_iter().fold(client, Client::only),
            answers,
            account: Account::new(&server),
            mask: Mask::of(&server.transport),
            index,
            server,
            inbox,
            clock,
            orders,
            bell,
            lifeline: None,
            stdin: None,
            stdout: None,
            stderr: None,
            to_server: Vec::new(),
            broken: None,
            closing: false,
            ready: false,
            again: false,
        };
        pump.adopt(launched)?;
        Ok((pump, link))
    }

    fn adopt(&mut self, launched: Result<Launched, String>) -> io::Result<()> {
        match launched {
            Ok(launched) => {
                let Server { name, transport, .. } = self.server.clone();
                let spec = KeeperSpec { server: name, transport };
                self.lifeline = Some(Lifeline::new(launched.lifeline, launched.keeper, &spec)?);
                self.stdin = Some(launched.stdin);
                self.stdout = Some(launched.stdout);
                self.stderr = Some(launched.stderr);
                self.client.start();
            }
            Err(error) => self.never_was(&format!("its keeper cannot be started: {error}")),
        }
        Ok(())
    }

    /// Speaks with the server until its keeper is gone, then answers for it until the child ends.
    pub(in crate::child) fn run(mut self) {
        self.settle();
        while let Some(mut lifeline) = self.lifeline.take() {
            match self.wait(&lifeline) {
                Ok(Input::Open) => {}
                Ok(Input::Broken) => self.input_broke(),
                Err(e) => {
                    // Without poll nothing can be known of the server any more.
                    self.over(&format!("its pipes cannot be watched: {e}"));
                    self.bury(lifeline);
                    break;
                }
            }
            lifeline.write();
            self.write_server();
            self.read_stdout(READ_BYTES);
            self.read_stderr(READ_BYTES);
            if !self.read_reports(&mut lifeline) {
                self.bury(lifeline);
                break;
            }
            self.lifeline = Some(lifeline);
            self.take_orders();
            self.client.tick(self.clock.now());
            self.judge_broken_pipe();
            self.settle();
        }
        self.settle();
        self.tell(ServerEvent::Closed);
        while let Ok(order) = self.orders.recv() {
            self.obey(order);
            self.settle();
        }
    }

    /// Waits for any descriptor or for the next thing that is due.
    fn wait(&self, lifeline: &Lifeline) -> io::Result<Input> {
        let obituary = self.broken.map(|(at, _)| at + OBITUARY_WAIT);
        let until = self.client.poll_timeout().into_iter().chain(obituary).min();
        let mut fds = Vec::with_capacity(5);
        if let Some(stdin) = &self.stdin {
            // Watched with nothing to write too: a server that closes its input after it took a call would
            // otherwise be waited for until the call times out.
            let out = if self.to_server.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            fds.push(PollFd::new(stdin, out));
        }
        fds.push(PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN));
        for readable in [&self.stdout, &self.stderr].into_iter().flatten() {
            fds.push(PollFd::new(readable, PollFlags::IN));
        }
        let out = if lifeline.is_waiting() { PollFlags::OUT } else { PollFlags::empty() };
        fds.push(PollFd::new(lifeline, PollFlags::IN | out));
        poll::wait_for(&mut fds, until.map(|at| self.clock.until(at)))?;
        let broken = self.stdin.is_some() && fds[0].revents().contains(PollFlags::ERR);
        Ok(if broken { Input::Broken } else { Input::Open })
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
                Output::Ready { server_name, version, protocol, era, capabilities, tools, resources } => {
                    self.ready = true;
                    let name = server_name;
                    let offer = Offer { name, version, protocol, era, capabilities, tools, resources };
                    self.tell(ServerEvent::Ready(Box::new(offer)));
                }
                Output::Changed { tools, .. } => self.tell(ServerEvent::Changed { tools }),
                Output::Elicit { question, elicitation } => {
                    let (reply, event) = self.answers.to(&elicitation);
                    self.tell(event);
                    self.client.reply(self.clock.now(), question, &reply);
                }
                // Of a client over HTTP.
                Output::Open(_) | Output::Shut { .. } => {}
                Output::Failed { error } => self.failed(&error),
                Output::CallDone { key, outcome } => self.tell(ServerEvent::CallDone { key, outcome }),
                Output::Progress { key } => self.tell(ServerEvent::Progress { key }),
                Output::Log { level, event, text } => {
                    self.tell(ServerEvent::Log { level, name: event, text })
                }
                Output::Close { why } => {
                    self.note_end(self.account.sentence(&why));
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
        let error = self.account.obituary().map_or_else(|| self.account.sentence(error), str::to_owned);
        self.tell(ServerEvent::Failed { error });
        self.close();
    }

    /// Ends the server in its own time: its input first, then the word to its keeper.
    fn close(&mut self) {
        self.stdin = None;
        self.to_server.clear();
        self.closing = true;
        if let Some(lifeline) = &mut self.lifeline {
            lifeline.close();
        }
    }

    fn write_server(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        if write_some(stdin, &mut self.to_server).is_err() {
            self.input_broke();
        }
    }

    fn input_broke(&mut self) {
        self.stdin = None;
        self.to_server.clear();
        self.broke("closed its input");
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
        let account = &mut self.account;
        if read_some(&stderr, at_most, |bytes| account.heard(bytes)) {
            self.stderr = Some(stderr);
        }
    }

    /// Whether the keeper is still there.
    fn read_reports(&mut self, lifeline: &mut Lifeline) -> bool {
        match lifeline.read() {
            Ok((reports, open)) => {
                for report in reports {
                    self.heed(report, lifeline);
                }
                open
            }
            Err(e) => {
                self.over(&format!("its keeper makes no sense: {e}"));
                false
            }
        }
    }

    fn heed(&mut self, report: KeeperReport, lifeline: &mut Lifeline) {
        match report {
            KeeperReport::Started { .. } => {}
            KeeperReport::ExecFailed { error } => self.never_was(&error),
            KeeperReport::Exited(exit) => self.ended(exit, lifeline),
        }
    }

    fn never_was(&mut self, why: &str) {
        let why = self.account.short_sentence(why);
        self.account.close(why.clone());
        self.client.closed(&why);
    }

    /// The server's process is gone. What it wrote before that is still in the pipes; whoever else holds them is
    /// not waited for.
    fn ended(&mut self, exit: Exit, lifeline: &mut Lifeline) {
        self.read_stdout(LAST_WORDS_BYTES);
        let code = message::describe(exit);
        let how = if self.again {
            format!("it was started twice (its stderr is of both) and ended with {code}")
        } else {
            format!("it ended with {code}")
        };
        if self.client.may_begin_again() && !self.closing && self.begin_again(&how, lifeline).is_ok() {
            return;
        }
        self.over(&how);
        self.let_go();
        lifeline.close();
    }

    /// Has the program started once more, on new pipes; its complaints come over the old one.
    fn begin_again(&mut self, how: &str, lifeline: &mut Lifeline) -> io::Result<()> {
        let (theirs_in, ours_in) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (ours_out, theirs_out) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours_in, true)?;
        rustix::io::ioctl_fionbio(&ours_out, true)?;
        lifeline.again(&theirs_in, &theirs_out)?;
        self.to_server.clear();
        self.broken = None;
        (self.stdin, self.stdout) = (Some(File::from(ours_in)), Some(File::from(ours_out)));
        let text =
            format!("{how} over `server/discover`; it is started once more and spoken to with `initialize`");
        self.tell(ServerEvent::Log { level: Level::Info, name: "mcp.again", text });
        self.again = true;
        self.client.begin_again(self.clock.now());
        Ok(())
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
        let why = self.account.sentence(why);
        self.note_end(why.clone());
        self.client.closed(&why);
    }

    /// Keeps the first reason, and logs it when it comes unasked.
    fn note_end(&mut self, why: String) {
        if self.account.close(why.clone()) && self.ready && !self.closing {
            self.tell(ServerEvent::Log { level: Level::Warn, name: "mcp.exit", text: why });
        }
    }

    /// Nothing more will come from the keeper. Its zombie is this thread's to reap.
    fn bury(&mut self, lifeline: Lifeline) {
        self.over("its keeper ended without a report of it");
        self.let_go();
        lifeline.bury();
    }

    fn let_go(&mut self) {
        self.stdin = None;
        self.stdout = None;
        self.stderr = None;
        self.to_server.clear();
        self.broken = None;
    }

    fn tell(&self, event: ServerEvent) {
        // Without a receiver the process is ending.
        let event = event.masked(&self.mask);
        let _ended = self.inbox.send(Inbox::Server { index: self.index, event });
    }
}

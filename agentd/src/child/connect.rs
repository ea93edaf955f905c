//! Connecting: from the first word to a server until each of them is usable or given up (S14.1, S14.6).
//!
//! Owns the rule of `required`: one that cannot be used fails the run at once, another is left out and the model is
//! told. It refuses nothing else: each server is bounded by its own start timeout and the run by its deadline.

use super::catalogue::event;
use super::inbox::Inbox;
use super::server::{Offer, ServerEvent};
use super::session::{Session, cancelled, failed};
use agentd_core::agent::{Input, Tool};
use agentd_core::limits;
use agentd_core::time::Duration;
use agentd_core::wire::Up;
use agentd_core::wire::message::{Event, FailKind, LoopEnd, RunResult, State, WaitingOn};

/// What the loop begins with.
pub(super) struct Connected {
    /// What it may call.
    pub(super) tools: Vec<Tool>,
    /// Names of the servers it goes on without.
    pub(super) missing: Vec<String>,
}

impl Session {
    /// Waits for all servers. `Err` is the terminal frame of a run that ends before its loop began.
    pub(super) fn connect(&mut self) -> Result<Connected, Up> {
        let mut missing = Vec::new();
        if !self.spawn.servers.is_empty() {
            self.outbox.push(Up::State(State::of(WaitingOn::Servers, 0)));
        }
        let deadline = self.began + Duration::from_millis(self.spawn.limits.deadline_ms);
        while self.offered.len() + missing.len() < self.spawn.servers.len() {
            let Some(message) = self.receive(Some(deadline)) else {
                return Err(late(self.spawn.servers.len() - self.offered.len() - missing.len()));
            };
            match message {
                Inbox::Server { index, event: ServerEvent::Ready(offer) } => {
                    self.connected(index, *offer);
                }
                Inbox::Server { index, event: ServerEvent::Failed { error } } => {
                    self.unusable(index, error)?;
                    missing.push(index);
                }
                Inbox::Server { index, event: ServerEvent::Changed { tools } } => self.offer(index, tools),
                Inbox::Server { index, event } => self.note_server(index, event),
                other => self.end_early(other)?,
            }
        }
        Ok(self.tools_of(missing))
    }

    /// Reports a usable server and its tools.
    fn connected(&mut self, index: usize, offer: Offer) {
        let introduction = offer.introduction();
        self.offer(index, offer.tools);
        let name = self.spawn.servers[index].name.clone();
        self.tell(Up::Event(connect_event("info", name, introduction, "connected")));
    }

    fn unusable(&mut self, index: usize, error: String) -> Result<(), Up> {
        let server = &self.spawn.servers[index];
        let (name, required) = (server.name.clone(), server.required);
        self.tell(Up::Event(connect_event("warn", name, error.clone(), "failed")));
        if required { Err(failed(FailKind::Server, error)) } else { Ok(()) }
    }

    /// What else can end a run. What concerns the loop is kept for it.
    fn end_early(&mut self, message: Inbox) -> Result<(), Up> {
        match message {
            Inbox::Cancel(reason) => Err(cancelled(reason)),
            Inbox::SupervisorGone | Inbox::OutputGone => Err(self.orphan()),
            Inbox::BadControl(error) => {
                Err(failed(FailKind::Internal, format!("control protocol error: {error}")))
            }
            Inbox::Panicked { thread, message } => Err(bug(&thread, &message)),
            Inbox::ForLoop(input) => self.keep_for_loop(input),
            Inbox::ModelSwap(swap) => match self.swap_model(*swap) {
                Some(input) => self.keep_for_loop(input),
                None => Ok(()),
            },
            Inbox::Throttle(throttle) => {
                self.throttle(&throttle);
                Ok(())
            }
            Inbox::ToolResult(_) | Inbox::Server { .. } => Ok(()),
            Inbox::Model { .. } | Inbox::ModelWaits { .. } | Inbox::ModelCut { .. } => Ok(()),
            Inbox::ModelEvent(_) | Inbox::ModelHealth(_) => Ok(()),
            Inbox::Writable | Inbox::TerminalWritten => Ok(()),
        }
    }

    fn keep_for_loop(&mut self, input: Input) -> Result<(), Up> {
        if self.early.len() >= limits::MESSAGES_WAITING {
            let error = format!("the supervisor sent more than {} messages ahead", limits::MESSAGES_WAITING);
            return Err(failed(FailKind::Internal, error));
        }
        self.early.push(input);
        Ok(())
    }

    fn tools_of(&mut self, mut missing: Vec<usize>) -> Connected {
        missing.sort_unstable();
        let missing = missing.into_iter().map(|index| self.spawn.servers[index].name.clone()).collect();
        Connected { tools: self.catalogue(), missing }
    }
}

/// A panic somewhere in this process.
pub(super) fn bug(thread: &str, message: &str) -> Up {
    failed(FailKind::Internal, format!("a bug in agentd: the {thread} thread panicked: {message}"))
}

fn connect_event(level: &str, server: String, text: String, outcome: &str) -> Event {
    let mut event = event(level, "mcp.connect", text);
    event.fields.insert("server".into(), server);
    event.fields.insert("outcome".into(), outcome.into());
    event
}

fn late(waiting: usize) -> Up {
    Up::Result(RunResult {
        end: LoopEnd::Deadline,
        text: None,
        partial: true,
        error: Some(match waiting {
            1 => "the deadline came while a server was still starting".to_owned(),
            _ => format!("the deadline came while {waiting} servers were still starting"),
        }),
        evidence: Default::default(),
    })
}

//! Connecting: from the first word to a server until each of them is usable or given up (S14.1, S14.6).
//!
//! Owns the rule of `required`: one that cannot be used fails the run at once, another is left out and the model is
//! told. It refuses nothing else: each server is bounded by its own start timeout and the run by its deadline.

use super::catalogue::{self, event};
use super::inbox::Inbox;
use super::server::ServerEvent;
use super::session::{Session, cancelled, failed};
use agentd_core::agent::{Input, Tool};
use agentd_core::limits;
use agentd_core::mcp::ToolInfo;
use agentd_core::policy::registry;
use agentd_core::time::Duration;
use agentd_core::wire::Up;
use agentd_core::wire::message::{Event, FailKind, LoopEnd, RunResult, State, Tools, WaitingOn};
use std::collections::BTreeMap;

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
        let mut offered: BTreeMap<usize, Vec<ToolInfo>> = BTreeMap::new();
        let mut missing = Vec::new();
        if !self.spawn.servers.is_empty() {
            self.outbox.push(Up::State(State::of(WaitingOn::Servers, 0)));
        }
        let deadline = self.began + Duration::from_millis(self.spawn.limits.deadline_ms);
        while offered.len() + missing.len() < self.spawn.servers.len() {
            let Some(message) = self.receive(Some(deadline)) else {
                return Err(late(self.spawn.servers.len() - offered.len() - missing.len()));
            };
            match message {
                Inbox::Server { index, event: ServerEvent::Ready { introduction, tools } } => {
                    offered.insert(index, self.connected(index, introduction, tools));
                }
                Inbox::Server { index, event: ServerEvent::Failed { error } } => {
                    self.unusable(index, error)?;
                    missing.push(index);
                }
                Inbox::Server { index, event } => self.note_server(index, event),
                other => self.end_early(other)?,
            }
        }
        Ok(self.tools_of(offered, missing))
    }

    /// Reports a usable server's tools and keeps those that its settings let through.
    fn connected(&mut self, index: usize, introduction: String, tools: Vec<ToolInfo>) -> Vec<ToolInfo> {
        let server = &self.spawn.servers[index];
        let tools: Vec<_> =
            tools.into_iter().filter(|tool| registry::server_allows(server, &tool.name)).collect();
        let name = server.name.clone();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.outbox.push(Up::Tools(Tools { server: name.clone(), tools: names }));
        self.outbox.push(Up::Event(connect_event("info", name, introduction, "connected")));
        tools
    }

    fn unusable(&mut self, index: usize, error: String) -> Result<(), Up> {
        let server = &self.spawn.servers[index];
        self.outbox.push(Up::Event(connect_event("warn", server.name.clone(), error.clone(), "failed")));
        if server.required { Err(failed(FailKind::Server, error)) } else { Ok(()) }
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
            Inbox::Throttle(throttle) => {
                self.throttle(&throttle);
                Ok(())
            }
            Inbox::ToolResult(_) | Inbox::Server { .. } => Ok(()),
            Inbox::Model { .. } | Inbox::ModelWaits { .. } => Ok(()),
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

    fn tools_of(&mut self, offered: BTreeMap<usize, Vec<ToolInfo>>, mut missing: Vec<usize>) -> Connected {
        let servers = &self.spawn.servers;
        let offered =
            offered.into_iter().map(|(index, tools)| (servers[index].name.clone(), tools)).collect();
        missing.sort_unstable();
        let missing = missing.into_iter().map(|index| servers[index].name.clone()).collect();
        let catalogue = catalogue::build(&self.spawn, offered);
        for event in catalogue.events {
            self.outbox.push(Up::Event(event));
        }
        Connected { tools: catalogue.tools, missing }
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
        error: Some(format!("the deadline came while {waiting} servers were still starting")),
        evidence: Default::default(),
    })
}

//! A session's servers: their threads, the calls to them, and what they say beside answers.
//!
//! Owns which keeper belongs to which server and what a dead one leaves behind, and what the servers offer. Called by the session and by its
//! first and last acts.

use super::{Asked, Attached, Session, failed};
use crate::child::catalogue;
use crate::child::inbox::{self, Inbox};
use crate::child::server::{Answers, Launched, Order, Pump, Remote, RemoteSetup, ServerEvent, Setup};
use agentd_core::agent::Tool;
use agentd_core::bytes::Json;
use agentd_core::mcp::ToolInfo;
use agentd_core::note::Level;
use agentd_core::policy::registry;
use agentd_core::wire::Up;
use agentd_core::wire::message::{FailKind, Tools, Transport};
use agentd_host::process::Pid;
use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

impl Session {
    /// Gives each server its thread. One whose keeper could not be made has failed already.
    pub(super) fn attach(
        &mut self,
        launched: Vec<Option<Result<Launched, String>>>,
        inbox: &Sender<Inbox>,
    ) -> Result<(), Up> {
        let internal = |error| failed(FailKind::Internal, error);
        for (index, launched) in launched.into_iter().enumerate() {
            let server = self.spawn.servers[index].clone();
            let thread = format!("server {}", server.name.replace('\0', " "));
            let (clock, to, answers) = (self.clock, inbox.clone(), Answers::Decline);
            let attached = match (&server.transport, launched) {
                (Transport::Http(at), _) => {
                    let at = at.clone();
                    let (remote, link) =
                        Remote::new(RemoteSetup { index, server, at, inbox: to, clock, answers, only: None });
                    inbox::thread(thread, inbox.clone(), move || remote.run()).map_err(internal)?;
                    Attached { link, keeper: None, closed: false }
                }
                (Transport::Stdio(_) | Transport::Files(_), launched) => {
                    let launched = launched.unwrap_or_else(|| Err("it was not asked for".to_owned()));
                    let keeper = launched.as_ref().ok().and_then(|launched| launched.pid());
                    let setup = Setup { index, server, launched, inbox: to, clock, answers, only: None };
                    let (pump, link) = Pump::new(setup).map_err(|e| internal(e.to_string()))?;
                    inbox::thread(thread, inbox.clone(), move || pump.run()).map_err(internal)?;
                    Attached { link, keeper, closed: false }
                }
            };
            self.servers.push(attached);
        }
        Ok(())
    }

    /// Keeps and reports what a server offers, as far as its settings let it through.
    pub(in crate::child) fn offer(&mut self, index: usize, tools: Vec<ToolInfo>) {
        let server = &self.spawn.servers[index];
        let tools: Vec<_> =
            tools.into_iter().filter(|tool| registry::server_allows(server, &tool.name)).collect();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.outbox.push(Up::Tools(Tools { server: server.name.clone(), tools: names }));
        self.offered.insert(index, tools);
    }

    /// The tools of the run from what is offered now. A name once given stands.
    pub(in crate::child) fn catalogue(&mut self) -> Vec<Tool> {
        let name = |index: &usize| self.spawn.servers[*index].name.clone();
        let offered = self.offered.iter().map(|(index, tools)| (name(index), tools.clone())).collect();
        let catalogue = catalogue::build(&self.spawn, offered);
        for event in catalogue.events {
            self.outbox.push(Up::Event(event));
        }
        self.spawn.names.extend(catalogue.fresh);
        catalogue.tools
    }

    /// The catalogue names servers of the payload only.
    pub(super) fn call_server(&mut self, call: u64, server: &str, tool: String, args: Json) {
        if let Some(index) = self.spawn.servers.iter().position(|s| s.name == server) {
            self.open.insert(call, Asked::Server(index));
            self.servers[index].link.order(Order::Call { key: call, tool, args });
        }
    }

    /// What a server says beside its answers.
    pub(in crate::child) fn note_server(&mut self, index: usize, event: ServerEvent) {
        match event {
            ServerEvent::Log { level, name, text } => self.log(index, level, name, text),
            ServerEvent::Progress { key } => {
                self.log(index, Level::Debug, "tool.progress", format!("call {key} is getting on"));
            }
            ServerEvent::Closed => self.closed(index),
            // What is not wanted any more, or not yet.
            ServerEvent::Ready(_)
            | ServerEvent::Changed { .. }
            | ServerEvent::Failed { .. }
            | ServerEvent::CallDone { .. } => {}
        }
    }

    /// A keeper is gone. One that was killed has left its subtree to this process, which answers for it now.
    pub(in crate::child) fn closed(&mut self, index: usize) {
        self.servers[index].closed = true;
        self.servers[index].keeper = None;
        let keepers: BTreeSet<Pid> = self.servers.iter().filter_map(|server| server.keeper).collect();
        if let Some(below) = &mut self.below {
            // What one pass does not catch, the sweep at the end does.
            let _pass = below.pass(&keepers, true);
        }
    }

    fn log(&mut self, index: usize, level: Level, name: &str, text: String) {
        let debug = matches!(self.spawn.log_level.as_str(), "debug" | "trace");
        if level == Level::Debug && !debug {
            return;
        }
        let level = match level {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        };
        let mut event = catalogue::event(level, name, text);
        event.fields.insert("server".into(), self.spawn.servers[index].name.clone());
        self.outbox.push(Up::Event(event));
    }
}

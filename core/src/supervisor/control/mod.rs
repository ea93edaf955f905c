//! The control surface: what connections ask, whose it is, and how it comes to its one answer.
//!
//! | file | what it decides |
//! |---|---|
//! | `routes` | which request is for whom |
//! | `calls` | A2A's methods |
//! | `tasks` | a message as a task: one turn, told to whoever follows it |
//! | `ops` | operators' commands |
//! | `logs` | what was logged of each run, and who follows it |
//! | `metering` | what is counted, and its text |
//!
//! A request has one answer, in the order its connection sent it; a client that goes away waits for nothing any more. What
//! it began goes on, but for a run that it waited for synchronously (S6.7).

mod calls;
mod logs;
mod metering;
mod ops;
mod routes;
mod tasks;

use super::{Core, daemon_note};
use crate::action::Actions;
use crate::bytes::Json;
use crate::event::{Door, Peer};
use crate::http::Response;
use crate::id::{ConnId, NodeId, RunId};
use crate::limits;
use crate::machine::Deadline;
use crate::metrics::{Counter, Metrics};
use crate::note::Level;
use crate::session::{Connection, access};
use crate::time::Instant;
use logs::{Following, Logs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tasks::Tasks;

/// The numbers of calls that connections make as operators; those below are an embedding program's.
const CALLS_FROM: u64 = 1 << 63;

/// All that the control surface knows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Surface {
    connections: BTreeMap<ConnId, Connection>,
    /// What each connection's request waits for.
    waits: BTreeMap<ConnId, Wait>,
    /// Calls of operators, by number.
    calls: BTreeMap<u64, ConnId>,
    last_call: u64,
    tasks: Tasks,
    logs: Logs,
    pub(super) metrics: Metrics,
    /// When the first of the connections' clocks wants a tick.
    due: Option<Instant>,
}

/// What a request waits for.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Wait {
    /// The answer of an operator's command.
    Call { call: u64, rpc: Value, op: String, gone: bool },
    /// The same, answered once that run's process is gone.
    Gone { node: NodeId, rpc: Value, op: String, value: Json },
    /// The end of the load of this number.
    Reload { load: u64, rpc: Value },
    /// That a task is durable.
    Begun { task: RunId, rpc: Value, history: Option<usize> },
    /// A task's end.
    Task { task: RunId, rpc: Value, history: Option<usize> },
    /// A task's end, which is to be that it was cancelled.
    Cancel { task: RunId, rpc: Value },
    /// Everything of a task, as it happens.
    Stream { task: RunId, rpc: Value },
    /// What is logged next of a run.
    Log { following: Following, rpc: Value },
}

impl Core {
    /// A client has connected.
    pub(super) fn conn_opened(&mut self, conn: ConnId, door: Door, peer: &Peer, out: &mut Actions) {
        let now = self.now.mono;
        let mut connection = Connection::new(conn, door, now);
        let here = self.surface.connections.values().filter(|other| other.door() == door).count();
        let refused = match access::peer(door, peer) {
            Err(denied) => Some((denied.status, denied.word, denied.reason.to_owned())),
            Ok(()) if self.config.control.is_none() => {
                Some((503, "closed", "there is no control surface here".to_owned()))
            }
            Ok(()) if here >= limits::CONNECTIONS => {
                let reason = format!("{here} connections are open here already; close one");
                Some((503, "full", reason))
            }
            Ok(()) => None,
        };
        if let Some((status, word, reason)) = refused {
            self.surface.metrics.count(Counter::TurnedAway, &[word]);
            let note =
                daemon_note(Level::Warn, "operator.refused").with("door", door.name()).with("why", word);
            out.push(note.with("peer", peer_words(peer)).into());
            connection.refuse(&Response::text(status, &reason), now, out);
            // It gets its reason and no time: whoever is not let in holds nobody else's place.
            connection.drop_now(out);
        }
        self.surface.connections.insert(conn, connection);
    }

    /// Bytes of a client.
    pub(super) fn conn_bytes(&mut self, conn: ConnId, bytes: &[u8], out: &mut Actions) {
        let now = self.now.mono;
        if let Some(connection) = self.surface.connections.get_mut(&conn) {
            connection.heard(bytes, now);
            self.serve_connection(conn, out);
        }
    }

    /// Queued bytes left.
    pub(super) fn conn_wrote(&mut self, conn: ConnId, bytes: u64) {
        let now = self.now.mono;
        if let Some(connection) = self.surface.connections.get_mut(&conn) {
            connection.wrote(bytes, now);
        }
    }

    /// A client sends no more.
    pub(super) fn conn_ended(&mut self, conn: ConnId, out: &mut Actions) {
        let now = self.now.mono;
        self.wait_for_nothing(conn, out);
        if let Some(connection) = self.surface.connections.get_mut(&conn) {
            connection.ended(now, out);
        }
    }

    /// A connection is gone.
    pub(super) fn conn_closed(&mut self, conn: ConnId, out: &mut Actions) {
        self.wait_for_nothing(conn, out);
        self.surface.connections.remove(&conn);
    }

    /// Begins what a connection asks next, as long as nothing stands before it.
    fn serve_connection(&mut self, conn: ConnId, out: &mut Actions) {
        let now = self.now.mono;
        while let Some(connection) = self.surface.connections.get_mut(&conn)
            && let Some(turn) = connection.next(now, out)
        {
            self.route_request(conn, &turn.0, out);
        }
    }

    /// Answers a connection's request.
    fn respond(&mut self, conn: ConnId, response: &Response, out: &mut Actions) {
        let now = self.now.mono;
        self.surface.waits.remove(&conn);
        self.surface.metrics.count(Counter::Answers, &[&response.status.to_string()]);
        let queued: u64 = self.surface.connections.values().map(Connection::queued).sum();
        let Some(connection) = self.surface.connections.get_mut(&conn) else { return };
        let length = u64::try_from(response.body.len()).unwrap_or(u64::MAX);
        let (one, all) = limits::CONN_QUEUE_BYTES;
        if connection.queued().saturating_add(length) > one || queued.saturating_add(length) > all {
            connection.drop_now(out);
            return;
        }
        connection.answer(response, now, out);
    }

    /// Answers a connection's request, and begins what it asked next.
    fn respond_and_go_on(&mut self, conn: ConnId, response: &Response, out: &mut Actions) {
        self.respond(conn, response, out);
        self.serve_connection(conn, out);
    }

    /// The client of this connection waits for nothing any more.
    fn wait_for_nothing(&mut self, conn: ConnId, out: &mut Actions) {
        match self.surface.waits.remove(&conn) {
            Some(Wait::Call { call, .. }) => {
                self.surface.calls.remove(&call);
                self.operator_hung_up(call, out);
            }
            Some(
                Wait::Gone { .. }
                | Wait::Reload { .. }
                | Wait::Begun { .. }
                | Wait::Task { .. }
                | Wait::Cancel { .. }
                | Wait::Stream { .. }
                | Wait::Log { .. },
            )
            | None => {}
        }
    }

    /// An operator's call has its answer: whether a connection waits for it, which then has it.
    pub(super) fn answers_connection(
        &mut self,
        call: u64,
        error: bool,
        value: &Json,
        out: &mut Actions,
    ) -> bool {
        if call < CALLS_FROM {
            return false;
        }
        if let Some(conn) = self.surface.calls.remove(&call) {
            self.op_answered(conn, error, value, out);
        }
        true
    }

    /// What the clocks of connections do.
    pub(super) fn tick_connections(&mut self, out: &mut Actions) {
        let (now, lasting) = (self.now.mono, self.drain.is_some());
        if self.surface.due.is_some_and(|at| at <= now) {
            self.tell_followers(out);
            self.surface.connections.values_mut().for_each(|connection| connection.tick(now, lasting, out));
            let begun: Vec<ConnId> = self.surface.connections.keys().copied().collect();
            begun.into_iter().for_each(|conn| self.serve_connection(conn, out));
        }
    }

    /// Looks anew when connections want a tick. Called after every event that could have changed that.
    pub(super) fn set_connection_timer(&mut self) {
        let followers = self.followers_due();
        // While it drains, whoever waits for the daemon's end waits on an idle connection.
        let lasting = self.drain.is_some();
        let clocks = self.surface.connections.values().filter_map(|one| one.wants(lasting));
        self.surface.due = clocks.chain(followers).min();
    }

    /// When the clocks of connections want a tick.
    pub(super) fn connections_due(&self) -> Option<Deadline> {
        self.surface.due.map(|at| Deadline { at, why: "a connection" })
    }
}

fn peer_words(peer: &Peer) -> String {
    match peer {
        Peer::Local { uid, pid, .. } => format!("pid {pid} of uid {uid}"),
        Peer::Remote { address } => address.clone(),
    }
}

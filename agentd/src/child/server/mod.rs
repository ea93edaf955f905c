//! One MCP server as the main thread sees it: a link to the thread that speaks with it.
//!
//! Owns the order words between the two. Every call that goes down comes back as exactly one
//! [`ServerEvent::CallDone`], whether the server lives or not. The thread itself is [`pump`]'s.

mod account;
mod launch;
mod lifeline;
mod pipes;
mod pump;
mod tail;

pub(super) use launch::{Launched, launch};
pub(super) use pump::{Pump, Setup};

use agentd_core::bytes::Json;
use agentd_core::mcp::{Outcome, ToolInfo};
use agentd_core::note::Level;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What a server's thread tells the main thread.
#[derive(Debug)]
pub(super) enum ServerEvent {
    /// Usable from now on.
    Ready {
        /// Its own name and version, and the protocol's.
        introduction: String,
        /// What it offers, in its order.
        tools: Vec<ToolInfo>,
    },
    /// It never became usable: a sentence with command, exit status and last stderr lines.
    Failed {
        /// The sentence.
        error: String,
    },
    /// The one answer to a call.
    CallDone {
        /// The call's key.
        key: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// A call gets on; at most one a second for each.
    Progress {
        /// The call's key.
        key: u64,
    },
    /// For the log.
    Log {
        /// How much it matters.
        level: Level,
        /// A stable dotted name.
        name: &'static str,
        /// One sentence.
        text: String,
    },
    /// Its keeper is gone, and with it everything the server had started.
    Closed,
}

/// What the main thread asks of a server's thread.
pub(super) enum Order {
    /// Call a tool by the server's own name.
    Call {
        /// Comes back in the answer.
        key: u64,
        /// The server's own name of the tool.
        tool: String,
        /// A JSON object.
        args: Json,
    },
    /// Give a call up.
    Cancel {
        /// The call's key.
        key: u64,
        /// Why.
        reason: String,
    },
    /// End the server in its own time.
    Close,
}

/// The main thread's end.
pub(super) struct Link {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
}

impl Link {
    /// Sends an order. Never waits: what is ordered at once is bounded by the calls of one message.
    pub(super) fn order(&self, order: Order) {
        // Fails only when the thread is gone: after `Closed`, when nothing is ordered any more, or after a panic,
        // which ends the run by itself.
        let _gone = self.orders.send(order);
        // The counter of the bell cannot overflow by ones, and a full one rings already.
        let _rung = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }
}

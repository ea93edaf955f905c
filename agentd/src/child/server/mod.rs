//! One MCP server as the main thread sees it: a link to the thread that speaks with it.
//!
//! Owns the order words between the two. Every call that goes down comes back as exactly one
//! [`ServerEvent::CallDone`], whether the server lives or not. The thread itself is [`pump`]'s where the server is a
//! program, and [`remote`]'s where it has an address.

mod account;
mod launch;
mod lifeline;
mod pipes;
mod pump;
mod remote;
mod tail;

pub(super) use launch::{Launched, launch};
pub(super) use pump::{Pump, Setup};
pub(super) use remote::{Remote, RemoteSetup};

use crate::http::mask::Mask;
use agentd_core::bytes::Json;
use agentd_core::mcp::{
    ClientInfo, Elicitation, Era, Form, Outcome, Reply, ResourceInfo, ToolInfo, Value as Said, form_content,
};
use agentd_core::note::Level;
use serde_json::{Map, Value};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};

/// What a server's thread tells the main thread.
#[derive(Debug)]
pub(super) enum ServerEvent {
    /// Usable from now on.
    Ready(Box<Offer>),
    /// It offers something else from now on.
    Changed {
        /// All of it, in its order.
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
    /// Its keeper is gone, and with it everything the server had started; or its session is over.
    Closed,
}

impl ServerEvent {
    /// The same, without what the server was given and nobody is to read. A tool's result is data and stays as it is, and so
    /// do the tools.
    fn masked(self, mask: &Mask) -> ServerEvent {
        match self {
            ServerEvent::Ready(mut offer) => {
                offer.name = mask.text(offer.name);
                offer.version = mask.text(offer.version);
                ServerEvent::Ready(offer)
            }
            ServerEvent::Failed { error } => ServerEvent::Failed { error: mask.text(error) },
            ServerEvent::Log { level, name, text } => ServerEvent::Log { level, name, text: mask.text(text) },
            ServerEvent::CallDone { key, outcome: Outcome { error, own: true, value: Said::Text(text) } } => {
                let value = Said::Text(mask.text(text));
                ServerEvent::CallDone { key, outcome: Outcome { error, own: true, value } }
            }
            event @ (ServerEvent::CallDone { .. }
            | ServerEvent::Changed { .. }
            | ServerEvent::Progress { .. }
            | ServerEvent::Closed) => event,
        }
    }
}

/// A usable server: who it is and what it offers.
#[derive(Debug)]
pub(super) struct Offer {
    /// Its own name.
    pub(super) name: String,
    /// Its own version; may be empty.
    pub(super) version: String,
    /// The protocol's version.
    pub(super) protocol: String,
    /// The era of that version.
    pub(super) era: Era,
    /// What it says that it can do.
    pub(super) capabilities: Json,
    /// Its tools, in its order.
    pub(super) tools: Vec<ToolInfo>,
    /// What can be read from it.
    pub(super) resources: Vec<ResourceInfo>,
}

impl Offer {
    /// Who it is, in a few words.
    pub(super) fn introduction(&self) -> String {
        format!("{} {}, protocol {}", self.name, self.version, self.protocol)
    }
}

/// How a server's questions to a person are answered.
#[derive(Debug, Clone)]
pub(super) enum Answers {
    /// There is nobody to ask, and a made-up answer would be worse than none.
    Decline,
    /// With these fields, and the form's own defaults for the others.
    Script(Map<String, Value>),
}

impl Answers {
    /// The answer, and what the log is told of it.
    fn to(&self, question: &Elicitation) -> (Reply, ServerEvent) {
        let asked = &question.message;
        let content = match (self, &question.form) {
            (Answers::Decline, _) => {
                Err(format!("the server asked a person, and agentd declined for them: {asked:?}"))
            }
            (Answers::Script(_), Form::Address(_)) => Err(format!(
                "the server wants an answer at an address of its own, which was declined: {asked:?}"
            )),
            (Answers::Script(given), Form::Fields(schema)) => form_content(schema, given).map_err(|why| {
                format!("the server asked {asked:?}, and the scripted answer was not given: {why}")
            }),
        };
        match content {
            Ok(content) => {
                let text = format!("the server asked {asked:?} and was answered as scripted");
                let event = ServerEvent::Log { level: Level::Info, name: "mcp.elicitation.accepted", text };
                (Reply::Accept(content), event)
            }
            Err(text) => (
                Reply::Decline,
                ServerEvent::Log { level: Level::Warn, name: "mcp.elicitation.declined", text },
            ),
        }
    }
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
pub(super) struct Link(To);

enum To {
    /// A thread that waits on descriptors, of which the bell is one.
    Pump { orders: Sender<Order>, bell: Arc<OwnedFd> },
    /// A thread that waits on its queue.
    Remote(SyncSender<remote::Happened>),
}

impl Link {
    /// Sends an order. Never waits for the server: what is ordered at once is bounded by the calls of one message, and
    /// the thread of a server at an address takes what comes as it comes.
    pub(super) fn order(&self, order: Order) {
        // Sending fails only when the thread is gone: after `Closed`, when nothing is ordered any more, or after a
        // panic, which ends the run by itself.
        match &self.0 {
            To::Pump { orders, bell } => {
                let _gone = orders.send(order);
                // The counter of the bell cannot overflow by ones, and a full one rings already.
                let _rung = rustix::io::write(&**bell, &1u64.to_ne_bytes());
            }
            To::Remote(queue) => {
                let _gone = queue.send(remote::Happened::Ordered(order));
            }
        }
    }
}

/// What a child says of itself to its servers.
fn client_info() -> ClientInfo {
    ClientInfo { name: "agentd".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

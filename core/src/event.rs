//! What happened: the only things that move the core. Past tense, plain owned data, serialisable, so that a
//! trace of `(Now, Event)` is a journal, a test and a simulation. The journal's format only ever gains variants.

use crate::bytes::{Bytes, Json};
use crate::config::Reloaded;
use crate::id::{ConnId, NodeId};
use crate::store::Saved;
use serde::{Deserialize, Serialize};

/// One thing that happened outside the core, in the order it was learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Randomness from the operating system, once, before anything else.
    Seeded {
        /// For ids and jitter.
        seed: u64,
    },
    /// A person asked the conversation to do something. Prompts are numbered from 1 in the order they come; each
    /// is one turn. A one-shot conversation takes one and ignores the rest.
    PromptSubmitted {
        /// The prompt.
        text: String,
    },
    /// A person takes a prompt back: its turn ends, or never begins. One that is over already changes nothing.
    TurnCancelled {
        /// The prompt's number; 0 is the turn in hand that nobody asked for, if there is one.
        prompt: u64,
        /// Why, for the record.
        reason: String,
    },
    /// No time event but this one: `poll_timeout`'s deadline has passed.
    Tick,
    /// A `Spawn` was performed: the process exists, in its own group, its limits set, and is watched.
    ChildSpawned {
        /// Whose.
        node: NodeId,
        /// For people only; the core never signals a number.
        pid: u32,
    },
    /// A `Spawn` could not be performed; no process exists.
    SpawnFailed {
        /// Whose.
        node: NodeId,
        /// What the system said, with the call that said it.
        error: String,
        /// It may succeed later (EAGAIN, ENOMEM).
        transient: bool,
    },
    /// The first frame could not be made (a secret that is gone); nothing was written to the child.
    SpawnFrameFailed {
        /// Whose.
        node: NodeId,
        /// Why, for the person who must act.
        error: String,
    },
    /// Bytes from a child's stdout, cut anywhere.
    ChildBytes {
        /// Whose.
        node: NodeId,
        /// Never empty.
        bytes: Bytes,
    },
    /// A child's stdout ended. Says nothing about its life.
    ChildEof {
        /// Whose.
        node: NodeId,
    },
    /// Bytes from a child's stderr, cut anywhere.
    ChildStderr {
        /// Whose.
        node: NodeId,
        /// Never empty.
        bytes: Bytes,
    },
    /// This many queued bytes left for the child's stdin.
    ChildWrote {
        /// Whose.
        node: NodeId,
        /// Since the last such event.
        bytes: u64,
    },
    /// The child's stdin can take no more (EPIPE); the driver has dropped its queue.
    ChildWriteFailed {
        /// Whose.
        node: NodeId,
        /// What the system said.
        error: String,
    },
    /// The process ended; it is a zombie that still pins its pid.
    ExitObserved {
        /// Whose.
        node: NodeId,
        /// How.
        exit: Exit,
    },
    /// One `Sweep` pass was performed.
    Swept {
        /// Whose.
        node: NodeId,
        /// Processes killed in this pass.
        killed: u32,
        /// Processes seen that are not gone yet.
        remaining: u32,
    },
    /// A `Reap` was performed: the pid is free for others from now on.
    Reaped {
        /// Whose.
        node: NodeId,
    },
    /// What was to be saved under this number is durable. Answers come in the order of `Persist`.
    Stored {
        /// Of the `Persist`.
        seq: u64,
    },
    /// What was to be saved under this number could not be, or not for sure.
    StoreFailed {
        /// Of the `Persist`.
        seq: u64,
        /// What the store said.
        error: String,
        /// It may succeed later (full, locked, read-only); `false` only where no later try can.
        retryable: bool,
    },
    /// The supervisor itself got a signal.
    Signalled {
        /// Which.
        signal: SupervisorSignal,
    },
    /// The configuration was read again, and can be used. Answers `LoadConfig`; a program may also tell it unasked.
    ConfigReady(Box<Reloaded>),
    /// The configuration was read again, or could not be, and cannot be used. Answers `LoadConfig`.
    ConfigRefused {
        /// How many things are wrong with it.
        problems: u64,
        /// All of them, with their places, for the person who must act. Holds no secret.
        text: String,
    },
    /// A `SendModel` could not be made (a secret that is gone): the child was told that there is none.
    ModelFrameFailed {
        /// Whose.
        node: NodeId,
        /// Of the frame.
        id: u64,
        /// Why, for the person who must act.
        error: String,
    },
    /// An operator (an embedding program, a control connection) calls one of the supervisor's tools.
    OperatorCalled {
        /// Names the call and its one `Answer`; one that is open already is not taken again.
        call: u64,
        /// The tool's registry name.
        tool: String,
        /// Its arguments, the same object that a model gives.
        args: Json,
    },
    /// Nobody waits for the answer of this call any more. A run it waited for synchronously ends with it.
    OperatorHungUp {
        /// The call.
        call: u64,
    },
    /// A tool of the embedding program has answered.
    HostToolAnswered {
        /// Of the `CallHostTool`.
        call: u64,
        /// It failed, and the value says why.
        error: bool,
        /// What the caller reads.
        value: Json,
    },
    /// What the store held when the daemon began: once, after the seed and before anything else. Runs that have not
    /// ended are taken up again.
    Restored(Box<Saved>),
    /// A client has connected.
    ConnOpened {
        /// Its connection's name from here on.
        conn: ConnId,
        /// Where it came in.
        door: Door,
        /// Who it is.
        peer: Peer,
    },
    /// Bytes of a client, cut anywhere, TLS taken off and known tokens marked.
    ConnBytes {
        /// Whose.
        conn: ConnId,
        /// Never empty.
        bytes: Bytes,
    },
    /// This many queued bytes left for a client.
    ConnWrote {
        /// Whose.
        conn: ConnId,
        /// Since the last such event.
        bytes: u64,
    },
    /// A client sends no more.
    ConnEnded {
        /// Whose.
        conn: ConnId,
    },
    /// The connection is closed, by whomever; nothing more comes of it. Exactly once for each.
    ConnClosed {
        /// Which.
        conn: ConnId,
        /// What the system said, when it broke.
        error: Option<String>,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Somebody else reaped it (SIGCHLD ignored, a foreign wait); how it ended is unknown.
    Unknown,
}

/// Signals the supervisor takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupervisorSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGHUP.
    Hup,
}

/// Where a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Door {
    /// The control socket.
    Control,
    /// TCP: loopback, or TLS, which the host has taken off.
    Tcp,
    /// `observability.metrics_addr`.
    Metrics,
}

impl Door {
    /// All of them.
    pub const ALL: [Door; 3] = [Door::Control, Door::Tcp, Door::Metrics];

    /// For logs and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Door::Control => "control",
            Door::Tcp => "tcp",
            Door::Metrics => "metrics",
        }
    }
}

/// Who is at the other end, as far as the host can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// A process on this machine, by the socket's credentials.
    Local {
        /// Its user.
        uid: u32,
        /// The supervisor's own.
        own_uid: u32,
        /// For people.
        pid: u32,
        /// Whether the supervisor is among its ancestors; `None` when that could not be found out.
        supervised: Option<bool>,
    },
    /// An address.
    Remote {
        /// For people.
        address: String,
    },
}

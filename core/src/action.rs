//! What is to be done: imperative, plain owned data. A driver performs actions in order, all of them, before
//! the next event; each that can fail answers with exactly one event.

use crate::bytes::{Bytes, Json};
use crate::id::{ConnId, Handle, NodeId};
use crate::note::Note;
use crate::record::{ResultObject, Tokens, UsageSum};
use crate::store::{Class, Write};
use crate::wire::message;
use serde::{Deserialize, Serialize};

/// One thing a driver must do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Make a process from the own binary, as its own group, with these limits set before anything is written
    /// to it. Answer: `ChildSpawned` or `SpawnFailed`.
    Spawn {
        /// Name it by this.
        node: NodeId,
        /// What `ps` and the kernel's log show, `agentd:sub-7`.
        name: String,
        /// Walls.
        walls: Walls,
    },
    /// Write the first frame: secrets are put in here and nowhere else (S3.7). Answer: `SpawnFrameFailed` if it
    /// cannot be made.
    SendSpawn {
        /// To whom.
        node: NodeId,
        /// Frame number 1 of this direction.
        payload: SpawnFrame,
    },
    /// Queue an encoded frame. Never blocks; answer: `ChildWrote` as bytes leave, or `ChildWriteFailed`.
    SendToChild {
        /// To whom.
        node: NodeId,
        /// One whole frame, length prefix included.
        frame: Bytes,
    },
    /// Write a `model` frame: as `SendSpawn`, secrets are put in here. Where that fails, the same frame is written without
    /// a model, and told of by `ModelFrameFailed`. Other answer: as `SendToChild`.
    SendModel {
        /// To whom.
        node: NodeId,
        /// The frame's number in this direction.
        number: u64,
        /// What it says.
        payload: ModelFrame,
    },
    /// Close the child's stdin once what is queued has left.
    CloseStdin {
        /// Whose.
        node: NodeId,
    },
    /// Signal the child's process group through its pidfd; a failure is not an event (the exit is).
    Signal {
        /// Whom.
        node: NodeId,
        /// Which.
        signal: ChildSignal,
    },
    /// One bounded pass over what a dead child left: its group, then what it orphaned. The zombie still pins
    /// the pid. Answer: `Swept`.
    Sweep {
        /// Whose.
        node: NodeId,
        /// Kill keepers too, with everything below them, instead of asking them to finish.
        keepers: bool,
    },
    /// Free the pid. Answer: `Reaped`. After it the node's fds are closed and no more events come for it.
    Reap {
        /// Whose.
        node: NodeId,
    },
    /// Reap orphans that ended on the supervisor. No answer.
    ReapOrphans,
    /// Save all of this together, or nothing of it. Answer: `Stored` or `StoreFailed`, in order.
    Persist {
        /// Rises by one each time.
        seq: u64,
        /// What waits for it.
        class: Class,
        /// Never empty; at most one of them is a run's record.
        writes: Vec<Write>,
    },
    /// Say why, in the log.
    Note(Note),
    /// Read the configuration again, from where it was read at the start. Answer: `ConfigReady` or `ConfigRefused`.
    LoadConfig,
    /// A reload is over. Where it is in use, what was read last counts from now on for all that surrounds the core too:
    /// whatever is asked for before this action is done with what was in use before. No answer.
    EndReload {
        /// The configuration of the last `ConfigReady` is in use.
        used: bool,
    },
    /// A prompt has its answer. Usage is as known now; `Exit` has the final sums.
    Deliver {
        /// The prompt's number; 0 when nobody asked: the conversation was told of ended runs and has answered.
        prompt: u64,
        /// The worker's result.
        result: Box<ResultObject>,
        /// What gave out, when the worker itself said so.
        fault: Option<message::FailKind>,
    },
    /// An operator's call has its answer; exactly one for each call that was not hung up.
    Answer {
        /// Of the `OperatorCalled`.
        call: u64,
        /// It was refused, or failed.
        error: bool,
        /// What a caller reads.
        value: Json,
    },
    /// Call a tool of the embedding program. Answer: `HostToolAnswered`, unless it is cancelled first.
    CallHostTool(HostCall),
    /// Nobody waits for this call any more; its answer is not needed.
    CancelHostTool {
        /// Of the `CallHostTool`.
        call: u64,
    },
    /// Nothing is left to do: end the loop. The last action ever.
    Exit {
        /// The signal that began a drain, if one did.
        interrupted: Option<crate::event::SupervisorSignal>,
        /// Processes of this daemon that a sweep had to give up on; 0 is a clean end.
        leaked: u32,
        /// What the conversation and everything below it used.
        usage: UsageSum,
        /// The run that used most by itself, the worker aside.
        costliest: Option<Costliest>,
    },
    /// Queue bytes for a client. Never blocks; answer: `ConnWrote` as they leave, or `ConnClosed`. A connection that is
    /// closed takes them and says nothing.
    ConnSend {
        /// To whom.
        conn: ConnId,
        /// The bytes.
        bytes: Bytes,
    },
    /// Close a connection: once what is queued has left and the client has closed too, or with what can be written without
    /// waiting. Answer: `ConnClosed`.
    ConnShut {
        /// Which.
        conn: ConnId,
        /// Wait for nothing.
        at_once: bool,
    },
}

/// A call of a tool that the embedding program offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCall {
    /// Names the call; never used again.
    pub call: u64,
    /// The calling run's process.
    pub node: NodeId,
    /// The calling run; `None` is the conversation.
    pub handle: Option<Handle>,
    /// The group of tools, as the configuration names it.
    pub server: String,
    /// The tool's own name there.
    pub tool: String,
    /// Its arguments: an object within the bounds of every tool call.
    pub args: Json,
}

/// The run that used most: by money where any was priced, else by tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costliest {
    /// Which.
    pub handle: Handle,
    /// Its own use.
    pub own: Tokens,
}

/// The first frame; boxed, for an action is small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpawnFrame(pub Box<message::Spawn>);

/// A `model` frame; boxed, for an action is small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFrame(pub Box<message::ModelSwap>);

/// Kernel limits of one child (S5.6), set by the parent before the first frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Walls {
    /// `RLIMIT_DATA` in bytes.
    pub memory: Option<u64>,
    /// `RLIMIT_CPU` soft limit in seconds; hard is 5 s later.
    pub cpu_seconds: Option<u64>,
    /// Nice value.
    pub nice: i32,
}

/// Signals a child's group can get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChildSignal {
    /// SIGTERM, then SIGCONT so that a stopped process can act on it.
    TermCont,
    /// SIGKILL.
    Kill,
}

/// The list `handle` appends to; reused between calls.
pub type Actions = Vec<Action>;

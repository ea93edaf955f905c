//! What surrounds a reactor and is neither a child nor the core: the store, the log, the journal, secrets.
//!
//! Called by the reactor, implemented by the binary, embedders and tests. Nothing here may wait.

use agentd_core::action::{Action, HostCall};
use agentd_core::bytes::Json;
use agentd_core::config::NOT_READ_AGAIN;
use agentd_core::event::Event;
use agentd_core::id::ConnId;
use agentd_core::note::Note;
use agentd_core::record::ResultObject;
use agentd_core::snapshot::Snapshot;
use agentd_core::store::{Class, Write};
use agentd_core::time::{Instant, Now};
use agentd_core::wire::{Down, Encoder, message};

/// The rest of the program, as the reactor sees it.
pub trait Outside {
    /// Every event, before the core gets it: for the journal.
    fn observe(&mut self, now: Now, event: &Event);

    /// What the core answered to the event that was observed last, before any of it is performed: for the journal.
    fn decided(&mut self, _now: Now, _actions: &[Action]) {}

    /// Whether the core's whole state is wanted before it gets the next event.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// The state that was wanted, or why there is none.
    fn checkpointed(&mut self, _now: Now, _state: Result<Vec<u8>, String>) {}

    /// Why the core did something: for the log.
    fn note(&mut self, now: Now, note: Note);

    /// Saves all of this together or nothing of it, or begins to. Saves are answered in the order of their numbers.
    fn persist(&mut self, seq: u64, class: Class, writes: Vec<Write>) -> StoreAnswer;

    /// The prompt of this number has its answer; `fault` is what gave out, when its worker said so. Usage is as
    /// known now, the final sums come with the loop's end.
    fn deliver(&mut self, prompt: u64, result: &ResultObject, fault: Option<message::FailKind>);

    /// Whether anybody looks: only then is a [`Snapshot`] taken after a turn, in which something `happened` or nothing did.
    fn looks(&self, _now: Now, _happened: bool) -> bool {
        false
    }

    /// How things stand after a turn.
    fn see(&mut self, _snapshot: Snapshot) {}

    /// A turn is over: the loop lives. Returns when the next turn is wanted at the latest, however quiet it is until then;
    /// nothing is told to the core for it.
    fn turned(&mut self, _now: Now) -> Option<Instant> {
        None
    }

    /// An operator's call has its answer.
    fn answer(&mut self, _call: u64, _error: bool, _value: Json) {}

    /// Begins a call of a tool of this program. Its answer is posted to the mailbox, as `HostToolAnswered`, once.
    ///
    /// # Errors
    /// It cannot be called: a sentence for the model.
    fn call_tool(&mut self, call: HostCall) -> Result<(), String> {
        Err(format!("{}.{} is offered by nobody", call.server, call.tool))
    }

    /// Nobody waits for the answer of this call any more.
    fn cancel_tool(&mut self, _call: u64) {}

    /// Bytes of a client, before the core or a journal sees them: the tokens in them are marked here. What is held back, for
    /// a token may be cut, comes with the next.
    fn hear(&mut self, _conn: ConnId, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// Begins to read the configuration again. What comes of it is posted to the mailbox, as `ConfigReady` or
    /// `ConfigRefused`, once.
    ///
    /// # Errors
    /// It cannot be read again: a sentence for the person who must act.
    fn load_config(&mut self) -> Result<(), String> {
        Err(NOT_READ_AGAIN.to_owned())
    }

    /// The reload that [`Outside::load_config`] began is over. Where it is used, what was read then is in use from now on:
    /// secrets, the log.
    fn reload_ended(&mut self, _now: Now, _used: bool) {}

    /// A `model` frame of this number, length prefix included, with the secrets put in.
    ///
    /// # Errors
    /// As [`Outside::encode_spawn`].
    fn encode_model(&mut self, number: u64, swap: &message::ModelSwap) -> Result<Vec<u8>, String> {
        Encoder::at(number)
            .encode_down(&Down::Model(Box::new(swap.clone())))
            .map_err(|error| error.to_string())
    }

    /// The first frame of a child, length prefix included, with the secrets put in.
    ///
    /// # Errors
    /// The frame cannot be made (a secret is gone): a sentence for the person who must act.
    fn encode_spawn(&mut self, spawn: &message::Spawn) -> Result<Vec<u8>, String>;
}

/// Whether what was to be saved is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAnswer {
    /// It is; a store in memory.
    Stored,
    /// It is not.
    Failed {
        /// What the store said.
        error: String,
        /// It may succeed later.
        retryable: bool,
    },
    /// The answer will be posted to the mailbox, as `Stored` or `StoreFailed`, once.
    Later,
}

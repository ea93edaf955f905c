//! One run, as whoever asked for it or names it by its handle sees it. Dropping it changes nothing: the run goes on, as
//! a spawned task does; [`Run::kill`] ends it.

use crate::error::CallError;
use crate::supervisor::Supervisor;
use agentd_core::id::{Handle, RunId};
use agentd_core::record::{ResultObject, Status, UsageSum};
use agentd_core::wire::message::Mode;
use serde::Deserialize;
use serde_json::json;

/// The number of the turn that a warm run's instruction is.
const FIRST: u64 = 1;

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    supervisor: Supervisor,
    handle: Handle,
}

impl Run {
    pub(crate) fn new(supervisor: Supervisor, handle: Handle) -> Run {
        Run { supervisor, handle }
    }

    /// Its short name.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Waits for its end and gives its result, the same each time. How it ended is in the result: a run that failed
    /// or was killed is an `Ok` whose `status` says so.
    ///
    /// Put a limit on the wait with `tokio::time::timeout`; the run goes on.
    ///
    /// # Errors
    /// The supervisor ended first, or does not remember the run any more.
    pub async fn result(&self) -> Result<ResultObject, CallError> {
        self.supervisor.call("subagent.await", json!({ "handle": self.handle })).await
    }

    /// How it stands.
    ///
    /// # Errors
    /// As [`Run::result`].
    pub async fn status(&self) -> Result<RunStatus, CallError> {
        self.supervisor.call("subagent.status", json!({ "handle": self.handle })).await
    }

    /// Tells it something at its next step; what it has done is kept.
    ///
    /// # Errors
    /// It has ended, or has too much to take in already.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), CallError> {
        let args = json!({ "handle": self.handle, "text": text.into() });
        self.supervisor.call("subagent.steer", args).await.map(|_: Named| ())
    }

    /// Asks for its result now: one last model call without tools, then a partial result.
    ///
    /// # Errors
    /// It is between turns, or cannot be told.
    pub async fn finish(&self, reason: impl Into<String>) -> Result<(), CallError> {
        let args = json!({ "handle": self.handle, "reason": reason.into() });
        self.supervisor.call("subagent.finish", args).await.map(|_: Named| ())
    }

    /// Has it stand still from its next step on. That time is not judged and does not count against its deadline.
    ///
    /// # Errors
    /// It has ended.
    pub async fn pause(&self) -> Result<(), CallError> {
        let args = json!({ "handle": self.handle });
        self.supervisor.call("subagent.pause", args).await.map(|_: Named| ())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// It has ended.
    pub async fn resume(&self) -> Result<(), CallError> {
        let args = json!({ "handle": self.handle });
        self.supervisor.call("subagent.resume", args).await.map(|_: Named| ())
    }

    /// Ends it and all it delegated, and gives its result: `cancelled`, unless it had ended before. Its process is gone
    /// within eight seconds.
    ///
    /// # Errors
    /// As [`Run::result`].
    pub async fn kill(&self, reason: impl Into<String>) -> Result<ResultObject, CallError> {
        let args = json!({ "handle": self.handle, "reason": reason.into() });
        self.supervisor.call("subagent.kill", args).await
    }

    /// Sends a warm run its next message: one turn, after those sent before it.
    ///
    /// # Errors
    /// It is not warm, has ended, is retiring, or has too many messages waiting.
    pub async fn send(&self, text: impl Into<String>) -> Result<Turn, CallError> {
        let args = json!({ "handle": self.handle, "text": text.into() });
        let Sent { message_id } = self.supervisor.call("subagent.send", args).await?;
        Ok(Turn { run: self.clone(), message: message_id })
    }

    /// A warm run's first turn: its instruction.
    pub fn first_turn(&self) -> Turn {
        Turn { run: self.clone(), message: FIRST }
    }

    /// Ends a warm run: it takes no more messages, ends the turn in hand, and completes with that one's result.
    ///
    /// # Errors
    /// It is not warm.
    pub async fn retire(&self) -> Result<(), CallError> {
        let args = json!({ "handle": self.handle });
        self.supervisor.call("subagent.retire", args).await.map(|_: Named| ())
    }
}

/// One turn of a warm run.
#[derive(Debug, Clone)]
pub struct Turn {
    run: Run,
    message: u64,
}

impl Turn {
    /// The number of the message that it answers.
    pub fn message_id(&self) -> u64 {
        self.message
    }

    /// Waits for its end and gives what it gave.
    ///
    /// # Errors
    /// It will never have a result: the run ended before it.
    pub async fn result(&self) -> Result<ResultObject, CallError> {
        let args = json!({ "handle": self.run.handle, "message_id": self.message });
        self.run.supervisor.call("subagent.await", args).await
    }
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// Its short name.
    pub handle: Handle,
    /// Its name for ever.
    pub run_id: RunId,
    /// What it is or became.
    pub status: Status,
    /// Process life, from 1.
    pub attempt: u32,
    /// Own and subtree, as known now.
    pub usage: UsageSum,
    /// How it was asked for; absent once it has ended.
    pub mode: Option<Mode>,
    /// The beginning of its instruction; absent once it has ended.
    pub title: Option<String>,
    /// The one thing it waits on, and for how long, while its outcome is open: `model 42s`.
    pub waits: Option<String>,
    /// Model calls begun, while its outcome is open.
    pub step: Option<u32>,
    /// Of a warm run: messages that wait.
    pub queued: Option<u32>,
}

/// An answer of which only the fact is wanted.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "handle")]
    _handle: Handle,
}

#[derive(Deserialize)]
struct Sent {
    message_id: u64,
}

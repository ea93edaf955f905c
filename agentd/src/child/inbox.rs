//! What a child's main thread is told by the others: the one queue it waits on.
//!
//! Owns the messages and the rule that a thread which panics says so instead of leaving the run to hang. Nothing
//! here bounds the queue; each sender is bounded by itself (see where it sends).

use super::server::ServerEvent;
use agentd_core::agent::Input;
use agentd_core::model::{ModelError, Partial, Reply};
use agentd_core::wire::message::{Event, ModelHealth, ModelSwap, Throttle, ToolResult};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread::Builder;

/// One thing that happened.
#[derive(Debug)]
pub(super) enum Inbox {
    /// Control: the supervisor wants the run to end.
    Cancel(String),
    /// Control: the answer to a `tool_request`.
    ToolResult(ToolResult),
    /// Control: a message, a steer, finish, pause, resume or the cancel of a turn.
    ForLoop(Input),
    /// Control: an endpoint of the model is to be left alone, or no longer.
    Throttle(Throttle),
    /// Control: the model to go on with.
    ModelSwap(Box<ModelSwap>),
    /// Control: end of file on stdin, so nobody supervises this process any more.
    SupervisorGone,
    /// Control: what came is no control protocol.
    BadControl(String),
    /// Model: a call ended.
    Model {
        /// The loop's number of the call.
        call: u64,
        /// What came of it.
        reply: Result<Reply, ModelError>,
    },
    /// Model: an attempt failed, and the next one waits for the provider until this wall-clock time in milliseconds;
    /// `None` once it goes on.
    ModelWaits {
        /// The loop's number of the call.
        call: u64,
        /// Until when.
        until_ms: Option<u64>,
    },
    /// Model: an attempt broke off with a part of the reply; the next one waits for the loop's leave.
    ModelCut {
        /// The loop's number of the call.
        call: u64,
        /// Which one, rising over all calls.
        attempt: u64,
        /// What it had brought.
        came: Partial,
    },
    /// Model: something for people.
    ModelEvent(Event),
    /// Model: how an endpoint was, for the supervisor.
    ModelHealth(ModelHealth),
    /// A server's thread.
    Server {
        /// Which one, in the payload's order.
        index: usize,
        /// What it says.
        event: ServerEvent,
    },
    /// Writer: there is room for frames again.
    Writable,
    /// Writer: the terminal frame is out.
    TerminalWritten,
    /// Writer: nobody can read stdout any more.
    OutputGone,
    /// A thread died of a bug.
    Panicked {
        /// Its name.
        thread: String,
        /// What it said.
        message: String,
    },
}

impl Inbox {
    /// The control thread counts it until the loop has read it.
    pub(super) fn is_counted(&self) -> bool {
        match self {
            Inbox::Cancel(_) | Inbox::ToolResult(_) | Inbox::ForLoop(_) | Inbox::Throttle(_) => true,
            Inbox::ModelSwap(_) => true,
            Inbox::SupervisorGone | Inbox::BadControl(_) => false,
            Inbox::Model { .. } | Inbox::ModelWaits { .. } | Inbox::ModelCut { .. } => false,
            Inbox::ModelEvent(_) | Inbox::ModelHealth(_) => false,
            Inbox::Server { .. } | Inbox::Panicked { .. } => false,
            Inbox::Writable | Inbox::TerminalWritten | Inbox::OutputGone => false,
        }
    }
}

/// Starts a thread whose panic ends the run as `failed{internal}`.
///
/// # Errors
/// The kernel gives no thread: one sentence.
pub(super) fn thread(
    name: String,
    inbox: Sender<Inbox>,
    body: impl FnOnce() + Send + 'static,
) -> Result<(), String> {
    let started = Builder::new().name(name.clone()).spawn(move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            // Without a receiver the main thread is on its way out, and there is nobody to tell.
            let _ended = inbox.send(Inbox::Panicked { thread: name, message: panic_text(panic.as_ref()) });
        }
    });
    started.map(drop).map_err(|e| format!("cannot start a thread: {e}; raise the limit on processes"))
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_panics_says_so() {
        let (sender, inbox) = channel();
        thread("worker".into(), sender.clone(), || panic!("at {}", "once")).expect("a thread");
        match inbox.recv() {
            Ok(Inbox::Panicked { thread, message }) => {
                assert_eq!((thread.as_str(), message.as_str()), ("worker", "at once"))
            }
            other => panic!("{other:?}"),
        }
        thread("worker".into(), sender, || {}).expect("a thread");
        assert!(inbox.recv().is_err(), "one that ends well says nothing");
    }
}

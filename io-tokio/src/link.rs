//! Between the tasks that ask and the driver that answers: one queue of commands, each with its way back.
//!
//! Owns the numbers of calls and prompts, which are given in the order in which the driver takes them, and the bound
//! on what is open. A caller that goes away hangs up by itself. Called by [`crate::Supervisor`] and its runs; the
//! driver has the other end.

use crate::error::CallError;
use agentd_core::record::ResultObject;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Calls and prompts that are open at once; one more waits until one is answered.
const OPEN: usize = 4_096;

/// The asking end, shared by all handles. When the last is gone the driver ends what it runs.
#[derive(Debug)]
pub(crate) struct Link {
    commands: UnboundedSender<Command>,
    /// Closed by the driver as it ends.
    room: Arc<Semaphore>,
    last: Mutex<Last>,
    draining: AtomicBool,
    stopping: AtomicBool,
}

/// Numbers given so far.
#[derive(Debug, Default)]
struct Last {
    call: u64,
    prompt: u64,
}

/// The driver's end. Dropped last, when every child is gone.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) commands: UnboundedReceiver<Command>,
    room: Arc<Semaphore>,
}

/// What a caller wants.
#[derive(Debug)]
pub(crate) enum Command {
    /// A supervisor tool.
    Call { call: u64, tool: &'static str, args: Value, reply: Reply<Result<Value, Value>> },
    /// The caller does not wait any more.
    HangUp { call: u64 },
    /// The conversation's next turn.
    Prompt { prompt: u64, text: String, reply: Reply<ResultObject> },
    /// The caller does not want that turn any more.
    TakeBack { prompt: u64 },
    /// Let what runs end by itself.
    Drain,
    /// End it.
    Stop,
}

/// The way back to one caller, and its place among those that are open.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    sender: oneshot::Sender<T>,
    _room: OwnedSemaphorePermit,
}

impl<T> Reply<T> {
    /// Answers; a caller that has gone wants no answer.
    pub(crate) fn send(self, value: T) {
        let _unwanted = self.sender.send(value);
    }
}

/// Both ends.
pub(crate) fn link() -> (Arc<Link>, Inbox) {
    let (sender, commands) = unbounded_channel();
    let room = Arc::new(Semaphore::new(OPEN));
    let link = Link {
        commands: sender,
        room: Arc::clone(&room),
        last: Mutex::default(),
        draining: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
    };
    (Arc::new(link), Inbox { commands, room })
}

impl Link {
    /// Calls a tool of the supervisor. Dropping the future hangs up.
    pub(crate) async fn call(
        &self,
        tool: &'static str,
        args: Value,
    ) -> Result<Result<Value, Value>, CallError> {
        let (reply, answer) = self.reply().await?;
        let call = self.send(|last| {
            last.call += 1;
            (last.call, Command::Call { call: last.call, tool, args, reply })
        })?;
        self.answered(answer, Command::HangUp { call }).await
    }

    /// Asks the conversation. Dropping the future takes the prompt back.
    pub(crate) async fn prompt(&self, text: String) -> Result<ResultObject, CallError> {
        let (reply, answer) = self.reply().await?;
        let prompt = self.send(|last| {
            last.prompt += 1;
            (last.prompt, Command::Prompt { prompt: last.prompt, text, reply })
        })?;
        self.answered(answer, Command::TakeBack { prompt }).await
    }

    /// Begins a drain, once.
    pub(crate) fn drain(&self) {
        if !self.draining.swap(true, Ordering::Relaxed) {
            let _ended = self.commands.send(Command::Drain);
        }
    }

    /// Ends what runs, once.
    pub(crate) fn stop(&self) {
        if !self.stopping.swap(true, Ordering::Relaxed) {
            let _ended = self.commands.send(Command::Stop);
        }
    }

    /// Waits until the driver has ended.
    pub(crate) async fn ended(&self) {
        self.commands.closed().await;
    }

    async fn reply<T>(&self) -> Result<(Reply<T>, oneshot::Receiver<T>), CallError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| CallError::Ended)?;
        let (sender, answer) = oneshot::channel();
        Ok((Reply { sender, _room: room }, answer))
    }

    /// Numbers are given and sent under one lock, so that the driver takes them in order.
    fn send(&self, command: impl FnOnce(&mut Last) -> (u64, Command)) -> Result<u64, CallError> {
        // Nothing here panics while the lock is held, so a poisoned one still guards whole numbers.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, command) = command(&mut last);
        self.commands.send(command).map_err(|_| CallError::Ended)?;
        Ok(number)
    }

    /// Waits for the answer; if the future is dropped first, sends `gone`.
    async fn answered<T>(&self, answer: oneshot::Receiver<T>, gone: Command) -> Result<T, CallError> {
        let mut on_drop = OnDrop { link: self, gone: Some(gone) };
        let answer = answer.await;
        on_drop.gone = None;
        answer.map_err(|_| CallError::Ended)
    }
}

impl Drop for Inbox {
    /// Whoever waits for room learns that there will be none.
    fn drop(&mut self) {
        self.room.close();
    }
}

/// Tells the driver that a caller has gone.
struct OnDrop<'a> {
    link: &'a Link,
    gone: Option<Command>,
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        if let Some(gone) = self.gone.take() {
            let _ended = self.link.commands.send(gone);
        }
    }
}

#[cfg(test)]
mod tests;

//! Saving records one after another, in the order in which the core asks: a record of a run that is saved twice is
//! never overtaken by its older self. Called by the driver.

use agentd_core::event::Event;
use agentd_core::record::Record;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;

type Saved = Result<(), SaveError>;

/// How a record is saved.
pub(crate) type Save = Box<dyn FnMut(Record) -> Pin<Box<dyn Future<Output = Saved> + Send>> + Send>;

/// Why a record is not durable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct SaveError {
    /// What the store said.
    pub error: String,
    /// It may succeed later (full, locked, unreachable): the supervisor tries again. `false` only where no later try
    /// can.
    pub retryable: bool,
}

impl SaveError {
    /// One that may pass.
    pub fn retryable(error: impl fmt::Display) -> SaveError {
        SaveError { error: error.to_string(), retryable: true }
    }
}

/// Records on their way to the program's store.
pub(crate) struct Saving {
    save: Save,
    waiting: VecDeque<(u64, Record)>,
    in_hand: Option<(u64, JoinHandle<Saved>)>,
}

impl Saving {
    pub(crate) fn new(save: Save) -> Saving {
        Saving { save, waiting: VecDeque::new(), in_hand: None }
    }

    /// Takes a record. The core has few of them out at a time.
    pub(crate) fn save(&mut self, seq: u64, record: Record) {
        self.waiting.push_back((seq, record));
        self.begin_next();
    }

    /// The next answer; pending too while nothing is to be saved.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let Some((seq, task)) = &mut self.in_hand else { return Poll::Pending };
        let seq = *seq;
        let Poll::Ready(saved) = Pin::new(task).poll(context) else { return Poll::Pending };
        self.in_hand = None;
        self.begin_next();
        let saved = saved.unwrap_or_else(|_| Err(broke_off()));
        Poll::Ready(match saved {
            Ok(()) => Event::Stored { seq },
            Err(SaveError { error, retryable }) => Event::StoreFailed { seq, error, retryable },
        })
    }

    fn begin_next(&mut self) {
        if self.in_hand.is_none()
            && let Some((seq, record)) = self.waiting.pop_front()
        {
            // A closure that panics before it gives a future is no end of the supervisor either.
            let begun = catch_unwind(AssertUnwindSafe(|| (self.save)(record)));
            let saving = begun.unwrap_or_else(|_| Box::pin(async { Err(broke_off()) }));
            self.in_hand = Some((seq, tokio::spawn(saving)));
        }
    }
}

/// What a save comes to that panicked.
fn broke_off() -> SaveError {
    SaveError::retryable("saving it broke off (a panic)")
}

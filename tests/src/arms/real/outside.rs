//! What surrounds the reactor of a real arm: a store with a thread of its own, as slow and as faulty as the plan
//! says, that answers in order; and first frames that can fail. The log and the answers are in the actions already.

use super::crew::Frames;
use crate::arms::scenario::Scenario;
use crate::sim::plan::Fault;
use agentd_core::event::Event;
use agentd_core::note::Note;
use agentd_core::record::ResultObject;
use agentd_core::store::{Class, Write};
use agentd_core::time::Now;
use agentd_core::wire::message::{FailKind, Spawn};
use agentd_core::wire::{Down, Encoder};
use agentd_io_mio::{Outside, Poster, StoreAnswer};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// See the module.
pub(super) struct Store {
    faults: Vec<Fault>,
    saves: u64,
    orders: Option<Sender<(Duration, Event)>>,
    thread: Option<JoinHandle<()>>,
    frames: Frames,
}

impl Store {
    pub(super) fn new(scenario: &Scenario, poster: Poster, frames: Frames) -> Store {
        let (orders, taken) = channel::<(Duration, Event)>();
        let thread = std::thread::spawn(move || {
            for (delay, answer) in taken {
                // The disk of the plan takes this long; nothing waits for it but who waits for the disk.
                std::thread::sleep(delay);
                // After the loop's end nobody wants the answer.
                let _unwanted = poster.post(answer);
            }
        });
        let faults = scenario.plan.faults.clone();
        Store { faults, saves: 0, orders: Some(orders), thread: Some(thread), frames }
    }

    /// Ends the thread.
    pub(super) fn close(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it sleeps and posts.
            let _ended = thread.join();
        }
    }

    /// How late the answer is, and what it is.
    fn outcome(&self, nth: u64, seq: u64) -> (Duration, Event) {
        let mut late = Duration::ZERO;
        let mut answer = Event::Stored { seq };
        for fault in &self.faults {
            match fault {
                Fault::StoreSlow { nth: first, times, ms } if (*first..first + times).contains(&nth) => {
                    late += Duration::from_millis(*ms);
                }
                Fault::StoreFails { nth: first, times, retryable }
                    if (*first..first + times).contains(&nth) =>
                {
                    let error = "write: a planned fault".to_owned();
                    answer = Event::StoreFailed { seq, error, retryable: *retryable };
                }
                _ => {}
            }
        }
        (late, answer)
    }
}

impl Outside for Store {
    fn observe(&mut self, _now: Now, _event: &Event) {}

    fn note(&mut self, _now: Now, _note: Note) {}

    fn persist(&mut self, seq: u64, _class: Class, _writes: Vec<Write>) -> StoreAnswer {
        let answer = self.outcome(self.saves, seq);
        self.saves += 1;
        match self.orders.as_ref().map(|orders| orders.send(answer)) {
            Some(Ok(())) => StoreAnswer::Later,
            Some(Err(_)) | None => {
                StoreAnswer::Failed { error: "the store has ended".to_owned(), retryable: false }
            }
        }
    }

    fn deliver(&mut self, _prompt: u64, _result: &ResultObject, _fault: Option<FailKind>) {}

    fn encode_spawn(&mut self, spawn: &Spawn) -> Result<Vec<u8>, String> {
        if self.frames.borrow_mut().pop_front().unwrap_or(false) {
            return Err("{{secret:KEY}}: a planned fault".to_owned());
        }
        Encoder::new().encode_down(&Down::Spawn(Box::new(spawn.clone()))).map_err(|e| e.to_string())
    }
}

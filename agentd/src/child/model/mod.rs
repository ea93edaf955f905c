//! The thread that asks the model.
//!
//! Owns the connection, a scripted playbook ([`mock`]) or a provider's endpoints ([`remote`]), and the waits in a
//! call, which an order to abandon ends at once. It answers every call that is not abandoned; the loop tells a late
//! answer by its number. One call is open at a time: the loop never asks for two. Made by the session.

mod attempt;
mod came;
mod mock;
pub(crate) mod probe;
mod remote;

use super::clock::Clock;
use super::inbox::{self, Inbox};
use agentd_core::model::api::Api;
use agentd_core::model::mock::Playbook;
use agentd_core::model::{ModelError, ModelRequest, Reply};
use agentd_core::wire::message::{Dialect, FailKind, Model, Spawn, Throttle};
use came::Came;
use std::sync::mpsc::{Sender, channel};

/// What the thread is told.
pub(super) enum Order {
    /// One model call.
    Call {
        /// The loop's number of it.
        call: u64,
        /// What to ask.
        request: Box<ModelRequest>,
    },
    /// Nobody waits for this call any more.
    Abandon {
        /// The loop's number of it.
        call: u64,
    },
    /// The next attempt at this call may be made: the one before is paid for.
    GoOn {
        /// The loop's number of it.
        call: u64,
    },
    /// An endpoint is to be left alone, or no longer: what other runs learned of it.
    Throttle(Throttle),
    /// Nothing is asked of this model any more: the thread ends.
    End,
    /// An attempt's own thread: it has ended.
    Ended {
        /// The attempt's number.
        attempt: u64,
        /// What came of it.
        outcome: Result<Reply, ModelError>,
    },
}

/// One model's thread, from outside.
pub(super) struct Connected {
    pub(super) orders: Sender<Order>,
    pub(super) came: Came,
}

impl Connected {
    /// Tells the thread something.
    pub(super) fn order(&self, order: Order) {
        // Fails only after a panic of that thread, which ends the run by itself.
        let _gone = self.orders.send(order);
    }
}

impl Drop for Connected {
    /// A model that another one takes the place of.
    fn drop(&mut self) {
        self.order(Order::End);
    }
}

/// Starts the thread. Nothing is dialled, and no certificate read, before the first call.
///
/// # Errors
/// The connection cannot be used, or the kernel gives no thread: one sentence.
pub(super) fn open(
    model: &Model,
    run: &Spawn,
    clock: Clock,
    inbox: &Sender<Inbox>,
) -> Result<Connected, (FailKind, String)> {
    let (sender, orders) = channel();
    let came = Came::default();
    let body: Box<dyn FnOnce() + Send> = match (&model.dialect, Api::of(&model.dialect)) {
        (Dialect::Mock(playbook), _) => {
            let playbook = Playbook::from_json(playbook)
                .map_err(|e| (FailKind::Spawn, format!("the playbook cannot be used: {e}")))?;
            let connection = mock::Connection::new(playbook, run.role, orders, inbox.clone());
            Box::new(move || connection.run())
        }
        (_, Some((api, remote))) if !remote.endpoints.is_empty() => {
            let (back, inbox, came) = (sender.clone(), inbox.clone(), came.clone());
            let line = remote::Line { orders, back, inbox, clock, came };
            let mut connection = remote::Connection::new(api, remote.clone(), run.mode, line);
            Box::new(move || connection.run())
        }
        (Dialect::Openai(_) | Dialect::OpenaiResponses(_) | Dialect::Anthropic(_), _) => {
            return Err((FailKind::Spawn, "the model connection has no endpoint".to_owned()));
        }
    };
    inbox::thread("model".into(), inbox.clone(), body).map_err(|error| (FailKind::Internal, error))?;
    Ok(Connected { orders: sender, came })
}

//! A model that is a playbook: no network, and delays as written.

use super::{Inbox, Order};
use agentd_core::model::mock::Playbook;
use agentd_core::time::Duration;
use agentd_core::wire::message::Role;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

/// The thread's state.
pub(super) struct Connection {
    playbook: Playbook,
    role: Role,
    orders: Receiver<Order>,
    inbox: Sender<Inbox>,
}

impl Connection {
    /// A connection that takes these orders.
    pub(super) fn new(
        playbook: Playbook,
        role: Role,
        orders: Receiver<Order>,
        inbox: Sender<Inbox>,
    ) -> Connection {
        Connection { playbook, role, orders, inbox }
    }

    /// Serves orders until the main thread is gone.
    pub(super) fn run(self) {
        while let Ok(order) = self.orders.recv() {
            // What is to be abandoned here has been answered already.
            let (call, request) = match order {
                Order::Call { call, request } => (call, request),
                Order::End => return,
                Order::Abandon { .. } | Order::GoOn { .. } | Order::Ended { .. } | Order::Throttle(_) => {
                    continue;
                }
            };
            let outcome = self.playbook.reply(&request, self.role);
            if self.sleep(call, outcome.delay) {
                // Without a receiver the process is ending.
                let _ended = self.inbox.send(Inbox::Model { call, reply: outcome.reply });
            }
        }
    }

    /// Whether the time passed with the call still wanted.
    fn sleep(&self, call: u64, delay: Duration) -> bool {
        let until = Instant::now().checked_add(delay);
        loop {
            let left = until.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return true;
            }
            match self.orders.recv_timeout(left) {
                Ok(Order::Abandon { call: abandoned }) if abandoned == call => return false,
                // An order about an earlier call changes nothing; a second call at a time is never asked for; and a
                // playbook has neither endpoints nor a second attempt.
                Ok(Order::Abandon { .. } | Order::Call { .. } | Order::GoOn { .. }) => {}
                Ok(Order::Ended { .. } | Order::Throttle(_) | Order::End) => {}
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}

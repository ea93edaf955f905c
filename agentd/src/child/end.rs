//! The end of a run: the terminal frame first, then the servers, each in its own time, all within 5 s (S5.5).
//!
//! Owns the bounds of the clean-up. Refuses to wait for a supervisor that is gone. One that stands still is waited for:
//! what it has not read is the run's result, and it has clocks of its own for a child that does not end (S9.3). What a
//! keeper has not taken down when the time is over it takes down at once when this process ends.

use super::inbox::Inbox;
use super::server::{Order, ServerEvent};
use super::session::Session;
use agentd_core::limits;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::Up;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// For keepers to go through their whole ladder, which takes 4 s.
const CLOSE_WAIT: Duration = Duration::from_millis(4_500);

/// The same when nobody supervises any more: servers that end by themselves get the chance, no more.
const ORPHAN_WAIT: Duration = Duration::from_millis(1_200);

/// For what is left after that to be killed.
const SWEEP_WAIT: Duration = Duration::from_millis(400);

impl Session {
    /// Ends the run with `terminal`.
    pub(super) fn end(mut self, terminal: Up) -> ExitCode {
        self.outbox.push(terminal);
        for server in &self.servers {
            server.link.order(Order::Close);
        }
        let written = self.wait_for_servers_and_reader();
        self.sweep();
        if written { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Whether the terminal frame is out.
    fn wait_for_servers_and_reader(&mut self) -> bool {
        let now = self.clock.now();
        let mut until = now + if self.orphaned { ORPHAN_WAIT } else { CLOSE_WAIT };
        let mut written = false;
        loop {
            let closing = self.clock.now() < until && self.servers.iter().any(|server| !server.closed);
            let unread = !(written || self.orphaned);
            if !(closing || unread) {
                return written;
            }
            let Some(message) = self.receive(closing.then_some(until)) else { continue };
            match message {
                Inbox::TerminalWritten => written = true,
                Inbox::Server { index, event: ServerEvent::Closed } => self.closed(index),
                // A thread that died does not say that its server is closed; its keeper closes it at once.
                Inbox::SupervisorGone | Inbox::OutputGone | Inbox::Panicked { .. } => {
                    self.orphaned = true;
                    until = until.min(self.clock.now() + ORPHAN_WAIT);
                }
                Inbox::Cancel(_) | Inbox::ToolResult(_) | Inbox::ForLoop(_) | Inbox::BadControl(_) => {}
                Inbox::Model { .. } | Inbox::ModelWaits { .. } | Inbox::ModelCut { .. } => {}
                Inbox::ModelSwap(_) => {}
                Inbox::Throttle(_) | Inbox::ModelHealth(_) | Inbox::ModelEvent(_) => {}
                Inbox::Server { .. } | Inbox::Writable => {}
            }
        }
    }

    /// A keeper that died before its time has left its subtree to this process; one that is late is told.
    fn sweep(&mut self) {
        let Some(below) = &mut self.below else { return };
        let until: Instant = self.clock.now() + SWEEP_WAIT;
        for pause in limits::SWEEP_PAUSES.iter().chain(std::iter::repeat(&limits::SWEEP_PAUSES[2])) {
            let left = below.pass(&BTreeSet::new(), false).map_or(0, |pass| pass.remaining);
            if left == 0 || self.clock.now() >= until {
                return;
            }
            std::thread::sleep(*pause);
        }
    }
}

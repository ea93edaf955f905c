//! One call's connection, which whoever waits for it may shut at any time, whatever it is doing: its thread then ends by
//! itself, and what it still says has no listener. (A name that is being resolved and a connection that is being made end
//! at their own time limits.)

use std::sync::{Mutex, PoisonError};
use ureq::Agent;

/// The connection.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    /// Not dialled yet.
    #[default]
    Idle,
    Open(Agent),
    Shut,
}

impl Line {
    /// Makes the agent known to [`Line::shut`]. `false`: it was shut before, and is not to be dialled at all.
    pub(crate) fn open(&self, agent: Agent) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = !matches!(*state, State::Shut);
        if goes_on {
            *state = State::Open(agent);
        }
        goes_on
    }

    /// Ends it, whatever it is doing.
    pub(crate) fn shut(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(agent) = std::mem::replace(&mut *state, State::Shut) {
            agent.shutdown();
        }
    }
}

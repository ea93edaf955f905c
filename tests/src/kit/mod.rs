//! The real-process kit: starts the binary under test in a folder of its own, reads what it logs, knows every
//! process that came of it, and says at the end that none is left.
//!
//! Nothing here sleeps to wait: events come over pipes, deaths over pidfds. What waits has [`PATIENCE`], which is
//! no measure of speed but the time after which a test has failed.

mod log;
mod outside;
mod playbook;
mod processes;
mod run;
mod terminal;

pub use log::Events;
pub use outside::Nothing;
pub use playbook::{Rule, call, call_as, playbook};
pub use processes::{Process, State, Subtree, alive};
pub use run::{Ended, RunCommand, Running};
pub use terminal::OnTerminal;

use std::time::Duration;

/// Beyond this a test has failed: whatever it waits for does not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Says that a test cannot run here. The name must be in `.ci/allowed-skips`, or `.ci/run` fails.
pub fn skip(name: &str, reason: &str) {
    println!("SKIP: {name}: {reason}");
}

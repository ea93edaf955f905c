//! The simulator: a core, a fake machine, and oracles that are always on. A seed makes a plan, a plan makes a
//! life, the same for ever; a life that breaks a rule is shrunk to the few steps that matter and printed with
//! the one command that replays it.
//!
//! The machine, the store and the children share nothing with the core but the contract (events, actions, the
//! wire's codec); the oracles read what a driver reads.

mod agenda;
mod disk;
pub mod draw;
pub mod exhaustive;
pub mod fuzzing;
mod kernel;
mod lives;
mod oracle;
pub mod plan;
pub(crate) mod program;
pub mod replay;
mod shrink;
pub(crate) mod story;
pub(crate) mod world;

pub use oracle::Violation;
pub use world::{Act, Blow, Outcome};

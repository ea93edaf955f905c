//! What outlives the daemon: the durable things and their form.
//!
//! Everything durable is one value under a kind and a key. What the supervisor wants kept is a list of [`Write`]s, all of
//! which become durable together or not at all; what was kept comes back at the next start as one [`Saved`]. Owns the
//! form of the values and what makes one unreadable. Refuses values of secrets: a run is kept with the names of its
//! model and its servers, and a restart looks these up in the configuration again (S3.5). Files, threads and
//! transactions are the host's.

mod entry;
mod row;
mod saved;
mod write;

pub use entry::{Entry, Kind, Unreadable};
pub use row::{
    ConversationRow, LedgerRow, Letter, PromptRow, RunRow, TaskRow, TurnRow, Turns, WindowRow, Work,
};
pub use saved::{Quarantined, Saved};
pub use write::{Class, Write, record_in};

#[cfg(test)]
mod tests;

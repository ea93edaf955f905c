//! The store of a daemon (S10): one SQLite file in the state directory, written by one thread.
//!
//! | file | owns |
//! |---|---|
//! | `place` | where the state directory is, and whose |
//! | `database` | the file: its schema, its values, what cannot be read |
//! | `writer` | the thread: batches, answers |
//!
//! Called by whoever supervises: [`Opened::open`] before the first thread and the first process, [`Store::persist`] from the
//! reactor, which it never makes wait. What is kept and when is the core's to decide; this knows kinds, keys and bytes.

mod database;
mod place;
mod writer;

pub use place::{Variable, state_directory};
pub use writer::{Opened, Store};

use std::io;
use std::path::PathBuf;

/// The file in the state directory.
pub const FILE: &str = "agentd.db";

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The state directory; made if it is not there.
    pub directory: PathBuf,
    /// Bytes of free disk below which no new run is recorded.
    pub min_free: u64,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another daemon uses the directory.
    #[error(
        "the state directory {} is in use by {holder}; stop that daemon, or give this one a directory of its own \
         (store.path)", directory.display()
    )]
    InUse {
        /// Which.
        directory: PathBuf,
        /// Who, as far as its lock file says.
        holder: String,
    },
    /// The system said no.
    #[error("the state directory {}: cannot {action}: {error}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The answer.
        error: io::Error,
    },
    /// Nobody said where.
    #[error("there is no state directory: set store.path, $STATE_DIRECTORY or $HOME")]
    Nowhere,
    /// The file is no database, or not one of agentd's.
    #[error(
        "{} is {what}; nothing in it was changed. Move it away to begin with an empty store, or set store.path",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// A later agentd has written it.
    #[error(
        "{} has schema {seen}, and this agentd knows {known} at most; start the agentd that wrote it, or a later one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        seen: u32,
        /// The latest that is known.
        known: u32,
    },
    /// SQLite said no.
    #[error("{}: cannot {action}: {error}", path.display())]
    Sqlite {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The answer.
        error: rusqlite::Error,
    },
}

#[cfg(test)]
mod tests;

//! Errors of the operating system, said so that a person can act: which call, on what, what the system said.

use std::io;

/// A system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} on {on}: {source}")]
pub struct OsError {
    /// The call, in the manual's words.
    pub call: &'static str,
    /// What it was asked to work on.
    pub on: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl OsError {
    /// For `map_err`.
    pub fn of<E: Into<io::Error>>(call: &'static str, on: &'static str) -> impl FnOnce(E) -> OsError {
        move |source| OsError { call, on, source: source.into() }
    }
}

/// Why a driver's loop could not go on. Children that were left have been killed and reaped.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The loop could not be set up.
    #[error("starting the supervisor: {0}")]
    Start(#[source] OsError),
    /// The loop could not go on.
    #[error("supervising: {0}")]
    Run(#[source] OsError),
}

//! How many descriptors a supervisor may have open: each child takes four of its own, and the usual soft limit of 1,024 is
//! there for programs that call `select(2)`.
//!
//! Owns the raise to the hard limit, once, and tells what the limit was: children begin with that one. Called as a process
//! becomes a supervisor of its own; never inside an embedding program, whose limit is its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the soft limit of open descriptors to the hard one. Returns the soft limit that was, `None` where there was none.
///
/// # Errors
/// `setrlimit(2)`; the limit is then as it was.
pub fn raise() -> io::Result<Option<u64>> {
    let before = getrlimit(Resource::Nofile);
    if before.current != before.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum })?;
    }
    Ok(before.current)
}

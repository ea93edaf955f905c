//! Waiting on descriptors, for the threads that wait on several.

use rustix::event::{PollFd, Timespec, poll};
use std::io;
use std::time::Duration;

/// Waits until one of `fds` is ready, for `timeout` at most; `None` waits for as long as it takes. A signal ends the
/// wait early, which the caller cannot tell from a time that is over and need not.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A time too long to be said is for ever.
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

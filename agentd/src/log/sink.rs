//! Where log lines go: a writer that may block, be full, or be gone. Only the log's thread calls it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

/// Wait before a sink that is full and does not block (a shared terminal or pipe) is tried again.
const FULL_WAIT: Duration = Duration::from_millis(10);

/// The process's stderr under a descriptor of its own: a write that blocks holds no lock of the process.
pub fn stderr() -> io::Result<File> {
    io::stderr().as_fd().try_clone_to_owned().map(File::from)
}

/// A writer that gives up for good when nobody reads it any more.
pub(super) struct Sink<W> {
    writer: W,
    gone: bool,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(writer: W) -> Sink<W> {
        Sink { writer, gone: false }
    }

    /// Writes all of it, or loses it when the reader is gone.
    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.gone {
            match self.writer.write(bytes) {
                Ok(0) => self.gone = true,
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(FULL_WAIT),
                // A full disk may have room later; a closed pipe never comes back.
                Err(error) => {
                    self.gone = error.kind() == ErrorKind::BrokenPipe;
                    return;
                }
            }
        }
        if !self.gone {
            // What cannot be flushed shows at the next write.
            let _ = self.writer.flush();
        }
    }
}

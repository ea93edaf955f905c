//! The child's end of a lifeline, and the keeper behind it.
//!
//! Owns the keeper's process: it is reaped here and nowhere else. Dropping it makes a living keeper kill all that it
//! keeps. Used by [`super::pump`].

use super::pipes::{read_some, write_some};
use crate::keeper::message::{self, KeeperReport, KeeperSpec};
use crate::keeper::word::{self, CLOSE};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// A keeper that lives, or has not been buried yet.
pub(super) struct Lifeline {
    stream: UnixStream,
    keeper: Child,
    waiting: Vec<u8>,
    received: Vec<u8>,
    closing: bool,
}

impl Lifeline {
    /// Has `spec` on its way to the keeper; `stream` does not block.
    pub(super) fn new(stream: UnixStream, keeper: Child, spec: &KeeperSpec) -> io::Result<Lifeline> {
        let mut waiting = Vec::new();
        message::write(&mut waiting, spec)?;
        Ok(Lifeline { stream, keeper, waiting, received: Vec::new(), closing: false })
    }

    /// Whether bytes wait for room.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Asks the keeper to end its server in its own time. The server's input is closed by now.
    pub(super) fn close(&mut self) {
        if !std::mem::replace(&mut self.closing, true) {
            self.waiting.push(CLOSE);
            self.write();
        }
    }

    /// Asks the keeper, whose server has ended, to start the program once more with this input and output.
    ///
    /// # Errors
    /// The keeper does not take it.
    pub(super) fn again(&mut self, stdin: &OwnedFd, stdout: &OwnedFd) -> io::Result<()> {
        if self.closing || self.is_waiting() {
            return Err(io::Error::other("it is being closed"));
        }
        word::send_again(&self.stream, stdin, stdout)
    }

    /// Writes what can be written now.
    pub(super) fn write(&mut self) {
        // A keeper that no longer reads has ended, which is read from the same stream.
        if write_some(&mut self.stream, &mut self.waiting).is_err() {
            self.waiting.clear();
        } else if self.closing && self.waiting.is_empty() {
            let _half_closed = self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Reads what is there; the reports that are whole, and whether more can come.
    ///
    /// # Errors
    /// What came is no report.
    pub(super) fn read(&mut self) -> io::Result<(Vec<KeeperReport>, bool)> {
        let received = &mut self.received;
        let open = read_some(&self.stream, READ_BYTES, |bytes| received.extend_from_slice(bytes));
        let mut reports = Vec::new();
        while let Some(report) = message::take(&mut self.received)? {
            reports.push(report);
        }
        Ok((reports, open))
    }

    /// Lets go of the keeper and waits for its end, which follows the end of the stream.
    pub(super) fn bury(mut self) {
        drop(self.stream);
        // An error says that somebody else reaped it, which is as good.
        let _reaped = self.keeper.wait();
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

//! The thread's side of a journal: encodes, writes, begins the next file.

use super::files::{self, JournalError};
use super::format::{self, Header, MAGIC};
use agentd_core::event::Event;
use agentd_core::machine::Traced;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// Bytes that are gathered before they are written, while more events wait.
const BATCH_BYTES: usize = 256 * 1024;

/// What the thread owns.
pub(super) struct Writer {
    path: PathBuf,
    header: Header,
    file: File,
    /// Bytes in the file.
    written: u64,
    segment_bytes: u64,
}

impl Writer {
    /// Begins the first file.
    pub(super) fn create(path: &Path, header: Header, segment_bytes: u64) -> Result<Writer, JournalError> {
        let file = files::begin(path)?;
        let mut writer = Writer { path: path.to_owned(), header, file, written: 0, segment_bytes };
        writer.start_segment()?;
        Ok(writer)
    }

    #[cfg(test)]
    pub(super) fn on(path: &Path, file: File, header: Header) -> Writer {
        Writer { path: path.to_owned(), header, file, written: 0, segment_bytes: u64::MAX }
    }

    /// Writes what comes until nobody sends any more. `taken` is told of each event.
    pub(super) fn run(
        &mut self,
        incoming: &Receiver<Traced>,
        taken: impl Fn(&Event),
    ) -> Result<(), JournalError> {
        let mut batch = Vec::new();
        while let Ok(first) = incoming.recv() {
            let mut next = Some(first);
            while let Some(traced) = next.take() {
                taken(&traced.event);
                format::encode(&traced, &mut batch).map_err(JournalError::Encoding)?;
                if batch.len() < BATCH_BYTES {
                    next = incoming.try_recv().ok();
                }
            }
            self.write(&batch)?;
            batch.clear();
            if self.written >= self.segment_bytes {
                self.next_segment()?;
            }
        }
        Ok(())
    }

    fn next_segment(&mut self) -> Result<(), JournalError> {
        self.file = files::begin_after(&self.path)?;
        self.header.segment += 1;
        self.written = 0;
        self.start_segment()
    }

    fn start_segment(&mut self) -> Result<(), JournalError> {
        let mut head = MAGIC.to_vec();
        format::encode(&self.header, &mut head).map_err(JournalError::Encoding)?;
        self.write(&head)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(|error| JournalError::system("write to", &self.path, error))?;
        self.written = self.written.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(())
    }
}

//! Reads a file that people wrote: within bounds of size and time, and as UTF-8. A pipe (`-c <(…)`, `/dev/stdin`) is
//! read too, as long as somebody writes into it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one file at most.
pub(crate) const FILE_BYTES: u64 = 1024 * 1024;

/// How long something that is no regular file is waited for.
const PATIENCE: Patience = Patience { nobody: Duration::from_secs(5), silent: Duration::from_secs(60) };

/// Without a byte.
#[derive(Clone, Copy)]
struct Patience {
    /// While nobody has it open for writing.
    nobody: Duration,
    /// While somebody has: what writes may be asking for a password.
    silent: Duration,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The system's answer.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// More than [`FILE_BYTES`].
    #[error("it is larger than 1 MiB")]
    TooLarge,
    /// Not UTF-8 from this line on.
    #[error("it is not UTF-8 text (line {line}, byte {byte} of the file)")]
    NotText { line: usize, byte: usize },
    /// A pipe without anybody at its other end.
    #[error("it is not a regular file, and nobody wrote into it for {} s", .0.as_secs())]
    NobodyWrites(Duration),
    /// A pipe or a device that says nothing.
    #[error("it is not a regular file, and nothing came from it for {} s", .0.as_secs())]
    Silent(Duration),
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Unreadable> {
    read_within(path, PATIENCE)
}

fn read_within(path: &Path, patience: Patience) -> Result<String, Unreadable> {
    // Opening a pipe without a writer would wait for one, without an end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())).map_err(system)?);
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(system)?.st_mode);
    let bytes = match kind {
        FileType::Fifo | FileType::CharacterDevice | FileType::Socket => slow_bytes(&file, patience)?,
        _ => {
            let mut bytes = Vec::new();
            file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
            bytes
        }
    };
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        Unreadable::NotText { line, byte }
    })
}

/// What comes from a pipe or a device, to its end or beyond [`FILE_BYTES`].
fn slow_bytes(mut file: &File, patience: Patience) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    let mut page = [0; 8192];
    let mut heard = Instant::now();
    while u64::try_from(bytes.len()).unwrap_or(u64::MAX) <= FILE_BYTES {
        // Before the first writer a pipe reads as ended, so only what is said to be there is read.
        let is_ready = is_ready(file, patience.nobody)?;
        match file.read(&mut page) {
            Ok(0) if is_ready => break,
            Ok(0) => return Err(Unreadable::NobodyWrites(patience.nobody)),
            Ok(count) => {
                bytes.extend_from_slice(page.get(..count).unwrap_or_default());
                heard = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if heard.elapsed() >= patience.silent {
                    return Err(Unreadable::Silent(patience.silent));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Whether there is something to read, or an end, within this time.
fn is_ready(file: &File, within: Duration) -> Result<bool, Unreadable> {
    let until = Instant::now() + within;
    let count = retry_on_intr(|| {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()));
        poll(&mut [PollFd::new(file, PollFlags::IN)], left.ok().as_ref())
    });
    Ok(count.map_err(system)? > 0)
}

fn system(error: Errno) -> Unreadable {
    Unreadable::System(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(600);

    fn pipe() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        (folder, path)
    }

    #[test]
    fn a_pipe_is_given_up_when_nobody_writes_into_it() {
        let (_folder, path) = pipe();
        let read = read_within(&path, Patience { nobody: SHORT, silent: LONG });
        assert!(matches!(read, Err(Unreadable::NobodyWrites(SHORT))), "{read:?}");
    }

    #[test]
    fn a_pipe_is_given_up_when_its_writer_says_nothing() {
        let (_folder, path) = pipe();
        // Both ends, so that opening it does not wait.
        let mut writer = File::options().read(true).write(true).open(&path).expect("the writing end");
        writer.write_all(b"a: 1").expect("written");
        let read = read_within(&path, Patience { nobody: SHORT, silent: SHORT });
        assert!(matches!(read, Err(Unreadable::Silent(SHORT))), "{read:?}");
    }

    #[test]
    fn a_pipe_is_read_to_its_end_however_late_its_writer_comes() {
        let (_folder, path) = pipe();
        let whole = "a: 1\n".repeat(40_000);
        std::thread::scope(|scope| {
            let (path, text) = (&path, whole.as_str());
            scope.spawn(move || {
                let mut writer = File::options().write(true).open(path).expect("a reader has come");
                for part in text.as_bytes().chunks(70_000) {
                    writer.write_all(part).expect("written");
                }
            });
            let read = read_within(path, Patience { nobody: LONG, silent: LONG });
            assert!(read.is_ok_and(|read| read == whole));
        });
    }

    #[test]
    fn devices_and_folders_have_an_answer_at_once() {
        let patience = Patience { nobody: LONG, silent: LONG };
        let read = |path: &str| read_within(Path::new(path), patience);
        assert!(matches!(read("/dev/zero"), Err(Unreadable::TooLarge)));
        assert!(read("/dev/null").is_ok_and(|text| text.is_empty()));
        assert!(
            matches!(read("/"), Err(Unreadable::System(error)) if error.kind() == io::ErrorKind::IsADirectory)
        );
    }
}

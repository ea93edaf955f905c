//! Reads the file of a secret: a regular one, within bounds, without waiting. It is read while the supervisor
//! serves others, so a pipe that nobody writes to must not hold it up.

use agentd_core::preview::preview;
use rustix::fs::{FileType, Mode, OFlags};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a secret at most.
pub(super) const SECRET_BYTES: u64 = 64 * 1024;

/// Bytes of a path in a message.
const SHOWN_BYTES: usize = 4096;

/// Why there is nothing to read.
pub(super) enum Fault {
    /// The system's answer.
    System(io::Error),
    /// What is there cannot be a secret.
    Unfit(&'static str),
}

/// The whole file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    let system = |error: rustix::io::Errno| Fault::System(error.into());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(system)?;
    let stat = rustix::fs::fstat(&file).map_err(system)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Fault::Unfit(
            "is not a regular file; it is read again for every subagent, which a pipe cannot be",
        ));
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(SECRET_BYTES + 1).read_to_end(&mut bytes).map_err(Fault::System)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > SECRET_BYTES {
        return Err(Fault::Unfit("is larger than 64 KiB"));
    }
    Ok(bytes)
}

/// A path in a message.
pub(super) fn shown(path: &Path) -> String {
    preview(path.as_os_str().as_encoded_bytes(), SHOWN_BYTES)
}

//! The token of the control socket: 256 bits in a file that only this user reads, new with each start.

use super::{OpenError, system};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a token and writes it, in place of the one before.
pub(super) fn make(path: &Path) -> Result<String, OpenError> {
    let mut token = String::new();
    for _ in 0..4 {
        let word = agentd_host::clock::seed().map_err(system("no randomness can be had"))?;
        token.push_str(&format!("{word:016x}"));
    }
    let shown = path.display();
    let new = super::place::beside(path, "new");
    // Another's file of this name is none to write into.
    let _absent = fs::remove_file(&new);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    opened
        .and_then(|mut file| writeln!(file, "{token}"))
        .and_then(|()| fs::rename(&new, path))
        .map_err(system(format!("{shown} cannot be written")))?;
    Ok(token)
}

/// The token in a file.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

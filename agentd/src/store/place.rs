//! Where the state directory is (S17.0), and that nobody else can look into it.

use super::StoreError;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Reads one variable of a process; unset is none.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The state directory of the agent of this name: the one that is named (`store.path`), else `$STATE_DIRECTORY` (the first,
/// where a service manager names several), else `$XDG_STATE_HOME/agentd/<name>`, which is below `~/.local/state` by default.
///
/// # Errors
/// Nothing says where.
pub fn state_directory(
    named: Option<PathBuf>,
    agent: &str,
    variable: Variable<'_>,
) -> Result<PathBuf, StoreError> {
    if let Some(named) = named {
        return Ok(named);
    }
    if let Some(given) = variable("STATE_DIRECTORY").filter(|value| !value.is_empty()) {
        let first = given.to_string_lossy().split(':').next().map(PathBuf::from);
        return first.filter(|path| path.is_absolute()).ok_or(StoreError::Nowhere);
    }
    // A relative one is to be ignored, says the specification of these variables.
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".local/state"));
    let base = folder("XDG_STATE_HOME").or_else(home).ok_or(StoreError::Nowhere)?;
    Ok(base.join("agentd").join(agent))
}

/// Makes the directory if it is not there, and closes it to others.
pub(super) fn prepare(directory: &Path) -> Result<(), StoreError> {
    let system = |action| move |error| StoreError::System { action, path: directory.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(system("make it"))?;
    let found = fs::metadata(directory).map_err(system("look at it"))?;
    if found.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(directory, Permissions::from_mode(0o700))
            .map_err(system("close it to others"))?;
    }
    Ok(())
}

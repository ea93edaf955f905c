//! Where the state directory is (S17.0), and that nobody else can look into it.

use super::StoreError;
use crate::config::StoreSettings;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Variables that say where state goes, as the process has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// `STATE_DIRECTORY`, of a service manager; the first where it names several.
    pub state_directory: Option<OsString>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Place {
    /// As this process has them.
    pub fn of_process() -> Place {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Place {
            state_directory: set("STATE_DIRECTORY"),
            xdg_state_home: set("XDG_STATE_HOME"),
            home: set("HOME"),
        }
    }
}

/// The state directory of the agent of this name: `store.path`, else `$STATE_DIRECTORY`, else
/// `$XDG_STATE_HOME/agentd/<name>`, which is below `~/.local/state` by default.
///
/// # Errors
/// Nothing says where.
pub fn state_directory(settings: &StoreSettings, agent: &str, place: &Place) -> Result<PathBuf, StoreError> {
    settings.path.clone().map_or_else(|| usual_directory(agent, place), Ok)
}

/// The state directory where the configuration names none.
///
/// # Errors
/// Nothing says where.
pub fn usual_directory(agent: &str, place: &Place) -> Result<PathBuf, StoreError> {
    if let Some(given) = &place.state_directory {
        let first = given.to_string_lossy().split(':').next().map(PathBuf::from);
        return first.filter(|path| path.is_absolute()).ok_or(StoreError::Nowhere);
    }
    let home = place.home.as_ref().map(|home| Path::new(home).join(".local/state"));
    // A relative one is to be ignored, says the specification of these variables.
    let xdg = place.xdg_state_home.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    let base = xdg.or(home).ok_or(StoreError::Nowhere)?;
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

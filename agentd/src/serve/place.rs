//! Where a daemon keeps its state and where its control socket is (S17.0), the same for it and for its clients.

use super::{OpenError, system};
use crate::store::{StoreError, Variable, state_directory};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A daemon's places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The state directory.
    pub(crate) state: PathBuf,
    /// The control socket.
    pub(crate) socket: PathBuf,
}

impl Places {
    /// The places of the daemon of this name, by the variables of the process that asks.
    pub(crate) fn of(
        name: &str,
        named: Option<PathBuf>,
        variable: Variable<'_>,
    ) -> Result<Places, StoreError> {
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // systemd names several folders with colons between them; the first is meant.
        let first = |name: &str| {
            let value = variable(name)?;
            let first = value.to_str()?.split(':').next().map(PathBuf::from)?;
            first.is_absolute().then_some(first)
        };
        let state = state_directory(named, name, variable)?;
        let runtime = folder("XDG_RUNTIME_DIR").map(|base| base.join("agentd").join(format!("{name}.sock")));
        let socket = first("RUNTIME_DIRECTORY").map(|base| base.join("control.sock")).or(runtime);
        let socket = socket.unwrap_or_else(|| state.join("control.sock"));
        Ok(Places { state, socket })
    }

    /// The file with the token of the control socket.
    pub(crate) fn token(&self) -> PathBuf {
        self.state.join("control.token")
    }
}

/// `path` with another ending behind its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// What may be done about a folder that others reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// It is agentd's own, so it is made private.
    Mend,
    /// Somebody has named it, and may have named it to others too.
    Refuse,
}

/// A folder that only this user reaches, made with its parents if it is not there.
pub(crate) fn private_folder(path: &Path, shared: Shared) -> Result<(), OpenError> {
    let shown = path.display();
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(system(format!("{} cannot be made", parent.display())))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system(format!("{shown} cannot be made"))(error)),
    }
    let found = fs::metadata(path).map_err(system(format!("{shown} cannot be used")))?;
    if !found.is_dir() {
        return Err(OpenError::InTheWay(format!("{shown} is not a folder")));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        let fault =
            format!("{shown} belongs to uid {} and not to {own}, so others could open it", found.uid());
        return Err(OpenError::InTheWay(fault));
    }
    // A sticky folder is there for everybody.
    let is_common = shared == Shared::Refuse || found.mode() & 0o1000 != 0;
    if found.mode() & 0o077 != 0 && is_common {
        let fault = format!(
            "{shown} is open to others (mode {:o}), so they could put another socket in place of this one; name a place in a \
             folder of mode 0700",
            found.mode() & 0o7777
        );
        return Err(OpenError::InTheWay(fault));
    }
    if found.mode() & 0o077 != 0 {
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, private).map_err(system(format!("{shown} cannot be made private")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> Result<Places, StoreError> {
        let find =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        Places::of("a", None, &find)
    }

    #[test]
    fn places_are_looked_for_in_the_order_that_is_written_down() {
        for (variables, state, socket) in [
            (
                &[
                    ("STATE_DIRECTORY", "/s"),
                    ("RUNTIME_DIRECTORY", "/r"),
                    ("HOME", "/h"),
                    ("XDG_RUNTIME_DIR", "/x"),
                ][..],
                "/s",
                "/r/control.sock",
            ),
            (&[("STATE_DIRECTORY", "/s:/t")], "/s", "/s/control.sock"),
            (&[("XDG_STATE_HOME", "/y"), ("XDG_RUNTIME_DIR", "/x")], "/y/agentd/a", "/x/agentd/a.sock"),
            (
                &[("HOME", "/h"), ("XDG_STATE_HOME", "relative")],
                "/h/.local/state/agentd/a",
                "/h/.local/state/agentd/a/control.sock",
            ),
        ] {
            let wanted = Places { state: state.into(), socket: socket.into() };
            assert_eq!(places(variables).ok(), Some(wanted), "{variables:?}");
        }
        assert!(places(&[("HOME", "h")]).is_err_and(|said| said.to_string().contains("STATE_DIRECTORY")));
    }

    #[test]
    fn a_private_folder_is_private_whatever_was_there() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("a/b");
        private_folder(&path, Shared::Refuse).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changed");
        let said = private_folder(&path, Shared::Refuse).expect_err("it is another's").to_string();
        assert!(said.contains("mode 755"), "{said}");
        private_folder(&path, Shared::Mend).expect("mended");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        let file = temp.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(private_folder(&file, Shared::Mend).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).expect("changed");
        assert!(private_folder(&path, Shared::Mend).is_err(), "what is everybody's stays so");
    }
}

//! `agentd serve`: the daemon. Owns the order in which it begins (places, locks, sockets, token, then the loop) and what it
//! leaves behind at its end, which is nothing but its lock files. Refuses policy: who may do what is the core's to decide.
//! Called by the command line.
//!
//! With `store.kind: sqlite` what it knows outlives it: the store is opened before there is a socket.

mod activation;
mod doors;
mod manager;
mod marks;
mod notify;
pub(crate) mod place;
mod reload;
mod sockets;
mod token;

pub use manager::Manager;
pub(crate) use marks::Marks;
pub(crate) use reload::{Around, Reload};
pub(crate) use token::read as read_token;

use crate::config::{Listen, Loaded, Settings, StoreKind};
use crate::lock::{Lock, LockError};
use crate::secrets::{SecretError, Use};
use crate::sessions;
use crate::store::{Opened, Options as StoreOptions, StoreError};
use agentd_core::config::{Config, Control, Principal, PrincipalRole};
use agentd_core::store::Saved;
use agentd_host::doors::Listener;
use agentd_host::service::Passed;
use place::{Places, Shared};
use std::io;
use std::path::{Path, PathBuf};

/// A daemon's doors, open; closed and taken away when this is dropped.
#[derive(Debug)]
pub struct Open {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) marks: Marks,
    /// What outlives it, and what that held; `None` where nothing does.
    pub(crate) store: Option<(Opened, Box<Saved>)>,
    /// The folder of transcripts, where they are written.
    pub(crate) sessions: Option<PathBuf>,
    /// Where it can be reached, for the log.
    pub(crate) addresses: Vec<String>,
    /// Its own sockets in the file system, which are removed at the end.
    sockets: Vec<PathBuf>,
    token: PathBuf,
    _locks: Vec<Lock>,
}

/// Why a daemon cannot open its doors. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system's answer.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What was said.
        error: io::Error,
    },
    /// Another daemon has what this one needs.
    #[error("{0}")]
    Taken(String),
    /// Something else is in its place.
    #[error("{0}")]
    InTheWay(String),
    /// A socket that a service manager has passed on cannot be used.
    #[error("{0}")]
    Passed(String),
    /// A secret that is gone since the configuration was read.
    #[error("the token of {principal}: {error}")]
    Secret {
        /// Whose.
        principal: String,
        /// Why.
        error: SecretError,
    },
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Certificates or a key that TLS cannot use.
    #[error("a2a.tls: {0}")]
    Tls(String),
}

/// Makes a one-shot configuration that of a daemon.
pub(crate) fn as_daemon(loaded: &mut Loaded) {
    let own = Principal { id: "operator".to_owned(), role: PrincipalRole::Operator };
    let others = loaded.settings.doors.principals.iter().map(|caller| caller.principal.clone());
    let tls = loaded.settings.doors.listen.iter().any(|one| matches!(one, Listen::Tls(_)));
    loaded.config.one_shot = false;
    loaded.config.control = Some(Control { principals: [own].into_iter().chain(others).collect(), tls });
}

/// Opens the doors of a daemon of this name, some of which a service manager may have opened already.
///
/// # Errors
/// Another daemon lives, or the system refuses; nothing is left open.
pub fn open(name: &str, settings: &Settings, passed: Vec<Passed>) -> Result<Open, OpenError> {
    let places = Places::of(name, settings.store.path.clone(), &|variable| std::env::var_os(variable))?;
    place::private_folder(&places.state, Shared::Mend)?;
    let mut locks = vec![lock(&places.state.join("control.lock"))?];
    let (store, sessions) = match settings.store.kind {
        StoreKind::Sqlite => {
            let directory = places.state.clone();
            let options = StoreOptions { directory, min_free: settings.store.min_free };
            let (store, mut saved) = Opened::open(&options)?;
            let sessions = places.state.join("sessions");
            saved.written = sessions::written(&sessions, &saved.work);
            (Some((store, Box::new(saved))), Some(sessions))
        }
        StoreKind::Memory | StoreKind::None => (None, None),
    };
    let doors::Opened { listeners, addresses, own, locks: more } =
        doors::open(&settings.doors, &places, passed)?;
    locks.extend(more);
    let token = places.token();
    let mut tokens = vec![token::make(&token)?];
    for caller in &settings.doors.principals {
        let value = settings.secrets.fill(&caller.token, Use::Header);
        let principal = || caller.principal.id.clone();
        tokens.push(value.map_err(|error| OpenError::Secret { principal: principal(), error })?);
    }
    let marks = Marks::new(tokens);
    Ok(Open { listeners, marks, store, sessions, addresses, sockets: own, token, _locks: locks })
}

impl Open {
    /// What the core is to know of what outlives it. A journal begins with the configuration, so this comes before.
    pub fn configure(&self, config: &mut Config) {
        config.store.keeps = self.store.is_some();
        config.sessions = self.sessions.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    }
}

impl Drop for Open {
    /// The locks are held until the last of it is gone.
    fn drop(&mut self) {
        for path in self.sockets.iter().chain([&self.token]) {
            // What cannot be removed is found to be stale by the next daemon.
            let _left = std::fs::remove_file(path);
        }
    }
}

/// Takes what only one daemon has.
fn lock(path: &Path) -> Result<Lock, OpenError> {
    let shown = path.display();
    Lock::take(path).map_err(|error| match error {
        LockError::Held(holder) => OpenError::Taken(format!(
            "an agentd of this name runs already ({holder} holds {shown}); stop it, or give this one a name of its own \
             (agent.name)"
        )),
        LockError::System { action, error } => system(format!("{shown}: cannot {action}"))(error),
    })
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let what = what.into();
    move |error| OpenError::System { what, error }
}

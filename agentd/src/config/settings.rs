//! What the binary needs of a configuration and the core does not.

use crate::secrets::Secrets;
use agentd_core::config::Principal;
use agentd_core::note::Level;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings of the process around the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The files it was read from, in order.
    pub files: Vec<PathBuf>,
    /// Working folder of the agent's servers, absolute; where agentd was started when absent.
    pub workspace: Option<PathBuf>,
    /// Variables that children get besides the baseline: names, or `PREFIX*` (S3.3).
    pub env_passthrough: Vec<String>,
    /// Where every event is recorded (S17.6).
    pub journal: Option<PathBuf>,
    /// What is kept, and where.
    pub store: StoreSettings,
    /// What is logged.
    pub log_level: Level,
    /// How; by default as stderr is a terminal or not.
    pub log_format: Option<LogFormat>,
    /// Where the values of secret references come from when a child is started.
    pub secrets: Secrets,
    /// Of `serve`: where it is reached, and by whom.
    pub doors: Doors,
    /// Tags of each server's tools, by server and pattern (S16.1).
    pub tags: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// `store` (S10.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// How long it is kept.
    pub kind: StoreKind,
    /// The state directory, absolute, when the configuration names it.
    pub path: Option<PathBuf>,
    /// Bytes of free disk below which no new run is recorded.
    pub min_free: u64,
}

/// How long what a daemon knows is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// Over restarts, in the state directory.
    Sqlite,
    /// As long as the daemon lives.
    Memory,
    /// As `Memory`; nothing that belongs to the daemon is ever written to the state directory.
    None,
}

/// Where a daemon is reached, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doors {
    /// `a2a.listen`.
    pub listen: Vec<Listen>,
    /// `a2a.tls`: certificates and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// `a2a.principals`.
    pub principals: Vec<Caller>,
    /// `observability.metrics_addr`.
    pub metrics: Option<SocketAddr>,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A control socket; `None` is the usual place.
    Unix(Option<PathBuf>),
    /// Loopback without TLS.
    Plain(SocketAddr),
    /// With TLS.
    Tls(SocketAddr),
}

/// One of `a2a.principals`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name, and what it may do.
    pub principal: Principal,
    /// Its token, by reference.
    pub token: String,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

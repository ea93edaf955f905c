//! What the core is told at start: a resolved, checked configuration. Reading and checking files is the
//! binary's; every duration here is a key of the configuration.

use crate::budget::Budget;
use crate::money::{Price, Usd};
use crate::time::Duration;
use crate::wire::message::{Mode, Model, RunLimits, Server, ToolDecl};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The core's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The agent's name.
    pub agent: String,
    /// System text of the root conversation; may be empty.
    pub instruction: String,
    /// The agent's own model.
    pub model: ModelChoice,
    /// `intelligence.models`, by reference.
    pub models: BTreeMap<String, ModelChoice>,
    /// The conversation is one turn: `agentd run`. Otherwise its worker stays warm between turns.
    pub one_shot: bool,
    /// `agent.worker_idle`: how long it does.
    pub worker_idle: Duration,
    /// `agent.wake_on` has `subagent_result`: the conversation is told of ended runs and of warm runs' turns (S8.4).
    pub wake_on_results: bool,
    /// Every server of the agent.
    pub servers: Vec<Server>,
    /// Tools of the program that embeds the supervisor, in groups that are granted as servers are. No configuration
    /// file names any.
    #[serde(default)]
    pub host: Vec<HostServer>,
    /// `limits.run`.
    pub run: RunLimits,
    /// `limits.run.usd`: money of a run and all below it; of a warm one in each turn.
    pub run_usd: Option<Usd>,
    /// `intelligence.budget`.
    #[serde(default)]
    pub budget: Budget,
    /// The model of `intelligence.budget.degrade`.
    pub degraded: Option<ModelChoice>,
    /// `intelligence.swap_policy`.
    #[serde(default)]
    pub swap: SwapPolicy,
    /// `limits.subagents`.
    pub subagents: SubagentLimits,
    /// `subagents.defaults`.
    pub defaults: SpawnDefaults,
    /// `lifecycle.liveness`.
    pub liveness: Liveness,
    /// `lifecycle.kill`.
    pub kill: Kill,
    /// `lifecycle.drain_timeout`.
    pub drain_timeout: Duration,
    /// The supervisor is PID 1 and must reap what lands on it even when it has no child.
    pub reap_orphans_always: bool,
    /// Level children log at.
    pub log_level: String,
    /// Absolute path of the folder of transcripts; absent, nothing is written.
    #[serde(default)]
    pub sessions: Option<String>,
    /// `store`, as far as it is the core's.
    #[serde(default)]
    pub store: Store,
    /// `subagents.max_attempts`: restarts that a run may live through without getting anywhere.
    #[serde(default = "max_attempts")]
    pub max_attempts: u32,
    /// Who may use the control surface; `None` where there is none.
    #[serde(default)]
    pub control: Option<Control>,
}

/// What is made durable, and what waits for it (S10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// It outlives the daemon: everything that a restart needs is handed to it, and not the records alone.
    pub keeps: bool,
    /// `store.durability.commit`.
    pub commit: Commit,
    /// `store.durability.work`: whether a restart takes up a run whose call does not say.
    pub work: bool,
}

impl Default for Store {
    fn default() -> Store {
        Store { keeps: false, commit: Commit::Strict, work: true }
    }
}

/// Whether a run's end is told no sooner than it is durable. A kill's always is (S10.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It is.
    Strict,
    /// It is told at once: a crash may forget an end that somebody knows of, and the run is made again.
    Relaxed,
}

fn max_attempts() -> u32 {
    5
}

/// The control surface's part of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Control {
    /// Whose tokens there are. The first is the operator on this machine, whose token is the file in the state directory;
    /// the others are `a2a.principals`, who come by TCP.
    pub principals: Vec<Principal>,
    /// TCP is inside TLS, which the agent card's address then says.
    pub tls: bool,
}

/// Somebody with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Its name.
    pub id: String,
    /// What it may do.
    pub role: PrincipalRole,
}

/// What a principal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalRole {
    /// Everything.
    Operator,
    /// Ask, and see and cancel what it asked.
    User,
}

/// A group of tools that the embedding program answers itself (S3.5). To callers it reads as a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostServer {
    /// Its name, which no server of `servers` has, nor any prefix of tools.
    pub name: String,
    /// Its tools, under their own names; a caller knows each as `<name>.<tool>`.
    pub tools: Vec<ToolDecl>,
}

/// A model that a run can be given (S15.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The connection, under its reference.
    pub model: Model,
    /// What its tokens cost, when `intelligence.prices` says.
    pub price: Option<Price>,
    /// Why it cannot be used: its credential cannot be found. A run that wants it is refused with this.
    pub unusable: Option<String>,
}

impl Config {
    /// An agent of this name with this model, and everything else as it is when nothing is said: no servers, every limit
    /// and duration at its default, and a conversation that goes on until a drain.
    pub fn of(agent: impl Into<String>, model: Model) -> Config {
        Config {
            agent: agent.into(),
            instruction: String::new(),
            model: ModelChoice::of(model),
            models: BTreeMap::new(),
            one_shot: false,
            worker_idle: Duration::from_secs(60),
            wake_on_results: false,
            servers: Vec::new(),
            host: Vec::new(),
            run: RunLimits::default(),
            run_usd: None,
            budget: Budget::default(),
            degraded: None,
            swap: SwapPolicy::default(),
            subagents: SubagentLimits::default(),
            defaults: SpawnDefaults::default(),
            liveness: Liveness::default(),
            kill: Kill::default(),
            drain_timeout: Duration::from_secs(25),
            reap_orphans_always: false,
            log_level: "info".into(),
            sessions: None,
            store: Store::default(),
            max_attempts: max_attempts(),
            control: None,
        }
    }

    /// The same without the values of servers' variables, of models' keys and of headers.
    #[must_use]
    pub fn without_values(&self) -> Config {
        let mut config = self.clone();
        config.servers.iter_mut().for_each(Server::leave_out_values);
        for choice in config.models.values_mut().chain([&mut config.model]).chain(&mut config.degraded) {
            choice.model.leave_out_values();
        }
        config
    }
}

impl ModelChoice {
    /// A model that can be used and has no price.
    pub fn of(model: Model) -> ModelChoice {
        ModelChoice { model, price: None, unusable: None }
    }
}

/// When a run that works takes the model that a reload gives it (S10.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwapPolicy {
    /// With its next turn. A run that has one turn ends on the model that it began with.
    #[default]
    FinishOnOld,
    /// At once: a model call in flight is given up, paid for by estimate, and made again.
    RestartTurn,
}

/// Why a configuration is not read again, where whoever surrounds a reactor does not say how.
pub const NOT_READ_AGAIN: &str = "the program that runs this supervisor gave it its configuration, and has none that can \
                                  be read again";

/// A configuration that was read again, and what of it is new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// All of it.
    pub config: Config,
    /// Keys that differ from those in use and count from now on, sorted.
    pub applied: Vec<String>,
    /// Keys that differ and count only once the daemon is started anew, sorted.
    pub restart_needed: Vec<String>,
    /// References of models whose connection is not what it was, the values of its secrets included. A comparison of two
    /// configurations would not tell: neither has values, and a journal has not even what refers to them.
    pub models: BTreeSet<String>,
    /// Names of servers of which the same is true.
    pub servers: BTreeSet<String>,
}

impl Reloaded {
    /// The same without values, as [`Config::without_values`].
    #[must_use]
    pub fn without_values(&self) -> Reloaded {
        let Reloaded { config, applied, restart_needed, models, servers } = self;
        Reloaded {
            config: config.without_values(),
            applied: applied.clone(),
            restart_needed: restart_needed.clone(),
            models: models.clone(),
            servers: servers.clone(),
        }
    }
}

/// `limits.subagents`: counted exactly, under parallel calls too (S4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentLimits {
    /// Live subagents in the daemon.
    pub breadth: u32,
    /// Spawns per one-shot run, or within 24 h in a daemon.
    pub total: u32,
    /// Deepest run; the root is 0.
    pub depth: u32,
    /// Spawns a token bucket allows.
    pub rate: Rate,
    /// Spawns of a conversation that may wait for a permit; 0 refuses at once (S4.8).
    pub queue: u32,
}

impl Default for SubagentLimits {
    fn default() -> SubagentLimits {
        let rate = Rate { burst: 8, per: Duration::from_secs(2) };
        SubagentLimits { breadth: 8, total: 64, depth: 1, rate, queue: 0 }
    }
}

/// A token bucket: `burst` tokens, `burst` more per `per`, written `8/2s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Bucket size and refill.
    pub burst: u32,
    /// Time to refill from empty.
    pub per: Duration,
}

/// `subagents.defaults`: what a call does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnDefaults {
    /// Reference of the model; the agent's own when absent.
    pub model: Option<String>,
    /// Mode.
    pub mode: Mode,
    /// Priority.
    pub priority: Priority,
    /// Limits that differ from `limits.run`.
    pub limits: LimitOverrides,
}

impl Default for SpawnDefaults {
    fn default() -> SpawnDefaults {
        let limits = LimitOverrides::default();
        SpawnDefaults { model: None, mode: Mode::Sync, priority: Priority::Normal, limits }
    }
}

/// Some of a run's limits; absent ones come from the next wider source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LimitOverrides {
    /// Model calls.
    pub steps: Option<u32>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Time.
    pub deadline: Option<Duration>,
    /// Money, of the run and all below it.
    pub usd: Option<Usd>,
    /// `RLIMIT_DATA` in bytes.
    pub memory: Option<u64>,
    /// `RLIMIT_CPU`.
    pub cpu: Option<Duration>,
}

/// Scheduling priority of a child: nice +10, 0, −5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Gives way, and is shed first under pressure.
    Low,
    /// As the supervisor.
    Normal,
    /// Best effort: needs the right to raise priority.
    High,
}

/// `lifecycle.liveness` (S9.1, S9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// Between pings.
    pub ping: Duration,
    /// Without a pong this long, and without progress: stuck.
    pub pong: Duration,
    /// Any frame but `pong` within this: healthy.
    pub progress: Duration,
    /// From spawn to `ready`.
    pub ready: Duration,
    /// Added to a run's deadline for the hard deadline.
    pub hard_deadline_grace: Duration,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness {
            ping: Duration::from_secs(3),
            pong: Duration::from_secs(10),
            progress: Duration::from_secs(120),
            ready: Duration::from_secs(30),
            hard_deadline_grace: Duration::from_secs(60),
        }
    }
}

/// `lifecycle.kill` (S9.4, S5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// From `cancel` to SIGTERM.
    pub term_after: Duration,
    /// From SIGTERM to SIGKILL.
    pub kill_after: Duration,
    /// From a terminal frame to SIGTERM.
    pub exit_after_result: Duration,
}

impl Default for Kill {
    fn default() -> Kill {
        Kill {
            term_after: Duration::from_secs(5),
            kill_after: Duration::from_secs(2),
            exit_after_result: Duration::from_secs(5),
        }
    }
}

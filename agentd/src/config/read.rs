//! From a checked tree to the core's configuration and the binary's settings. Owns what takes more than one
//! key, or a look at the file system, to check: what is required, what excludes what, names used twice, folders
//! that do not exist, the playbook. Called once all texts are merged and found well-formed by themselves.

mod budget;
mod doors;
mod endpoint;
mod model;
mod remote_server;
mod servers;
mod token;

pub(crate) use endpoint::server_address;

use super::nearest::nearest;
use super::problem::{Code, Problem};
use super::schema;
use super::settings::{LogFormat, Settings, StoreKind, StoreSettings};
use super::source::Place;
use super::tree::{Node, clip};
use super::values::{Values, text_of};
use crate::secrets::Secrets;
use agentd_core::config::{
    Commit, Config, Kill, LimitOverrides, Liveness, Priority, Rate, SpawnDefaults, Store, SubagentLimits,
    SwapPolicy,
};
use agentd_core::note::Level;
use agentd_core::preview::preview;
use agentd_core::units;
use agentd_core::wire::message::{Mode, RunLimits};
use model::Models;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a path in a message.
const SHOWN_BYTES: usize = 4096;

/// The name that stands for the model of whoever asks.
const INHERIT: &str = "inherit";

/// What reading needs besides the tree.
pub(crate) struct Reader<'a> {
    /// The current folder, absolute.
    pub(crate) here: &'a Path,
    /// Whether every text was read: only then can a key be missing.
    pub(crate) complete: bool,
    /// The files, in order.
    pub(crate) files: &'a [PathBuf],
    /// Where references are looked up.
    pub(crate) secrets: &'a Secrets,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    /// Reads a merged tree. `None` when a part could not be read; `problems` says why.
    pub(crate) fn read(&mut self, root: &Node) -> Option<(Config, Settings)> {
        let values = Values::new(root, schema::ROOT);
        let agent = values.section("agent");
        let workspace = self.folder(&agent, "workspace", "agent.workspace");
        let (servers, tags) = self.servers(&values, workspace.as_deref());
        let models = self.models(&values.section("intelligence"));
        let lifecycle = values.section("lifecycle");
        let liveness = self.liveness(&lifecycle.section("liveness"));
        let intelligence = values.section("intelligence");
        let mut named = intelligence.names("models");
        named.extend(intelligence.text("model"));
        named.push(INHERIT);
        let defaults = self.defaults(&values.section("subagents").section("defaults"), &named);
        let journal = self.journal(&lifecycle);
        let observability = values.section("observability");
        let log_level = observability.text("log_level").unwrap_or_default();
        let doors = self.doors(&values.section("a2a"), &observability);
        let (budget, degraded) = self.budget(&intelligence, models.as_ref());
        let run_usd = self.run_usd(&values.section("limits").section("run"), models.as_ref());
        let Models { own, named } = models?;
        let config = Config {
            agent: agent.text("name").map_or_else(|| default_name(self.files), str::to_owned),
            instruction: agent.text("instruction").unwrap_or_default().to_owned(),
            model: own,
            models: named,
            one_shot: true,
            worker_idle: time(&agent, "worker_idle"),
            wake_on_results: agent
                .texts("wake_on")
                .is_some_and(|words| words.iter().any(|word| word == "subagent_result")),
            servers,
            host: Vec::new(),
            run: run_limits(&values.section("limits").section("run")),
            run_usd,
            budget,
            degraded,
            swap: match intelligence.text("swap_policy") {
                Some("restart-turn") => SwapPolicy::RestartTurn,
                _ => SwapPolicy::FinishOnOld,
            },
            subagents: subagent_limits(&values.section("limits").section("subagents")),
            defaults,
            liveness,
            kill: kill(&lifecycle.section("kill")),
            drain_timeout: time(&lifecycle, "drain_timeout"),
            reap_orphans_always: std::process::id() == 1,
            log_level: log_level.to_owned(),
            sessions: None,
            store: core_store(&values),
            max_attempts: values.section("subagents").small("max_attempts").unwrap_or(5),
            control: None,
        };
        let settings = Settings {
            files: self.files.to_vec(),
            workspace,
            env_passthrough: values.section("spawn").texts("env_passthrough").unwrap_or_default(),
            journal,
            store: self.store(&values.section("store")),
            log_level: level(log_level),
            log_format: observability.text("log_format").map(format),
            secrets: self.secrets.clone(),
            doors,
            tags,
        };
        Some((config, settings))
    }

    fn liveness(&mut self, values: &Values<'_>) -> Liveness {
        let liveness = Liveness {
            ping: time(values, "ping"),
            pong: time(values, "pong"),
            progress: time(values, "progress"),
            ready: time(values, "ready"),
            hard_deadline_grace: time(values, "hard_deadline_grace"),
        };
        let place = values.written("pong").or_else(|| values.written("ping")).map(|node| &node.place);
        if let Some(place) = place.filter(|_| liveness.pong <= liveness.ping) {
            let fault = "a pong cannot be missed before the next ping is due: it is not longer than ping";
            self.problems.push(
                Problem::at(place, "lifecycle.liveness.pong", Code::InvalidValue, fault)
                    .accepted(format!("more than {:?}", liveness.ping)),
            );
        }
        liveness
    }

    fn defaults(&mut self, values: &Values<'_>, models: &[&str]) -> SpawnDefaults {
        let limits = values.section("limits");
        let cpu = limits.duration("cpu");
        let memory = limits.size("memory");
        let floor = agentd_core::limits::MEMORY_FLOOR;
        if let Some(node) = limits.written("memory").filter(|_| memory.is_some_and(|memory| memory < floor)) {
            let path = "subagents.defaults.limits.memory";
            let problem =
                Problem::at(&node.place, path, Code::InvalidValue, "is less than a subagent needs to begin");
            self.problems.push(problem.accepted(format!("{}MiB or more", floor >> 20)));
        }
        if let Some(node) = limits.written("cpu").filter(|_| cpu.is_some_and(|cpu| cpu.subsec_nanos() > 0)) {
            let path = "subagents.defaults.limits.cpu";
            let problem =
                Problem::at(&node.place, path, Code::InvalidValue, "is not a whole number of seconds");
            self.problems.push(problem.accepted("1s or more, in whole seconds: the kernel counts no finer"));
        }
        SpawnDefaults {
            model: self.default_model(values, models),
            mode: match values.text("mode") {
                Some("async") => Mode::Async,
                Some("detached") => Mode::Detached,
                Some("warm") => Mode::Warm,
                _ => Mode::Sync,
            },
            priority: match values.text("priority") {
                Some("low") => Priority::Low,
                Some("high") => Priority::High,
                _ => Priority::Normal,
            },
            limits: LimitOverrides {
                steps: limits.small("steps"),
                tokens: limits.whole("tokens"),
                deadline: limits.duration("deadline"),
                usd: self.usd(&limits, "subagents.defaults.limits"),
                memory,
                cpu,
            },
        }
    }

    /// `subagents.defaults.model`, which has to be one of `models`, the agent's own among them.
    fn default_model(&mut self, values: &Values<'_>, models: &[&str]) -> Option<String> {
        let node = values.written("model")?;
        let name = text_of(node)?;
        if !models.contains(&name.as_str()) {
            let path = "subagents.defaults.model";
            let fault = format!("there is no model {:?} in intelligence.models", clip(&name));
            let problem =
                Problem::at(&node.place, path, Code::InvalidValue, fault).accepted(models.join(", "));
            self.problems.push(match nearest(&name, models.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean {near}?")),
                None => problem
                    .hint("add it there, or remove this key: then subagents have the agent's own model"),
            });
        }
        Some(name)
    }

    /// A folder that must exist, absolute.
    fn folder(&mut self, values: &Values<'_>, name: &str, path: &str) -> Option<PathBuf> {
        let (folder, place) = values.path(name)?;
        let folder = self.absolute(&folder);
        let fault = match std::fs::metadata(&folder) {
            Ok(found) if found.is_dir() => return Some(folder),
            Ok(_) => format!("{} is not a folder", shown(&folder)),
            Err(error) => format!("{} cannot be used: {error}", shown(&folder)),
        };
        let problem = Problem::at(place, path, Code::Unreadable, fault).accepted("a folder that exists");
        let written = values.text(name).unwrap_or_default();
        self.problems.push(match relative_to(place, written) {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
        None
    }

    /// `store`, as far as it is the binary's.
    fn store(&self, values: &Values<'_>) -> StoreSettings {
        StoreSettings {
            kind: match values.text("kind") {
                Some("memory") => StoreKind::Memory,
                Some("none") => StoreKind::None,
                _ => StoreKind::Sqlite,
            },
            path: values.path("path").map(|(path, _)| self.absolute(&path)),
            min_free: values.size("min_free").unwrap_or_default(),
        }
    }

    /// `lifecycle.journal`, where a file can be made.
    fn journal(&mut self, lifecycle: &Values<'_>) -> Option<PathBuf> {
        let (path, place) = lifecycle.path("journal").filter(|_| lifecycle.text("journal") != Some("off"))?;
        let path = self.absolute(&path);
        let folder = path.parent().unwrap_or(&path);
        let fault = match (std::fs::metadata(&path), std::fs::metadata(folder)) {
            (Ok(found), _) if !found.is_file() => format!("{} is no file", shown(&path)),
            (Ok(_), _) => return Some(path),
            (Err(_), Ok(found)) if found.is_dir() => return Some(path),
            (Err(_), Ok(_)) => format!("{} is not a folder", shown(folder)),
            (Err(_), Err(error)) => format!("{} cannot be used: {error}", shown(folder)),
        };
        let problem = Problem::at(place, "lifecycle.journal", Code::Unreadable, fault);
        self.problems.push(problem.accepted("a file, new or a journal, in a folder that exists"));
        None
    }

    /// `path` from the current folder, without `.` parts.
    fn absolute(&self, path: &Path) -> PathBuf {
        self.here.join(path).components().collect()
    }

    /// A key that must be there and is not. `place` is that of the map it is missing in.
    fn missing(&mut self, place: Option<&Place>, path: &str, accepted: &str) {
        if !self.complete {
            return;
        }
        let problem = self.lacking(place, path, Code::Missing, "is required");
        self.problems.push(problem.accepted(accepted));
    }

    /// That something is not there: in the map at `place`, or in the first file when no file has such a map.
    fn lacking(&self, place: Option<&Place>, path: &str, code: Code, message: impl Into<String>) -> Problem {
        match place.filter(|place| place.source.is_file()) {
            Some(place) => Problem::at(place, path, code, message),
            None => {
                let file = self.files.first().map(|file| file.display().to_string()).unwrap_or_default();
                Problem::of_file(file, code, message).key(path)
            }
        }
    }
}

/// `store`, as far as it is the core's. What outlives the daemon is decided by who makes one of the configuration: a
/// one-shot run keeps nothing.
fn core_store(values: &Values<'_>) -> Store {
    let durability = values.section("store").section("durability");
    let defaults = values.section("subagents").section("defaults");
    let by_default = defaults.written("durable").map(|_| defaults.switch("durable"));
    Store {
        keeps: false,
        commit: match durability.text("commit") {
            Some("relaxed") => Commit::Relaxed,
            _ => Commit::Strict,
        },
        work: by_default.unwrap_or(durability.text("work") != Some("ephemeral")),
    }
}

/// The stem of the first file, in the letters that a name can have.
pub(super) fn default_name(files: &[PathBuf]) -> String {
    let stem = files.first().and_then(|file| file.file_stem()).unwrap_or_default().to_string_lossy();
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.trim_start_matches('.').chars().take(64).map(fits).collect();
    if name.is_empty() { "agentd".to_owned() } else { name }
}

/// How a relative path was understood.
fn relative_to(place: &Place, path: &str) -> Option<String> {
    let folder = place.source.folder();
    if Path::new(path).is_absolute() {
        None
    } else if folder.as_os_str().is_empty() {
        Some("relative paths start from the current folder here".to_owned())
    } else {
        Some(format!("relative paths start from {}, the folder of the file", shown(folder)))
    }
}

/// A path in a message.
fn shown(path: &Path) -> String {
    preview(path.as_os_str().as_encoded_bytes(), SHOWN_BYTES)
}

fn run_limits(values: &Values<'_>) -> RunLimits {
    RunLimits {
        steps: values.small("steps").unwrap_or_default(),
        tokens: values.whole("tokens").unwrap_or_default(),
        deadline_ms: milliseconds(time(values, "deadline")),
        repeats: values.small("repeats").unwrap_or_default(),
        tool_result_bytes: values.size("tool_result_bytes").unwrap_or_default(),
    }
}

fn subagent_limits(values: &Values<'_>) -> SubagentLimits {
    let (burst, per) = values.text("rate").and_then(|text| units::rate(text).ok()).unwrap_or_default();
    SubagentLimits {
        breadth: values.small("breadth").unwrap_or_default(),
        total: values.small("total").unwrap_or_default(),
        depth: values.small("depth").unwrap_or_default(),
        rate: Rate { burst, per },
        queue: values.small("queue").unwrap_or_default(),
    }
}

fn kill(values: &Values<'_>) -> Kill {
    Kill {
        term_after: time(values, "term_after"),
        kill_after: time(values, "kill_after"),
        exit_after_result: time(values, "exit_after_result"),
    }
}

/// A duration whose key has a default.
fn time(values: &Values<'_>, name: &str) -> Duration {
    values.duration(name).unwrap_or_default()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The least important notes that are logged; `trace` is for children.
fn level(word: &str) -> Level {
    match word {
        "error" => Level::Error,
        "warn" => Level::Warn,
        "debug" | "trace" => Level::Debug,
        _ => Level::Info,
    }
}

fn format(word: &str) -> LogFormat {
    if word == "text" { LogFormat::Text } else { LogFormat::Json }
}

//! Arguments that several commands have: the configuration, the model, the driver, the log, the daemon that is meant.

use crate::config::LogFormat;
use crate::driver::Driver;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// A configuration file, YAML or JSON; repeatable, later ones win key by key. Without it: ./agentd.yaml,
    /// $XDG_CONFIG_HOME/agentd/agentd.yaml, /etc/agentd/agentd.yaml.
    #[arg(short, long = "config", value_name = "FILE")]
    pub(super) config: Vec<PathBuf>,
}

/// Which daemon a command is for.
#[derive(Debug, Args)]
pub(super) struct DaemonArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// The daemon's control socket, where it is not the one that the configuration leads to.
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// The file with the daemon's token, where it is not in the state directory that the configuration leads to.
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}

/// Which daemon a command is for, and how the answer is printed.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    #[command(flatten)]
    pub(super) daemon: DaemonArgs,
    /// Print JSON, with the names that records have.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) const CONTROL_CODES: &str = "\
Exit codes: 0 done, 1 failed or no such run, 2 usage or configuration, 5 turned down or not permitted, 6 no daemon.";

/// The agent's own model, where the command line says otherwise than the configuration.
#[derive(Debug, Args)]
pub(super) struct ModelFlags {
    /// The model's name (intelligence.model).
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// A provider's base address instead of its own (intelligence.endpoints). Repeatable: the order is that of failover.
    #[arg(long = "endpoint", value_name = "URL")]
    pub(super) endpoints: Vec<String>,
    /// How the model is spoken to: anthropic, openai, openai-responses or mock (intelligence.dialect).
    #[arg(long, value_name = "DIALECT")]
    pub(super) dialect: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct DriverArgs {
    /// The loop under the supervisor. tokio is in binaries built with `--features tokio`; what a run does is the same.
    #[arg(long, value_name = "DRIVER", default_value = "mio",
        value_parser = PossibleValuesParser::new(Driver::NAMES).try_map(|name| name.parse::<Driver>()))]
    pub(super) driver: Driver,
}

/// How much is logged, and how.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Record every event and every decision in a file, for `agentd replay` (lifecycle.journal).
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<String>,
    #[command(flatten)]
    pub(super) driver: DriverArgs,
    /// What is logged: error, warn, info, debug or trace (observability.log_level).
    #[arg(long, value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// How it is logged (observability.log_format); by default text on a terminal, else json.
    #[arg(long, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
}

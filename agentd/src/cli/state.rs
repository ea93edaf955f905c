//! Which state directory a command reads: the one a daemon of the same configuration writes, or the one that is named.

use super::args::ConfigArgs;
use crate::config::{self, Flags, Identity, Sources};
use crate::store::state_directory;
use clap::Args;
use std::path::PathBuf;

/// How a state directory is found.
#[derive(Debug, Args)]
pub(super) struct StateArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The state directory, where it is not the one that the configuration leads to.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// The folder with the transcripts, which need not be there.
    ///
    /// # Errors
    /// The configuration cannot be read, or nothing says where; in words.
    pub(super) fn sessions(&self) -> Result<PathBuf, String> {
        if let Some(state) = &self.state {
            return Ok(state.join("sessions"));
        }
        let sources = Sources::of_process(self.config.config.clone(), Flags::default())
            .map_err(|error| format!("the current folder cannot be used: {error}"))?;
        let Identity { name, state, .. } =
            config::identity(&sources).map_err(|problems| config::render(&problems))?;
        let state = state_directory(state, &name, &|variable| std::env::var_os(variable))
            .map_err(|error| format!("{error}; or name it with --state"))?;
        Ok(state.join("sessions"))
    }
}

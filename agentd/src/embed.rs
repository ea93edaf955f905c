//! A supervisor inside another async program: what `agentd-io-tokio` needs besides, from a configuration that was
//! loaded as any other. `docs/embedding.md` tells how, and `agentd/examples/embed.rs` does it.
//!
//! Owns the wiring: children that are the running program itself, their environment, secrets. Refuses what belongs to a
//! process of its own: signals, the log on stderr, the live tree. Called by the embedding program.

pub use agentd_io_tokio::*;

use crate::config::Loaded;
use crate::supervise::child_environment;

/// Begins a supervisor with this configuration, whose children are this program, started anew: its main must begin with
/// [`crate::child_main`].
///
/// Of the settings `observability` is not used: notes are told to whoever subscribes. The conversation goes on until
/// the supervisor is shut down.
pub fn builder(loaded: Loaded) -> Builder {
    let Loaded { config, settings, warnings: _ } = loaded;
    let children = Image::own(child_environment(&settings.env_passthrough));
    let secrets = settings.secrets;
    Supervisor::builder(config, children).secrets(move |spawn| {
        *spawn = secrets.put_in(spawn)?;
        Ok(())
    })
}

/// The code of the page is compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Page;

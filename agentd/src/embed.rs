//! A supervisor inside another async program: what `agentd-io-tokio` needs besides, from a configuration that was
//! loaded as any other. `docs/embedding.md` tells how, and `agentd/examples/embed.rs` does it.
//!
//! Owns the wiring: children that are the running program itself, their environment, secrets. Refuses what belongs to a
//! process of its own: signals, the log on stderr, the live tree. Called by the embedding program.

pub use agentd_io_tokio::*;

use crate::config::Loaded;
use crate::journal::Journal;
use crate::supervise::{JOURNAL_END, child_environment};
use agentd_core::action::Action;
use agentd_core::event::Event;
use agentd_core::time::Now;

/// Begins a supervisor with this configuration, whose children are this program, started anew: its main must begin with
/// [`crate::child_main`].
///
/// Of the settings `observability` is not used: notes are told to whoever subscribes. A journal (`lifecycle.journal`) is
/// written, and closed as the driver ends. The conversation goes on until
/// the supervisor is shut down.
pub fn builder(loaded: Loaded) -> Builder {
    let Loaded { config, settings, .. } = loaded;
    let children = Image::own(child_environment(&settings.env_passthrough));
    let secrets = settings.secrets;
    let builder = Supervisor::builder(config, children).secrets(move |spawn| {
        *spawn = secrets.put_in(spawn)?;
        Ok(())
    });
    match settings.journal {
        None => builder,
        Some(path) => builder.recorder(move |config, now| match Journal::create(&path, config, now) {
            Ok(journal) => Ok(Box::new(Recording(Some(journal)))),
            Err(error) => Err(error.to_string()),
        }),
    }
}

/// `lifecycle.journal`, which is closed with the driver.
struct Recording(Option<Journal>);

impl Recorder for Recording {
    fn observe(&mut self, now: Now, event: &Event) -> Option<String> {
        self.0.as_mut()?.observe(now, event).map(|error| error.to_string())
    }

    fn decided(&mut self, _now: Now, actions: &[Action]) -> Option<String> {
        self.0.as_mut()?.decided(actions).map(|error| error.to_string())
    }

    fn wants_checkpoint(&self) -> bool {
        self.0.as_ref().is_some_and(Journal::wants_checkpoint)
    }

    fn checkpointed(&mut self, _now: Now, state: Result<Vec<u8>, String>) -> Option<String> {
        self.0.as_mut()?.checkpointed(state).map(|error| error.to_string())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Whoever would hear of a disk that is too slow by now has gone: the file ends where it ends.
        let _late = self.0.take().map(|journal| journal.close(JOURNAL_END));
    }
}

/// The code of the page is compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Page;

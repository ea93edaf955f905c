//! What happens in a supervisor, told to whoever subscribed: each log event, and answers that nobody asked for.
//! Owns the bound: a subscriber that does not keep up loses the oldest and is told how many. Called by tasks of the
//! program; fed by the driver, which never waits for them.

use agentd_core::note::Note;
use agentd_core::record::ResultObject;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// News that wait for the slowest subscriber; one more, and it loses the oldest.
pub(crate) const WAITING: usize = 4_096;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum News {
    /// The supervisor says why it did something; `docs/log-events.md` lists the events.
    Note(Note),
    /// The conversation was told of ended runs while nobody asked it anything, and has answered.
    Unprompted(ResultObject),
    /// This many came too fast for this subscriber and are lost to it.
    Missed(u64),
}

/// What happens from the moment of [`crate::Supervisor::subscribe`] on. It keeps no supervisor alive.
#[derive(Debug)]
pub struct Subscription(pub(crate) broadcast::Receiver<News>);

impl Subscription {
    /// The next thing that happens; `None` once the supervisor has ended and all was told.
    pub async fn next(&mut self) -> Option<News> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(missed)) => Some(News::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

//! What a program asks of its supervisor, from any task.

use crate::builder::Builder;
use crate::error::CallError;
use crate::link::Link;
use crate::news::{News, Subscription};
use crate::run::{Run, RunStatus};
use crate::work::Work;
use agentd_core::config::Config;
use agentd_core::error::Refusal;
use agentd_core::id::Handle;
use agentd_core::record::ResultObject;
use agentd_host::spawner::Image;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::broadcast;

/// A supervisor that is driven by its [`crate::Driver`]. Clones are the same one.
///
/// When the last clone and the last [`Run`] are dropped, nobody can ask for anything any more: what runs is then ended
/// as by [`Supervisor::shutdown_now`].
#[derive(Debug, Clone)]
pub struct Supervisor {
    link: Arc<Link>,
    news: broadcast::WeakSender<News>,
}

impl Supervisor {
    /// Begins one: `config` is what it decides by, `children` what its processes are.
    pub fn builder(config: Config, children: Image) -> Builder {
        Builder::new(config, children)
    }

    pub(crate) fn new(link: Arc<Link>, news: broadcast::WeakSender<News>) -> Supervisor {
        Supervisor { link, news }
    }

    /// Begins a run. It is durable when this returns, and may still wait for its turn (`limits.subagents.queue`).
    ///
    /// # Errors
    /// A gate refused it, and says what would make it succeed.
    pub async fn run(&self, work: impl Into<Work>) -> Result<Run, CallError> {
        let Begun { handle } = self.call("subagent.run", work.into().into_args()).await?;
        Ok(self.of_handle(handle))
    }

    /// The run of this handle, whoever asked for it. A handle that nobody has is told when something is asked of it.
    pub fn of_handle(&self, handle: Handle) -> Run {
        Run::new(self.clone(), handle)
    }

    /// All runs that are remembered, newest last.
    ///
    /// # Errors
    /// The supervisor has ended.
    pub async fn list(&self) -> Result<Vec<RunStatus>, CallError> {
        let Listed { runs } = self.call("subagent.list", json!({})).await?;
        Ok(runs)
    }

    /// The conversation's next turn: prompts have their turns one at a time, in order, and the conversation remembers
    /// those before. How the turn ended is in the result. Dropping the future takes the prompt back: its turn ends, or
    /// never begins.
    ///
    /// # Errors
    /// The supervisor ended first.
    pub async fn prompt(&self, text: impl Into<String>) -> Result<ResultObject, CallError> {
        self.link.prompt(text.into()).await
    }

    /// What happens from now on. Subscribe before the driver is spawned to miss nothing.
    pub fn subscribe(&self) -> Subscription {
        Subscription(match self.news.upgrade() {
            Some(sender) => sender.subscribe(),
            // It has ended: there is no news.
            None => broadcast::channel(1).1,
        })
    }

    /// Drains: no new work; what runs goes on to its result, until `lifecycle.drain_timeout`, after which it is killed.
    /// Returns when nothing is left and the driver has ended.
    pub async fn shutdown(&self) {
        self.link.drain();
        self.link.ended().await;
    }

    /// Ends what runs now. Returns when nothing is left and the driver has ended.
    pub async fn shutdown_now(&self) {
        self.link.stop();
        self.link.ended().await;
    }

    /// Calls a tool of the supervisor's own and reads its answer.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        tool: &'static str,
        args: Value,
    ) -> Result<T, CallError> {
        let unreadable = |error| CallError::Unreadable(format!("{tool}: {error}"));
        match self.link.call(tool, args).await? {
            Ok(value) => T::deserialize(value).map_err(unreadable),
            Err(said) => Err(CallError::Refused(refusal(said))),
        }
    }
}

/// The refusal in an answer that is an error.
fn refusal(mut said: Value) -> Refusal {
    let error = said.get_mut("error").map(Value::take).unwrap_or(said);
    let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    Refusal {
        gate: text("gate").unwrap_or_default(),
        // Whatever it is, it is shown.
        message: text("message").unwrap_or_else(|| error.to_string()),
        limit: text("limit"),
        observed: text("observed"),
        hint: text("hint").unwrap_or_default(),
    }
}

#[derive(Deserialize)]
struct Begun {
    handle: Handle,
}

#[derive(Deserialize)]
struct Listed {
    runs: Vec<RunStatus>,
}

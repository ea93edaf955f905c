//! What a supervisor is made of, and the future that drives it. Owns the checks before there is one. Called by the
//! program, once a supervisor.

use crate::around::{Around, PutIn, Recorder};
use crate::driver::drive;
use crate::error::BuildError;
use crate::link::link;
use crate::news;
use crate::saving::{Save, SaveError, Saving};
use crate::supervisor::Supervisor;
use crate::tools::{Toolbox, Tools};
use agentd_core::config::Config;
use agentd_core::record::Record;
use agentd_core::supervisor::Core;
use agentd_core::time::{Instant, Now};
use agentd_core::wire::message::Spawn;
use agentd_host::clock::Clock;
use agentd_host::error::DriverError;
use agentd_host::marker;
use agentd_host::reactor::{Ended, Options};
use agentd_host::signals::Signals;
use agentd_host::spawner::Image;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::broadcast;

/// A supervisor in the making.
#[must_use = "there is no supervisor before `start`"]
pub struct Builder {
    config: Config,
    children: Image,
    tools: Vec<Tools>,
    put_in: Option<PutIn>,
    save: Option<Save>,
    record: Option<Begin>,
    signals: Option<Signals>,
}

/// Begins a recorder, once it is known what the core is made of.
type Begin = Box<dyn FnOnce(&Config, Now) -> Result<Box<dyn Recorder>, String> + Send>;

/// Everything a supervisor does, as one future. Spawn it, or poll it beside others; it must be inside a tokio runtime
/// with IO and time enabled, of any flavour.
///
/// It ends when the supervisor has been shut down and nothing is left. Dropping it before, with its task or with the
/// whole runtime, kills and reaps every child that there is, which blocks the thread for a moment.
#[must_use = "nothing happens until the driver is polled: spawn it"]
pub struct Driver(Pin<Box<dyn Future<Output = Result<Ended, DriverError>> + Send>>);

impl Builder {
    pub(crate) fn new(config: Config, children: Image) -> Builder {
        Builder { config, children, tools: Vec::new(), put_in: None, save: None, record: None, signals: None }
    }

    /// Offers tools of the program. They are granted like those of a server: to every run by default, else as
    /// [`crate::Work::servers`] and [`crate::Work::tools`] say.
    pub fn tools(mut self, tools: Tools) -> Builder {
        self.tools.push(tools);
        self
    }

    /// Puts secrets into what a child is handed, in place of the references that the configuration holds. Called each
    /// time a child is made; it must not block for long. An `Err` fails that run, in words for the person who must act.
    pub fn secrets(
        mut self,
        put_in: impl FnMut(&mut Spawn) -> Result<(), String> + Send + 'static,
    ) -> Builder {
        self.put_in = Some(Box::new(put_in));
        self
    }

    /// Saves each record as it changes, one after another. Who waits for a run hears of its beginning and its end only
    /// when they are saved. Without it records are kept in memory.
    pub fn store<F, Fut>(mut self, mut save: F) -> Builder
    where
        F: FnMut(Record) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), SaveError>> + Send + 'static,
    {
        self.save = Some(Box::new(move |record| Box::pin(save(record))));
        self
    }

    /// Records what the core is told. `begin` is called by [`Builder::start`] with what the core is made of; an `Err` is
    /// its error.
    pub fn recorder(
        mut self,
        begin: impl FnOnce(&Config, Now) -> Result<Box<dyn Recorder>, String> + Send + 'static,
    ) -> Builder {
        self.record = Some(Box::new(begin));
        self
    }

    /// The process is the supervisor's alone: it has no other children, and the first SIGTERM or SIGINT drains and the
    /// second ends what runs. SIGHUP is told (`config.reload.failed`) and changes nothing: the program gave the
    /// configuration, and there is none to read again. Whatever below it is not known is then killed and reaped.
    ///
    /// Take the [`Signals`] before the first thread, the runtime's included: a thread that does not block them is ended
    /// by them.
    pub fn own_process(mut self, signals: Signals) -> Builder {
        self.signals = Some(signals);
        self
    }

    /// Makes the supervisor and its driver. No child is made, and no thread, before the driver is polled.
    ///
    /// # Errors
    /// A tool cannot be offered, a recorder cannot begin, the system refused a descriptor, or this process is itself a
    /// child.
    pub fn start(self) -> Result<(Supervisor, Driver), BuildError> {
        let Builder { mut config, children, tools, put_in, save, record, signals } = self;
        if std::env::var_os(marker::SUBAGENT).is_some() || std::env::var_os(marker::KEEPER).is_some() {
            return Err(BuildError::IsChild);
        }
        let (toolbox, host) = Toolbox::new(tools, &config.servers)?;
        config.host = host;
        // The conversation goes on until the supervisor is shut down.
        config.one_shot = false;
        let options = match signals {
            Some(signals) => Options::new(children, Some(signals))?,
            None => Options::embedded(children)?,
        };
        // The core's time begins with the driver's.
        let begun = Now { mono: Instant::ZERO, wall: Clock::start().now().wall };
        let recorder = record.map(|begin| begin(&config, begun)).transpose().map_err(BuildError::Recorder)?;
        let core = Core::new(config, begun);
        let (link, inbox) = link();
        let (news, _) = broadcast::channel(news::WAITING);
        let supervisor = Supervisor::new(link, news.downgrade());
        let around = Around::new(inbox, news, toolbox, save.map(Saving::new), put_in, recorder);
        Ok((supervisor, Driver(Box::pin(driven(core, around, options)))))
    }
}

/// `around` is dropped after the loop, and its inbox last: who waits for the end hears of it when no child is left.
async fn driven(mut core: Core, mut around: Around, options: Options) -> Result<Ended, DriverError> {
    drive(&mut core, &mut around, options, Around::poll_event).await
}

impl Future for Driver {
    type Output = Result<Ended, DriverError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("tools", &self.tools).finish_non_exhaustive()
    }
}

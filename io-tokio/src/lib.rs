//! A supervisor inside a program that runs on tokio.
//!
//! [`Supervisor::builder`] takes the core's configuration and what children are, and gives two things: a
//! [`Supervisor`], through which work is asked for, and a [`Driver`], the future that does all of it and is spawned or
//! polled by the program. Nothing process-wide is changed and no process but its own is touched, unless the program
//! says that it is the supervisor's alone ([`Builder::own_process`]). The crate `agentd` has the rest of what a program
//! needs: a child's main, configuration files, secrets (`agentd::embed`).
//!
//! | module | owns |
//! |---|---|
//! | [`Builder`] | what a supervisor is made of, and the checks before there is one |
//! | [`Supervisor`], [`Run`], [`Turn`] | what can be asked, from any task |
//! | [`Work`] | one piece of work, as a caller says it |
//! | [`Tools`] | the program's own tools, which agents call |
//! | [`News`] | what happens, for logs and screens |
//! | [`run`] | the bare loop, for whoever has a core and an [`Outside`] of its own |
//!
//! Refuses policy: what becomes of a run is the core's to decide, here as under mio. Children are made by the host's
//! thread and held by pidfd, never by `tokio::process`.
#![forbid(unsafe_code)]

mod around;
mod builder;
mod driver;
mod error;
mod link;
mod news;
mod run;
mod saving;
mod supervisor;
mod tools;
mod work;

pub use agentd_core::config::Config;
pub use agentd_core::error::Refusal;
pub use agentd_core::id::{Handle, RunId};
pub use agentd_core::note::{Level, Note};
pub use agentd_core::record::{Record, ResultObject, Status};
pub use agentd_host::error::DriverError;
pub use agentd_host::mailbox::{PostError, Poster};
pub use agentd_host::outside::{Outside, StoreAnswer};
pub use agentd_host::reactor::{Ended, Options};
pub use agentd_host::signals::Signals;
pub use agentd_host::spawner::Image;
pub use around::Recorder;
pub use builder::{Builder, Driver};
pub use driver::{run, run_blocking};
pub use error::{BuildError, CallError};
pub use news::{News, Subscription};
pub use run::{Run, RunStatus, Turn};
pub use saving::SaveError;
pub use supervisor::Supervisor;
pub use tools::{ToolCall, Tools};
pub use work::Work;

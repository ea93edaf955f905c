//! agentd as a library: what its one-line binaries call.
#![forbid(unsafe_code)]

pub mod child;
mod cli;
mod client;
pub mod config;
pub mod driver;
#[cfg(feature = "tokio")]
pub mod embed;
pub mod environment;
mod export;
pub mod files;
mod fork;
mod http;
pub mod journal;
pub mod keeper;
mod lock;
pub mod log;
mod poll;
pub mod replay;
pub mod secrets;
pub mod serve;
mod sessions;
pub mod store;
pub mod supervise;
pub mod tree;

use std::process::ExitCode;

/// The whole program: supervisor, child, keeper or client, by environment and arguments.
pub fn main() -> ExitCode {
    child_main().unwrap_or_else(|| cli::main(std::env::args_os()))
}

/// Does the work of a child, of a keeper or of the built-in file server, if this process was started as one, and gives
/// its exit code; `None` in any other.
///
/// A supervisor's children are by default the program that it runs in, started anew. So a program that embeds one calls
/// this first thing in main, before there is a thread or a runtime:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = agentd::child_main() {
///         return code;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn child_main() -> Option<ExitCode> {
    let marked = |name| std::env::var_os(name).is_some_and(|one| one == "1");
    if std::env::var_os(environment::KEEPER).is_some() {
        Some(keeper::main())
    } else if marked(environment::FILES) {
        Some(cli::main(std::env::args_os()))
    } else if marked(environment::SUBAGENT) {
        Some(child::main())
    } else {
        None
    }
}

//! agentd as a library: what its one-line binaries call.
#![forbid(unsafe_code)]

pub mod child;
mod cli;
pub mod config;
pub mod driver;
pub mod environment;
pub mod files;
mod fork;
pub mod journal;
pub mod keeper;
pub mod log;
mod poll;
pub mod secrets;
pub mod supervise;
pub mod tree;

use std::process::ExitCode;

/// The whole program: supervisor, child, keeper or client, by environment and arguments.
pub fn main() -> ExitCode {
    if std::env::var_os(environment::KEEPER).is_some() {
        return keeper::main();
    }
    if std::env::var_os(environment::SUBAGENT).is_some_and(|one| one == "1") {
        return child::main();
    }
    cli::main(std::env::args_os())
}

//! agentd as a library: what its one-line binaries call.
#![forbid(unsafe_code)]

pub mod files;

use std::process::ExitCode;

/// The whole program: supervisor, child, keeper or client, by environment and arguments.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}

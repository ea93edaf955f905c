//! `agentd serve`: the daemon, until it has drained.

use super::{ServeArgs, exit};
use crate::config::{Flags, LogFormat};
use crate::log::Format;
use crate::serve::{self, Manager, OpenError};
use crate::supervise::Supervisor;
use agentd_host::service;
use std::io::{self, IsTerminal};

/// Runs the daemon, under a service manager or without one. It exits 0 after a drain, whatever asked for it.
pub(super) fn serve(args: ServeArgs) -> u8 {
    let handed = match service::take() {
        Ok(handed) => handed,
        Err(error) => {
            eprintln!("agentd: {error}");
            return exit::USAGE;
        }
    };
    let ServeArgs { config, journal, driver, log_level, log_format } = args;
    let flags = Flags { journal, log_level, log_format, ..Flags::default() };
    let mut loaded = match super::run::load(config.config, flags) {
        Ok(loaded) => loaded,
        Err((said, code)) => {
            eprint!("{said}");
            return code;
        }
    };
    serve::as_daemon(&mut loaded);
    let format = match loaded.settings.log_format {
        Some(LogFormat::Json) => Format::Json,
        Some(LogFormat::Text) => Format::Text,
        None if io::stderr().is_terminal() => Format::Text,
        None => Format::Json,
    };
    let manager = match Manager::of(&handed, loaded.config.drain_timeout) {
        Ok(manager) => manager,
        Err(error) => {
            eprintln!("agentd: NOTIFY_SOCKET: {error}");
            return exit::USAGE;
        }
    };
    let open = match serve::open(&loaded.config.agent, &loaded.settings, handed.sockets) {
        Ok(open) => open,
        Err(error) => {
            eprintln!("agentd: {error}");
            return match error {
                OpenError::Taken(_) | OpenError::Store(_) => exit::SERVER,
                OpenError::System { .. }
                | OpenError::InTheWay(_)
                | OpenError::Passed(_)
                | OpenError::Secret { .. }
                | OpenError::Tls(_) => exit::FAILED,
            };
        }
    };
    open.configure(&mut loaded.config);
    let mut supervisor = match Supervisor::start(loaded, driver.driver, format, false) {
        Ok(supervisor) => supervisor,
        Err(error) => return super::answer::not_started(&error),
    };
    let served = supervisor.serve(open, manager);
    let code = match &served {
        Ok(_) => exit::COMPLETED,
        Err(error) => return super::answer::failed(supervisor, error),
    };
    supervisor.close();
    code
}

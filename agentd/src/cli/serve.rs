//! `agentd serve`: the daemon, until it has drained.

use super::args::{ConfigArgs, LogArgs};
use super::exit;
use crate::config::Flags;
use crate::serve::{self, Manager, OpenError};
use crate::supervise::{Supervisor, log_format_of_daemon};
use agentd_host::service;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    log: LogArgs,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  agentd serve                            with ./agentd.yaml; the log is on stderr
  agentd serve -c agentd.yaml &
  agentd send root \"What is in here?\"    ask it, and print its answer
  agentd ps                               what runs, and what it waits on
  agentd top                              the same, live, with keys to act on it
  agentd drain                            let runs end, then end the daemon

The control socket is $RUNTIME_DIRECTORY/control.sock, else $XDG_RUNTIME_DIR/agentd/NAME.sock, else in the state directory,
which is $STATE_DIRECTORY, else $XDG_STATE_HOME/agentd/NAME. NAME is agent.name, by default the stem of the file.
A service manager (systemd) is told how it stands (NOTIFY_SOCKET, WATCHDOG_USEC), and its sockets are used (LISTEN_FDS).
SIGTERM and SIGINT drain; a second one ends what is left. Exit codes: 0 drained, 1 it could not begin or go on,
2 usage or configuration, 4 there is no key, 6 another daemon has its place or the store cannot be used.";

/// Runs the daemon, under a service manager or without one. It exits 0 after a drain, whatever asked for it.
pub(super) fn serve(args: ServeArgs) -> u8 {
    let handed = match service::take() {
        Ok(handed) => handed,
        Err(error) => {
            eprintln!("agentd: {error}");
            return exit::USAGE;
        }
    };
    let ServeArgs { config, log: LogArgs { journal, driver, log_level, log_format } } = args;
    let flags = Flags { journal, log_level, log_format, ..Flags::default() };
    let (sources, mut loaded) = match super::run::load(config.config, flags) {
        Ok(loaded) => loaded,
        Err((said, code)) => {
            eprint!("{said}");
            return code;
        }
    };
    serve::as_daemon(&mut loaded);
    let format = log_format_of_daemon(loaded.settings.log_format);
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
    let reload = serve::Reload::new(sources, &loaded.config, &loaded.settings, loaded.effective.clone());
    let mut supervisor = match Supervisor::start(loaded, driver.driver, format, false) {
        Ok(supervisor) => supervisor,
        Err(error) => return super::answer::not_started(&error),
    };
    let served = supervisor.serve(open, reload, manager);
    let code = match &served {
        Ok(_) => exit::COMPLETED,
        Err(error) => return super::answer::failed(supervisor, error),
    };
    supervisor.close();
    code
}

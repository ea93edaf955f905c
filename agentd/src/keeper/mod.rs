//! The keeper: the local parent of one MCP server, which takes down everything the server started (S14.2).
//!
//! Owns one server's life between a child's lifeline and the kernel. It speaks no MCP and sees none of the
//! server's bytes: descriptors 0, 1 and 2 are the server's own pipes, handed on. Refuses to run anything without a
//! lifeline. Started by a child before its threads; the child never waits for it in order to go on.
//!
//! | the keeper sees | and does |
//! |---|---|
//! | `C` on the lifeline (the child has closed the server's input) | waits 2 s, SIGTERM below, 2 s, SIGKILL below |
//! | end of file without `C`, or SIGTERM (its child's death) | SIGKILL below, at once |
//! | the server's own end | reports it, SIGTERM to what it left, 2 s, SIGKILL below; waits for a word |
//! | `A` on the lifeline after that, with two descriptors | starts the program once more, on these |
//!
//! "Below" is everything that descends from the keeper, whatever session or group it moved to: the keeper is a
//! subreaper, so what is orphaned lands here.

pub mod message;
mod program;
mod watch;
pub(crate) mod word;

pub(crate) use program::find;

use crate::{environment, fork};
use agentd_host::entry;
use agentd_host::process::{Pid, Process};
use agentd_host::tree::{Below, Mode};
use message::{KeeperReport, KeeperSpec};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;
use watch::Watch;

/// A keeper's main. Every path out of it leaves nothing below.
pub fn main() -> ExitCode {
    match begin() {
        Ok(mut lifeline) => match keep(&mut lifeline) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                let error = format!("its keeper cannot work: {e}");
                // The child may be gone, which is one way to get here.
                let _unheard = message::write(&mut lifeline, &KeeperReport::ExecFailed { error });
                ExitCode::FAILURE
            }
        },
        Err(e) => {
            eprintln!("agentd: a keeper is started by an agentd child, not by hand: {e}");
            ExitCode::from(2)
        }
    }
}

fn begin() -> Result<UnixStream, String> {
    let parent = number(environment::PARENT_PID)?;
    let lifeline = number(environment::KEEPER)?;
    entry::keeper(parent, lifeline).map_err(|e| e.to_string())
}

fn number<T: std::str::FromStr>(name: &str) -> Result<T, String> {
    let text = std::env::var_os(name).ok_or_else(|| format!("{name} is not set"))?;
    text.to_str()
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| format!("{name} is {text:?}, which is no number"))
}

fn keep(lifeline: &mut UnixStream) -> io::Result<()> {
    let Some(spec) = message::read::<KeeperSpec>(lifeline)? else { return Ok(()) };
    // A name is for people; without it the keeper works as well.
    let _unnamed = entry::name(&format!("keeper:{}", spec.server));
    let mut below = Below::new(Mode::Subreaper)?;
    // From here on SIGTERM is something to act on: until now there was nothing to take down.
    let signals = watch::signals()?;
    let mut pipes = None;
    loop {
        let server = match start(&spec, pipes) {
            Ok(server) => server,
            Err(error) => return message::write(lifeline, &KeeperReport::ExecFailed { error }),
        };
        let kept = catch_unwind(AssertUnwindSafe(|| {
            let pid = server.pid().raw();
            message::write(lifeline, &KeeperReport::Started { pid })?;
            let_go_of_the_servers_pipes()?;
            Watch::new(server, lifeline, &signals, &mut below)?.run()
        }));
        // However that ended, nothing may be left.
        let swept = watch::sweep(&mut below, &BTreeSet::new());
        pipes = kept.unwrap_or_else(|_| Err(io::Error::other("a panic in the keeper")))?;
        swept?;
        if pipes.is_none() {
            return Ok(());
        }
    }
}

/// Starts the server in a process group of its own, on the keeper's own pipes or on an input and output that came.
fn start(spec: &KeeperSpec, pipes: Option<(OwnedFd, OwnedFd)>) -> Result<Process, String> {
    let mut command = program::command(spec)?;
    if let Some((stdin, stdout)) = pipes {
        command.stdin(stdin).stdout(stdout);
    }
    command.process_group(0);
    entry::clean_slate(&mut command);
    let child = fork::start(&mut command).map_err(|e| program::explain(&command, &e))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
    let pid = pid.ok_or_else(|| format!("the system named the server {}, which is no pid", child.id()))?;
    Process::open(pid).map_err(|e| format!("cannot hold the server's process {pid}: {e}"))
}

/// As long as the keeper holds them, a server that closes its output still looks open to the child. Stderr stays:
/// it is where a fault of the keeper itself would be read.
fn let_go_of_the_servers_pipes() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}

/// How long a step of the ladder waits for the one before to work.
const GRACE: Duration = Duration::from_secs(2);

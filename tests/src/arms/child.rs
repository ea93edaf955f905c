//! The scripted child: the simulator's own program, hosted by a real process. What the simulator's world does for a
//! program (pipes, a clock, its deeds) is done here with system calls, so that one script means the same everywhere.
//!
//! It begins as every child of agentd does (`agentd_host::entry`), and is started by the supervisor of `real`, never
//! by hand. Its scripts and the folder of its gates are named by its environment.

use super::gates::Gates;
use super::offspring;
use crate::sim::plan::{Fault, Plan};
use crate::sim::program::{Deed, Program};
use agentd_core::event::Exit;
use agentd_core::time::Instant;
use agentd_host::entry;
use agentd_host::marker;
use agentd_host::signals::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// The file that holds the plan.
pub(super) const PLAN: &str = "AGENTD_ARMS_PLAN";

/// The folder of the gates.
pub(super) const GATES: &str = "AGENTD_ARMS_GATES";

/// The exit code of a program that was told what it never may be, or that cannot be hosted.
const COMPLAINS: u8 = 70;

/// The main of a child.
pub(super) fn main() -> ExitCode {
    match Host::begin().and_then(|mut host| host.live()) {
        Ok(never) => match never {},
        Err(what) => {
            eprintln!("{what}");
            ExitCode::from(COMPLAINS)
        }
    }
}

/// What hosts the program.
struct Host {
    program: Program,
    start: std::time::Instant,
    signals: Signals,
    gates: Gates,
    stdin: std::io::Stdin,
    stdin_open: bool,
}

/// There is none: a program ends its process.
enum Never {}

impl Host {
    fn begin() -> Result<Host, String> {
        let variable = |name: &str| std::env::var(name).map_err(|e| format!("{name}: {e}"));
        let parent =
            variable(marker::PARENT_PID)?.parse().map_err(|e| format!("{}: {e}", marker::PARENT_PID))?;
        entry::child(parent, &variable(marker::NAME)?).map_err(|e| e.to_string())?;
        let signals = Signals::take().map_err(|e| format!("the signals: {e}"))?;
        let text = std::fs::read_to_string(variable(PLAN)?).map_err(|e| format!("the plan: {e}"))?;
        let plan: Plan = serde_json::from_str(&text).map_err(|e| format!("the plan: {e}"))?;
        let fails = plan.faults.iter().any(|f| matches!(f, Fault::SpawnFrameFails { .. }));
        let mut program = Program::new(Arc::new(plan));
        program.unspoken = fails;
        let gates = Gates::watch(PathBuf::from(variable(GATES)?)).map_err(|e| format!("the gates: {e}"))?;
        let (start, stdin) = (std::time::Instant::now(), std::io::stdin());
        Ok(Host { program, start, signals, gates, stdin, stdin_open: true })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Turns of the program until it ends its process.
    fn live(&mut self) -> Result<Never, String> {
        loop {
            for gate in self.gates.open().map_err(|e| format!("the gates: {e}"))? {
                self.program.gate_opened(&gate);
            }
            let deeds = self.turn()?;
            for deed in deeds {
                self.commit(deed)?;
            }
            self.hear()?;
        }
    }

    /// As the simulator's world lets it: what it says is in the pipe before it is let go on.
    fn turn(&mut self) -> Result<Vec<Deed>, String> {
        let mut deeds = self.program.turn(self.now());
        self.write()?;
        let goes_on = |d: &Deed| matches!(d, Deed::Forks(_) | Deed::ClosesStdout | Deed::Mutters(_));
        if deeds.iter().all(goes_on) {
            deeds.extend(self.program.turn(self.now()));
            self.write()?;
        }
        match self.program.complaint.take() {
            Some(what) => Err(what),
            None => Ok(deeds),
        }
    }

    /// In one write, so that what belongs together is read together where a pipe can do that.
    fn write(&mut self) -> Result<(), String> {
        let bytes: Vec<u8> = self.program.out.drain(..).collect();
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            // Its supervisor is gone, and so is it soon.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(e) => Err(format!("stdout: {e}")),
        }
    }

    /// Waits for what comes next: bytes, a signal, a gate, or its own time.
    fn hear(&mut self) -> Result<(), String> {
        let reads = self.stdin_open && self.program.reads();
        let limit = self.program.next_turn().map(|at| at.since(self.now()));
        let limit = limit.map(|d| Timespec {
            tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        let mut watched = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.gates.as_fd(), PollFlags::IN),
        ];
        if reads {
            watched.push(PollFd::new(&self.stdin, PollFlags::IN));
        }
        match poll(&mut watched, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(format!("poll: {e}")),
        }
        let readable = watched.get(2).is_some_and(|fd| !fd.revents().is_empty());
        drop(watched);
        while let Some(signal) = self.signals.read().map_err(|e| format!("the signals: {e}"))? {
            if signal == agentd_core::event::SupervisorSignal::Term {
                self.program.terminated(self.now());
            }
        }
        if readable { self.read() } else { Ok(()) }
    }

    fn read(&mut self) -> Result<(), String> {
        let mut bytes = vec![0; 65_536];
        let count = self.stdin.lock().read(&mut bytes).map_err(|e| format!("stdin: {e}"))?;
        let now = self.now();
        match bytes.get(..count) {
            Some(read) if count > 0 => self.program.received(now, read),
            _ => {
                self.stdin_open = false;
                self.program.stdin_ended(now);
            }
        }
        Ok(())
    }

    fn commit(&mut self, deed: Deed) -> Result<(), String> {
        match deed {
            Deed::Ends(Exit::Code(code)) => std::process::exit(code),
            Deed::Ends(Exit::Signal(signal)) => return die(signal),
            Deed::Ends(Exit::Unknown) => return Err("nobody ends like this".to_owned()),
            Deed::ClosesStdout => {
                let nowhere = std::fs::File::options().write(true).open("/dev/null");
                let closed = nowhere.and_then(|file| Ok(rustix::stdio::dup2_stdout(file)?));
                closed.map_err(|e| format!("closing stdout: {e}"))?;
            }
            Deed::Forks(what) => offspring::start(&what)?,
            Deed::Stops => kill_process(getpid(), Signal::STOP).map_err(|e| format!("SIGSTOP: {e}"))?,
            Deed::Mutters(bytes) => {
                std::io::stderr().write_all(&bytes).map_err(|e| format!("stderr: {e}"))?;
            }
            // It is hung because its program does nothing any more.
            Deed::Hangs => {}
        }
        Ok(())
    }
}

/// Dies by a signal, which this process may have blocked or handled.
fn die(signal: i32) -> Result<(), String> {
    let named = nix::sys::signal::Signal::try_from(signal).map_err(|e| format!("signal {signal}: {e}"))?;
    nix::sys::signal::SigSet::empty().thread_set_mask().map_err(|e| format!("the mask: {e}"))?;
    // Rust's own handler of faults steps back at the first and leaves the second to the kernel.
    for _ in 0..2 {
        nix::sys::signal::raise(named).map_err(|e| format!("raise: {e}"))?;
    }
    Err(format!("signal {signal} does not end a process"))
}

//! One server under watch: what ends it, and the ladder that ends what it leaves.
//!
//! Owns the poll loop of a keeper. Refuses to return while anything below lives, within the bound of
//! [`limits::SWEEP_WAIT`]. Called by [`super`] once a run.

use super::GRACE;
use super::message::{self, KeeperReport};
use super::word::{self, Word};
use crate::poll;
use agentd_core::action::ChildSignal;
use agentd_core::limits;
use agentd_host::process::{Pid, Process};
use agentd_host::tree::{self, Below};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// SIGTERM (the child died), what else is sent to end a process, and SIGCHLD (something that landed here ended), from
/// now on read from a descriptor: a keeper that died of one would leave its server.
pub(super) fn signals() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD] {
        mask.add(signal);
    }
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// Kills everything below but `known`, until nothing is left or the bound is met.
pub(super) fn sweep(below: &mut Below, known: &BTreeSet<Pid>) -> io::Result<()> {
    let until = Instant::now() + limits::SWEEP_WAIT;
    let mut pauses = limits::SWEEP_PAUSES.iter();
    let mut pause = limits::SWEEP_PAUSES[limits::SWEEP_PAUSES.len() - 1];
    loop {
        let remaining = below.pass(known, true)?.remaining;
        if remaining == 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(io::Error::other(format!("{remaining} processes outlive SIGKILL")));
        }
        pause = pauses.next().copied().unwrap_or(pause);
        std::thread::sleep(pause);
    }
}

/// Where a server stands on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody wants it to end.
    Serving,
    /// Its input is closed; what is left at `until` gets SIGTERM.
    Leaving { until: Instant },
    /// It was told to end; what is left at `until` gets SIGKILL.
    Terminating { until: Instant },
    /// SIGKILL now.
    Killing,
}

/// A server and all that can end it.
pub(super) struct Watch<'a> {
    server: Process,
    /// Its end was seen and reported; it is a zombie until the sweep.
    ended: bool,
    lifeline: &'a mut UnixStream,
    /// The child has closed its end after it asked for a close: nothing more is read there.
    lifeline_done: bool,
    /// The child wants the program once more, with this input and output.
    again: Option<(OwnedFd, OwnedFd)>,
    /// The child wants no more of it.
    closed: bool,
    signals: &'a SignalFd,
    below: &'a mut Below,
    stage: Stage,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        server: Process,
        lifeline: &'a mut UnixStream,
        signals: &'a SignalFd,
        below: &'a mut Below,
    ) -> io::Result<Watch<'a>> {
        lifeline.set_nonblocking(true)?;
        Ok(Watch {
            server,
            ended: false,
            lifeline,
            lifeline_done: false,
            again: None,
            closed: false,
            signals,
            below,
            stage: Stage::Serving,
        })
    }

    /// Returns when the server is dead, reported, and nothing it started lives; with a new program's input and output,
    /// when the child wants one.
    pub(super) fn run(mut self) -> io::Result<Option<(OwnedFd, OwnedFd)>> {
        loop {
            self.look_at_server()?;
            if self.ended && self.is_alone()? {
                break;
            }
            self.climb()?;
            if self.stage == Stage::Killing {
                self.kill()?;
                break;
            }
            self.wait()?;
            self.read_signals()?;
            self.read_lifeline()?;
        }
        self.server.reap()?;
        self.word()
    }

    /// What the child wants after the server's own end. One that is not heard of again ends, which is a word too.
    fn word(&mut self) -> io::Result<Option<(OwnedFd, OwnedFd)>> {
        while !(self.closed || self.lifeline_done || self.stage == Stage::Killing || self.again.is_some()) {
            self.stage = Stage::Serving;
            self.wait()?;
            while let Some(signal) = self.signals.read_signal()? {
                if signal.ssi_signo != Signal::SIGCHLD as u32 {
                    self.stage = Stage::Killing;
                }
            }
            if self.stage == Stage::Serving {
                self.read_lifeline()?;
            }
        }
        Ok(self.again.take())
    }

    /// Sleeps until something happens or the stage is over.
    fn wait(&self) -> io::Result<()> {
        let timeout = match self.stage {
            Stage::Serving => None,
            Stage::Leaving { until } | Stage::Terminating { until } => {
                Some(until.saturating_duration_since(Instant::now()))
            }
            Stage::Killing => Some(Duration::ZERO),
        };
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        if !self.ended {
            fds.push(PollFd::new(&self.server, PollFlags::IN));
        }
        if !self.lifeline_done {
            fds.push(PollFd::new(&*self.lifeline, PollFlags::IN));
        }
        poll::wait_for(&mut fds, timeout)
    }

    fn read_signals(&mut self) -> io::Result<()> {
        let mut orphans = false;
        while let Some(signal) = self.signals.read_signal()? {
            if signal.ssi_signo == Signal::SIGCHLD as u32 {
                orphans = true;
            } else {
                self.stage = Stage::Killing;
            }
        }
        if orphans {
            self.below.reap_orphans(&self.known())?;
        }
        Ok(())
    }

    fn read_lifeline(&mut self) -> io::Result<()> {
        while !self.lifeline_done {
            match word::receive(self.lifeline) {
                Ok(None) if self.stage == Stage::Serving => return self.child_is_gone(),
                Ok(None) => self.lifeline_done = true,
                Ok(Some(Word::Close)) => self.leave(),
                Ok(Some(Word::Again(stdin, stdout))) => self.again = Some((stdin, stdout)),
                // Nothing else is ever sent; a byte that is there all the same changes nothing.
                Ok(Some(Word::Other)) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return self.child_is_gone(),
            }
        }
        Ok(())
    }

    fn child_is_gone(&mut self) -> io::Result<()> {
        self.lifeline_done = true;
        self.stage = Stage::Killing;
        Ok(())
    }

    fn leave(&mut self) {
        self.closed = true;
        if self.stage == Stage::Serving {
            self.stage = Stage::Leaving { until: Instant::now() + GRACE };
        }
    }

    /// Notices the server's end, which by itself means that what it left is told to end too.
    fn look_at_server(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let Some(exit) = self.server.exit()? else { return Ok(()) };
        self.ended = true;
        self.report(exit);
        self.below.reap_orphans(&self.known())?;
        if self.stage == Stage::Serving {
            self.terminate()?;
        }
        Ok(())
    }

    /// The child may be gone or may have closed its end; it is told all the same.
    fn report(&mut self, exit: agentd_core::event::Exit) {
        let _unheard = message::write(self.lifeline, &KeeperReport::Exited(exit));
    }

    /// Takes the next step of the ladder when this one's time is over.
    fn climb(&mut self) -> io::Result<()> {
        match self.stage {
            Stage::Leaving { until } if Instant::now() >= until => self.terminate(),
            Stage::Terminating { until } if Instant::now() >= until => {
                self.stage = Stage::Killing;
                Ok(())
            }
            Stage::Serving | Stage::Leaving { .. } | Stage::Terminating { .. } | Stage::Killing => Ok(()),
        }
    }

    fn terminate(&mut self) -> io::Result<()> {
        for process in tree::descendants(Pid::own())? {
            process.identity().terminate();
        }
        self.stage = Stage::Terminating { until: Instant::now() + GRACE };
        Ok(())
    }

    /// The group first, in one call that no fork in it can outrun while the leader pins its number; then all
    /// else.
    fn kill(&mut self) -> io::Result<()> {
        // Its group may be empty by now.
        let _gone = self.server.signal_group(ChildSignal::Kill);
        if !self.ended {
            let mut fds = [PollFd::new(&self.server, PollFlags::IN)];
            poll::wait_for(&mut fds, Some(limits::SWEEP_WAIT))?;
            if let Some(exit) = self.server.exit()? {
                self.ended = true;
                self.report(exit);
            }
        }
        sweep(self.below, &self.known())
    }

    /// Whether the server's zombie is all that is below.
    fn is_alone(&self) -> io::Result<bool> {
        Ok(tree::descendants(Pid::own())?.iter().all(|process| process.pid == self.server.pid()))
    }

    fn known(&self) -> BTreeSet<Pid> {
        BTreeSet::from([self.server.pid()])
    }
}

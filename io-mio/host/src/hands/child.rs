//! One child in the table: its process, our ends of its pipes, and what they are ready for.
//!
//! Owns the order "what the pipes hold, then the exit" (S2.6). Called by [`super::Hands`].

use crate::ears::{Ears, End, Key};
use crate::error::OsError;
use crate::pipes::{self, Left, Read, Then, WriteQueue};
use crate::process::Process;
use crate::spawner::Born;
use agentd_core::bytes::Bytes;
use agentd_core::event::{Event, Exit};
use agentd_core::id::NodeId;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

#[derive(Debug)]
pub(super) struct Child {
    node: NodeId,
    pub(super) process: Process,
    life: Life,
    stdin: Option<Stdin>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    /// A `Reap` came before the exit; it is done when the exit is told.
    pub(super) to_be_reaped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// As far as is known.
    Running,
    /// The pidfd is readable; nobody has looked yet.
    Perhaps,
    /// It ended, and its pipes held bytes at that moment that are not all read yet.
    Ending(Exit),
    /// The core has been told.
    Told,
}

#[derive(Debug)]
struct Stdin {
    queue: WriteQueue,
    watched: bool,
}

/// Our end of a pipe that the child writes to.
#[derive(Debug)]
struct Output {
    fd: OwnedFd,
    end: End,
    /// It may hold bytes.
    ready: bool,
    /// What is still to be read before the exit is told.
    owed: Owed,
}

/// What a pipe held when its child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// All of it is read, or the child lives.
    Nothing,
    /// So much that one read did not empty it; this many bytes of it are left.
    Bytes(u64),
    /// Not looked at yet.
    Unknown,
}

impl Child {
    /// Takes over a child and watches it.
    ///
    /// # Errors
    /// It cannot be watched; the process is given back, watched by nothing.
    pub(super) fn take(node: NodeId, born: Born, ears: &mut impl Ears) -> Result<Child, (Process, OsError)> {
        let output = |fd, end| Some(Output { fd, end, ready: false, owed: Owed::Nothing });
        let mut child = Child {
            node,
            process: born.process,
            life: Life::Running,
            stdin: Some(Stdin { queue: WriteQueue::new(born.stdin), watched: false }),
            stdout: output(born.stdout, End::Stdout),
            stderr: output(born.stderr, End::Stderr),
            to_be_reaped: false,
        };
        match child.watch(ears) {
            Ok(()) => Ok(child),
            Err(e) => {
                child.close(ears);
                Err((child.process, e))
            }
        }
    }

    /// An edge on one of its descriptors.
    pub(super) fn ready(&mut self, end: End) {
        let output = match end {
            End::Exit => {
                if self.life == Life::Running {
                    self.life = Life::Perhaps;
                }
                return;
            }
            // The queue is flushed at the end of the turn.
            End::Stdin => return,
            End::Stdout => &mut self.stdout,
            End::Stderr => &mut self.stderr,
        };
        if let Some(output) = output {
            output.ready = true;
        }
    }

    /// One bounded share of work: one read of each pipe, and the exit once all it left is read. Returns the bytes
    /// read and whether more is known to wait.
    pub(super) fn serve(
        &mut self,
        scratch: &mut [u8],
        ears: &mut impl Ears,
        learned: &mut VecDeque<Event>,
    ) -> (usize, bool) {
        if self.life == Life::Perhaps {
            self.look_at_exit();
        }
        let node = self.node;
        let mut bytes = 0;
        bytes += self.read(End::Stdout, scratch, ears, learned, |bytes| Event::ChildBytes { node, bytes });
        bytes += self.read(End::Stderr, scratch, ears, learned, |bytes| Event::ChildStderr { node, bytes });
        let outputs = || [&self.stdout, &self.stderr].into_iter().flatten();
        let more = outputs().any(|output| output.ready);
        if let Life::Ending(exit) = self.life
            && outputs().all(|output| output.owed == Owed::Nothing)
        {
            self.life = Life::Told;
            learned.push_back(Event::ExitObserved { node, exit });
        }
        (bytes, more)
    }

    /// Whether the core knows of its end.
    pub(super) fn has_ended(&self) -> bool {
        self.life == Life::Told
    }

    /// Queues a frame. `false`: its stdin is closed.
    pub(super) fn send(&mut self, frame: Bytes) -> bool {
        match &mut self.stdin {
            Some(stdin) => {
                stdin.queue.push(frame);
                true
            }
            None => false,
        }
    }

    /// Closes stdin once what is queued has left.
    pub(super) fn close_stdin(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            stdin.queue.close_when_empty();
        }
    }

    /// Writes what its stdin takes. Returns whether to write again after the others.
    pub(super) fn flush(&mut self, ears: &mut impl Ears, learned: &mut VecDeque<Event>) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let node = self.node;
        let key = Key::Child(node, End::Stdin);
        let flushed = stdin.queue.flush().map_err(OsError::of("writev(2)", "the child's stdin"));
        let wrote = flushed.as_ref().map_or(0, |flushed| flushed.wrote);
        if wrote > 0 {
            learned.push_back(Event::ChildWrote { node, bytes: wrote });
        }
        let then = flushed.and_then(|flushed| {
            if flushed.then == Then::Full && !stdin.watched {
                ears.watch(key, stdin.queue.as_fd())
                    .map_err(OsError::of("epoll_ctl(2)", "the child's stdin"))?;
                stdin.watched = true;
            }
            Ok(flushed.then)
        });
        match then {
            Ok(Then::Idle | Then::Full) => false,
            Ok(Then::Again) => true,
            Ok(Then::Close) => {
                self.drop_stdin(ears);
                false
            }
            Err(e) => {
                learned.push_back(Event::ChildWriteFailed { node, error: e.to_string() });
                self.drop_stdin(ears);
                false
            }
        }
    }

    /// Ends every watch and closes our ends. The process stays as it is.
    pub(super) fn close(&mut self, ears: &mut impl Ears) {
        ears.unwatch(Key::Child(self.node, End::Exit), self.process.as_fd());
        self.drop_stdin(ears);
        for output in [self.stdout.take(), self.stderr.take()].into_iter().flatten() {
            ears.unwatch(Key::Child(self.node, output.end), output.fd.as_fd());
        }
    }

    fn watch(&self, ears: &mut impl Ears) -> Result<(), OsError> {
        ears.watch(Key::Child(self.node, End::Exit), self.process.as_fd())
            .map_err(OsError::of("epoll_ctl(2)", "the new child's pidfd"))?;
        for output in [&self.stdout, &self.stderr].into_iter().flatten() {
            ears.watch(Key::Child(self.node, output.end), output.fd.as_fd())
                .map_err(OsError::of("epoll_ctl(2)", "the new child's pipes"))?;
        }
        Ok(())
    }

    /// What the pipes hold at this moment was written before the end; what comes later, a grandchild wrote.
    fn look_at_exit(&mut self) {
        self.life = match self.process.exit() {
            Ok(None) => Life::Running,
            Ok(Some(exit)) => Life::Ending(exit),
            // waitid(2) on an own pidfd has no other failure that is known; it has ended all the same.
            Err(_) => Life::Ending(Exit::Unknown),
        };
        if self.life != Life::Running {
            for output in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
                output.owed = Owed::Unknown;
                output.ready = true;
            }
        }
    }

    /// Reads one share of one pipe, if it is ready.
    fn read(
        &mut self,
        end: End,
        scratch: &mut [u8],
        ears: &mut impl Ears,
        learned: &mut VecDeque<Event>,
        event: impl FnOnce(Bytes) -> Event,
    ) -> usize {
        let slot = if end == End::Stdout { &mut self.stdout } else { &mut self.stderr };
        let Some(output) = slot.as_mut().filter(|output| output.ready) else { return 0 };
        // A pipe that cannot be read says no more than one that ended.
        let read = pipes::read(&output.fd, scratch)
            .unwrap_or_else(|_| Read { bytes: Bytes::default(), left: Left::Ended });
        let count = read.bytes.len();
        if count > 0 {
            learned.push_back(event(read.bytes));
        }
        match read.left {
            Left::More => output.still_owes(count as u64),
            Left::Empty => {
                output.owed = Owed::Nothing;
                output.ready = false;
            }
            Left::Ended => {
                ears.unwatch(Key::Child(self.node, end), output.fd.as_fd());
                *slot = None;
                if end == End::Stdout {
                    learned.push_back(Event::ChildEof { node: self.node });
                }
            }
        }
        count
    }

    fn drop_stdin(&mut self, ears: &mut impl Ears) {
        if let Some(stdin) = self.stdin.take()
            && stdin.watched
        {
            ears.unwatch(Key::Child(self.node, End::Stdin), stdin.queue.as_fd());
        }
    }
}

impl Output {
    /// A read took `count` bytes and the pipe may hold more. What comes into it from now on is a grandchild's, so
    /// the debt is what it holds when it is first looked at, and only shrinks.
    fn still_owes(&mut self, count: u64) {
        self.owed = match self.owed {
            Owed::Nothing => Owed::Nothing,
            Owed::Bytes(left) if left > count => Owed::Bytes(left - count),
            Owed::Bytes(_) => Owed::Nothing,
            Owed::Unknown => match pipes::held(&self.fd) {
                Ok(held) if held > 0 => Owed::Bytes(held),
                Ok(_) | Err(_) => Owed::Nothing,
            },
        };
    }
}

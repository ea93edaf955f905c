//! The daemon's side of one child: two pipes with a capacity, and a queue before the one that leads down.

use crate::sim::program::Program;
use std::collections::VecDeque;

/// What the driver holds for one node.
pub(crate) struct Child {
    /// Counts processes from 0, for faults that name one.
    pub(crate) nth: u32,
    pub(crate) program: Program,
    /// Bytes that wait for room in the child's stdin.
    queue: VecDeque<u8>,
    stdin: VecDeque<u8>,
    stdout: VecDeque<u8>,
    capacity: usize,
    /// Close stdin once the queue is empty.
    pub(crate) closing: bool,
    /// The child knows of the end of its stdin.
    pub(crate) stdin_end_told: bool,
    /// The child closed its stdout.
    pub(crate) stdout_closed: bool,
    /// The driver knows of the end of the child's stdout.
    pub(crate) eof_told: bool,
    /// Its stdin was full, and the driver waits for room.
    pub(crate) writing: bool,
    /// The driver has seen its stdout readable and will read it.
    pub(crate) reading: bool,
    /// Its last words were read late, as planned.
    pub(crate) was_late: bool,
}

impl Child {
    pub(crate) fn new(nth: u32, program: Program, capacity: usize) -> Child {
        Child {
            nth,
            program,
            queue: VecDeque::new(),
            stdin: VecDeque::new(),
            stdout: VecDeque::new(),
            capacity,
            closing: false,
            stdin_end_told: false,
            stdout_closed: false,
            eof_told: false,
            writing: false,
            reading: false,
            was_late: false,
        }
    }

    /// Queues a frame for the child.
    pub(crate) fn queue(&mut self, frame: &[u8]) {
        self.queue.extend(frame);
    }

    /// Bytes queued and not yet in the pipe.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Nobody reads any more: the queue is dropped.
    pub(crate) fn drop_queue(&mut self) {
        self.queue.clear();
    }

    /// Moves queued bytes into the pipe, at most `most`; how many fitted.
    pub(crate) fn flush(&mut self, most: usize) -> u64 {
        let n = self.queue.len().min(self.capacity - self.stdin.len()).min(most);
        self.stdin.extend(self.queue.drain(..n));
        n as u64
    }

    /// What the child reads from its stdin.
    pub(crate) fn read_stdin(&mut self) -> Vec<u8> {
        self.stdin.drain(..).collect()
    }

    /// Whether the child would read the end of its stdin next.
    pub(crate) fn stdin_ended(&self) -> bool {
        self.closing && self.queue.is_empty() && self.stdin.is_empty()
    }

    /// The child writes as much as fits.
    pub(crate) fn write_stdout(&mut self) {
        if self.stdout_closed {
            self.program.out.clear();
            return;
        }
        let n = self.program.out.len().min(self.capacity - self.stdout.len());
        self.stdout.extend(self.program.out.drain(..n));
    }

    /// What the driver reads from the child's stdout, at most `most` bytes.
    pub(crate) fn read_stdout(&mut self, most: usize) -> Vec<u8> {
        let n = self.stdout.len().min(most.max(1));
        self.stdout.drain(..n).collect()
    }

    /// Whether the pipe from the child is empty.
    pub(crate) fn stdout_empty(&self) -> bool {
        self.stdout.is_empty()
    }
}

//! Our ends of a child's pipes: reading without waiting, and a queue that writes without waiting.
//!
//! Owns the coalescing of frames into few writes. Refuses nothing by size: the core bounds what it queues
//! (S2.7). Called by the hands.

use agentd_core::bytes::Bytes;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of one read, and the size of a pipe unless somebody changed it.
pub const READ: usize = 64 * 1024;

/// Bytes written to one child before others get their turn.
const WRITE: usize = 256 * 1024;

/// Frames in one `writev(2)`.
const SLICES: usize = 64;

/// Makes our end never wait. The child's end is another open file description and keeps waiting.
///
/// # Errors
/// `fcntl(2)`.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// What was read, and how the pipe was left.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// May be empty.
    pub bytes: Bytes,
    /// Whether more is to be had.
    pub left: Left,
}

/// How a read left the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It may hold more.
    More,
    /// It holds nothing now; what comes is a new edge.
    Empty,
    /// All writers have closed it, and it holds nothing.
    Ended,
}

/// Reads until `scratch` is full or the pipe says that it is empty. That it gave less than was asked for says
/// nothing: the end of file may have come with the same edge, and a writer can make its end hand out one write
/// at a time.
///
/// # Errors
/// `read(2)`; what was read before is lost, which only a broken descriptor can bring about.
pub fn read(fd: impl AsFd, scratch: &mut [u8]) -> io::Result<Read> {
    let mut filled = 0;
    let left = loop {
        if filled == scratch.len() {
            break Left::More;
        }
        match rustix::io::retry_on_intr(|| rustix::io::read(&fd, &mut scratch[filled..])) {
            Ok(0) => break Left::Ended,
            Ok(n) => filled += n,
            Err(rustix::io::Errno::AGAIN) => break Left::Empty,
            Err(e) => return Err(e.into()),
        }
    };
    Ok(Read { bytes: Bytes::from(&scratch[..filled]), left })
}

/// Bytes that wait in the pipe now.
///
/// # Errors
/// `ioctl(FIONREAD)`.
pub fn held(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}

/// Frames on their way into a child's stdin.
#[derive(Debug)]
pub struct WriteQueue {
    fd: OwnedFd,
    frames: VecDeque<Bytes>,
    /// Bytes of the first frame that have left.
    sent: usize,
    closing: bool,
}

/// What a flush came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// Bytes that left.
    pub wrote: u64,
    /// What to do next.
    pub then: Then,
}

/// What a queue waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing: it is empty.
    Idle,
    /// The pipe is full: wait until it is writable.
    Full,
    /// Its share is used up: flush again after the others.
    Again,
    /// It is empty and was to be closed: drop it.
    Close,
}

impl WriteQueue {
    /// A queue into `fd`, which never waits (see [`set_nonblocking`]).
    pub fn new(fd: OwnedFd) -> WriteQueue {
        WriteQueue { fd, frames: VecDeque::new(), sent: 0, closing: false }
    }

    /// Queues one frame.
    pub fn push(&mut self, frame: Bytes) {
        if !frame.is_empty() {
            self.frames.push_back(frame);
        }
    }

    /// To be closed once what is queued has left.
    pub fn close_when_empty(&mut self) {
        self.closing = true;
    }

    /// Writes what the pipe takes, within one turn's share.
    ///
    /// # Errors
    /// `writev(2)`: `EPIPE` when the child has closed its end. The bytes that left before are lost count of.
    pub fn flush(&mut self) -> io::Result<Flushed> {
        let mut wrote = 0;
        while !self.frames.is_empty() {
            if wrote >= WRITE {
                return Ok(Flushed { wrote: wrote as u64, then: Then::Again });
            }
            match self.write_some(WRITE - wrote) {
                Ok(n) => wrote += n,
                Err(rustix::io::Errno::AGAIN) => {
                    return Ok(Flushed { wrote: wrote as u64, then: Then::Full });
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Flushed { wrote: wrote as u64, then: if self.closing { Then::Close } else { Then::Idle } })
    }

    /// One `writev(2)` of at most `limit` bytes.
    fn write_some(&mut self, limit: usize) -> Result<usize, rustix::io::Errno> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (mut count, mut room) = (0, limit);
        for (slice, frame) in slices.iter_mut().zip(&self.frames) {
            let unsent = if count == 0 { &frame[self.sent..] } else { frame };
            let part = &unsent[..unsent.len().min(room)];
            *slice = IoSlice::new(part);
            count += 1;
            room -= part.len();
            if room == 0 {
                break;
            }
        }
        let wrote = rustix::io::retry_on_intr(|| rustix::io::writev(&self.fd, &slices[..count]))?;
        self.advance(wrote);
        Ok(wrote)
    }

    /// Forgets `wrote` bytes from the front.
    fn advance(&mut self, mut wrote: usize) {
        while let Some(first) = self.frames.front() {
            let unsent = first.len() - self.sent;
            if wrote < unsent {
                self.sent += wrote;
                return;
            }
            wrote -= unsent;
            self.sent = 0;
            self.frames.pop_front();
        }
    }
}

impl AsFd for WriteQueue {
    /// Writable when a full pipe has room again.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn pipe() -> (std::io::PipeReader, WriteQueue) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        set_nonblocking(&writer).expect("fcntl works");
        (reader, WriteQueue::new(writer.into()))
    }

    #[test]
    fn frames_leave_whole_and_in_order_through_a_pipe_that_is_full_again_and_again() {
        let (mut reader, mut queue) = pipe();
        let mut wanted = Vec::new();
        // Sizes around a pipe's and around the number of slices, and an empty one.
        for (i, size) in [1, 65_535, 65_536, 65_537, 0, 3, 300_000].into_iter().chain([7; 200]).enumerate() {
            let frame = vec![i as u8; size];
            wanted.extend_from_slice(&frame);
            queue.push(frame.into());
        }
        queue.close_when_empty();
        let (mut got, mut wrote, mut full) = (Vec::new(), 0, 0);
        let mut some = vec![0; 10_000];
        loop {
            let flushed = queue.flush().expect("the reader is there");
            wrote += flushed.wrote;
            match flushed.then {
                Then::Full => full += 1,
                Then::Again => continue,
                Then::Close => break,
                Then::Idle => panic!("it was to be closed"),
            }
            let n = reader.read(&mut some).expect("the pipe holds bytes");
            got.extend_from_slice(&some[..n]);
        }
        drop(queue);
        reader.read_to_end(&mut got).expect("the pipe ends");
        assert!(full > 3, "the pipe was full {full} times");
        assert_eq!(wrote, wanted.len() as u64);
        assert!(got == wanted, "{} bytes of {}", got.len(), wanted.len());
    }

    #[test]
    fn one_turn_writes_its_share_and_no_more() {
        let (reader, mut queue) = pipe();
        rustix::pipe::fcntl_setpipe_size(&reader, 1 << 20).expect("a large pipe");
        queue.push(vec![0; 600_000].into());
        queue.push(vec![1; 300_000].into());
        let share = Flushed { wrote: WRITE as u64, then: Then::Again };
        for _ in 0..3 {
            assert_eq!(queue.flush().expect("the reader is there"), share);
        }
        let rest = Flushed { wrote: 900_000 - 3 * WRITE as u64, then: Then::Idle };
        assert_eq!(queue.flush().expect("the reader is there"), rest);
    }

    #[test]
    fn a_closed_end_is_an_error_and_not_a_signal() {
        let (reader, mut queue) = pipe();
        queue.push(vec![0; 10].into());
        drop(reader);
        assert_eq!(queue.flush().expect_err("nobody reads").raw_os_error(), Some(nix::libc::EPIPE));
    }

    #[test]
    fn reading_tells_bytes_from_nothing_from_the_end() {
        let (reader, mut queue) = pipe();
        set_nonblocking(&reader).expect("fcntl works");
        let mut scratch = [0; 4];
        let mut next = || {
            let Read { bytes, left } = read(&reader, &mut scratch).expect("read works");
            (String::from_utf8(bytes.to_vec()).expect("text"), left)
        };
        assert_eq!(next(), (String::new(), Left::Empty));
        queue.push(b"abcdef".as_slice().into());
        queue.flush().expect("the reader is there");
        assert_eq!(held(&reader).expect("ioctl works"), 6);
        assert_eq!(next(), ("abcd".to_owned(), Left::More));
        assert_eq!(next(), ("ef".to_owned(), Left::Empty));
        queue.push(b"gh".as_slice().into());
        queue.flush().expect("the reader is there");
        drop(queue);
        assert_eq!(next(), ("gh".to_owned(), Left::Ended), "the end comes with the last bytes");
        assert_eq!(next(), (String::new(), Left::Ended));
    }
}

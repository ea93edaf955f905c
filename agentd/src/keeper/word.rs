//! What a child says to a keeper after the spec: one byte, which may have descriptors with it.
//!
//! Owns the bytes and what comes with them. Refuses descriptors that are not as many as the word needs: they are closed.
//! Used by [`super::watch`] and by the child's server threads.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The server's input is closed, let it end in its own time. End of file without it means that the child is dead.
pub(crate) const CLOSE: u8 = b'C';

/// The server has ended; start its program once more. With it come the new one's input and output.
pub(super) const AGAIN: u8 = b'A';

/// A word that came.
#[derive(Debug)]
pub(super) enum Word {
    Close,
    /// The new program's input and output.
    Again(OwnedFd, OwnedFd),
    /// No word that is ever sent.
    Other,
}

/// Says [`AGAIN`], with the new program's ends of its pipes.
///
/// # Errors
/// The lifeline does not take it now: nothing was sent.
pub(crate) fn send_again(lifeline: &UnixStream, stdin: &OwnedFd, stdout: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let ends = [stdin.as_fd(), stdout.as_fd()];
    if !with.push(SendAncillaryMessage::ScmRights(&ends)) {
        return Err(io::Error::other("two descriptors do not fit"));
    }
    sendmsg(lifeline, &[IoSlice::new(&[AGAIN])], &mut with, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next word; `None` at the end of file. The descriptors that come are not inherited by anything.
///
/// # Errors
/// None is there now (`WouldBlock`), or the lifeline is broken.
pub(super) fn receive(lifeline: &UnixStream) -> io::Result<Option<Word>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(lifeline, &mut [IoSliceMut::new(&mut byte)], &mut with, flags) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut ends = Vec::new();
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            ends.extend(fds);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    Ok(Some(match (byte[0], <[OwnedFd; 2]>::try_from(ends)) {
        (CLOSE, _) => Word::Close,
        (AGAIN, Ok([stdin, stdout])) => Word::Again(stdin, stdout),
        _ => Word::Other,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn words_come_one_at_a_time_with_what_belongs_to_them() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        far.set_nonblocking(true).expect("set");
        assert_eq!(receive(&far).expect_err("nothing is there").kind(), io::ErrorKind::WouldBlock);
        near.write_all(b"xA").expect("written");
        let (mut reader, theirs_out) = io::pipe().expect("a pipe");
        let (theirs_in, mut writer) = io::pipe().expect("a pipe");
        send_again(&near, &theirs_in.into(), &theirs_out.into()).expect("sent");
        near.write_all(&[CLOSE]).expect("written");
        drop(near);
        let next = || receive(&far).expect("a word");
        assert!(matches!(next(), Some(Word::Other)));
        assert!(matches!(next(), Some(Word::Other)), "the word without its descriptors is none");
        let Some(Word::Again(stdin, stdout)) = next() else { panic!("it was sent") };
        assert!(matches!(next(), Some(Word::Close)));
        assert!(next().is_none());
        writer.write_all(b"in").expect("written");
        drop(writer);
        std::fs::File::from(stdout).write_all(b"out").expect("written");
        let (mut got_in, mut got_out) = (String::new(), String::new());
        std::fs::File::from(stdin).read_to_string(&mut got_in).expect("read");
        reader.read_to_string(&mut got_out).expect("read");
        assert_eq!((got_in.as_str(), got_out.as_str()), ("in", "out"));
    }
}

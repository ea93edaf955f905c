//! Moving bytes through descriptors that do not block. Used by [`super::pump`].

use std::io::{self, Read, Write};

/// Writes what can be written now and forgets it.
pub(super) fn write_some(to: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut written = 0;
    let outcome = loop {
        if written == bytes.len() {
            break Ok(());
        }
        match to.write(&bytes[written..]) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => written += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    bytes.drain(..written);
    outcome
}

/// Reads what is there now, up to about `at_most` bytes. `false`: nothing will ever come.
pub(super) fn read_some(mut from: impl Read, at_most: usize, mut take: impl FnMut(&[u8])) -> bool {
    let mut buffer = [0; 16 * 1024];
    let mut seen = 0;
    while seen < at_most {
        match from.read(&mut buffer) {
            Ok(0) => return false,
            Ok(n) => {
                take(&buffer[..n]);
                seen += n;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_full_peer_takes_what_fits_and_an_empty_one_gives_what_is_there() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        near.set_nonblocking(true).expect("set");
        far.set_nonblocking(true).expect("set");
        let mut waiting = vec![7; 4 * 1024 * 1024];
        write_some(&mut near, &mut waiting).expect("no error");
        assert!(!waiting.is_empty(), "a socket does not hold that much");
        let mut seen = 0;
        while !waiting.is_empty() {
            assert!(read_some(&far, 1024 * 1024, |bytes| seen += bytes.len()));
            write_some(&mut near, &mut waiting).expect("no error");
        }
        drop(near);
        assert!(!read_some(&far, usize::MAX, |bytes| seen += bytes.len()));
        assert_eq!(seen, 4 * 1024 * 1024);
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error_of_the_write() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        drop(far);
        assert!(write_some(&mut near, &mut vec![1]).is_err());
    }
}

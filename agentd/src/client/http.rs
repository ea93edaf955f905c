//! One exchange over a socket: a request out, one whole response in. Of HTTP/1.1 only what agentd itself answers with is read:
//! a length and that many bytes.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes of a head and of a whole answer that are read.
const HEAD_BYTES: usize = 64 * 1024;
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A whole response, and the connection it came on.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) stream: UnixStream,
}

/// Sends a request and reads its response. The words say what broke.
pub(super) fn exchange(mut stream: UnixStream, request: &[u8]) -> Result<Answer, String> {
    // Whoever is not let in has its answer before it has sent everything, and a broken pipe with it.
    let sent = stream.write_all(request);
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if let Some((status, start, length)) = head(&bytes)? {
            if length > ANSWER_BYTES {
                return Err(format!("an answer of {length} bytes, at most {ANSWER_BYTES} are read"));
            }
            if bytes.len() >= start + length {
                let body = bytes[start..start + length].to_vec();
                return Ok(Answer { status, body, stream });
            }
        }
        match stream.read(&mut piece) {
            Ok(0) => {
                return Err(match sent {
                    Err(error) => error.to_string(),
                    Ok(()) => format!("closed after {} bytes of an answer", bytes.len()),
                });
            }
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Waits until the other side has closed.
pub(super) fn until_closed(mut stream: UnixStream) {
    let mut piece = [0; 1024];
    while !matches!(stream.read(&mut piece), Ok(0) | Err(_)) {}
}

/// Status, beginning of the content and its length, once the head is whole.
fn head(bytes: &[u8]) -> Result<Option<(u16, usize, usize)>, String> {
    let mut room = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut room);
    let start = match response.parse(bytes) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("a head that does not end".to_owned()),
        Err(error) => return Err(format!("no answer of agentd's: {error}")),
    };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    let length = length.ok_or_else(|| "an answer without its length".to_owned())?;
    Ok(Some((response.code.unwrap_or(0), start, length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn answered(pieces: &'static [&'static str]) -> Result<Answer, String> {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let server = thread::spawn(move || {
            let mut request = [0; 4];
            theirs.read_exact(&mut request).expect("read");
            for piece in pieces {
                theirs.write_all(piece.as_bytes()).expect("written");
            }
        });
        let answer = exchange(ours, b"ping");
        server.join().expect("it ends");
        answer
    }

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let whole = answered(&["HTTP/1.1 200 OK\r\nContent-Len", "gth: 5\r\n\r\nhel", "lo"]).expect("whole");
        assert_eq!((whole.status, whole.body.as_slice()), (200, b"hello".as_slice()));
        for (pieces, says) in [
            (&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"][..], "closed after"),
            (&[], "closed after 0"),
            (&["HTTP/1.1 200 OK\r\n\r\n"], "without its length"),
            (&["SSH-2.0-OpenSSH\r\n\r\n"], "no answer"),
            (&["HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"], "at most"),
        ] {
            let said = answered(pieces).expect_err("no answer");
            assert!(said.contains(says), "{pieces:?}: {said}");
        }
    }
}

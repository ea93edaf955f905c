//! What a child and a keeper say to each other over the lifeline (S14.2): one spec down, reports up, each a
//! 4-byte big-endian length and that many bytes of CBOR. What follows the spec is in `word`.
//!
//! Owns the shapes and their framing. Refuses messages over [`MESSAGE_BYTES`] before allocating for them. Used by
//! [`crate::keeper`] and by the child's server threads.

use agentd_core::event::Exit;
use agentd_core::limits;
use agentd_core::wire::message::Transport;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Bytes of one message: what fits in a spawn frame fits here.
pub const MESSAGE_BYTES: usize = limits::FRAME_BYTES;

/// What a keeper is to run. Travels only over the lifeline, since a server's variables can hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperSpec {
    /// The server's name in the configuration.
    pub server: String,
    /// What it is.
    pub transport: Transport,
}

/// What a keeper tells. `Exited` may follow `Started`, and once `Started` may follow `Exited`; nothing follows `ExecFailed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperReport {
    /// The server runs.
    Started {
        /// Its pid.
        pid: i32,
    },
    /// There is no server.
    ExecFailed {
        /// One sentence for the person who must act.
        error: String,
    },
    /// The server's own process ended; its subtree is being taken down.
    Exited(Exit),
}

/// How a server's process ended; reads after "it ended with".
pub fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        Exit::Unknown => "an unknown status".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Writes one message.
///
/// # Errors
/// `InvalidInput` when it is too long, and whatever the writer says.
pub fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    ciborium::into_writer(message, &mut bytes)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
    let body = bytes.len() - 4;
    match u32::try_from(body) {
        Ok(length) if body <= MESSAGE_BYTES => bytes[..4].copy_from_slice(&length.to_be_bytes()),
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a message of {body} bytes; at most {MESSAGE_BYTES} fit"),
            ));
        }
    }
    to.write_all(&bytes)
}

/// Reads one message. `None` at an end of file before its first byte.
///
/// # Errors
/// `InvalidData` when the length or the body is not acceptable, `UnexpectedEof` when it is cut, and whatever the
/// reader says.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut prefix = [0; 4];
    if from.read(&mut prefix[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut prefix[1..])?;
    let length = u32::from_be_bytes(prefix) as usize;
    check_length(length)?;
    let mut body = Vec::new();
    // Grows with what arrives, whatever the length claims.
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&body).map(Some)
}

/// Takes one whole message off the front of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// `InvalidData` when the length or the body is not acceptable.
pub fn take<T: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(prefix) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*prefix) as usize;
    check_length(length)?;
    if bytes.len() < 4 + length {
        return Ok(None);
    }
    let message = decode(&bytes[4..4 + length]);
    bytes.drain(..4 + length);
    message.map(Some)
}

fn check_length(length: usize) -> io::Result<()> {
    if length == 0 || length > MESSAGE_BYTES {
        let why = format!("a message of {length} bytes; 1 to {MESSAGE_BYTES} are accepted");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(())
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    ciborium::de::from_reader_with_recursion_limit(body, limits::FRAME_DEPTH)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("not a lifeline message: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::wire::message::Files;

    fn spec() -> KeeperSpec {
        let files = Files { root: "/srv".into(), write: false };
        KeeperSpec { server: "files".into(), transport: Transport::Files(files) }
    }

    #[test]
    fn messages_come_back_whole_and_piecewise() {
        let mut bytes = Vec::new();
        write(&mut bytes, &spec()).expect("written");
        let reports = [
            KeeperReport::Started { pid: 7 },
            KeeperReport::ExecFailed { error: "no".into() },
            KeeperReport::Exited(Exit::Signal(9)),
        ];
        assert_eq!(read(&mut bytes.as_slice()).expect("read"), Some(spec()));
        let mut stream = Vec::new();
        for report in &reports {
            write(&mut stream, report).expect("written");
        }
        let (mut buffer, mut seen) = (Vec::new(), Vec::new());
        for byte in stream {
            buffer.push(byte);
            seen.extend(take::<KeeperReport>(&mut buffer).expect("taken"));
        }
        assert_eq!(seen, reports);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(read::<KeeperSpec>(&mut [].as_slice()).expect("end of file").is_none());
        for bad in [&[0, 0, 0, 0][..], &[0xff; 4], &[0, 0], &[0, 0, 0, 9, 1], &[0, 0, 0, 1, 0xff]] {
            assert!(read::<KeeperSpec>(&mut { bad }).is_err(), "{bad:?}");
        }
        assert!(take::<KeeperReport>(&mut vec![0xff; 9]).is_err());
    }

    #[test]
    fn an_exit_reads_after_it_ended_with() {
        assert_eq!(describe(Exit::Code(1)), "exit status 1");
        assert_eq!(describe(Exit::Signal(9)), "signal 9 (SIGKILL)");
        assert_eq!(describe(Exit::Signal(40)), "signal 40");
    }
}

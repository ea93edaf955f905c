//! The first frame: a child reads exactly that before it does anything else (S5.2).
//!
//! Owns the judgement whether this process was started by a supervisor at all, and whether the two speak the same
//! version of the protocol. Refuses a first frame that is not `spawn`. Called by [`super::main`] once.

use agentd_core::limits;
use agentd_core::wire::message::Spawn;
use agentd_core::wire::{Decoded, Down, DownDecoder, Message, check_version, spawn_version};
use std::io::{self, Read};

/// Why there is no run.
#[derive(Debug)]
pub(super) enum NoSpawn {
    /// Nobody who speaks the protocol is there: the sentence for the person who started this by hand.
    NotASupervisor(String),
    /// A supervisor is there, of another major version: the sentence for its `failed` frame.
    OtherVersion(String),
}

/// Reads the spawn frame and not a byte more. The decoder goes on with the second frame.
pub(super) fn read(from: &mut impl Read) -> Result<(Box<Spawn>, DownDecoder), NoSpawn> {
    let frame = read_frame(from).map_err(NoSpawn::NotASupervisor)?;
    let mut decoder = DownDecoder::new();
    decoder.push(&frame);
    let seen = match decoder.next() {
        Some(Ok(Decoded::Message(Down::Spawn(spawn)))) => {
            check_version(spawn.v).map_err(NoSpawn::OtherVersion)?;
            return Ok((spawn, decoder));
        }
        Some(Ok(Decoded::Message(other))) => format!("its first frame is a {}", other.frame_type()),
        Some(Ok(Decoded::Ignored)) => "its first frame is of an unknown type".to_owned(),
        Some(Err(e)) => {
            // The rest of another major version's spawn frame need not be readable.
            if let Some(v) = spawn_version(&frame) {
                check_version(v).map_err(NoSpawn::OtherVersion)?;
            }
            e.to_string()
        }
        None => "its first frame is cut".to_owned(),
    };
    Err(NoSpawn::NotASupervisor(seen))
}

/// One whole frame with its prefix. The length is checked before the body is read, and the buffer grows with what
/// arrives.
fn read_frame(from: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut frame = Vec::new();
    read_more(from, &mut frame, 4)?;
    let Some(prefix) = frame.first_chunk::<4>() else {
        return Err(match frame.len() {
            0 => "nothing came before the end of file".to_owned(),
            n => format!("only {n} bytes came before the end of file"),
        });
    };
    let length = u32::from_be_bytes(*prefix) as usize;
    if length == 0 || length > limits::FRAME_BYTES {
        return Err(format!(
            "its first frame claims {length} bytes; 1 to {} are accepted",
            limits::FRAME_BYTES
        ));
    }
    read_more(from, &mut frame, length)?;
    match frame.len() - 4 {
        n if n < length => Err(format!("its first frame is cut after {n} of {length} bytes")),
        _ => Ok(frame),
    }
}

fn read_more(from: &mut impl Read, into: &mut Vec<u8>, bytes: usize) -> Result<(), String> {
    let limit = u64::try_from(bytes).unwrap_or(u64::MAX);
    match from.by_ref().take(limit).read_to_end(into) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err("its read end does not block".to_owned()),
        Err(e) => Err(format!("it cannot be read: {e}")),
    }
}

#[cfg(test)]
pub(super) mod tests;

//! Frames' bodies, written by ciborium. Owned are the bound on the output and the place of `t` and `n` in front of
//! the struct's own keys; `codec` says what they are.

use ciborium_ll::{Decoder, Encoder, Header};
use serde::Serialize;
use std::io::{self, Write};

/// Appends the map of `content`, a struct, with `t` and `n` in front of its keys. Returns the size of the whole
/// body; when that is over `limit`, `out` holds only a part of it.
pub(in crate::wire) fn append<T: Serialize>(
    out: &mut Vec<u8>,
    limit: usize,
    frame_type: &str,
    number: u64,
    content: &T,
) -> usize {
    let start = out.len();
    expect_written(envelope(out, frame_type, number));
    let content_at = out.len();
    let mut bounded = Bounded { out, room: limit, written: 0 };
    expect_written(ciborium::into_writer(content, &mut bounded));
    let written = bounded.written;
    let (head_bytes, pairs) = head_of_map(&out[content_at..]);
    // The head of the struct's own map comes to the front and counts two pairs more.
    out[start..content_at + head_bytes].rotate_right(head_bytes);
    let mut head = Vec::new();
    expect_written(Encoder::from(&mut head).push(Header::Map(Some(pairs + 2))));
    let body = content_at - start + written - head_bytes + head.len();
    out.splice(start..start + head_bytes, head);
    body
}

fn envelope(out: &mut Vec<u8>, frame_type: &str, number: u64) -> io::Result<()> {
    let mut encoder = Encoder::from(out);
    encoder.text("t", None)?;
    encoder.text(frame_type, None)?;
    encoder.text("n", None)?;
    encoder.push(Header::Positive(number))
}

/// The size of a map's head, and its pairs.
fn head_of_map(bytes: &[u8]) -> (usize, usize) {
    let mut decoder = Decoder::from(bytes);
    match decoder.pull() {
        Ok(Header::Map(Some(pairs))) => (decoder.offset(), pairs),
        other => unreachable!("a message that is not written as a map of known size: {other:?}"),
    }
}

/// Messages are structs of texts, integers, byte strings, lists and maps with text keys: none can be refused by
/// ciborium, and memory cannot either. A type that can is a mistake that the tests of every type find.
fn expect_written<E: std::fmt::Debug>(outcome: Result<(), E>) {
    if let Err(error) = outcome {
        unreachable!("a message type that cannot be written: {error:?}");
    }
}

/// Takes all and keeps no more than there is room for, so that a value of any size costs no more than the limit.
struct Bounded<'o> {
    out: &'o mut Vec<u8>,
    room: usize,
    written: usize,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written = self.written.saturating_add(bytes.len());
        if self.written <= self.room {
            self.out.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

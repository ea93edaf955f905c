//! What must hold for any bytes on a control channel: the bodies of the fuzz targets `frame_decode` and
//! `message_decode`. Each tells what it reached, by which the committed corpora are judged.

use super::{Decoded, Decoder, Down, Encoder, Ignored, Message, Up};
use crate::error::ProtocolError;
use crate::limits;
use std::collections::BTreeSet;
use std::fmt::Debug;

mod edits;

pub use edits::message_decode;
pub(crate) use edits::up_message;

/// Reads `data` as a stream and as the body of one frame, in both directions, whole and cut in two ways. The first
/// byte says where it is cut. Gives the types of what was decoded, and how the streams ended.
///
/// # Panics
///
/// When a cut changes what is decoded, memory or an error outgrows its bound, or a decoded message is not the
/// same after another round trip.
pub fn frame_decode(data: &[u8]) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let Some((cut, bytes)) = data.split_first() else { return reached };
    let frame = framed(bytes);
    for stream in [bytes, &frame] {
        direction::<Up>(stream, usize::from(*cut), &mut reached);
        direction::<Down>(stream, usize::from(*cut), &mut reached);
    }
    reached
}

/// `body` as a frame.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

/// All that a decoder says: to the bytes, to their end, and of what it passed over.
#[derive(Debug, PartialEq)]
struct Said<M> {
    frames: Vec<Result<Decoded<M>, ProtocolError>>,
    end: Result<(), ProtocolError>,
    ignored: Ignored,
}

fn direction<M: Message + Debug + PartialEq>(
    stream: &[u8],
    cut: usize,
    reached: &mut BTreeSet<&'static str>,
) {
    let whole = decode::<M>(stream.chunks(stream.len().max(1)));
    let (front, back) = stream.split_at(cut.min(stream.len()));
    assert_eq!(decode::<M>([front, back].into_iter()), whole, "a cut at {cut}");
    assert_eq!(decode::<M>(stream.chunks(cut % 7 + 1)), whole, "pieces of {}", cut % 7 + 1);
    reached.extend(whole.frames.iter().map(|frame| match frame {
        Ok(Decoded::Message(message)) => message.frame_type(),
        Ok(Decoded::Ignored) => "an unknown type",
        Err(_) => "a protocol error",
    }));
    if whole.end.is_err() {
        reached.insert("a stream that is cut");
    }
    if whole.ignored.keys > 0 {
        reached.insert("an unknown key");
    }
    again(whole.frames);
}

fn decode<'a, M: Message>(pieces: impl Iterator<Item = &'a [u8]>) -> Said<M> {
    let (mut decoder, mut frames, mut given) = (Decoder::new(), Vec::new(), 0);
    for piece in pieces {
        decoder.push(piece);
        given += piece.len();
        frames.extend(decoder.by_ref());
        assert!(decoder.held_bytes() <= 8 * given + 64 * 1024, "{} bytes held", decoder.held_bytes());
    }
    for error in frames.iter().filter_map(|decoded| decoded.as_ref().err()) {
        assert!(error.to_string().len() <= limits::PROTOCOL_ERROR_BYTES + 40, "{error}");
    }
    Said { frames, end: decoder.finish(), ignored: decoder.ignored() }
}

/// What was decoded, encoded and decoded again.
fn again<M: Message + Debug + PartialEq>(decoded: Vec<Result<Decoded<M>, ProtocolError>>) {
    let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
    let mut sent = Vec::new();
    for decoded in decoded {
        let Ok(Decoded::Message(message)) = decoded else { continue };
        // With the keys that had been left out, the largest frames may not fit any more.
        if encoder.append(&message, &mut bytes).is_ok() {
            sent.push(Ok(Decoded::Message(message)));
        }
    }
    let said = decode::<M>([bytes.as_slice()].into_iter());
    assert_eq!(said, Said { frames: sent, end: Ok(()), ignored: Ignored::default() });
}

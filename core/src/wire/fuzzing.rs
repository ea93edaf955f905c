//! What must hold for any bytes on a control channel: the body of the fuzz target `frame_decode`. It also runs over
//! the committed corpus in an ordinary test, so that it cannot rot between fuzzing runs.

use super::{Decoded, Decoder, Down, Encoder, Ignored, Message, Up};
use crate::error::ProtocolError;
use crate::limits;
use std::fmt::Debug;

/// Reads `data` as a stream and as the body of one frame, in both directions, whole and cut in two ways. The first
/// byte says where it is cut.
///
/// # Panics
///
/// When a cut changes what is decoded, memory or an error outgrows its bound, or a decoded message is not the
/// same after another round trip.
pub fn frame_decode(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let mut frame = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    for stream in [bytes, &frame] {
        direction::<Up>(stream, usize::from(*cut));
        direction::<Down>(stream, usize::from(*cut));
    }
}

/// All that a decoder says: to the bytes, to their end, and of what it passed over.
type Said<M> = (Vec<Result<Decoded<M>, ProtocolError>>, Result<(), ProtocolError>, Ignored);

fn direction<M: Message + Debug + PartialEq>(stream: &[u8], cut: usize) {
    let whole = decode::<M>(stream.chunks(stream.len().max(1)));
    let (front, back) = stream.split_at(cut.min(stream.len()));
    assert_eq!(decode::<M>([front, back].into_iter()), whole, "a cut at {cut}");
    assert_eq!(decode::<M>(stream.chunks(cut % 7 + 1)), whole, "pieces of {}", cut % 7 + 1);
    again(whole.0);
}

fn decode<'a, M: Message>(pieces: impl Iterator<Item = &'a [u8]>) -> Said<M> {
    let (mut decoder, mut seen, mut given) = (Decoder::new(), Vec::new(), 0);
    for piece in pieces {
        decoder.push(piece);
        given += piece.len();
        seen.extend(decoder.by_ref());
        assert!(decoder.held_bytes() <= 8 * given + 64 * 1024, "{} bytes held", decoder.held_bytes());
    }
    for error in seen.iter().filter_map(|decoded| decoded.as_ref().err()) {
        assert!(error.to_string().len() <= limits::PROTOCOL_ERROR_BYTES + 40, "{error}");
    }
    (seen, decoder.finish(), decoder.ignored())
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
    assert_eq!(decode::<M>([bytes.as_slice()].into_iter()), (sent, Ok(()), Ignored::default()));
}

#[cfg(test)]
mod tests {
    use super::frame_decode;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the corpus is files")]
    fn the_corpus_holds() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/frame_decode");
        let mut replayed = 0;
        for entry in std::fs::read_dir(corpus).expect("the corpus is committed") {
            frame_decode(&std::fs::read(entry.expect("an entry").path()).expect("readable"));
            replayed += 1;
        }
        assert!(replayed >= 20, "{replayed} inputs");
    }
}

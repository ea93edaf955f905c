//! The bodies of the fuzz targets of the providers' answers. An ordinary test holds them too.

use crate::model::sse::{Decoder, Event, SseError};
use crate::model::{ModelError, Reply, anthropic, openai};

/// Reads `data` as a stream of events and as an answer in both dialects, whole and cut in two ways. The first byte
/// says where it is cut.
///
/// # Panics
///
/// When a cut changes what is read.
pub fn model_stream(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let (cut, size) = (usize::from(*cut).min(bytes.len()), usize::from(cut % 7) + 1);
    for read in [
        |pieces: &[&[u8]]| format!("{:?}", events(pieces)),
        |pieces: &[&[u8]]| format!("{:?}{:?}", chat(pieces), messages(pieces)),
    ] {
        let whole = read(&[bytes]);
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "a cut at {cut}");
        assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>()), whole, "pieces of {size}");
    }
}

fn events(pieces: &[&[u8]]) -> (Vec<Event>, Result<Option<Event>, SseError>) {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for piece in pieces {
        if decoder.push(piece, &mut events).is_err() {
            break;
        }
    }
    (events, decoder.finish())
}

fn chat(pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    let mut reader = openai::Reader::new();
    for piece in pieces {
        reader.push(piece);
    }
    reader.finish()
}

fn messages(pieces: &[&[u8]]) -> Result<Reply, ModelError> {
    let mut reader = anthropic::Reader::new();
    for piece in pieces {
        reader.push(piece);
    }
    reader.finish()
}

//! What must hold for any bytes on a connection: the body of the fuzz target `http_server`.

use super::{Heard, Phase, Server};
use crate::limits;
use std::collections::BTreeSet;

/// Reads bytes whole and in pieces, and says what they came to. The first byte says how they are cut.
///
/// # Panics
///
/// When a split reads differently, anything follows a fault, or a bound is passed.
pub fn http_server(data: &[u8]) -> BTreeSet<&'static str> {
    let [cut, bytes @ ..] = data else { return BTreeSet::new() };
    let mut whole = Server::default();
    let mut heard = Vec::new();
    whole.take(bytes, &mut heard);
    let mut pieces = Server::default();
    let mut again = Vec::new();
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        pieces.take(piece, &mut again);
    }
    assert_eq!(heard, again, "a split reads differently");
    assert_eq!(whole, pieces, "a split leaves another state");
    let mut reached = BTreeSet::new();
    for (at, one) in heard.iter().enumerate() {
        match one {
            Heard::Request(request) => {
                assert!(request.body.len() <= limits::HTTP_BODY_BYTES);
                assert!(request.headers.len() <= limits::HTTP_HEADERS);
                assert!(request.path.starts_with('/') || request.path == "*");
                reached.insert(if request.body.is_empty() { "a request" } else { "a request with content" });
                if request.count("transfer-encoding") > 0 {
                    reached.insert("chunks");
                }
                if at > 0 && request.keep_alive {
                    reached.insert("another request");
                }
            }
            Heard::Continue => {
                reached.insert("an expectation");
            }
            Heard::Fault(fault) => {
                assert_eq!(at + 1, heard.len(), "something is heard after a fault");
                assert_eq!(whole.phase(), Phase::Failed);
                reached.insert(match fault.status {
                    400 => "400",
                    413 => "413",
                    414 => "414",
                    417 => "417",
                    431 => "431",
                    501 => "501",
                    505 => "505",
                    other => panic!("{other} is no fault of framing"),
                });
            }
        }
    }
    reached
}

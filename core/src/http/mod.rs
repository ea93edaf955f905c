//! HTTP/1.1 as a server speaks it: bytes in, requests and faults out, and the bytes of responses. No socket.
//!
//! Owns framing, strictly: what two readers could understand differently is refused and never guessed, so nothing can
//! be smuggled past a proxy. Refuses a bare LF or CR, folded lines, both lengths, any transfer coding but `chunked`, a
//! missing or second `Host`, and whatever is larger than `limits::HTTP_*`. After a fault nothing more of a connection is
//! read. Time is its caller's: [`Server::phase`] says what a connection is waiting for. Called by `session`.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod request;
mod response;
mod server;

pub use request::Request;
pub use response::{Framing, Response, chunk, last_chunk, stream_head};
pub use server::{Fault, Heard, Phase, Server};

#[cfg(test)]
mod tests;

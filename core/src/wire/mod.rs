//! The control protocol between supervisor and child (S2): frames of one CBOR map each, over pipes.
//!
//! [`Encoder`] makes frames of [`Down`] and [`Up`] messages, [`Decoder`] finds them again in bytes that arrive cut
//! anywhere, and trusts nothing: a peer that breaks the protocol costs an error of one line, never memory, a
//! panic or a hang. What a message means is the business of whoever holds the other end.

mod cbor;
mod codec;
mod exact;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod message;
mod values;

pub use cbor::Body;
pub use codec::{Encoder, Message, TooLarge, check_version};
pub use frame::{Decoded, Decoder, DownDecoder, Ignored, UpDecoder, down_of, spawn_version};
pub use message::{Down, Up};

#[cfg(test)]
mod page;
#[cfg(any(test, feature = "fuzzing"))]
mod samples;

//! The strict part of CBOR (RFC 8949) that the control protocol is made of: definite lengths, text keys that
//! differ, no tags, no NaN, valid UTF-8, bounded nesting and number of items (S2.1).
//!
//! Reading is two passes over the same bytes. `scan` judges structure in a loop, without recursion and without
//! knowing any type; then `reader` hands the values to serde, borrowing from the bytes, and judges types. What
//! the second pass sees is what the first one accepted, item by item: both walk with `item`.
//!
//! Refused as S2.1 says, and what is not well-formed. Accepted: integers and lengths that are longer than need
//! be, `undefined` and unassigned simple values where nothing looks at them.

mod access;
mod content;
mod error;
mod item;
mod reader;
mod scan;
mod writer;

pub use error::ReadError;
pub use item::Fault;
pub use writer::WriteError;

pub(super) use item::{Cursor, Item};
pub(super) use reader::Reader;
pub(super) use scan::{Marks, Scanner};
pub(super) use writer::Writer;

use crate::limits;
use serde::{Serialize, de::DeserializeOwned};

/// Reads one value from exactly `bytes`, under all rules of a frame's body, its size included.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    if bytes.len() > limits::FRAME_BYTES {
        return Err(ReadError::new(format!(
            "{} bytes, at most {} are accepted",
            bytes.len(),
            limits::FRAME_BYTES
        )));
    }
    Scanner::default().scan(bytes)?;
    T::deserialize(&mut Reader::new(bytes))
}

/// The bytes that [`decode`] reads back.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, limits::FRAME_BYTES);
    value.serialize(&mut writer)?;
    match writer.written() {
        size if size > limits::FRAME_BYTES => {
            Err(WriteError::new(format!("{size} bytes, at most {} are accepted", limits::FRAME_BYTES)))
        }
        _ => Ok(out),
    }
}

#[cfg(test)]
mod tests;

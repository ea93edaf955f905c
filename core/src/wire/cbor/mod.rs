//! The strict part of CBOR (RFC 8949) that the control protocol is made of: definite lengths, text keys that
//! differ, no tags, no NaN, valid UTF-8, bounded nesting and number of items (S2.1).
//!
//! Reading is two passes over the same bytes. `scan` judges structure in a loop, without recursion and without
//! knowing any type; then `body` hands them to ciborium, which judges types and never sees what the first pass
//! has not accepted. `frame` writes, with ciborium too.
//!
//! Refused as S2.1 says, what is not well-formed, and simple values without a meaning. Accepted: integers and
//! lengths that are longer than need be, and `undefined`, which reads as null.

mod body;
mod frame;
mod item;
mod scan;

pub use body::Body;

pub(super) use frame::append;
pub(super) use item::{Cursor, Fault, Item};
pub(super) use scan::{Marks, Scanner};

#[cfg(test)]
mod tests;

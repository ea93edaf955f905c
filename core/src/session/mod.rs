//! Connections of operators, other programs and whoever reads metrics, as machines: bytes in, requests out, answers in
//! their order.
//!
//! Owns who may ask what ([`access`]) and what becomes of a connection whatever its client does: it is bounded, it has
//! deadlines, and a client that reads slowly or not at all costs its own connection and nobody else's (S16.6). Refuses to
//! know what is asked: requests are `supervisor/control`'s to answer. Called by it.

pub mod access;
mod connection;

pub use access::{Denied, TOKEN_MARK};
pub use connection::{Connection, Turn};

//! The control protocol between supervisor and child (S2).

pub mod message;

pub use message::{Down, Up};

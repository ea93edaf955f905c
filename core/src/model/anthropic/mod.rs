//! Messages (`anthropic`).
//!
//! Owns the request body and the reading of answers, streamed or whole. Called through [`crate::model::api`].

mod blocks;
mod request;

pub use request::request;

use crate::model::stream;

/// Reads an answer.
pub type Reader = stream::Reader<blocks::Blocks>;

/// Version of the interface that is spoken.
pub const VERSION: &str = "2023-06-01";

#[cfg(test)]
mod tests;

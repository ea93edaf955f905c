//! Responses (`openai-responses`), as OpenAI publishes it and as other servers imitate it.
//!
//! Owns the request body and the reading of answers, streamed or whole. Nothing is stored at the provider: the whole
//! history goes along each time, without the provider's ids of its items, which only make sense where it stores them.
//! Called through [`crate::model::api`].

mod items;
mod request;

pub use request::request;

use crate::model::stream;

/// Reads an answer.
pub type Reader = stream::Reader<items::Items>;

/// Least bound of a reply that the provider accepts, in tokens.
pub const LEAST_OUTPUT: u64 = 16;

#[cfg(test)]
mod tests;

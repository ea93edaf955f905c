//! A2A 1.0 as this agent speaks it: JSON-RPC in, the shapes of messages, tasks and the agent card out.
//!
//! Owns the protocol's names, codes and forms; they are small, so they are made here and not with a crate of generated
//! types. Refuses what it cannot act on with the protocol's own codes: another version, parts that are neither text nor
//! data, push notifications. Knows no connection and no run. Called by `supervisor/control`.

mod card;
mod message;
mod rpc;
mod task;

pub use card::{CARD_PATH, Card};
pub use message::{Content, Incoming, Paging, TaskQuery, operator_answer};
pub use rpc::{Method, Rpc, RpcError, error, result};
pub use task::{TaskState, TaskView, artifact_update, status_update};

/// The one version that is spoken.
pub const VERSION: &str = "1.0";

/// The header that names a client's version.
pub const VERSION_HEADER: &str = "a2a-version";

/// Whether a client's version header names a version that is spoken here. Without one a client speaks 0.3.
pub fn speaks(version: Option<&[u8]>) -> bool {
    let Some(version) = version.and_then(|bytes| std::str::from_utf8(bytes).ok()) else { return false };
    version == VERSION || version.strip_prefix(VERSION).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests;

//! HTTP as a client, blocking: what calls of a model and exchanges with an MCP server have in common.
//!
//! | file | owns |
//! |---|---|
//! | `dial` | how a server is dialled, and what goes wrong in words |
//! | `line` | one call's connection, which can be shut at any time |
//! | `headers` | headers checked before they go out |
//! | `mask` | credentials kept out of what people read |
//! | `exchange` | one exchange with an MCP server |

pub(crate) mod dial;
pub(crate) mod exchange;
pub(crate) mod headers;
pub(crate) mod line;
pub(crate) mod mask;

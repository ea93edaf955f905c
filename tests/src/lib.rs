//! The test kit: what real-process tests and the simulator share.
#![forbid(unsafe_code)]

pub mod arms;
pub mod daemon;
pub mod kit;
pub mod mcp_http;
pub mod mcp_server;
pub mod model_server;
pub mod sim;

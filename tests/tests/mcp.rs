//! The MCP client machine against servers that are real: the built-in file server, and a program that does
//! whatever a server can do wrong. Every message the client sends is checked against the protocol's shapes.

#[path = "mcp/drive.rs"]
mod drive;
#[path = "mcp/fake.rs"]
mod fake;
#[path = "mcp/files.rs"]
mod files;
#[path = "mcp/shapes.rs"]
mod shapes;

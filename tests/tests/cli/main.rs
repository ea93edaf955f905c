//! The command line end to end: real processes, what they print, and their exit codes.

mod driver;
mod ends;
mod forest;
mod journal;
mod keys;
mod mcp_probe;
mod model_probe;
mod place;
mod shows;

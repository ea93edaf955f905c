//! The configuration.

mod problem;
mod source;
mod tree;
mod yaml;

//! What a run may do: which tools it is granted, and the one name each tool has.

pub mod grant;
pub mod registry;

pub use grant::{Grant, InvalidPattern, Pattern, PatternProblem};
pub use registry::{Names, names, server_allows};

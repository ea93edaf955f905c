//! The configuration: files in order, then `AGENTD_` variables, then flags; every problem at once, each with
//! its place.
//!
//! One way through: a text becomes a `tree` with places (`yaml`, `environment`), is checked by itself
//! against the table of keys (`schema`, `check`), is merged with the others (`merge`), and is read into
//! the core's [`Config`] and the binary's [`Settings`] (`read`). After the start it runs once more for each reload, on a
//! thread of its own; `effective` and `live` say what has changed then.

mod check;
#[cfg(test)]
mod docs;
mod effective;
mod environment;
mod flags;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hide;
mod hint;
mod json;
mod json_schema;
mod live;
mod load;
mod merge;
mod nearest;
mod playbook;
mod problem;
mod provider;
mod read;
mod schema;
mod settings;
mod source;
mod text;
mod tree;
mod values;
mod yaml;

pub use agentd_core::config::Config;
pub use effective::Effective;
pub use flags::Flags;
pub(crate) use flags::words;
pub use json_schema::json_schema;
pub(crate) use live::changes;
pub(crate) use load::load_text;
pub(crate) use load::{Identity, identity};
pub use load::{Loaded, Sources, load};
pub use problem::{Code, Problem, Severity, render};
pub(crate) use read::server_address;
pub use schema::table;
pub use settings::{Caller, Doors, Listen, LogFormat, Settings, StoreKind, StoreSettings};

//! The system calls that drivers, children and keepers share. The only crate with `unsafe`.
//!
//! | module | owns |
//! |---|---|
//! | [`entry`] | how a child and a keeper begin, and the clean slate of a server |
//! | [`process`] | one process held by a pidfd: signal its group, see its exit, reap it |
//! | [`walls`] | the limits of a child |
//! | [`pipes`] | our ends of its pipes |
//! | [`signals`] | the supervisor's own signals |
//! | [`tree`] | the processes below this one: walk, one kill pass, reap orphans |
#![deny(unsafe_code)]

pub mod entry;
pub mod nursery;
pub mod pipes;
pub mod process;
pub mod signals;
pub mod tree;
pub mod walls;

pub use process::Pid;

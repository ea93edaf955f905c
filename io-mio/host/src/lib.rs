//! The system calls that drivers, children and keepers share. The only crate with `unsafe`.

pub mod entry;

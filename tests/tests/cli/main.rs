//! The command line end to end: real processes, what they print, and their exit codes.

mod driver;
mod ends;
mod forest;
mod journal;
mod keys;
mod place;
mod probe;
mod shows;

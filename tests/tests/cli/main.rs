//! The command line end to end: real processes, what they print, and their exit codes.

mod ends;
mod journal;
mod place;
mod shows;

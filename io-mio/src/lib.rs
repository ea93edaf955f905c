//! The readiness loop of the core on mio.
#![forbid(unsafe_code)]

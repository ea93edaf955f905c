//! A child and its keepers as real processes, driven over pipes by a supervisor that is this test.

mod calls;
mod control;
mod death;
mod hostile;
mod providers;
mod rig;
mod servers;
mod steering;
mod transcripts;
mod warm;

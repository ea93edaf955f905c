//! Restarts with real processes: a daemon with the sqlite store is killed at named points and at random ones, begun again
//! on what it left, and everything ends as S10.3 says.

mod daemon;
mod kills;
mod points;
mod troubles;

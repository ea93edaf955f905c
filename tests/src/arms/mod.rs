//! One scenario, three arms: the same plan on the simulator's fake machine, under mio and under tokio with real
//! processes. What can be seen from outside must be equal but for the few things that `normal` lists.
//!
//! A scenario is data (`scenario`), in `tests/scenarios`. The core is watched in the same way in every arm
//! (`watched`), which gives the transcript and a recording that a fresh core must answer alike. A child's script
//! is followed by one program, which the simulator's world hosts in one arm and a real process (`child`) in the
//! others.

mod child;
mod fake;
mod gates;
mod normal;
mod offspring;
mod real;
mod scenario;
mod transcript;
mod watched;

pub use fake::perform as on_the_simulator;
pub use real::{Driver, Report, main};
pub use scenario::{Cue, Scenario, Sight};
pub use transcript::{Process, Transcript};

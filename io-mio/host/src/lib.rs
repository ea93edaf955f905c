//! The system calls that drivers, children and keepers share. The only crate with `unsafe`.
//!
//! | module | owns |
//! |---|---|
//! | [`entry`] | how a child and a keeper begin, and the clean slate of a server |
//! | [`reactor`] | one turn of a driver's loop, all but the waiting |
//! | [`ears`], [`outside`], [`mailbox`] | what a turn needs: a driver, the rest of the program, other threads |
//! | [`hands`] | the process table and what is done to it |
//! | [`spawner`] | the thread that makes every child |
//! | [`process`] | one process held by a pidfd: signal its group, see its exit, reap it |
//! | [`walls`] | the limits of a child |
//! | [`doors`] | listening sockets and connections |
//! | [`pipes`] | our ends of its pipes |
//! | [`tree`] | the processes below this one: walk, one kill pass, reap orphans |
//! | [`nursery`] | children in the making, which a sweep leaves alone |
//! | [`signals`] | the supervisor's own signals |
//! | [`service`], [`descriptors`] | what a service manager hands over; how many descriptors may be open |
//! | [`clock`] | time and chance |
//! | [`marker`] | how a process of agentd knows what it is |
#![deny(unsafe_code)]

pub mod clock;
pub mod descriptors;
pub mod doors;
pub mod ears;
pub mod entry;
pub mod error;
pub mod hands;
pub mod inherited;
pub mod mailbox;
pub mod marker;
pub mod nursery;
pub mod outside;
pub mod pipes;
pub mod process;
pub mod reactor;
pub mod service;
pub mod signals;
pub mod spawner;
pub mod tree;
pub mod walls;

pub use process::Pid;

//! The core of agentd: a pure, deterministic state machine that decides everything a supervisor of agents
//! decides, and the sans-IO machines that run inside a child.
//!
//! Floors, each importing only from below:
//!
//! | floor | modules |
//! |---|---|
//! | 4 | [`supervisor`] |
//! | 3 | [`run`], [`admit`], [`session`] |
//! | 2 | [`mod@distill`], [`policy`], [`throttle`] |
//! | 1 | [`wire`], [`mod@sse`], [`http`], [`a2a`], [`metrics`], [`record`], [`transcript`], [`store`], [`plan`], [`money`], [`budget`], [`snapshot`], [`json`], [`event`], [`action`], [`config`], [`machine`], [`note`] |
//! | 0 | [`time`], [`id`], [`rng`], [`limits`], [`error`], [`bytes`], [`preview`], [`units`], [`address`] |
//!
//! The child's wing ([`agent`], [`mcp`], [`model`]) is never imported by the floors above 1; a test holds that.
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm, clippy::disallowed_types, clippy::disallowed_methods)]

pub mod address;
pub mod bytes;
pub mod error;
pub mod id;
pub mod limits;
pub mod preview;
pub mod rng;
pub mod time;
pub mod units;

pub mod a2a;
pub mod action;
pub mod budget;
pub mod config;
pub mod event;
pub mod http;
pub mod json;
pub mod machine;
pub mod metrics;
pub mod money;
pub mod note;
pub mod snapshot;
pub mod sse;
pub mod wire;

pub mod distill;
pub mod plan;
pub mod policy;
pub mod record;
pub mod store;
pub mod throttle;
pub mod transcript;

pub mod admit;
pub mod run;
pub mod session;
pub mod supervisor;

pub mod agent;
pub mod mcp;
pub mod model;

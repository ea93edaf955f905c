//! The bodies of the supervisor's messages after the first frame.

use super::{CallBudget, Model};
use crate::bytes::Json;
use crate::wire::exact;
use serde::{Deserialize, Serialize};

/// See [`Down::Ping`](super::Down::Ping).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Number to echo.
    pub seq: u64,
}

/// See [`Down::Cancel`](super::Down::Cancel).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Why, for the log.
    pub reason: String,
    /// Only this turn of a warm child ends, if it is the one in hand; the child stays. Absent: the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// See [`Down::Message`](super::Down::Message) and [`super::Down::Steer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Minted by the supervisor for one child, rising over both kinds and `model`; a warm child's instruction is 1.
    pub id: u64,
    /// What is said.
    pub text: String,
}

/// See [`Down::Finish`](super::Down::Finish).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// Why, for the model and the log.
    pub reason: String,
}

/// See [`Down::Pause`](super::Down::Pause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pause {}

/// See [`Down::Resume`](super::Down::Resume).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resume {}

/// See [`Down::Throttle`](super::Down::Throttle). The last one about an endpoint stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// The endpoint's base address, as the spawn frame has it.
    pub endpoint: String,
    /// No attempt at it begins for so long, in milliseconds; 0 when it may be asked again.
    pub for_ms: u64,
}

/// See [`Down::ToolResult`](super::Down::ToolResult).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The request's id.
    pub id: u64,
    /// Whether `value` is an error for the model to read.
    pub error: bool,
    /// The answer.
    pub value: Json,
}

/// See [`Down::BudgetGrant`](super::Down::BudgetGrant).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetGrant {
    /// Of the request.
    pub id: u64,
    /// Whether it may be made.
    #[serde(deserialize_with = "exact::variant")]
    pub verdict: BudgetVerdict,
}

/// What becomes of a model call that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetVerdict {
    /// It is made with the run's model.
    Own,
    /// It is made with the cheaper one.
    Degraded,
    /// It is not made, and the run ends `exhausted_tokens` for this reason.
    Refused(String),
    /// It is not made, and the run ends `failed` for this reason.
    Failed(String),
}

/// See [`Down::Model`](super::Down::Model). A later one takes the place of one that was not taken yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSwap {
    /// Minted by the supervisor for one child, rising over messages, steers and these.
    pub id: u64,
    /// The connection, as the spawn frame's. Absent: it could not be made, and the child goes on with what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Whether model calls are asked for from then on, as the spawn frame's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CallBudget>,
    /// Taken at once, and a model call in flight is made again; else with the next turn.
    pub restart: bool,
}

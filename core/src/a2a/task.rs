//! A task as clients see it.

use crate::record::Status;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where a task is. The order is the life's; the last four are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskState {
    /// Its turn has not begun.
    Submitted,
    /// Its turn is in hand.
    Working,
    /// Answered.
    Completed,
    /// Ended without a full answer.
    Failed,
    /// Taken back.
    Canceled,
    /// Not taken, or the model refused.
    Rejected,
}

impl TaskState {
    const ALL: [TaskState; 6] = [
        TaskState::Submitted,
        TaskState::Working,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::Rejected,
    ];

    /// What a turn that ended like this makes of its task.
    pub fn of(status: Status) -> TaskState {
        match status {
            Status::Completed => TaskState::Completed,
            Status::Cancelled | Status::Parked => TaskState::Canceled,
            Status::Refused => TaskState::Rejected,
            Status::Held
            | Status::Spawned
            | Status::Running
            | Status::Retiring
            | Status::Failed
            | Status::Crashed
            | Status::ExhaustedSteps
            | Status::ExhaustedTokens
            | Status::Deadline
            | Status::LoopDetected => TaskState::Failed,
        }
    }

    /// Nothing changes it any more.
    pub fn is_final(self) -> bool {
        self >= TaskState::Completed
    }

    /// The protocol's name.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Submitted => "TASK_STATE_SUBMITTED",
            TaskState::Working => "TASK_STATE_WORKING",
            TaskState::Completed => "TASK_STATE_COMPLETED",
            TaskState::Failed => "TASK_STATE_FAILED",
            TaskState::Canceled => "TASK_STATE_CANCELED",
            TaskState::Rejected => "TASK_STATE_REJECTED",
        }
    }

    /// The state of this name, of those that a task can have here.
    pub fn named(name: &str) -> Option<TaskState> {
        TaskState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// All that a client can be told of a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskView<'a> {
    /// Its name.
    pub id: &'a str,
    /// Its conversation.
    pub context_id: &'a str,
    /// Where it is.
    pub state: TaskState,
    /// Since when.
    pub since: Wall,
    /// Why it is not completed.
    pub error: Option<&'a str>,
    /// What it gave; null while there is nothing.
    pub result: &'a Value,
    /// The result is not a full answer.
    pub partial: bool,
    /// The message that began it: its name and its text.
    pub asked: (&'a str, &'a str),
}

impl TaskView<'_> {
    /// The task, with so much of its history.
    pub fn json(&self, history: Option<usize>, artifacts: bool) -> Value {
        let mut task = json!({ "id": self.id, "contextId": self.context_id, "status": self.status() });
        if artifacts && let Some(artifact) = self.artifact() {
            task["artifacts"] = json!([artifact]);
        }
        if history != Some(0) {
            let (message_id, text) = self.asked;
            task["history"] = json!([{
                "messageId": message_id, "contextId": self.context_id, "taskId": self.id, "role": "ROLE_USER",
                "parts": [{ "text": text }],
            }]);
        }
        task
    }

    fn status(&self) -> Value {
        let mut status = json!({ "state": self.state.name(), "timestamp": self.since.to_string() });
        if let Some(error) = self.error {
            status["message"] = json!({
                "messageId": format!("{}-status", self.id), "contextId": self.context_id, "taskId": self.id,
                "role": "ROLE_AGENT", "parts": [{ "text": error }],
            });
        }
        status
    }

    /// What the task gave, if anything.
    fn artifact(&self) -> Option<Value> {
        let part = match self.result {
            Value::Null => return None,
            Value::String(text) => json!({ "text": text }),
            value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                json!({ "data": value, "mediaType": "application/json" })
            }
        };
        let mut artifact = json!({ "artifactId": "result", "name": "result", "parts": [part] });
        if self.partial {
            artifact["metadata"] = json!({ "partial": true });
        }
        Some(artifact)
    }
}

/// The event of a stream that tells where a task is.
pub fn status_update(task: &TaskView<'_>) -> Value {
    json!({ "statusUpdate": { "taskId": task.id, "contextId": task.context_id, "status": task.status() } })
}

/// The event of a stream that tells what a task gave; `None` when it gave nothing.
pub fn artifact_update(task: &TaskView<'_>) -> Option<Value> {
    let artifact = task.artifact()?;
    Some(json!({ "artifactUpdate": {
        "taskId": task.id, "contextId": task.context_id, "artifact": artifact, "lastChunk": true,
    } }))
}

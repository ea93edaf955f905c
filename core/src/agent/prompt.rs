//! What the model is told besides the conversation: the agent's text, what is missing, what is wanted.

use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use crate::model::Message;
use crate::wire::message::{ContextRole, Role, Spawn};

/// For a subagent: whoever asked sees nothing but the answer, so one that points back to earlier messages is lost.
const ALONE: &str =
    "Only your last message reaches whoever asked for this work, so it must hold the whole answer.";

/// The system text of every request of the run.
pub(super) fn system(spec: &Spawn, missing: &[String]) -> String {
    let mut parts = Vec::new();
    if !spec.system.trim().is_empty() {
        parts.push(spec.system.clone());
    }
    match spec.role {
        Role::Subagent => parts.push(ALONE.to_owned()),
        Role::Worker => {}
    }
    if !missing.is_empty() {
        parts.push(format!(
            "These servers could not be used, so their tools are not available: {}.",
            missing.join(", ")
        ));
    }
    if let Some(contract) = spec.output_contract.as_ref().filter(|text| !text.trim().is_empty()) {
        parts.push(format!("What the final answer must be: {contract}"));
    }
    if let Some(schema) = &spec.output_schema {
        parts.push(format!(
            "The final answer must be one JSON value that fits this JSON Schema, and nothing else:\n{}",
            String::from_utf8_lossy(&schema.0)
        ));
    }
    parts.join("\n\n")
}

/// What the model is told before the last call of a turn that is to be finished.
pub(super) fn finish(reason: &str) -> String {
    let why = if reason.trim().is_empty() {
        String::new()
    } else {
        format!(" ({})", preview(reason, PREVIEW_BYTES))
    };
    format!(
        "This work is to be finished now{why}: answer with what you have. No tools can be called for this answer."
    )
}

/// What the model is told of an answer that does not fit its schema.
pub(super) fn misfit(misfits: &[String]) -> String {
    format!(
        "This answer does not fit the JSON Schema of the final answer:\n- {}\nAnswer once more with one JSON value that \
         fits, and nothing else.",
        misfits.join("\n- ")
    )
}

/// The messages a run begins with: the caller's context, then the instruction.
pub(super) fn opening(spec: &Spawn) -> Vec<Message> {
    let context = spec.context.iter().map(|message| match message.role {
        ContextRole::User => Message::User(message.content.clone()),
        ContextRole::Assistant => {
            Message::Assistant { text: Some(message.content.clone()), calls: Vec::new() }
        }
    });
    context.chain([Message::User(spec.instruction.clone())]).collect()
}

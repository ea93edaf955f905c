//! What the model is told besides the conversation: the agent's text, what is missing, what is wanted.

use crate::wire::message::{ContextRole, Spawn};

use crate::model::Message;

/// The system text of every request of the run.
pub(super) fn system(spec: &Spawn, missing: &[String]) -> String {
    let mut parts = Vec::new();
    if !spec.system.trim().is_empty() {
        parts.push(spec.system.clone());
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
    parts.join("\n\n")
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

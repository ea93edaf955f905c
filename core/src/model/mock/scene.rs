//! What rules and templates see of a request.

use crate::model::{CallResult, Message, ModelRequest};
use crate::wire::message::Role;
use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::Value as JsonValue;
use std::collections::BTreeSet;

/// Variables every template has; `match` is the rule's.
pub(super) const VARIABLES: [&str; 13] = [
    "context",
    "earlier",
    "instruction",
    "last",
    "latest",
    "match",
    "message",
    "prompt",
    "results",
    "role",
    "text",
    "tools",
    "turn",
];

/// A request, seen as a playbook sees it.
pub(super) struct Scene<'r> {
    /// Kind of the child that asks.
    pub(super) role: Role,
    /// Number of this model call in its turn, from 1.
    pub(super) turn: u32,
    /// Number of the message that the turn answers, from 1; the instruction is the first.
    pub(super) message: u32,
    /// The last user message.
    pub(super) text: &'r str,
    /// Every tool result of the turn so far, in order.
    pub(super) results: Vec<Seen>,
    /// Those of the turns before.
    earlier: Vec<Seen>,
    request: &'r ModelRequest,
    /// How many of `results` came since the model last spoke.
    latest: usize,
}

/// One tool result.
#[derive(Serialize)]
pub(super) struct Seen {
    /// Registry name of the tool; what the model called, where there is none.
    pub(super) name: String,
    /// Whether it is an error.
    pub(super) error: bool,
    /// The text the model gets.
    pub(super) text: String,
    args: JsonValue,
    /// The text's JSON value where it is JSON, else the text.
    value: JsonValue,
}

#[derive(Serialize)]
struct Spoken<'r> {
    role: &'static str,
    content: &'r str,
}

impl<'r> Scene<'r> {
    pub(super) fn of(request: &'r ModelRequest, role: Role) -> Scene<'r> {
        let mut text = "";
        let mut results = Vec::new();
        let mut earlier = Vec::new();
        let mut latest = 0;
        let mut calls = [].as_slice();
        for (index, message) in request.messages.iter().enumerate() {
            if index == request.begins {
                earlier = std::mem::take(&mut results);
            }
            latest = 0;
            match message.as_ref() {
                Message::User(said) => text = said,
                Message::Assistant { calls: made, .. } => calls = made,
                Message::Results(answers) => {
                    latest = answers.len();
                    results.extend(answers.iter().map(|answer| {
                        let args = calls.iter().find(|c| c.id == answer.id).and_then(|c| c.args.parse().ok());
                        Seen::of(request, answer, args.unwrap_or(JsonValue::Null))
                    }));
                }
            }
        }
        Scene { role, turn: request.step, message: request.turn, text, results, earlier, request, latest }
    }

    /// The registry name of a wire name that the model used.
    pub(super) fn wire<'n>(&'n self, name: &'n str) -> &'n str {
        self.request.names.wire(name).unwrap_or(name)
    }

    /// The variables; `matched` is the rule's `match`.
    pub(super) fn variables(&self, matched: Value) -> Value {
        let messages = &self.request.messages;
        let context: Vec<Spoken<'_>> =
            messages.iter().take(self.request.context).filter_map(|m| spoken(m)).collect();
        let instruction = match messages.get(self.request.context).map(|m| m.as_ref()) {
            Some(Message::User(text)) => text,
            Some(Message::Assistant { .. } | Message::Results(_)) | None => "",
        };
        let tools: BTreeSet<&str> =
            self.request.tools.iter().filter_map(|t| self.request.names.registry(&t.name)).collect();
        let latest = &self.results[self.results.len() - self.latest..];
        Value::from_pairs([
            ("context", Value::from(Serde(context))),
            ("earlier", Value::from(Serde(&self.earlier))),
            ("instruction", Value::from(instruction)),
            ("last", Value::from(Serde(self.results.last()))),
            ("latest", Value::from(Serde(latest))),
            ("match", matched),
            ("message", Value::from(self.message)),
            ("prompt", Value::from(self.text)),
            ("results", Value::from(Serde(&self.results))),
            ("role", Value::from(role_name(self.role))),
            ("text", Value::from(self.text)),
            ("tools", Value::from(Serde(tools))),
            ("turn", Value::from(self.turn)),
        ])
    }

    /// The request in a few words, for an error.
    pub(super) fn summary(&self) -> String {
        let last = match self.results.last() {
            None => "no tool result yet".to_owned(),
            Some(seen) => {
                format!("last tool result {} from {}", if seen.error { "an error" } else { "ok" }, seen.name)
            }
        };
        let message = if self.message == 1 { String::new() } else { format!("message {}, ", self.message) };
        format!("role {}, {message}turn {}, {last}", role_name(self.role), self.turn)
    }
}

impl Seen {
    fn of(request: &ModelRequest, answer: &CallResult, args: JsonValue) -> Seen {
        let name = request.names.registry(&answer.name).unwrap_or(&answer.name).to_owned();
        let value =
            serde_json::from_str(&answer.text).unwrap_or_else(|_| JsonValue::String(answer.text.clone()));
        Seen { name, error: answer.error, text: answer.text.clone(), args, value }
    }
}

/// A role's name in playbooks.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker",
        Role::Subagent => "subagent",
    }
}

fn spoken(message: &Message) -> Option<Spoken<'_>> {
    match message {
        Message::User(content) => Some(Spoken { role: "user", content }),
        Message::Assistant { text: Some(content), .. } => Some(Spoken { role: "assistant", content }),
        Message::Assistant { text: None, .. } | Message::Results(_) => None,
    }
}

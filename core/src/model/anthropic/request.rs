//! The request body of messages.

use super::VERSION;
use crate::limits::MODEL_OUTPUT;
use crate::model::http::{HttpRequest, headers, object_schema, raw};
use crate::model::{CallResult, Message, ModelRequest, PastCall};
use crate::wire::message::{Endpoint, Remote, ToolDecl};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// What stands for the first turn where the history begins with the other side's: the dialect begins with `user`.
const OPENING: &str = "(The conversation so far follows.)";

/// The request for one model call, streamed.
pub fn request(remote: &Remote, endpoint: &Endpoint, request: &ModelRequest) -> HttpRequest {
    let ids = Ids::of(&request.messages);
    let (tools, callable) = request.told_tools();
    let body = Body {
        model: &remote.model,
        max_tokens: request.most_output(remote).unwrap_or(MODEL_OUTPUT).clamp(1, request.tokens_left.max(1)),
        system: request.system.trim(),
        messages: messages(request, &ids),
        tools: tools.iter().map(tool).collect(),
        tool_choice: (!callable && !tools.is_empty()).then_some(Choice { r#type: "none" }),
        stream: true,
    };
    let base = endpoint.url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let mut own = vec![("anthropic-version", VERSION.to_owned())];
    own.extend(endpoint.token.as_ref().map(|token| ("x-api-key", token.trim().to_owned())));
    HttpRequest {
        path: if base.ends_with("/v1") { "/messages" } else { "/v1/messages" }.to_owned(),
        headers: headers(remote, &own),
        // Texts, numbers and JSON that was parsed: nothing here can fail to be written.
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    system: &'a str,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    stream: bool,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Box<RawValue>,
}

/// Turns that alternate, begin with `user`, and are never empty.
fn messages<'a>(request: &'a ModelRequest, ids: &'a Ids<'a>) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in &request.messages {
        let (role, content) = blocks(message, ids);
        if content.is_empty() {
            continue;
        }
        if turns.is_empty() && role == "assistant" {
            turns.push(Turn { role: "user", content: vec![Block::Text { text: OPENING }] });
        }
        match turns.last_mut() {
            // Results come first in their turn, since they follow their calls at once.
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None => turns.push(Turn { role, content }),
        }
    }
    turns
}

fn blocks<'a>(message: &'a Message, ids: &'a Ids<'a>) -> (&'static str, Vec<Block<'a>>) {
    match message {
        Message::User(text) => ("user", written(text).collect()),
        Message::Assistant { text, calls } => {
            let text = text.iter().flat_map(|text| written(text));
            ("assistant", text.chain(calls.iter().map(|call| tool_use(call, ids))).collect())
        }
        Message::Results(results) => {
            ("user", results.iter().map(|result| tool_result(result, ids)).collect())
        }
    }
}

/// A text, unless it is blank, which the provider refuses.
fn written(text: &str) -> impl Iterator<Item = Block<'_>> {
    Some(text).filter(|text| !text.trim().is_empty()).into_iter().map(|text| Block::Text { text })
}

fn tool_use<'a>(call: &'a PastCall, ids: &'a Ids<'a>) -> Block<'a> {
    Block::ToolUse { id: ids.wire(&call.id), name: &call.name, input: raw(&call.args) }
}

fn tool_result<'a>(result: &'a CallResult, ids: &'a Ids<'a>) -> Block<'a> {
    let content = if result.text.trim().is_empty() { "" } else { result.text.as_str() };
    Block::ToolResult { tool_use_id: ids.wire(&result.id), content, is_error: result.error }
}

fn tool(decl: &ToolDecl) -> Tool<'_> {
    Tool { name: &decl.name, description: &decl.description, input_schema: object_schema(&decl.schema) }
}

/// Ids as this provider takes them, `[A-Za-z0-9_-]`: a history may hold another provider's.
struct Ids<'a>(BTreeMap<&'a str, String>);

impl<'a> Ids<'a> {
    fn of(messages: &'a [std::sync::Arc<Message>]) -> Ids<'a> {
        let all: Vec<&str> = messages
            .iter()
            .flat_map(|message| match message.as_ref() {
                Message::Assistant { calls, .. } => calls.as_slice(),
                Message::User(_) | Message::Results(_) => &[],
            })
            .map(|call| call.id.as_str())
            .collect();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut taken: BTreeSet<String> =
            all.iter().filter(|id| id.chars().all(legal)).map(|id| (*id).to_owned()).collect();
        let mut ids = BTreeMap::new();
        for id in all.into_iter().filter(|id| !id.chars().all(legal)) {
            let plain: String = id.chars().map(|c| if legal(c) { c } else { '_' }).collect();
            let mut wire = plain.clone();
            let mut n = 2u64;
            while !taken.insert(wire.clone()) {
                wire = format!("{plain}_{n}");
                n += 1;
            }
            ids.insert(id, wire);
        }
        Ids(ids)
    }

    fn wire(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

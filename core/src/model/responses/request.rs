//! The request body of responses.

use super::LEAST_OUTPUT;
use crate::model::http::{HttpRequest, headers, object_schema};
use crate::model::{CallResult, Message, ModelRequest, PastCall};
use crate::wire::message::{Endpoint, Remote, ToolDecl};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The request for one model call, streamed.
pub fn request(remote: &Remote, endpoint: &Endpoint, request: &ModelRequest) -> HttpRequest {
    let (tools, callable) = request.told_tools();
    let body = Body {
        model: &remote.model,
        instructions: request.system.trim(),
        input: request.messages.iter().flat_map(|message| items(message)).collect(),
        tools: tools.iter().map(tool).collect(),
        tool_choice: (!callable && !tools.is_empty()).then_some("none"),
        stream: true,
        store: false,
        max_output_tokens: request
            .most_output(remote)
            .map(|most| most.min(request.tokens_left).max(LEAST_OUTPUT)),
    };
    let token = endpoint.token.as_ref().map(|token| ("authorization", format!("Bearer {}", token.trim())));
    HttpRequest {
        path: "/responses".to_owned(),
        headers: headers(remote, token.as_slice()),
        // Texts, numbers and JSON that was parsed: nothing here can fail to be written.
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: &'a str },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: Cow<'a, str> },
    FunctionCallOutput { call_id: &'a str, output: Cow<'a, str> },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Box<RawValue>,
    /// The dialect's default is `true`, which refuses most schemas that servers of tools publish.
    strict: bool,
}

fn items(message: &Message) -> Vec<Item<'_>> {
    match message {
        Message::User(text) => written("user", text).collect(),
        Message::Assistant { text, calls } => {
            let text = text.iter().flat_map(|text| written("assistant", text));
            text.chain(calls.iter().map(call)).collect()
        }
        Message::Results(results) => results.iter().map(output).collect(),
    }
}

/// A text, unless there is nothing in it.
fn written<'a>(role: &'static str, text: &'a str) -> impl Iterator<Item = Item<'a>> {
    Some(text)
        .filter(|text| !text.trim().is_empty())
        .into_iter()
        .map(move |content| Item::Message { role, content })
}

fn call(call: &PastCall) -> Item<'_> {
    let arguments = String::from_utf8_lossy(&call.args.0);
    Item::FunctionCall { call_id: &call.id, name: &call.name, arguments }
}

/// The dialect has no mark for an error, so the text says it.
fn output(result: &CallResult) -> Item<'_> {
    let output =
        if result.error { format!("error: {}", result.text).into() } else { result.text.as_str().into() };
    Item::FunctionCallOutput { call_id: &result.id, output }
}

fn tool(decl: &ToolDecl) -> Tool<'_> {
    let parameters = object_schema(&decl.schema);
    Tool { r#type: "function", name: &decl.name, description: &decl.description, parameters, strict: false }
}

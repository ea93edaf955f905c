//! The request body of chat completions.

use super::Manner;
use crate::model::http::{HttpRequest, headers, object_schema};
use crate::model::{CallResult, Message, ModelRequest, PastCall};
use crate::wire::message::{Endpoint, Remote, ToolDecl};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The request for one model call, streamed.
pub fn request(remote: &Remote, endpoint: &Endpoint, request: &ModelRequest, manner: Manner) -> HttpRequest {
    let most = request.most_output(remote).map(|most| most.clamp(1, request.tokens_left.max(1)));
    let (tools, callable) = request.told_tools();
    let body = Body {
        model: &remote.model,
        messages: messages(request),
        tools: tools.iter().map(tool).collect(),
        tool_choice: (!callable && !tools.is_empty()).then_some("none"),
        stream: true,
        stream_options: manner.usage.then_some(StreamOptions { include_usage: true }),
        max_tokens: most.filter(|_| !manner.completion_tokens),
        max_completion_tokens: most.filter(|_| manner.completion_tokens),
    };
    let token = endpoint.token.as_ref().map(|token| ("authorization", format!("Bearer {}", token.trim())));
    HttpRequest {
        path: "/chat/completions".to_owned(),
        headers: headers(remote, token.as_slice()),
        // Texts, numbers and JSON that was parsed: nothing here can fail to be written.
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    /// `null` beside calls: the shape that every server takes.
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Declared<'a>,
}

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Box<RawValue>,
}

fn messages(request: &ModelRequest) -> Vec<Said<'_>> {
    let mut said: Vec<Said<'_>> = Vec::new();
    if !request.system.is_empty() {
        said.push(text("system", &request.system));
    }
    for message in &request.messages {
        match message.as_ref() {
            Message::User(content) => append(&mut said, text("user", content)),
            Message::Assistant { text: content, calls } if calls.is_empty() => {
                append(&mut said, text("assistant", content.as_deref().unwrap_or_default()));
            }
            Message::Assistant { text: content, calls } => said.push(Said {
                role: "assistant",
                content: content.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed),
                tool_calls: calls.iter().map(tool_call).collect(),
                tool_call_id: None,
            }),
            Message::Results(results) => said.extend(results.iter().map(result)),
        }
    }
    said
}

/// Two texts in a row from one side become one message: templates of many models insist on taking turns.
fn append<'a>(said: &mut Vec<Said<'a>>, next: Said<'a>) {
    match said.last_mut() {
        Some(last) if last.role == next.role && last.tool_calls.is_empty() => {
            let texts = [&last.content, &next.content].map(|text| text.as_deref().unwrap_or_default());
            let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
            last.content = Some(texts.join("\n\n").into());
        }
        Some(_) | None => said.push(next),
    }
}

fn text<'a>(role: &'static str, content: &'a str) -> Said<'a> {
    Said { role, content: Some(content.into()), tool_calls: Vec::new(), tool_call_id: None }
}

fn tool_call(call: &PastCall) -> ToolCall<'_> {
    let function = Function { name: &call.name, arguments: String::from_utf8_lossy(&call.args.0) };
    ToolCall { id: &call.id, r#type: "function", function }
}

/// The dialect has no mark for an error, so the text says it.
fn result(result: &CallResult) -> Said<'_> {
    let content: Cow<'_, str> =
        if result.error { format!("error: {}", result.text).into() } else { result.text.as_str().into() };
    Said { role: "tool", content: Some(content), tool_calls: Vec::new(), tool_call_id: Some(&result.id) }
}

fn tool(decl: &ToolDecl) -> Tool<'_> {
    let parameters = object_schema(&decl.schema);
    Tool {
        r#type: "function",
        function: Declared { name: &decl.name, description: &decl.description, parameters },
    }
}

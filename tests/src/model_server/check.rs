//! What the providers' published interfaces insist on in a request, as far as clients get it wrong.

use super::{Request, Speaks};
use serde_json::Value;
use std::collections::BTreeSet;

/// Everything that a provider would refuse.
pub(super) fn problems(request: &Request, speaks: Speaks) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    let wanted = match speaks {
        Speaks::Openai => "POST /v1/chat/completions",
        Speaks::Responses => "POST /v1/responses",
        Speaks::Anthropic => "POST /v1/messages",
    };
    must(request.line == wanted, format!("{} instead of {wanted}", request.line));
    let json = request.header("content-type").is_some_and(|v| v.starts_with("application/json"));
    must(json, "the content type is not JSON".into());
    must(request.header("host").is_some(), "no host".into());
    must(request.body["model"].is_string(), "no model".into());
    must(!request.messages().is_empty(), "no messages".into());
    must(request.body.get("tools") != Some(&Value::Array(Vec::new())), "an empty list of tools".into());
    let mut names = BTreeSet::new();
    for name in request.tools() {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        must(
            !name.is_empty() && name.len() <= 64 && name.chars().all(legal),
            format!("a tool named {name:?}"),
        );
        must(names.insert(name.to_owned()), format!("two tools named {name}"));
    }
    match speaks {
        Speaks::Openai => chat(request, &mut must),
        Speaks::Responses => responses(request, &mut must),
        Speaks::Anthropic => messages(request, &mut must),
    }
    problems
}

/// Each call is answered exactly once, after the calls beside it and before anything else; nothing refers to what the
/// provider would have to keep.
fn responses(request: &Request, must: &mut impl FnMut(bool, String)) {
    must(request.body["store"] == false, "what is to be kept is not said".into());
    must(request.body.get("previous_response_id").is_none(), "a response that was not kept".into());
    must(request.body.get("messages").is_none(), "messages are of another interface".into());
    must(
        request.body.get("max_output_tokens").is_none_or(|n| n.as_u64().is_some_and(|n| n >= 16)),
        format!("max_output_tokens {}", request.body["max_output_tokens"]),
    );
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        must(tool["type"] == "function", format!("a tool of type {}", tool["type"]));
        must(tool["strict"].is_boolean(), "a tool that does not say whether it is strict".into());
        must(tool["parameters"]["type"] == "object", format!("parameters {}", tool["parameters"]));
    }
    let (mut open, mut seen, mut answering) = (BTreeSet::new(), BTreeSet::new(), false);
    for item in request.messages() {
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => {
                must(!answering || open.is_empty(), format!("a call before {open:?} are answered"));
                answering = false;
                must(item.get("id").is_none(), "the id of an item that was not kept".into());
                must(
                    !id.is_empty() && seen.insert(id.clone()),
                    format!("a call id {id:?} that is empty or used twice"),
                );
                open.insert(id);
                let args = item["arguments"].as_str().unwrap_or_default();
                let object = serde_json::from_str::<Value>(args).is_ok_and(|args| args.is_object());
                must(object && item["name"].is_string(), format!("a call {item}"));
            }
            "function_call_output" => {
                answering = true;
                must(open.remove(&id), format!("a result for {id:?}, which is not open"));
                must(item["output"].is_string(), format!("output {}", item["output"]));
            }
            "message" => {
                must(open.is_empty(), format!("{open:?} without a result before {item}"));
                let role = item["role"].as_str().unwrap_or_default();
                must(["user", "assistant"].contains(&role), format!("role {role:?}"));
                must(
                    item["content"].as_str().is_some_and(|text| !text.is_empty()),
                    format!("content {}", item["content"]),
                );
            }
            other => must(false, format!("an item of type {other}")),
        }
    }
    must(open.is_empty(), format!("{open:?} without a result"));
}

/// Each call is answered exactly once, right after it, before anything else.
fn chat(request: &Request, must: &mut impl FnMut(bool, String)) {
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        must(tool["type"] == "function", format!("a tool of type {}", tool["type"]));
        let parameters = &tool["function"]["parameters"];
        must(
            parameters["type"] == "object" && parameters["properties"].is_object(),
            format!("parameters {parameters}"),
        );
    }
    let (mut open, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for message in request.messages() {
        let role = message["role"].as_str().unwrap_or_default();
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        must(
            message["content"].is_string() || message["content"].is_null() && !calls.is_empty(),
            format!("content {}", message["content"]),
        );
        must(message.get("tool_calls").is_none() || !calls.is_empty(), "an empty list of calls".into());
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            must(open.remove(id), format!("a result for {id:?}, which is not open"));
            continue;
        }
        must(open.is_empty(), format!("{open:?} without a result before {role}"));
        must(["system", "user", "assistant"].contains(&role), format!("role {role:?}"));
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            must(
                seen.insert(id.clone()) && !id.is_empty(),
                format!("a call id {id:?} that is empty or used twice"),
            );
            open.insert(id);
            let args = call["function"]["arguments"].as_str().unwrap_or_default();
            let object = serde_json::from_str::<Value>(args).is_ok_and(|args| args.is_object());
            must(object, format!("arguments {args:?}"));
        }
    }
    must(open.is_empty(), format!("{open:?} without a result"));
}

/// Turns alternate and hold something, and the results of a turn's calls open the next turn.
fn messages(request: &Request, must: &mut impl FnMut(bool, String)) {
    must(request.header("anthropic-version").is_some(), "no anthropic-version".into());
    must(request.body["max_tokens"].as_u64().is_some_and(|n| n > 0), "no max_tokens".into());
    must(request.body.get("system").is_none_or(|s| s.as_str() != Some("")), "an empty system text".into());
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        must(tool["input_schema"]["type"] == "object", format!("input schema {}", tool["input_schema"]));
    }
    let mut open: Vec<String> = Vec::new();
    for (nth, message) in request.messages().iter().enumerate() {
        must(
            message["role"] == ["user", "assistant"][nth % 2],
            format!("message {nth} is of {}", message["role"]),
        );
        let alone = Value::from(vec![serde_json::json!({"type": "text", "text": message["content"]})]);
        let content = if message["content"].is_string() { &alone } else { &message["content"] };
        let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
        must(!blocks.is_empty(), format!("message {nth} has no content"));
        let kind = |block: &Value| block["type"].as_str().unwrap_or_default().to_owned();
        let results = blocks.iter().take_while(|block| kind(block) == "tool_result");
        let answered: BTreeSet<&str> =
            results.clone().filter_map(|block| block["tool_use_id"].as_str()).collect();
        let calls: BTreeSet<&str> = open.iter().map(String::as_str).collect();
        must(
            answered == calls && results.clone().count() == open.len(),
            format!("{answered:?} answer {calls:?}"),
        );
        must(
            blocks.iter().skip(results.count()).all(|block| kind(block) != "tool_result"),
            "a late result".into(),
        );
        for block in blocks.iter().filter(|block| kind(block) == "text") {
            must(block["text"].as_str().is_some_and(|text| !text.trim().is_empty()), "a blank text".into());
        }
        let used = blocks.iter().filter(|block| kind(block) == "tool_use");
        open = used.map(|block| block["id"].as_str().unwrap_or_default().to_owned()).collect();
        let distinct: BTreeSet<_> = open.iter().collect();
        must(distinct.len() == open.len(), format!("ids used twice: {open:?}"));
        for block in blocks.iter().filter(|block| kind(block) == "tool_use") {
            must(block["input"].is_object(), format!("input {}", block["input"]));
        }
    }
    must(open.is_empty(), format!("{open:?} without a result"));
}

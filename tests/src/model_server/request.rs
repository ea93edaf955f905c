//! A client's request, read whole and judged.

use super::{Speaks, check};
use serde_json::Value;
use std::io::Read;

/// What a client sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST /v1/messages`.
    pub line: String,
    /// Names in small letters, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body; null when it is no JSON.
    pub body: Value,
    /// What a provider would refuse.
    pub problems: Vec<String>,
}

impl Request {
    /// Reads one request; `None` when the client goes before it is whole.
    pub(super) fn read(from: &mut impl Read, speaks: Speaks) -> Option<Request> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            from.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).ok()?;
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut raw = vec![0; length.and_then(|(_, n)| n.parse().ok()).unwrap_or(0)];
        from.read_exact(&mut raw).ok()?;
        let body = serde_json::from_slice(&raw).unwrap_or_default();
        let mut request = Request { line, headers, body, problems: Vec::new() };
        request.problems = check::problems(&request, speaks);
        Some(request)
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The messages; in responses, the items of the input.
    pub fn messages(&self) -> &[Value] {
        let list = if self.body["input"].is_array() { &self.body["input"] } else { &self.body["messages"] };
        list.as_array().map_or(&[], Vec::as_slice)
    }

    /// Names of the tools on offer.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str())).collect()
    }

    /// The text that the model is to react to: of the last message, results included.
    pub fn last_text(&self) -> String {
        let mut text = String::new();
        if let Some(message) = self.messages().last() {
            collect(&message["content"], &mut text);
            collect(&message["output"], &mut text);
        }
        text
    }

    /// The results in the last messages, as call id and text.
    pub fn results(&self) -> Vec<(String, String)> {
        let mut results = Vec::new();
        for message in self.messages().iter().rev() {
            if message["role"] == "tool" {
                results.insert(0, (text(&message["tool_call_id"]), text(&message["content"])));
                continue;
            }
            if message["type"] == "function_call_output" {
                results.insert(0, (text(&message["call_id"]), text(&message["output"])));
                continue;
            }
            if let Some(blocks) = message["content"].as_array().filter(|_| message["role"] == "user") {
                let found = blocks.iter().filter(|block| block["type"] == "tool_result");
                results.extend(found.map(|block| (text(&block["tool_use_id"]), text(&block["content"]))));
            }
            break;
        }
        results
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn collect(content: &Value, into: &mut String) {
    if let Some(text) = content.as_str() {
        into.push_str(text);
    }
    for block in content.as_array().into_iter().flatten() {
        collect(&block["text"], into);
        collect(&block["content"], into);
    }
}

//! A well-formed answer in either dialect, built from what the model is to say.

use super::Speaks;
use serde_json::{Value, json};

/// What the model says.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    text: String,
    calls: Vec<(String, String, String)>,
    usage: Option<(u64, u64)>,
    finish: Option<Value>,
}

impl Answer {
    /// A text, and that is all.
    pub fn text(text: &str) -> Answer {
        Answer { text: text.to_owned(), ..Answer::default() }
    }

    /// One more call; the arguments are raw.
    pub fn call(mut self, id: &str, name: &str, args: &str) -> Answer {
        self.calls.push((id.to_owned(), name.to_owned(), args.to_owned()));
        self
    }

    /// Tokens in and out; none are reported otherwise.
    pub fn usage(mut self, input: u64, output: u64) -> Answer {
        self.usage = Some((input, output));
        self
    }

    /// Why it stopped, in the provider's word; the right one otherwise. `Value::Null` is an explicit null.
    pub fn finish(mut self, finish: impl Into<Value>) -> Answer {
        self.finish = Some(finish.into());
        self
    }

    /// The events of its stream, without the terminal one of chat completions, which is no JSON.
    pub fn events(&self, speaks: Speaks) -> Vec<Value> {
        match speaks {
            Speaks::Openai => self.chunks(),
            Speaks::Anthropic => self.blocks(),
        }
    }

    /// The body of its stream, the terminal event included.
    pub fn stream(&self, speaks: Speaks) -> String {
        let mut body: String = self.events(speaks).iter().map(|event| sse(speaks, event)).collect();
        if speaks == Speaks::Openai {
            body.push_str("data: [DONE]\n\n");
        }
        body
    }

    /// The body in one piece.
    pub fn whole(&self, speaks: Speaks) -> Value {
        let (input, output) = self.usage.unwrap_or((0, 0));
        match speaks {
            Speaks::Openai => {
                let calls: Vec<Value> =
                    self.calls.iter().map(|(id, name, args)| function(id, name, args)).collect();
                let message = json!({"role": "assistant", "content": self.text, "tool_calls": calls});
                json!({
                    "id": "chatcmpl-1", "object": "chat.completion",
                    "choices": [{"index": 0, "message": message, "finish_reason": self.why(speaks)}],
                    "usage": {"prompt_tokens": input, "completion_tokens": output},
                })
            }
            Speaks::Anthropic => {
                let text = json!({"type": "text", "text": self.text});
                let calls = self.calls.iter().map(|(id, name, args)| {
                    let input: Value = serde_json::from_str(args).unwrap_or_default();
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                });
                let content: Vec<Value> =
                    [text].into_iter().filter(|_| !self.text.is_empty()).chain(calls).collect();
                json!({
                    "type": "message", "role": "assistant", "content": content, "stop_reason": self.why(speaks),
                    "usage": {"input_tokens": input, "output_tokens": output},
                })
            }
        }
    }

    fn why(&self, speaks: Speaks) -> Value {
        let right = match (speaks, self.calls.is_empty()) {
            (Speaks::Openai, true) => "stop",
            (Speaks::Openai, false) => "tool_calls",
            (Speaks::Anthropic, true) => "end_turn",
            (Speaks::Anthropic, false) => "tool_use",
        };
        self.finish.clone().unwrap_or_else(|| json!(right))
    }

    fn chunks(&self) -> Vec<Value> {
        let chunk = |delta: Value, finish: Value| {
            json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            })
        };
        let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        if !self.text.is_empty() {
            chunks.push(chunk(json!({"content": self.text}), Value::Null));
        }
        for (index, (id, name, args)) in self.calls.iter().enumerate() {
            let mut first = function(id, name, "");
            first["index"] = json!(index);
            chunks.push(chunk(json!({"tool_calls": [first]}), Value::Null));
            for piece in pieces(args) {
                let piece = json!({"index": index, "function": {"arguments": piece}});
                chunks.push(chunk(json!({"tool_calls": [piece]}), Value::Null));
            }
        }
        chunks.push(chunk(json!({}), self.why(Speaks::Openai)));
        if let Some((input, output)) = self.usage {
            let usage =
                json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
            chunks.push(json!({"id": "chatcmpl-1", "choices": [], "usage": usage}));
        }
        chunks
    }

    fn blocks(&self) -> Vec<Value> {
        let (input, output) = self.usage.unwrap_or((0, 0));
        let mut events = vec![json!({
            "type": "message_start",
            "message": {"type": "message", "role": "assistant", "content": [], "stop_reason": null, "usage": {"input_tokens": input, "output_tokens": 0}},
        })];
        let mut block = |index: usize, start: Value, deltas: Vec<Value>| {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            events.extend(
                deltas
                    .into_iter()
                    .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
            );
            events.push(json!({"type": "content_block_stop", "index": index}));
        };
        let texts = usize::from(!self.text.is_empty());
        if texts > 0 {
            block(
                0,
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": self.text})],
            );
        }
        for (nth, (id, name, args)) in self.calls.iter().enumerate() {
            let deltas = pieces(args)
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            block(
                nth + texts,
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                deltas.collect(),
            );
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": self.why(Speaks::Anthropic)}, "usage": {"output_tokens": output}}));
        events.push(json!({"type": "message_stop"}));
        events
    }
}

/// One event as it goes over the wire.
pub(super) fn sse(speaks: Speaks, event: &Value) -> String {
    match speaks {
        Speaks::Openai => format!("data: {event}\n\n"),
        Speaks::Anthropic => format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("odd")),
    }
}

fn function(id: &str, name: &str, args: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}})
}

/// Arguments come in pieces; two will do.
fn pieces(args: &str) -> Vec<&str> {
    let middle = (args.len() / 2..=args.len()).find(|at| args.is_char_boundary(*at)).unwrap_or(0);
    let (front, back) = args.split_at(middle);
    [front, back].into_iter().filter(|piece| !piece.is_empty()).collect()
}

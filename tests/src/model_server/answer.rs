//! A well-formed answer in any dialect, built from what the model is to say.

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
            Speaks::Responses => self.items(),
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
            Speaks::Responses => self.response(self.output()),
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
            // The reason why a response is incomplete; there is none for one that is not.
            (Speaks::Responses, _) => "",
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

    /// The items of a response, whole.
    fn output(&self) -> Vec<Value> {
        let content = json!([{"type": "output_text", "text": self.text, "annotations": []}]);
        let text = json!({"type": "message", "id": "msg_0", "status": "completed", "role": "assistant", "content": content});
        let calls = self.calls.iter().enumerate().map(|(nth, (id, name, args))| {
            let id = json!({"id": format!("fc_{nth}"), "call_id": id});
            json!({"type": "function_call", "id": id["id"], "call_id": id["call_id"], "name": name, "arguments": args, "status": "completed"})
        });
        [text].into_iter().filter(|_| !self.text.is_empty()).chain(calls).collect()
    }

    /// A response that has ended: completed, or incomplete for the reason that the test names.
    fn response(&self, output: Vec<Value>) -> Value {
        let usage = self.usage.map(|(input, output)| {
            let details = json!({"reasoning_tokens": output / 2});
            json!({"input_tokens": input, "output_tokens": output, "output_tokens_details": details, "total_tokens": input + output})
        });
        let reason = self.why(Speaks::Responses);
        let is_cut = reason.as_str().is_some_and(|reason| !reason.is_empty());
        json!({
            "id": "resp_1", "object": "response", "status": if is_cut { "incomplete" } else { "completed" },
            "incomplete_details": is_cut.then(|| json!({"reason": reason})), "error": null, "output": output, "usage": usage,
        })
    }

    fn items(&self) -> Vec<Value> {
        let begun = json!({"id": "resp_1", "object": "response", "status": "in_progress", "output": [], "usage": null});
        let mut events = vec![
            json!({"type": "response.created", "response": begun}),
            json!({"type": "response.in_progress", "response": begun}),
        ];
        for (index, item) in self.output().into_iter().enumerate() {
            let mut empty = item.clone();
            empty["status"] = json!("in_progress");
            let id = item["id"].clone();
            let event = |kind: &str, what: (&str, Value)| {
                let mut event = json!({"type": kind, "item_id": id, "output_index": index});
                event[what.0] = what.1;
                event
            };
            if item["type"] == "message" {
                empty["content"] = json!([]);
                events.push(event("response.output_item.added", ("item", empty)));
                let mut delta = event("response.output_text.delta", ("delta", json!(self.text)));
                delta["content_index"] = json!(0);
                events.push(delta);
                let mut whole = event("response.output_text.done", ("text", json!(self.text)));
                whole["content_index"] = json!(0);
                events.push(whole);
            } else {
                let args = item["arguments"].as_str().unwrap_or_default();
                empty["arguments"] = json!("");
                events.push(event("response.output_item.added", ("item", empty)));
                let deltas = pieces(args).into_iter();
                events.extend(
                    deltas.map(|piece| {
                        event("response.function_call_arguments.delta", ("delta", json!(piece)))
                    }),
                );
                events.push(event("response.function_call_arguments.done", ("arguments", json!(args))));
            }
            events.push(event("response.output_item.done", ("item", item)));
        }
        let response = self.response(self.output());
        let kind = format!("response.{}", response["status"].as_str().unwrap_or_default());
        events.push(json!({"type": kind, "response": response}));
        events
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
        Speaks::Responses | Speaks::Anthropic => {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("odd"))
        }
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

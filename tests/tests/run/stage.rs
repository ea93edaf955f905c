//! A provider on a stage: requests of the conversation and of each of its runs, told apart by their first message,
//! and answered by the test in the order it wants.

use agentd_tests::kit::{RunCommand, Running};
use agentd_tests::model_server::{Answer, Exchange, ModelServer, Request, Speaks};
use serde_json::{Value, json};
use std::time::Duration;

/// Dialects for tests of what does not depend on them: the two that differ most.
pub(crate) const BOTH: [Speaks; 2] = [Speaks::Openai, Speaks::Anthropic];

/// A run and the provider that it asks.
pub(crate) struct Stage {
    server: ModelServer,
    /// Requests that came and were not asked for yet.
    early: Vec<Exchange>,
    calls: u32,
}

/// What the conversation is asked.
pub(crate) const PROMPT: &str = "the prompt";

impl Stage {
    /// A run whose conversation is asked [`PROMPT`], with more configuration.
    pub(crate) fn start(speaks: Speaks, config: &str) -> (Stage, Running) {
        Stage::start_with(speaks, config, &[])
    }

    /// The same with variables, for what the provider's section of the configuration says besides.
    pub(crate) fn start_with(speaks: Speaks, config: &str, env: &[(&str, &str)]) -> (Stage, Running) {
        let server = ModelServer::start(speaks);
        let run =
            env.iter().fold(asking(&server, speaks.dialect()), |run, (name, value)| run.env(name, value));
        let running = run.config(config).arg("--json").start(PROMPT);
        (Stage { server, early: Vec::new(), calls: 0 }, running)
    }

    /// The next request of the run whose first message is this.
    pub(crate) fn of(&mut self, first: &str) -> Exchange {
        if let Some(at) = self.early.iter().position(|e| first_message(&e.request) == first) {
            return self.early.remove(at);
        }
        loop {
            let exchange = self.server.next();
            if first_message(&exchange.request) == first {
                return exchange;
            }
            self.early.push(exchange);
        }
    }

    /// The next request of the conversation.
    pub(crate) fn root(&mut self) -> Exchange {
        self.of(PROMPT)
    }

    /// The next request of anybody, or none within a moment.
    pub(crate) fn any_within(&mut self, wait: Duration) -> Option<Exchange> {
        self.early.pop().or_else(|| self.server.next_within(wait))
    }

    /// An answer that makes these calls in one message.
    pub(crate) fn calls(&mut self, calls: &[(&str, Value)]) -> Answer {
        calls.iter().fold(Answer::text(""), |answer, (name, args)| {
            self.calls += 1;
            answer.call(&format!("id_{}", self.calls), name, &args.to_string())
        })
    }

    /// The conversation makes these calls, and its next request, which has their results, is given.
    pub(crate) fn root_calls(&mut self, calls: &[(&str, Value)]) -> (Exchange, Vec<Value>) {
        let answer = self.calls(calls);
        self.root().answer(&answer);
        let next = self.root();
        let results = results(&next.request);
        assert_eq!(results.len(), calls.len(), "{:#}", next.request.body);
        (next, results)
    }
}

fn asking(server: &ModelServer, dialect: &str) -> RunCommand {
    crate::run("rules: [{reply: {text: unused}}]\n")
        .env("AGENTD_INTELLIGENCE_DIALECT", dialect)
        .env("AGENTD_INTELLIGENCE_ENDPOINTS", json!([server.base()]).to_string())
        .env("AGENTD_INTELLIGENCE_MODEL", "the-model")
}

/// The results that a request answers calls with, as JSON where they are. Chat completions have no mark for an error,
/// so the text says it.
pub(crate) fn results(request: &Request) -> Vec<Value> {
    let parsed = |text: String| {
        serde_json::from_str(text.strip_prefix("error: ").unwrap_or(&text)).unwrap_or(Value::String(text))
    };
    request.results().into_iter().map(|(_, text)| parsed(text)).collect()
}

/// Every user message's text of a request, in order.
pub(crate) fn said(request: &Request) -> Vec<String> {
    request.messages().iter().filter(|m| m["role"] == "user").map(text_of).collect()
}

fn first_message(request: &Request) -> String {
    said(request).first().cloned().unwrap_or_default()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|b| b["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

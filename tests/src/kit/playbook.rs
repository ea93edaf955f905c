//! Playbooks, written in Rust: rules that a scripted model follows (docs/playbooks.md).

use serde_json::{Map, Value, json};

/// One rule; the first that matches a model request answers it.
#[derive(Debug, Clone)]
pub struct Rule {
    rule: Map<String, Value>,
    reply: Map<String, Value>,
}

impl Rule {
    /// Matches requests of the conversation's worker.
    pub fn worker() -> Rule {
        Rule::of("worker")
    }

    /// Matches requests of subagents.
    pub fn subagent() -> Rule {
        Rule::of("subagent")
    }

    fn of(role: &str) -> Rule {
        let rule = Map::from_iter([("role".to_owned(), json!(role))]);
        Rule { rule, reply: Map::new() }
    }

    fn when(mut self, key: &str, value: Value) -> Rule {
        self.rule.insert(key.to_owned(), value);
        self
    }

    fn reply(mut self, key: &str, value: Value) -> Rule {
        self.reply.insert(key.to_owned(), value);
        self
    }

    /// Only that model call of the run, from 1.
    pub fn turn(self, turn: u32) -> Rule {
        self.when("turn", json!(turn))
    }

    /// Only where the last user message matches this regular expression.
    pub fn told(self, pattern: &str) -> Rule {
        self.when("text", json!(pattern))
    }

    /// Says this text, a template.
    pub fn says(self, text: &str) -> Rule {
        self.reply("text", json!(text))
    }

    /// Makes these calls in one message.
    pub fn calls(self, calls: impl IntoIterator<Item = Value>) -> Rule {
        self.reply("tool_calls", calls.into_iter().collect())
    }

    /// Takes so long, `5s`.
    pub fn after(self, delay: &str) -> Rule {
        self.reply("delay", json!(delay))
    }

    /// Used so many tokens.
    pub fn uses(self, input: u64, output: u64) -> Rule {
        self.reply("usage", json!({"input": input, "output": output}))
    }

    /// Stops for this reason.
    pub fn finishes(self, finish: &str) -> Rule {
        self.reply("finish", json!(finish))
    }
}

/// A call of a tool.
pub fn call(name: &str, args: Value) -> Value {
    json!({"name": name, "args": args})
}

/// A call with an id of its own and arguments as text, JSON or not.
pub fn call_as(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "name": name, "arguments": arguments})
}

/// The playbook of these rules, as a file holds it.
pub fn playbook(rules: impl IntoIterator<Item = Rule>) -> String {
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|Rule { mut rule, reply }| {
            rule.insert("reply".to_owned(), Value::Object(reply));
            Value::Object(rule)
        })
        .collect();
    json!({ "rules": rules }).to_string()
}

//! Reads a playbook. Every mistake is collected with its path; nothing is guessed and no unknown key is passed
//! over.

use crate::model::mock::Problem;
use crate::model::mock::fields::{Fields, join, unknown_keys, wrong_type};
use crate::model::mock::rule::{Answer, Args, CallShape, Last, Rule, Turns};
use crate::model::mock::scene::VARIABLES;
use crate::model::mock::shape::{Repeat, Shape, bare};
use crate::model::mock::template::{Engine, Expression};
use crate::model::{Finish, ModelErrorKind};
use crate::policy::Pattern;
use crate::time::Duration;
use crate::units;
use crate::wire::message::Role;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Reads everything; a playbook with problems is not to be used.
pub(super) fn playbook(value: &Value, fuel: u64) -> (Engine, Vec<Rule>, Vec<Problem>) {
    let mut reader = Reader {
        engine: Engine::new(fuel),
        problems: Vec::new(),
        known: VARIABLES.map(str::to_owned).into(),
    };
    let rules = reader.rules(value);
    (reader.engine, rules, reader.problems)
}

struct Reader {
    engine: Engine,
    problems: Vec<Problem>,
    /// Variables of every template.
    known: BTreeSet<String>,
}

impl Reader {
    fn rules(&mut self, value: &Value) -> Vec<Rule> {
        let Some(fields) = self.object("", value, &["description", "rules"]) else { return Vec::new() };
        self.string(fields, "", "description");
        match fields.get("rules") {
            Some(Value::Array(rules)) if !rules.is_empty() => rules
                .iter()
                .enumerate()
                .filter_map(|(i, rule)| self.rule(&format!("rules[{i}]"), rule))
                .collect(),
            Some(_) | None => {
                self.report("rules", "it has to be a list of at least one rule");
                Vec::new()
            }
        }
    }

    fn rule(&mut self, path: &str, value: &Value) -> Option<Rule> {
        const KEYS: [&str; 8] = ["name", "role", "message", "turn", "text", "last", "when", "reply"];
        let fields = self.object(path, value, &KEYS)?;
        let name = self.string(fields, path, "name");
        let role = self.role(fields, path);
        let mut numbers = |key| fields.get(key).and_then(|value| self.turns(&join(path, key), value));
        let (message, turn) = (numbers("message"), numbers("turn"));
        let text = self.regex(fields, path, "text");
        let last = fields.get("last").and_then(|last| self.last(&join(path, "last"), last));
        let condition = self.expression(fields, path, "when");
        let reply_path = join(path, "reply");
        let Some(reply) = fields.get("reply") else {
            self.report(&reply_path, "it is missing: what the model answers");
            return None;
        };
        let (answer, delay) = self.reply(&reply_path, reply)?;
        Some(Rule { path: path.to_owned(), name, role, message, turn, text, last, condition, answer, delay })
    }

    fn role(&mut self, fields: &Fields, path: &str) -> Option<Role> {
        match self.string(fields, path, "role")?.as_str() {
            "worker" => Some(Role::Worker),
            "subagent" => Some(Role::Subagent),
            other => {
                self.report(&join(path, "role"), format!("{other:?} is no role: worker or subagent"));
                None
            }
        }
    }

    fn turns(&mut self, path: &str, value: &Value) -> Option<Turns> {
        match value {
            Value::Number(_) => self.turn(path, value).map(|turn| Turns::Listed(vec![turn])),
            Value::Array(items) => {
                let turns =
                    items.iter().enumerate().filter_map(|(i, item)| self.turn(&format!("{path}[{i}]"), item));
                Some(Turns::Listed(turns.collect()))
            }
            Value::Object(_) => {
                let fields = self.object(path, value, &["from", "to"])?;
                let mut end = |key: &str, absent| match fields.get(key) {
                    Some(value) => self.turn(&join(path, key), value).unwrap_or(absent),
                    None => absent,
                };
                let (from, to) = (end("from", 1), end("to", u32::MAX));
                if from > to {
                    self.report(path, format!("from {from} lies after to {to}"));
                }
                Some(Turns::Between(from, to))
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {
                self.problems.push(wrong_type(path, value, "a number from 1, a list of them, or {from, to}"));
                None
            }
        }
    }

    fn turn(&mut self, path: &str, value: &Value) -> Option<u32> {
        let turn = value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1);
        if turn.is_none() {
            self.problems.push(wrong_type(path, value, "a number from 1; the first is 1"));
        }
        turn
    }

    fn last(&mut self, path: &str, value: &Value) -> Option<Last> {
        if value.is_null() || value.as_str() == Some("none") {
            return Some(Last::Absent);
        }
        let fields = self.object(path, value, &["tool", "error", "text"])?;
        let tool = self.string(fields, path, "tool").and_then(|text| match Pattern::parse(&text) {
            Ok(pattern) => Some(pattern),
            Err(invalid) => {
                self.report(&join(path, "tool"), invalid.to_string());
                None
            }
        });
        let error = match fields.get("error") {
            None => None,
            Some(Value::Bool(error)) => Some(*error),
            Some(other) => {
                self.problems.push(wrong_type(&join(path, "error"), other, "true or false"));
                None
            }
        };
        let text = self.regex(fields, path, "text");
        Some(Last::Present { tool, error, text })
    }

    fn reply(&mut self, path: &str, value: &Value) -> Option<(Answer, Duration)> {
        const KEYS: [&str; 6] = ["text", "tool_calls", "usage", "delay", "finish", "error"];
        let fields = self.object(path, value, &KEYS)?;
        let delay = self.delay(fields, path);
        if let Some(error) = fields.get("error") {
            for key in
                KEYS.iter().filter(|key| !["error", "delay"].contains(key) && fields.contains_key(**key))
            {
                self.report(&join(path, key), "a reply with an error has nothing else but a delay");
            }
            return self.error(&join(path, "error"), error).map(|answer| (answer, delay));
        }
        let known = self.known.clone();
        let text = self.shape(fields, path, "text", &known);
        let usage_path = join(path, "usage");
        if let Some(usage) = fields.get("usage") {
            self.usage(&usage_path, usage);
        }
        let usage = self.shape(fields, path, "usage", &known);
        let finish = self.string(fields, path, "finish").map(|name| finish(&name));
        let calls = match fields.get("tool_calls") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(calls)) => {
                let path = join(path, "tool_calls");
                calls.iter().enumerate().filter_map(|(i, c)| self.call(&format!("{path}[{i}]"), c)).collect()
            }
            Some(other) => {
                self.problems.push(wrong_type(&join(path, "tool_calls"), other, "a list of calls"));
                Vec::new()
            }
        };
        Some((Answer::Reply { text, calls, finish, usage }, delay))
    }

    fn error(&mut self, path: &str, value: &Value) -> Option<Answer> {
        let fields = self.object(path, value, &["kind", "message"])?;
        let name = self.string(fields, path, "kind").unwrap_or_default();
        let kind = ModelErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
        if kind.is_none() {
            let accepted = ModelErrorKind::ALL.map(ModelErrorKind::name).join(", ");
            self.report(&join(path, "kind"), format!("{name:?} is no kind of failure: one of {accepted}"));
        }
        let known = self.known.clone();
        let message = self.shape(fields, path, "message", &known);
        let message = message.unwrap_or_else(|| Shape::Fixed(Value::from("the playbook says so")));
        kind.map(|kind| Answer::Error { kind, message })
    }

    fn usage(&mut self, path: &str, value: &Value) {
        let Some(fields) = self.object(path, value, &["input", "output", "cached"]) else { return };
        for (key, number) in fields {
            if number.as_u64().is_none() && !number.is_string() {
                self.problems.push(wrong_type(
                    &join(path, key),
                    number,
                    "a whole number from 0, or a template of one",
                ));
            }
        }
    }

    fn call(&mut self, path: &str, value: &Value) -> Option<CallShape> {
        const KEYS: [&str; 7] = ["name", "args", "arguments", "id", "for", "as", "if"];
        let fields = self.object(path, value, &KEYS)?;
        let mut known = self.known.clone();
        let mut repeat = None;
        if fields.contains_key("for") {
            (repeat, known) = Repeat::read(
                &self.engine,
                path,
                fields,
                ["for", "as", "if"],
                &self.known,
                &mut self.problems,
            );
        } else {
            for key in ["as", "if"].iter().filter(|key| fields.contains_key(**key)) {
                self.report(&join(path, key), "it goes with `for`, which is missing");
            }
        }
        let name = self.shape(fields, path, "name", &known);
        if name.is_none() {
            self.report(&join(path, "name"), "it is missing: the tool to call");
        }
        let id = self.shape(fields, path, "id", &known);
        let object = self.args(fields, path, &known);
        let args = match self.shape(fields, path, "arguments", &known) {
            Some(_) if fields.contains_key("args") => {
                self.report(path, "it has both `args` (an object) and `arguments` (raw text): one of them");
                return None;
            }
            Some(raw) => Args::Raw(raw),
            None => Args::Object(object),
        };
        Some(CallShape { path: path.to_owned(), repeat, name: name?, args, id })
    }

    fn args(&mut self, fields: &Fields, path: &str, known: &BTreeSet<String>) -> Shape {
        match fields.get("args") {
            None | Some(Value::Object(_) | Value::String(_)) => {}
            Some(other) => {
                let accepted = "an object, or a template of one; `arguments` sends any text";
                self.problems.push(wrong_type(&join(path, "args"), other, accepted));
            }
        }
        self.shape(fields, path, "args", known).unwrap_or_else(|| Shape::Fixed(Value::Object(Map::new())))
    }

    fn delay(&mut self, fields: &Fields, path: &str) -> Duration {
        let Some(value) = fields.get("delay") else { return Duration::ZERO };
        value.as_str().and_then(|text| units::duration(text).ok()).unwrap_or_else(|| {
            self.problems.push(wrong_type(&join(path, "delay"), value, units::DURATIONS));
            Duration::ZERO
        })
    }

    fn shape(&mut self, fields: &Fields, path: &str, key: &str, known: &BTreeSet<String>) -> Option<Shape> {
        let value = fields.get(key).filter(|value| !value.is_null())?;
        Some(Shape::read(&mut self.engine, &join(path, key), value, known, &mut self.problems))
    }

    fn expression(&mut self, fields: &Fields, path: &str, key: &str) -> Option<Expression> {
        let source = self.string(fields, path, key)?;
        let compiled = self.engine.expression(&join(path, key), bare(&source), &self.known);
        compiled.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn regex(&mut self, fields: &Fields, path: &str, key: &str) -> Option<Regex> {
        let source = self.string(fields, path, key)?;
        let compiled = Regex::new(&source);
        // The library draws the mistake over several lines; the last one says it.
        let said =
            |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        compiled
            .map_err(|error| {
                self.report(&join(path, key), format!("it is no regular expression: {}", said(error)))
            })
            .ok()
    }

    fn string(&mut self, fields: &Fields, path: &str, key: &str) -> Option<String> {
        match fields.get(key)? {
            Value::String(text) => Some(text.clone()),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.problems.push(wrong_type(&join(path, key), other, "a text"));
                None
            }
        }
    }

    fn object<'v>(&mut self, path: &str, value: &'v Value, accepted: &[&str]) -> Option<&'v Fields> {
        let Value::Object(fields) = value else {
            self.problems.push(wrong_type(path, value, &format!("an object with {}", accepted.join(", "))));
            return None;
        };
        self.problems.extend(unknown_keys(path, fields, accepted));
        Some(fields)
    }

    fn report(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: path.to_owned(), message: message.into() });
    }
}

fn finish(name: &str) -> Finish {
    match name {
        "stop" => Finish::Stop,
        "tool_calls" => Finish::ToolCalls,
        "length" => Finish::Length,
        "refusal" => Finish::Refusal,
        "missing" => Finish::Missing,
        other => Finish::Other(other.to_owned()),
    }
}

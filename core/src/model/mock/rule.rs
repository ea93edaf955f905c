//! One rule of a playbook: when it applies, and what it answers.

use crate::model::mock::scene::{Scene, role_name};
use crate::model::mock::shape::{Repeat, Shape};
use crate::model::mock::template::{Engine, Expression};
use crate::model::mock::{Outcome, Problem};
use crate::model::{Call, Finish, ModelError, ModelErrorKind, Reply, ReplyUsage};
use crate::policy::Pattern;
use crate::preview::preview;
use crate::time::Duration;
use crate::wire::message::Role;
use minijinja::Value;
use regex::Regex;
use serde_json::Value as JsonValue;

/// Calls of one reply at most: well over what a loop runs, and far below what a mistake could ask for.
const CALLS: usize = 1024;

/// A checked rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its place, `rules[2]`.
    pub(super) path: String,
    pub(super) name: Option<String>,
    pub(super) role: Option<Role>,
    pub(super) message: Option<Turns>,
    pub(super) turn: Option<Turns>,
    pub(super) text: Option<Regex>,
    pub(super) last: Option<Last>,
    pub(super) condition: Option<Expression>,
    pub(super) answer: Answer,
    pub(super) delay: Duration,
}

/// Which model calls of a turn, or which messages of a warm child.
#[derive(Debug)]
pub(super) enum Turns {
    Listed(Vec<u32>),
    Between(u32, u32),
}

/// What the last tool result must be.
#[derive(Debug)]
pub(super) enum Last {
    /// There is none yet.
    Absent,
    Present {
        tool: Option<Pattern>,
        error: Option<bool>,
        text: Option<Regex>,
    },
}

/// What it answers.
#[derive(Debug)]
pub(super) enum Answer {
    Error { kind: ModelErrorKind, message: Shape },
    Reply { text: Option<Shape>, calls: Vec<CallShape>, finish: Option<Finish>, usage: Option<Shape> },
}

/// One entry of `tool_calls`.
#[derive(Debug)]
pub(super) struct CallShape {
    /// Its place, `rules[2].reply.tool_calls[0]`.
    pub(super) path: String,
    pub(super) repeat: Option<Repeat>,
    pub(super) name: Shape,
    pub(super) args: Args,
    pub(super) id: Option<Shape>,
}

/// Arguments of a call.
#[derive(Debug)]
pub(super) enum Args {
    /// Completed and written as JSON; must come out as an object.
    Object(Shape),
    /// Sent as it is, JSON or not.
    Raw(Shape),
}

impl Rule {
    /// Its place and, where it has one, its name.
    pub(super) fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} `{name}`", self.path),
            None => self.path.clone(),
        }
    }

    /// The groups of `text` when the rule applies, else why not. The outer error is a broken template.
    pub(super) fn mismatch(
        &self,
        engine: &Engine,
        scene: &Scene<'_>,
    ) -> Result<Result<Value, String>, Problem> {
        if let Some(role) = self.role.filter(|role| *role != scene.role) {
            return Ok(Err(format!("for role {}", role_name(role))));
        }
        let message = self.message.as_ref().and_then(|numbers| numbers.mismatch("message", scene.message));
        if let Some(why) = message.or_else(|| self.turn.as_ref()?.mismatch("turn", scene.turn)) {
            return Ok(Err(why));
        }
        if let Some(why) = self.last.as_ref().and_then(|last| last.mismatch(scene)) {
            return Ok(Err(why));
        }
        let matched = match &self.text {
            None => Value::from_pairs(Vec::<(Value, Value)>::new()),
            Some(regex) => match groups(regex, scene.text) {
                Some(groups) => groups,
                None => return Ok(Err(format!("text does not match {regex}"))),
            },
        };
        if let Some(condition) = &self.condition {
            let holds = engine
                .eval(condition, &scene.variables(matched.clone()))
                .map_err(|problem| self.named(problem))?;
            if !holds.is_true() {
                return Ok(Err("`when` does not hold".to_owned()));
            }
        }
        Ok(Ok(matched))
    }

    /// Completes the answer; a template that fails makes the model call fail.
    pub(super) fn answer(&self, engine: &Engine, scene: &Scene<'_>, matched: Value) -> Outcome {
        let variables = scene.variables(matched);
        match self.complete(engine, scene, &variables) {
            Ok(reply) => Outcome { reply, delay: self.delay },
            Err(problem) => Outcome::failed(&self.named(problem)),
        }
    }

    fn complete(
        &self,
        engine: &Engine,
        scene: &Scene<'_>,
        variables: &Value,
    ) -> Result<Result<Reply, ModelError>, Problem> {
        let (text, shapes, finish, usage) = match &self.answer {
            Answer::Error { kind, message } => {
                let message = message.complete_text(engine, variables)?;
                return Ok(Err(ModelError::new(*kind, message)));
            }
            Answer::Reply { text, calls, finish, usage } => (text, calls, finish, usage),
        };
        let text = text.as_ref().map(|t| t.complete_text(engine, variables)).transpose()?;
        let mut calls = Vec::new();
        for shape in shapes {
            shape.complete(engine, scene, variables, &mut calls)?;
        }
        let usage = match usage {
            Some(shape) => self.usage(&shape.complete(engine, variables)?)?,
            None => ReplyUsage::default(),
        };
        let natural = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Ok(Ok(Reply { text, calls, finish: finish.clone().unwrap_or(natural), usage }))
    }

    fn usage(&self, value: &JsonValue) -> Result<ReplyUsage, Problem> {
        let number = |key: &str| match value.get(key) {
            None | Some(JsonValue::Null) => Ok(None),
            Some(number) => number.as_u64().map(Some).ok_or_else(|| Problem {
                path: format!("{}.reply.usage.{key}", self.path),
                message: format!("it came out as {number}, and a whole number from 0 is needed"),
            }),
        };
        Ok(ReplyUsage { input: number("input")?, output: number("output")?, cached: number("cached")? })
    }

    /// The problem with the rule's name, where it has one.
    fn named(&self, mut problem: Problem) -> Problem {
        if let Some(name) = &self.name {
            problem.message = format!("in rule `{name}`: {}", problem.message);
        }
        problem
    }
}

impl Turns {
    fn mismatch(&self, what: &str, number: u32) -> Option<String> {
        match self {
            Turns::Listed(numbers) if numbers.contains(&number) => None,
            Turns::Listed(numbers) => {
                let listed: Vec<String> = numbers.iter().map(u32::to_string).collect();
                Some(format!("for {what} {}", listed.join(", ")))
            }
            Turns::Between(from, to) if (*from..=*to).contains(&number) => None,
            Turns::Between(from, u32::MAX) => Some(format!("for {what}s from {from}")),
            Turns::Between(from, to) => Some(format!("for {what}s {from} to {to}")),
        }
    }
}

impl Last {
    fn mismatch(&self, scene: &Scene<'_>) -> Option<String> {
        let (tool, error, text) = match (self, scene.results.last()) {
            (Last::Absent, None) => return None,
            (Last::Absent, Some(_)) => return Some("for no tool result yet".to_owned()),
            (Last::Present { .. }, None) => return Some("there is no last tool result".to_owned()),
            (Last::Present { tool, error, text }, Some(_)) => (tool, error, text),
        };
        let last = scene.results.last()?;
        if let Some(pattern) =
            tool.as_ref().filter(|p| !p.matches(&last.name) && !p.matches(scene.wire(&last.name)))
        {
            return Some(format!("last tool is not {pattern}"));
        }
        if error.is_some_and(|wanted| wanted != last.error) {
            return Some(format!("last result is {}an error", if last.error { "" } else { "not " }));
        }
        match text {
            Some(regex) if !regex.is_match(&last.text) => Some(format!("last result does not match {regex}")),
            Some(_) | None => None,
        }
    }
}

impl CallShape {
    fn complete(
        &self,
        engine: &Engine,
        scene: &Scene<'_>,
        variables: &Value,
        calls: &mut Vec<Call>,
    ) -> Result<(), Problem> {
        let rounds = match &self.repeat {
            Some(repeat) => repeat.rounds(engine, variables)?,
            None => vec![variables.clone()],
        };
        if calls.len() + rounds.len() > CALLS {
            let message =
                format!("the reply has more than {CALLS} calls: make `for` shorter, or spread it over turns");
            return Err(Problem { path: self.path.clone(), message });
        }
        for variables in &rounds {
            let name = self.name.complete_text(engine, variables)?;
            let args = match &self.args {
                Args::Raw(shape) => shape.complete_text(engine, variables)?,
                Args::Object(shape) => self.object(shape.complete(engine, variables)?)?,
            };
            let id = match &self.id {
                Some(shape) => shape.complete_text(engine, variables)?,
                None => format!("call_{}_{}", scene.turn, calls.len() + 1),
            };
            calls.push(Call { id, name: scene.wire(&name).to_owned(), args });
        }
        Ok(())
    }

    fn object(&self, value: JsonValue) -> Result<String, Problem> {
        if value.is_object() {
            return Ok(value.to_string());
        }
        let seen = preview(value.to_string(), 80);
        let message =
            format!("the arguments came out as {seen}, and an object is needed; `arguments` sends any text");
        Err(Problem { path: format!("{}.args", self.path), message })
    }
}

/// The groups of a match by number and by name; groups that took no part are absent.
fn groups(regex: &Regex, text: &str) -> Option<Value> {
    let captures = regex.captures(text)?;
    let numbered = captures
        .iter()
        .enumerate()
        .filter_map(|(index, group)| Some((Value::from(index), Value::from(group?.as_str()))));
    let named = regex
        .capture_names()
        .flatten()
        .filter_map(|name| Some((Value::from(name), Value::from(captures.name(name)?.as_str()))));
    Some(Value::from_pairs(numbered.chain(named)))
}

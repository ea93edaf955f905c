//! The `mock` dialect (S15.7): a model that follows a playbook. No network, no provider, and the same request
//! always gets the same reply.
//!
//! Owns the playbook's format (described for authors in `docs/playbooks.md`), which rule answers a request, and
//! what it answers. A playbook with mistakes is refused with all of them at once, each under its path. It reads
//! JSON values only: turning YAML text into them is the loader's. Called by the child's model connection and by
//! whoever checks a configuration.

mod fields;
mod filters;
mod read;
mod rule;
mod scene;
mod shape;
mod template;
mod used;

use crate::model::{ModelError, ModelErrorKind, ModelRequest, Reply};
use crate::time::Duration;
use crate::wire::message::Role;
use rule::Rule;
use scene::Scene;
use std::fmt;
use template::Engine;

/// A checked playbook.
#[derive(Debug)]
pub struct Playbook {
    engine: Engine,
    rules: Vec<Rule>,
}

/// What a playbook has for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The reply, or the failure the playbook asks for or has.
    pub reply: Result<Reply, ModelError>,
    /// How long the model takes over it.
    pub delay: Duration,
}

impl Playbook {
    /// Reads a playbook from JSON text.
    ///
    /// ```
    /// use agentd_core::model::mock::Playbook;
    /// let playbook = br#"{"rules": [{"reply": {"text": "You said: {{ prompt }}"}}]}"#;
    /// assert!(Playbook::from_json(playbook).is_ok());
    /// let mistakes = Playbook::from_json(br#"{"rules": [{"turns": 1, "reply": {"text": "{{"}}]}"#).unwrap_err();
    /// assert_eq!(mistakes.problems.len(), 2);
    /// ```
    pub fn from_json(json: &[u8]) -> Result<Playbook, PlaybookError> {
        let value = serde_json::from_slice(json).map_err(|error| PlaybookError {
            problems: vec![Problem { path: String::new(), message: format!("it is not JSON: {error}") }],
        })?;
        Playbook::from_value(&value)
    }

    /// Reads a playbook from a value, as a YAML reader gives it.
    pub fn from_value(value: &serde_json::Value) -> Result<Playbook, PlaybookError> {
        Playbook::with_fuel(value, template::FUEL)
    }

    /// As [`Playbook::from_value`], with another bound on the work of one template.
    pub(super) fn with_fuel(value: &serde_json::Value, fuel: u64) -> Result<Playbook, PlaybookError> {
        let (engine, rules, problems) = read::playbook(value, fuel);
        if problems.is_empty() { Ok(Playbook { engine, rules }) } else { Err(PlaybookError { problems }) }
    }

    /// Answers a request by the first rule that matches it. When none does, or the rule's templates fail, the
    /// reply is an error that says which rule and why.
    pub fn reply(&self, request: &ModelRequest, role: Role) -> Outcome {
        let scene = Scene::of(request, role);
        let mut tried = Vec::new();
        for rule in &self.rules {
            match rule.mismatch(&self.engine, &scene) {
                Ok(Ok(matched)) => return rule.answer(&self.engine, &scene, matched),
                Ok(Err(why)) => tried.push(format!("{}: {why}", rule.label())),
                Err(failure) => return Outcome::failed(&failure),
            }
        }
        Outcome::unanswered(&scene, &tried)
    }
}

impl Outcome {
    fn failed(failure: &Problem) -> Outcome {
        Outcome::rejected(format!("playbook {failure}"))
    }

    fn unanswered(scene: &Scene<'_>, tried: &[String]) -> Outcome {
        const SHOWN: usize = 20;
        let mut message = format!("no rule of the playbook answers this request ({})", scene.summary());
        for line in tried.iter().take(SHOWN) {
            message.push_str("; ");
            message.push_str(line);
        }
        if tried.len() > SHOWN {
            message.push_str(&format!("; and {} more rules", tried.len() - SHOWN));
        }
        Outcome::rejected(message)
    }

    fn rejected(message: String) -> Outcome {
        let error = ModelError::new(ModelErrorKind::Rejected, message);
        Outcome { reply: Err(error), delay: Duration::ZERO }
    }
}

/// All that is wrong with a playbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybookError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for PlaybookError {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for PlaybookError {}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the playbook, `rules[2].reply.text`; empty for the playbook itself.
    pub path: String,
    /// What was seen and what is accepted.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "the playbook: {}", self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

#[cfg(test)]
mod tests;

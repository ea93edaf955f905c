//! JSON Schema for answers (S7.8): reads a schema once, then holds values against it.
//!
//! Owns which schemas can be used and what a misfit reads like. A schema and a value may both come from a model, so
//! everything is bounded: the schema's bytes, places and patterns, and for each value the work spent on it, counted
//! and not timed. It refuses, when the schema is read, what it would have to guess at or could not bound: a `$ref`
//! out of the schema, references that lead back without looking into the value, keywords that need what other
//! keywords saw, look-around in patterns. Called by the gate of a spawn, by the child before its run and by its loop.
//!
//! The keywords are those of draft 2020-12, with the older spellings (`definitions`, `dependencies`, `items` as a
//! list). `format` and `content…` are notes, as that draft has it; keywords it does not know are passed over.

mod check;
mod compile;
mod equal;
mod keywords;
mod pattern;

use crate::limits;
use pattern::Pattern;
use serde_json::{Number, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A schema that can be used.
#[derive(Debug)]
pub struct Schema {
    /// Every place of it that values are held against; the first is the whole.
    nodes: Vec<Node>,
}

impl Schema {
    /// Reads a schema from its JSON text.
    ///
    /// ```
    /// use agentd_core::json::schema::Schema;
    /// use serde_json::json;
    /// let schema = Schema::read(br#"{"properties": {"lines": {"type": "integer"}}, "required": ["lines"]}"#).unwrap();
    /// assert_eq!(schema.check(&json!({"lines": 3})), Ok(()));
    /// assert_eq!(
    ///     schema.check(&json!({"lines": "3"})),
    ///     Err(vec!["/lines: a string where an integer is expected".to_owned()])
    /// );
    /// let problem = Schema::read(br#"{"type": "strin"}"#).unwrap_err();
    /// assert!(problem.to_string().starts_with("at /type: "));
    /// ```
    ///
    /// # Errors
    /// The first thing that is wrong with it, and where.
    pub fn read(text: &[u8]) -> Result<Schema, SchemaProblem> {
        let whole = |what: String| SchemaProblem { at: String::new(), what };
        let value = super::value(text, limits::OUTPUT_SCHEMA_BYTES, limits::ARGUMENT_DEPTH)
            .map_err(|problem| whole(problem.to_string()))?;
        compile::compile(&value)
    }

    /// Holds `value` against it. An empty path is the value itself.
    ///
    /// # Errors
    /// What does not fit, the first few of it, each as path and sentence, bounded. A value that would take too long
    /// to hold against this schema does not fit either.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        check::check(&self.nodes, value, limits::OUTPUT_SCHEMA_STEPS)
    }

    /// As [`Schema::check`], with another bound on the work.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn check_within(&self, value: &Value, steps: u64) -> Result<(), Vec<String>> {
        check::check(&self.nodes, value, steps)
    }
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", self.place())]
pub struct SchemaProblem {
    /// JSON Pointer to the place; empty for the whole.
    pub at: String,
    /// What was seen and what is accepted.
    pub what: String,
}

impl SchemaProblem {
    fn place(&self) -> String {
        if self.at.is_empty() {
            return String::new();
        }
        format!("at {}: ", super::preview(&self.at, limits::PREVIEW_BYTES))
    }
}

/// A place's number.
type NodeId = usize;

/// What a value must be at one place of the schema.
#[derive(Debug)]
enum Node {
    Anything,
    Nothing,
    Rules(Vec<Rule>),
}

/// One thing that a value must fit. A rule about one kind of value says nothing about the others.
#[derive(Debug)]
enum Rule {
    Types(Vec<&'static str>),
    Const(String),
    Enum(BTreeSet<String>),
    Number(NumberRule),
    Text(TextRule),
    List(ListRule),
    Object(ObjectRule),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If { condition: NodeId, then: Option<NodeId>, otherwise: Option<NodeId> },
    Ref(NodeId),
}

#[derive(Debug)]
enum NumberRule {
    MultipleOf(Number),
    Maximum(Number),
    ExclusiveMaximum(Number),
    Minimum(Number),
    ExclusiveMinimum(Number),
}

#[derive(Debug)]
enum TextRule {
    Max(u64),
    Min(u64),
    Pattern(Pattern),
}

#[derive(Debug)]
enum ListRule {
    Max(u64),
    Min(u64),
    Items { first: Vec<NodeId>, rest: Option<NodeId> },
    Unique,
    Contains { node: NodeId, min: u64, max: Option<u64> },
}

#[derive(Debug)]
enum ObjectRule {
    Max(u64),
    Min(u64),
    Required(Vec<String>),
    /// A key that is there needs these others.
    Needs(BTreeMap<String, Vec<String>>),
    /// A key that is there needs the whole to fit this.
    Implies(BTreeMap<String, NodeId>),
    Properties {
        named: BTreeMap<String, NodeId>,
        alike: Vec<(Pattern, NodeId)>,
        rest: Option<NodeId>,
    },
    Names(NodeId),
}

impl Rule {
    /// The places it holds the same value against.
    fn same_value(&self) -> Vec<NodeId> {
        match self {
            Rule::AllOf(nodes) | Rule::AnyOf(nodes) | Rule::OneOf(nodes) => nodes.clone(),
            Rule::Not(node) | Rule::Ref(node) => vec![*node],
            Rule::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Rule::Object(ObjectRule::Implies(nodes)) => nodes.values().copied().collect(),
            Rule::Types(_) | Rule::Const(_) | Rule::Enum(_) => Vec::new(),
            Rule::Number(_) | Rule::Text(_) | Rule::List(_) | Rule::Object(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;

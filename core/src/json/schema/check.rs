//! Holding a value against the places of a schema, within a bound on the work.

mod inside;

use super::equal::{canonical, compare, is_multiple, is_whole};
use super::keywords::kind;
use super::pattern::Pattern;
use super::{Node, NodeId, NumberRule, ObjectRule, Rule, TextRule};
use crate::json::preview;
use crate::limits::{OUTPUT_SCHEMA_ERRORS, OUTPUT_SCHEMA_NESTING, PREVIEW_BYTES};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

pub(super) fn check(nodes: &[Node], value: &Value, steps: u64) -> Result<(), Vec<String>> {
    let mut walk = Walk { nodes, steps, nesting: 0, path: Vec::new(), told: Some(Vec::new()) };
    match walk.fits(0, value) {
        Ok(true) => Ok(()),
        Ok(false) => Err(walk.told.unwrap_or_default()),
        Err(TooCostly) => Err(vec![
            "the value cannot be held against this schema in bounded time: send a smaller one".to_owned(),
        ]),
    }
}

/// The bound on the work is reached.
struct TooCostly;

type Fits = Result<bool, TooCostly>;

struct Walk<'w> {
    nodes: &'w [Node],
    /// Left to spend.
    steps: u64,
    /// How deep this walk stands.
    nesting: usize,
    /// To the value in hand.
    path: Vec<Part<'w>>,
    /// What does not fit so far; `None` while only the verdict counts.
    told: Option<Vec<String>>,
}

enum Part<'w> {
    Key(&'w str),
    Index(usize),
}

impl<'w> Walk<'w> {
    fn fits(&mut self, node: NodeId, value: &'w Value) -> Fits {
        self.spend(1)?;
        let nodes = self.nodes;
        let rules = match nodes.get(node) {
            Some(Node::Rules(rules)) => rules,
            Some(Node::Anything) => return Ok(true),
            Some(Node::Nothing) | None => return Ok(self.misfit("nothing is allowed here".to_owned())),
        };
        self.nesting += 1;
        if self.nesting > OUTPUT_SCHEMA_NESTING {
            return Err(TooCostly);
        }
        let mut all = true;
        for rule in rules {
            all &= self.obeys(rule, value)?;
            if !all && self.is_full() {
                break;
            }
        }
        self.nesting -= 1;
        Ok(all)
    }

    /// Whether `value` fits, without telling why not.
    fn would_fit(&mut self, node: NodeId, value: &'w Value) -> Fits {
        let told = self.told.take();
        let fits = self.fits(node, value);
        self.told = told;
        fits
    }

    /// The same one level into the value.
    fn fits_at(&mut self, part: Part<'w>, node: NodeId, value: &'w Value) -> Fits {
        self.path.push(part);
        let fits = self.fits(node, value);
        self.path.pop();
        fits
    }

    fn obeys(&mut self, rule: &'w Rule, value: &'w Value) -> Fits {
        self.spend(1)?;
        match rule {
            Rule::Types(types) => Ok(self.is_one_of(types, value)),
            Rule::Const(only) => {
                let fits = *only == self.text_of(value)?;
                Ok(fits || self.misfit("it is not the one value that is allowed".to_owned()))
            }
            Rule::Enum(values) => {
                let fits = values.contains(&self.text_of(value)?);
                Ok(fits || self.misfit(format!("it is none of the {} values that are allowed", values.len())))
            }
            Rule::Number(rule) => Ok(value.as_number().is_none_or(|number| self.obeys_number(rule, number))),
            Rule::Text(rule) => value.as_str().map_or(Ok(true), |text| self.obeys_text(rule, text)),
            Rule::List(rule) => value.as_array().map_or(Ok(true), |items| self.obeys_list(rule, items)),
            Rule::Object(ObjectRule::Implies(nodes)) => self.fits_implied(nodes, value),
            Rule::Object(rule) => {
                value.as_object().map_or(Ok(true), |fields| self.obeys_object(rule, fields))
            }
            Rule::Ref(node) => self.fits(*node, value),
            Rule::AllOf(nodes) => self.fits_all(nodes, value),
            Rule::AnyOf(nodes) => self.fits_any(nodes, value),
            Rule::OneOf(nodes) => self.fits_one(nodes, value),
            Rule::Not(node) => {
                let fits = self.would_fit(*node, value)?;
                Ok(!fits || self.misfit("it is what `not` excludes".to_owned()))
            }
            Rule::If { condition, then, otherwise } => {
                let next = if self.would_fit(*condition, value)? { then } else { otherwise };
                next.map_or(Ok(true), |node| self.fits(node, value))
            }
        }
    }

    /// For comparisons.
    fn text_of(&mut self, value: &Value) -> Result<String, TooCostly> {
        let text = canonical(value);
        self.spend(text.len())?;
        Ok(text)
    }

    fn fits_implied(&mut self, nodes: &'w BTreeMap<String, NodeId>, value: &'w Value) -> Fits {
        let Some(fields) = value.as_object() else { return Ok(true) };
        let mut all = true;
        for (_, node) in nodes.iter().filter(|(key, _)| fields.contains_key(*key)) {
            all &= self.fits(*node, value)?;
        }
        Ok(all)
    }

    fn is_one_of(&mut self, types: &[&str], value: &Value) -> bool {
        let is = |name: &str| match value {
            Value::Null => name == "null",
            Value::Bool(_) => name == "boolean",
            Value::Number(number) => name == "number" || name == "integer" && is_whole(number),
            Value::String(_) => name == "string",
            Value::Array(_) => name == "array",
            Value::Object(_) => name == "object",
        };
        if types.iter().any(|name| is(name)) {
            return true;
        }
        let named = |name: &&str| match *name {
            "null" => "null".to_owned(),
            vowel if vowel.starts_with(['i', 'a', 'o']) => format!("an {vowel}"),
            other => format!("a {other}"),
        };
        let wanted: Vec<String> = types.iter().map(named).collect();
        self.misfit(format!("{} where {} is expected", kind(value), wanted.join(" or ")))
    }

    fn fits_all(&mut self, nodes: &[NodeId], value: &'w Value) -> Fits {
        let mut all = true;
        for node in nodes {
            all &= self.fits(*node, value)?;
            if !all && self.is_full() {
                break;
            }
        }
        Ok(all)
    }

    fn fits_any(&mut self, nodes: &[NodeId], value: &'w Value) -> Fits {
        for node in nodes {
            if self.would_fit(*node, value)? {
                return Ok(true);
            }
        }
        if let [only] = nodes {
            return self.fits(*only, value);
        }
        Ok(self.misfit(format!("it fits none of the {} alternatives", nodes.len())))
    }

    fn fits_one(&mut self, nodes: &[NodeId], value: &'w Value) -> Fits {
        let mut fitting = 0;
        for node in nodes {
            fitting += usize::from(self.would_fit(*node, value)?);
        }
        Ok(match fitting {
            1 => true,
            0 => self.misfit(format!("it fits none of the {} alternatives", nodes.len())),
            n => self.misfit(format!("it fits {n} of the {} alternatives, and one is expected", nodes.len())),
        })
    }

    fn obeys_number(&mut self, rule: &NumberRule, number: &Number) -> bool {
        let (fits, wanted) = match rule {
            NumberRule::MultipleOf(step) => (is_multiple(number, step), format!("a multiple of {step}")),
            NumberRule::Maximum(max) => (compare(number, max) != Ordering::Greater, format!("at most {max}")),
            NumberRule::ExclusiveMaximum(max) => {
                (compare(number, max) == Ordering::Less, format!("less than {max}"))
            }
            NumberRule::Minimum(min) => (compare(number, min) != Ordering::Less, format!("at least {min}")),
            NumberRule::ExclusiveMinimum(min) => {
                (compare(number, min) == Ordering::Greater, format!("more than {min}"))
            }
        };
        fits || self.misfit(format!("{number} where {wanted} is expected"))
    }

    fn obeys_text(&mut self, rule: &TextRule, text: &str) -> Fits {
        let count = |this: &mut Self| this.spend(text.len() / 16).map(|()| text.chars().count());
        match rule {
            TextRule::Max(max) => count(self).map(|count| self.at_most(*max, count, "characters")),
            TextRule::Min(min) => count(self).map(|count| self.at_least(*min, count, "characters")),
            TextRule::Pattern(pattern) => {
                let found = self.is_found(pattern, text)?;
                Ok(found || self.misfit(format!("it does not match the pattern `{}`", pattern.shown)))
            }
        }
    }

    fn is_found(&mut self, pattern: &Pattern, text: &str) -> Fits {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.spend_steps(bytes.saturating_mul(pattern.cost))?;
        Ok(pattern.is_found(text))
    }

    fn at_most(&mut self, max: u64, count: usize, what: &str) -> bool {
        u64::try_from(count).is_ok_and(|count| count <= max)
            || self.misfit(format!("{count} {what} where at most {max} are expected"))
    }

    fn at_least(&mut self, min: u64, count: usize, what: &str) -> bool {
        u64::try_from(count).is_ok_and(|count| count >= min)
            || self.misfit(format!("{count} {what} where at least {min} are expected"))
    }

    fn misfit(&mut self, what: String) -> bool {
        if self.is_full() {
            return false;
        }
        let mut path = String::new();
        for part in &self.path {
            path.push('/');
            match part {
                Part::Key(key) => path.push_str(&super::compile::escaped(key)),
                Part::Index(index) => path.push_str(&index.to_string()),
            }
        }
        let path = if path.is_empty() { "the value".to_owned() } else { preview(path, PREVIEW_BYTES) };
        if let Some(told) = &mut self.told {
            told.push(format!("{path}: {what}"));
        }
        false
    }

    /// Nothing more would be told, so looking on tells nothing.
    fn is_full(&self) -> bool {
        self.told.as_ref().is_none_or(|told| told.len() >= OUTPUT_SCHEMA_ERRORS)
    }

    fn spend(&mut self, steps: usize) -> Result<(), TooCostly> {
        self.spend_steps(u64::try_from(steps).unwrap_or(u64::MAX))
    }

    fn spend_steps(&mut self, steps: u64) -> Result<(), TooCostly> {
        self.steps = self.steps.checked_sub(steps).ok_or(TooCostly)?;
        Ok(())
    }
}

//! Values with templates in them: what a playbook writes where a reply has JSON.
//!
//! A string may be a template. One that is exactly one `{{ expression }}` gives the expression's value with its
//! type; any other gives text. `{"$for": expression, "$as": name, "$if": expression, "$each": value}` gives a
//! list. Since values are built and never pasted into JSON text, what a tool found cannot break out of them.

use crate::model::mock::Problem;
use crate::model::mock::fields::{Fields, join, unknown_keys, wrong_type};
use crate::model::mock::template::{Engine, Expression, Template, with};
use minijinja::Value;
use serde_json::Value as JsonValue;
use std::collections::{BTreeMap, BTreeSet};

/// A value that is completed when a request comes.
#[derive(Debug)]
pub(super) enum Shape {
    Fixed(JsonValue),
    Text(Template),
    Native(Expression),
    List(Vec<Shape>),
    Map(BTreeMap<String, Shape>),
    Each(Box<Repeat>, Box<Shape>),
}

/// Once for each item of a list.
#[derive(Debug)]
pub(super) struct Repeat {
    items: Expression,
    name: String,
    condition: Option<Expression>,
}

impl Shape {
    /// Reads a value; mistakes in it are added to `problems`.
    pub(super) fn read(
        engine: &mut Engine,
        path: &str,
        value: &JsonValue,
        known: &BTreeSet<String>,
        problems: &mut Vec<Problem>,
    ) -> Shape {
        match value {
            JsonValue::String(text) => match Shape::text(engine, path, text, known) {
                Ok(shape) => shape,
                Err(problem) => {
                    problems.push(problem);
                    Shape::Fixed(JsonValue::Null)
                }
            },
            JsonValue::Array(items) => {
                let read =
                    |(index, item)| Shape::read(engine, &format!("{path}[{index}]"), item, known, problems);
                Shape::List(items.iter().enumerate().map(read).collect())
            }
            JsonValue::Object(fields) if fields.contains_key("$for") => {
                Shape::each(engine, path, fields, known, problems)
            }
            JsonValue::Object(fields) => {
                let mut shapes = BTreeMap::new();
                for (key, field) in fields {
                    let shape = Shape::read(engine, &join(path, key), field, known, problems);
                    shapes.insert(key.clone(), shape);
                }
                Shape::Map(shapes)
            }
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => Shape::Fixed(value.clone()),
        }
    }

    fn text(engine: &mut Engine, path: &str, text: &str, known: &BTreeSet<String>) -> Result<Shape, Problem> {
        if let Some(expression) = sole_expression(engine, text) {
            return engine.expression(path, expression, known).map(Shape::Native);
        }
        if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            return engine.template(path, text, known).map(Shape::Text);
        }
        Ok(Shape::Fixed(JsonValue::String(text.to_owned())))
    }

    fn each(
        engine: &mut Engine,
        path: &str,
        fields: &Fields,
        known: &BTreeSet<String>,
        problems: &mut Vec<Problem>,
    ) -> Shape {
        const KEYS: [&str; 4] = ["$for", "$as", "$if", "$each"];
        problems.extend(unknown_keys(path, fields, &KEYS));
        let (repeat, inner) = Repeat::read(engine, path, fields, ["$for", "$as", "$if"], known, problems);
        let Some(each) = fields.get("$each") else {
            problems.push(Problem {
                path: path.to_owned(),
                message: "$for needs $each, the value of one item".into(),
            });
            return Shape::Fixed(JsonValue::Null);
        };
        let each = Shape::read(engine, &join(path, "$each"), each, &inner, problems);
        match repeat {
            Some(repeat) => Shape::Each(Box::new(repeat), Box::new(each)),
            None => Shape::Fixed(JsonValue::Null),
        }
    }

    /// Completes the value.
    pub(super) fn complete(&self, engine: &Engine, variables: &Value) -> Result<JsonValue, Problem> {
        match self {
            Shape::Fixed(value) => Ok(value.clone()),
            Shape::Text(template) => engine.render(template, variables).map(JsonValue::String),
            Shape::Native(expression) => {
                let value = engine.eval(expression, variables)?;
                serde_json::to_value(&value).map_err(|error| expression.problem(error.to_string()))
            }
            Shape::List(shapes) => shapes.iter().map(|s| s.complete(engine, variables)).collect(),
            Shape::Map(shapes) => {
                let mut fields = serde_json::Map::new();
                for (key, shape) in shapes {
                    fields.insert(key.clone(), shape.complete(engine, variables)?);
                }
                Ok(JsonValue::Object(fields))
            }
            Shape::Each(repeat, each) => {
                let rounds = repeat.rounds(engine, variables)?;
                rounds.iter().map(|variables| each.complete(engine, variables)).collect()
            }
        }
    }

    /// Completes the value as text: a string as it is, anything else as JSON.
    pub(super) fn complete_text(&self, engine: &Engine, variables: &Value) -> Result<String, Problem> {
        Ok(match self.complete(engine, variables)? {
            JsonValue::String(text) => text,
            value @ (JsonValue::Null
            | JsonValue::Bool(_)
            | JsonValue::Number(_)
            | JsonValue::Array(_)
            | JsonValue::Object(_)) => value.to_string(),
        })
    }
}

impl Repeat {
    /// Reads the three keys, named by the caller, and gives the variables known inside.
    pub(super) fn read(
        engine: &Engine,
        path: &str,
        fields: &Fields,
        [items, name, condition]: [&str; 3],
        known: &BTreeSet<String>,
        problems: &mut Vec<Problem>,
    ) -> (Option<Repeat>, BTreeSet<String>) {
        let mut text = |key: &str| match fields.get(key) {
            None => None,
            Some(JsonValue::String(text)) => Some(text.as_str()),
            Some(other) => {
                problems.push(wrong_type(&join(path, key), other, "a text"));
                None
            }
        };
        let (items_text, name_text, condition_text) = (text(items), text(name), text(condition));
        let variable = name_text.unwrap_or("item");
        if !is_variable(variable) {
            let message = format!("{variable:?} is no variable name: letters, digits and _, no digit first");
            problems.push(Problem { path: join(path, name), message });
        }
        let mut inner = known.clone();
        inner.extend([variable.to_owned(), "loop".to_owned()]);
        let mut compile = |key: &str, source: Option<&str>, known: &BTreeSet<String>| {
            let compiled = engine.expression(&join(path, key), bare(source?), known);
            compiled.map_err(|problem| problems.push(problem)).ok()
        };
        let compiled_items = compile(items, items_text, known);
        let compiled_condition = compile(condition, condition_text, &inner);
        let repeat = compiled_items.map(|items| Repeat {
            items,
            name: variable.to_owned(),
            condition: compiled_condition,
        });
        (repeat, inner)
    }

    /// The variables of each round: the item, and `loop` with `index`, `index0` and `length` over the items
    /// that the condition lets through.
    pub(super) fn rounds(&self, engine: &Engine, variables: &Value) -> Result<Vec<Value>, Problem> {
        let list = engine.eval(&self.items, variables)?;
        let items = list
            .try_iter()
            .map_err(|_| self.items.problem(format!("it is {}, and a list is needed", list.kind())))?;
        let mut kept = Vec::new();
        for item in items {
            let inner = with(variables, [(self.name.clone(), item)]);
            let wanted = match &self.condition {
                Some(condition) => {
                    engine.eval(condition, &with(&inner, [position(kept.len(), 0)]))?.is_true()
                }
                None => true,
            };
            if wanted {
                kept.push(inner);
            }
        }
        let length = kept.len();
        Ok(kept.iter().enumerate().map(|(index, inner)| with(inner, [position(index, length)])).collect())
    }
}

fn position(index0: usize, length: usize) -> (String, Value) {
    let position = [("index", index0 + 1), ("index0", index0), ("length", length)];
    ("loop".to_owned(), Value::from_pairs(position))
}

/// The expression of a string that is nothing but `{{ expression }}`.
fn sole_expression<'t>(engine: &Engine, text: &'t str) -> Option<&'t str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    engine.is_expression(inner).then_some(inner)
}

/// An expression may be written with or without its braces.
pub(super) fn bare(text: &str) -> &str {
    let trimmed = text.trim();
    trimmed.strip_prefix("{{").and_then(|t| t.strip_suffix("}}")).unwrap_or(trimmed)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

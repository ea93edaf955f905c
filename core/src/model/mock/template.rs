//! The template language of playbooks: minijinja with strict undefined values and a bound on work.
//!
//! Owns compiling, the check for unknown variables at load, and evaluation. A template sees the scene and
//! nothing else: no files, no clock, no other templates. Called by `shape` and `rule`.

use crate::model::mock::used::{self, Used};
use crate::model::mock::{Problem, filters};
use crate::preview::preview;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use std::collections::BTreeSet;

/// Work of one template: about an instruction or 64 bytes each. A template that needs more fails.
pub(super) const FUEL: u64 = 4_000_000;

/// Bytes of an error message from a template at most.
const MESSAGE_BYTES: usize = 500;

/// Compiles and evaluates.
#[derive(Debug)]
pub(super) struct Engine {
    env: Environment<'static>,
}

/// A compiled-once template, known to the engine by its path in the playbook.
#[derive(Debug)]
pub(super) struct Template {
    path: String,
}

/// An expression, checked at load.
#[derive(Debug)]
pub(super) struct Expression {
    path: String,
    source: String,
}

impl Expression {
    /// A problem with what it came out as.
    pub(super) fn problem(&self, message: String) -> Problem {
        Problem { path: self.path.clone(), message }
    }
}

impl Engine {
    /// Templates do this much work at most; see [`FUEL`].
    pub(super) fn new(fuel: u64) -> Engine {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_fuel(Some(fuel));
        env.set_debug(true);
        // The default goes by the template's name, and a path such as `args.json` is no file.
        env.set_auto_escape_callback(|_| AutoEscape::None);
        // A line that holds only a block leaves no empty line behind. The delimiters are the defaults.
        if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
            env.set_syntax(syntax);
        }
        env.remove_global("debug");
        filters::add(&mut env);
        Engine { env }
    }

    /// Compiles a template; `known` are the variables it may use.
    pub(super) fn template(
        &mut self,
        path: &str,
        source: &str,
        known: &BTreeSet<String>,
    ) -> Result<Template, Problem> {
        let problem = |message| Problem { path: path.to_owned(), message };
        self.env
            .add_template_owned(path.to_owned(), source.to_owned())
            .map_err(|error| problem(sentence(&error, source)))?;
        let template = self.env.get_template(path).map_err(|error| problem(sentence(&error, source)))?;
        let unknown = self
            .unknown(template.undeclared_variables(false), known)
            .or_else(|| self.unknown_function(used::in_template(source)));
        match unknown {
            Some(message) => Err(problem(message)),
            None => Ok(Template { path: path.to_owned() }),
        }
    }

    /// Compiles an expression; `known` are the variables it may use.
    pub(super) fn expression(
        &self,
        path: &str,
        source: &str,
        known: &BTreeSet<String>,
    ) -> Result<Expression, Problem> {
        let problem = |message| Problem { path: path.to_owned(), message };
        let compiled =
            self.env.compile_expression(source).map_err(|error| problem(sentence(&error, source)))?;
        let unknown = self
            .unknown(compiled.undeclared_variables(false), known)
            .or_else(|| self.unknown_function(used::in_expression(source)));
        match unknown {
            Some(message) => Err(problem(message)),
            None => Ok(Expression { path: path.to_owned(), source: source.to_owned() }),
        }
    }

    /// Whether `source` is an expression at all.
    pub(super) fn is_expression(&self, source: &str) -> bool {
        self.env.compile_expression(source).is_ok()
    }

    pub(super) fn render(&self, template: &Template, variables: &Value) -> Result<String, Problem> {
        let problem = |error: Error| Problem {
            path: template.path.clone(),
            message: sentence(&error, error.template_source().unwrap_or_default()),
        };
        self.env.get_template(&template.path).and_then(|t| t.render(variables.clone())).map_err(problem)
    }

    /// The expression's value; undefined, or holding something undefined, is an error.
    pub(super) fn eval(&self, expression: &Expression, variables: &Value) -> Result<Value, Problem> {
        let problem = |message| Problem { path: expression.path.clone(), message };
        let value = self
            .env
            .compile_expression(&expression.source)
            .and_then(|compiled| compiled.eval(variables.clone()))
            .map_err(|error| problem(sentence(&error, &expression.source)))?;
        if holds_undefined(&value, 0) {
            let shown = preview(expression.source.trim(), 80);
            return Err(problem(format!("`{shown}` is undefined, or holds something that is")));
        }
        Ok(value)
    }

    fn unknown(&self, used: impl IntoIterator<Item = String>, known: &BTreeSet<String>) -> Option<String> {
        let globals: BTreeSet<&str> = self.env.globals().map(|(name, _)| name).collect();
        let unknown: BTreeSet<String> = used
            .into_iter()
            .filter(|name| !known.contains(name) && !globals.contains(name.as_str()))
            .collect();
        if unknown.is_empty() {
            return None;
        }
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Some(format!("there is no variable {}; there are {}", list(&unknown), list(known)))
    }

    fn unknown_function(&self, used: Vec<Used>) -> Option<String> {
        let unknown = used.into_iter().find(|used| !is_known(&self.env, used))?;
        Some(match unknown {
            Used::Filter(name) => {
                format!("there is no filter {name}; there are minijinja's, fromjson and shell_quote")
            }
            Used::Test(name) => format!("there is no test {name}; there are minijinja's"),
        })
    }
}

/// Whether the engine knows this filter or test: it is tried on nothing, which has no effect.
fn is_known(env: &Environment<'_>, used: &Used) -> bool {
    let (source, unknown) = match used {
        Used::Filter(name) => (format!("none|{name}"), ErrorKind::UnknownFilter),
        Used::Test(name) => (format!("none is {name}"), ErrorKind::UnknownTest),
    };
    let tried = env.compile_expression(&source).and_then(|compiled| compiled.eval(()));
    !tried.is_err_and(|error| error.kind() == unknown)
}

/// `base` with more variables on top.
pub(super) fn with(base: &Value, more: impl IntoIterator<Item = (String, Value)>) -> Value {
    let more = Value::from_pairs(more);
    context! { ..more, ..base.clone() }
}

fn holds_undefined(value: &Value, depth: usize) -> bool {
    // Deeper values come from JSON, which has no undefined.
    if value.is_undefined() || depth > 16 {
        return value.is_undefined();
    }
    let kind = value.kind();
    let Ok(mut items) = value.try_iter() else { return false };
    if kind == ValueKind::Map {
        items.any(|key| value.get_item(&key).is_ok_and(|item| holds_undefined(&item, depth + 1)))
    } else if kind == ValueKind::Seq || kind == ValueKind::Iterable {
        items.any(|item| holds_undefined(&item, depth + 1))
    } else {
        false
    }
}

/// One line: what is wrong, in which line of the template, and that line.
fn sentence(error: &Error, source: &str) -> String {
    let mut text = error.kind().to_string();
    if let Some(detail) = error.detail() {
        text.push_str(": ");
        text.push_str(detail);
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(" ({inner})"));
        cause = inner.source();
    }
    let line = error.line().and_then(|n| Some((n, source.lines().nth(n.checked_sub(1)?)?)));
    if let Some((number, line)) = line {
        let shown = preview(line.trim(), 120);
        text.push_str(&format!(", in line {number}: `{shown}`"));
    }
    preview(&text, MESSAGE_BYTES)
}

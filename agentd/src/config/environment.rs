//! Variables that override the configuration: `AGENTD_<PATH>`, the path in capitals with `_` for dots. A
//! variable of that prefix that is neither a key nor reserved is a problem: a slip must not pass unseen.

use super::nearest::nearest;
use super::problem::{Code, Problem};
use super::schema::{self, Key, Leaf, Shape};
use super::source::{Place, Source};
use super::tree::{Entry, Node, Scalar, Value};
use super::yaml;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// Names agentd uses between its own processes (S17.0).
const RESERVED: [&str; 4] = ["AGENTD_SUBAGENT", "AGENTD_PARENT_PID", "AGENTD_KEEPER", "AGENTD_FILES"];

/// The beginning of more reserved names.
const RESERVED_PREFIX: &str = "AGENTD_INSTANCE_";

/// The variable of the model's key; for one endpoint of several, `_N` follows, and `_FILE` where it names a file.
pub(crate) const TOKEN: &str = "AGENTD_INTELLIGENCE_TOKEN";

/// One tree for each variable that sets a key, in the order of their names.
pub(crate) fn overrides(
    environment: &[(OsString, OsString)],
    first_order: u32,
    problems: &mut Vec<Problem>,
) -> Vec<Node> {
    let leaves = schema::leaves();
    let mut set: Vec<(&str, &OsStr)> = environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
        .filter(|(name, _)| name.starts_with("AGENTD_") && !is_reserved(name))
        .collect();
    set.sort_unstable();
    let mut trees = Vec::new();
    for (order, (name, value)) in (first_order..).zip(set) {
        match leaves.iter().find(|leaf| variable(&leaf.path) == name) {
            Some(leaf) => trees.extend(tree(leaf, name, value, order, problems)),
            None => problems.push(unknown(name, &leaves)),
        }
    }
    trees
}

/// The variable that sets the key at a path.
pub(crate) fn variable(path: &str) -> String {
    format!("AGENTD_{}", path.to_uppercase().replace('.', "_"))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX) || token_variable(name).is_some()
}

/// The endpoint that a variable of a key is for, from 1; `Some(None)` is all of them, `None` no such variable.
pub(crate) fn token_variable(name: &str) -> Option<Option<usize>> {
    let rest = name.strip_prefix(TOKEN)?;
    let rest = rest.strip_suffix("_FILE").unwrap_or(rest);
    if rest.is_empty() {
        return Some(None);
    }
    let number = rest.strip_prefix('_')?;
    let plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
    number.parse().ok().filter(|_| plain).map(Some)
}

fn tree(leaf: &Leaf, name: &str, value: &OsStr, order: u32, problems: &mut Vec<Problem>) -> Option<Node> {
    let Some(text) = value.to_str() else {
        let file = format!("${name}");
        problems
            .push(Problem::of_file(file, Code::InvalidValue, "is not UTF-8").hint("set it to valid text"));
        return None;
    };
    let source = Source::variable(name, order, text.to_owned());
    let node = read(leaf.key, text, &source, problems)?;
    Some(nest(&leaf.path, node))
}

/// Lists and maps are read as YAML; anything else is taken as it stands, so that a text needs no quoting.
fn read(key: &Key, text: &str, source: &Arc<Source>, problems: &mut Vec<Problem>) -> Option<Node> {
    let plain = match key.shape {
        Shape::Texts
        | Shape::Patterns
        | Shape::EnvNames
        | Shape::Words(_)
        | Shape::Variables
        | Shape::Headers
        | Shape::Maps { .. }
        | Shape::Tags
        | Shape::Items(_) => {
            return yaml::parse(source, problems);
        }
        Shape::Switch | Shape::Whole { .. } | Shape::Number => true,
        _ => false,
    };
    let width = u32::try_from(text.lines().next().unwrap_or("").chars().count()).unwrap_or(u32::MAX).max(1);
    let scalar = Scalar { text: text.to_owned(), plain };
    Some(Node { value: Value::Scalar(scalar), place: Place { width, ..Place::start(source) } })
}

/// Wraps a value into the maps of its path.
pub(crate) fn nest(path: &str, node: Node) -> Node {
    path.rsplit('.').fold(node, |node, key| {
        let place = node.place.clone();
        let entry = Entry { key: key.to_owned(), place: place.clone(), node };
        Node { value: Value::Map(vec![entry]), place }
    })
}

/// Whether a variable names something in a section that is not built yet.
fn is_inside(name: &str, leaf: &Leaf) -> bool {
    let rest = name.strip_prefix(&variable(&leaf.path));
    matches!(leaf.key.shape, Shape::Later) && rest.is_some_and(|rest| rest.starts_with('_'))
}

fn unknown(name: &str, leaves: &[Leaf]) -> Problem {
    if let Some(leaf) = leaves.iter().find(|leaf| is_inside(name, leaf)) {
        return Problem::of_file(format!("${name}"), Code::NotBuilt, "is not built yet")
            .key(&leaf.path)
            .hint("unset it: this version of agentd does not act on it");
    }
    let names: Vec<String> = leaves
        .iter()
        .filter(|leaf| !matches!(leaf.key.shape, Shape::Later))
        .map(|leaf| variable(&leaf.path))
        .collect();
    let problem =
        Problem::of_file(format!("${name}"), Code::UnknownVariable, "names no key of the configuration")
            .accepted("AGENTD_ and a key's path, such as AGENTD_LIMITS_RUN_STEPS for limits.run.steps");
    let inside: Vec<&str> = names
        .iter()
        .filter(|known| known.starts_with(&format!("{name}_")))
        .map(String::as_str)
        .take(3)
        .collect();
    if !inside.is_empty() {
        return problem.hint(format!("set the keys in it, such as {}", inside.join(", ")));
    }
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint("unset it"),
    }
}

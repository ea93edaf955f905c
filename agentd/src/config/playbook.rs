//! Mock playbooks (S15.7): YAML on disk, JSON for the core. What the core finds wrong in a playbook is placed
//! back into the YAML.

use super::json;
use super::problem::{Code, Problem};
use super::source::{Place, Source};
use super::text::{self, Unreadable};
use super::tree::{Node, Value};
use super::yaml;
use agentd_core::model::mock::Playbook;
use std::path::Path;
use std::sync::Arc;

/// Reads a playbook file into JSON; `Ok(None)` when its text is at fault, and `problems` says why.
/// `name` is how people know it.
pub(crate) fn load(
    name: &Path,
    file: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Option<Vec<u8>>, Unreadable> {
    let source = Source::file(name, ORDER, text::read(file)?);
    Ok(translate(&source, problems))
}

/// Problems of a playbook are listed after those of the configuration.
const ORDER: u32 = u32::MAX;

/// The playbook inside agentd, `mock:builtin`: what `agentd demo` follows.
pub(crate) fn builtin(problems: &mut Vec<Problem>) -> Option<Vec<u8>> {
    let source = Source::file(Path::new("mock:builtin"), ORDER, include_str!("builtin.yaml").to_owned());
    translate(&source, problems)
}

pub(super) fn translate(source: &Arc<Source>, problems: &mut Vec<Problem>) -> Option<Vec<u8>> {
    let before = problems.len();
    let tree = yaml::parse(source, problems)?;
    let value = json::of(&tree);
    if let Err(error) = Playbook::from_value(&value) {
        for fault in error.problems {
            let place = place_of(&tree, &fault.path);
            problems.push(Problem::at(&place, &fault.path, Code::Playbook, fault.message));
        }
    }
    (problems.len() == before).then(|| value.to_string().into_bytes())
}

/// Where `rules[2].reply.text` stands; the nearest node around it when the path leads nowhere. A key that is
/// itself at fault is placed at the key.
fn place_of(root: &Node, path: &str) -> Place {
    let (mut node, mut place, mut rest) = (root, &root.place, path);
    loop {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let step = match &node.value {
            Value::Map(entries) => entries
                .iter()
                .filter_map(|entry| Some((entry, after(rest, &entry.key)?)))
                .max_by_key(|(entry, _)| entry.key.len())
                .map(|(entry, rest)| (&entry.node, &entry.place, rest)),
            Value::List(items) => index(rest).and_then(|(index, rest)| {
                let node = items.get(index)?;
                Some((node, &node.place, rest))
            }),
            Value::Scalar(_) => None,
        };
        let Some((inner, at, left)) = step else { return place.clone() };
        (node, rest) = (inner, left);
        // A value says more than its key, but a map or list begins where its first part does.
        place = if matches!(inner.value, Value::Scalar(_)) { &inner.place } else { at };
    }
}

/// What follows `key` in a path, when the path goes on with it.
fn after<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key).filter(|_| !key.is_empty())?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// The number of `[2]` at the start of a path, and what follows it.
fn index(path: &str) -> Option<(usize, &str)> {
    let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;

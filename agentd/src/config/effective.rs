//! What every key comes to, so that two loads can be compared: what is written, in one spelling, else the default of the
//! key. Holds references and no secret values. Made by the load; the comparison is the reload's.

use super::schema::{self, Key, Keys, Shape};
use super::source::Place;
use super::tree::{Kind, Node, Value};
use agentd_core::units;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The keys of a configuration that was loaded, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective(BTreeMap<String, String>);

impl Effective {
    /// Of a merged tree that was found well-formed; relative paths that start nowhere start at `here`.
    pub(super) fn of(root: &Node, here: &Path) -> Effective {
        let leaves = schema::leaves().into_iter();
        let value = |leaf: &schema::Leaf| spelled(at(root, &leaf.path), leaf.key, here);
        Effective(leaves.map(|leaf| (leaf.path.clone(), value(&leaf))).collect())
    }

    /// The keys that are not the same in both, sorted.
    pub(crate) fn changes(&self, new: &Effective) -> BTreeSet<String> {
        let all = self.0.keys().chain(new.0.keys());
        all.filter(|path| self.0.get(*path) != new.0.get(*path)).cloned().collect()
    }

    /// These keys as `new` has them, and the others as they are.
    pub(crate) fn take(&mut self, keys: &BTreeSet<String>, new: &Effective) {
        for key in keys {
            match new.0.get(key) {
                Some(value) => drop(self.0.insert(key.clone(), value.clone())),
                None => drop(self.0.remove(key)),
            }
        }
    }
}

/// The node at a path, when something is written there.
fn at<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    let found = path.split('.').try_fold(root, |node, name| node.entry(name).map(|entry| &entry.node));
    found.filter(|node| !node.is_null())
}

/// A value in one spelling of the many that mean the same.
fn spelled(node: Option<&Node>, key: &Key, here: &Path) -> String {
    let Some(node) = node else { return scalar(key.default, &key.shape).unwrap_or_default() };
    match (&key.shape, &node.value) {
        (Shape::Path | Shape::OffOrPath, Value::Scalar(text)) if text.text != "off" => {
            resolved(&node.place, &text.text, here).display().to_string()
        }
        (Shape::Switch, Value::Scalar(text)) => (text.kind() == Kind::Bool(true)).to_string(),
        (shape, Value::Scalar(text)) => scalar(&text.text, shape).unwrap_or_else(|| text.text.clone()),
        (Shape::Items(keys), Value::List(items)) => list(items.iter().map(|item| map(item, keys, here))),
        (Shape::Maps { each, names: Keys::Names | Keys::Any }, Value::Map(entries)) => {
            list(entries.iter().map(|entry| format!("{:?}: {}", entry.key, map(&entry.node, each, here))))
        }
        (_, Value::List(_) | Value::Map(_)) => plain(node),
    }
}

/// A map with these keys, and with those that are written and are none.
fn map(node: &Node, keys: &'static [Key], here: &Path) -> String {
    let each = keys.iter().map(|key| {
        let written = node.entry(key.name).map(|entry| &entry.node).filter(|node| !node.is_null());
        let value = match key.shape {
            Shape::Section(inner) => written.map(|node| map(node, inner, here)).unwrap_or_default(),
            _ => spelled(written, key, here),
        };
        format!("{}: {value}", key.name)
    });
    list(each)
}

/// What a text of this shape means, where texts differ that mean the same.
fn scalar(text: &str, shape: &Shape) -> Option<String> {
    match shape {
        Shape::Duration => units::duration(text).ok().map(|duration| format!("{duration:?}")),
        Shape::Size => units::size(text).ok().map(|bytes| bytes.to_string()),
        Shape::Rate => units::rate(text).ok().map(|(burst, per)| format!("{burst}/{per:?}")),
        Shape::Whole { .. } => text.parse().ok().map(|number: u64| number.to_string()),
        Shape::Number => text.parse().ok().map(|number: f64| number.to_string()),
        Shape::Texts | Shape::Words(_) | Shape::Patterns | Shape::EnvNames => Some(default_list(text)),
        _ => Some(text.to_owned()),
    }
}

/// The default of a list, `[a, b]`, as a list that is written is spelled.
fn default_list(text: &str) -> String {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    list(inner.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| format!("{item:?}")))
}

/// Any node; the entries of a map in the order of their names.
fn plain(node: &Node) -> String {
    match &node.value {
        Value::Scalar(scalar) => format!("{:?}", scalar.text),
        Value::List(items) => list(items.iter().map(plain)),
        Value::Map(entries) => {
            let sorted: BTreeMap<&str, String> =
                entries.iter().map(|entry| (entry.key.as_str(), plain(&entry.node))).collect();
            list(sorted.into_iter().map(|(key, value)| format!("{key:?}: {value}")))
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn resolved(place: &Place, path: &str, here: &Path) -> PathBuf {
    here.join(place.resolve(path)).components().collect()
}

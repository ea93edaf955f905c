//! Typed reading of a tree that was checked: what is written, else the default of the key. A value that was
//! found at fault reads as its type's zero; the load has failed already and nobody uses it.

use super::schema::{Key, Shape};
use super::source::Place;
use super::tree::{Kind, Node, Scalar, Value};
use agentd_core::units;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A map of the configuration with the keys it can have.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    node: Option<&'a Node>,
    keys: &'static [Key],
}

impl<'a> Values<'a> {
    pub(crate) fn new(node: &'a Node, keys: &'static [Key]) -> Values<'a> {
        Values { node: Some(node), keys }
    }

    /// The map at a key; without any values when it is not written.
    pub(crate) fn section(&self, name: &str) -> Values<'a> {
        let keys = match self.key(name).shape {
            Shape::Section(keys) => keys,
            _ => &[],
        };
        Values { node: self.written(name), keys }
    }

    /// The maps of the list at a key; what is no map was found at fault.
    pub(crate) fn items(&self, name: &str) -> Vec<Values<'a>> {
        let keys = match self.key(name).shape {
            Shape::Items(keys) => keys,
            _ => &[],
        };
        let nodes = self.list(name).iter().filter(|node| matches!(node.value, Value::Map(_)));
        nodes.map(|node| Values { node: Some(node), keys }).collect()
    }

    /// The maps of the map at a key, by name.
    pub(crate) fn maps(&self, name: &str) -> Vec<(&'a str, Values<'a>)> {
        let keys = match self.key(name).shape {
            Shape::Maps { each, .. } => each,
            _ => &[],
        };
        let maps = self.entries(name).filter(|(_, node)| matches!(node.value, Value::Map(_)));
        maps.map(|(name, node)| (name, Values { node: Some(node), keys })).collect()
    }

    /// The names in the map at a key.
    pub(crate) fn names(&self, name: &str) -> Vec<&'a str> {
        self.entries(name).map(|(name, _)| name).collect()
    }

    /// Whether a key is there at all, with a value or without one.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.node.is_some_and(|node| node.entry(name).is_some())
    }

    /// Where the map stands, when it is written.
    pub(crate) fn place(&self) -> Option<&'a Place> {
        self.node.map(|node| &node.place)
    }

    /// What is written at a key; nothing when it is absent or empty.
    pub(crate) fn written(&self, name: &str) -> Option<&'a Node> {
        self.node?.entry(name).map(|entry| &entry.node).filter(|node| !node.is_null())
    }

    /// A text; `None` when there is none and no default.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        match self.scalar(name) {
            Some(scalar) => Some(scalar.text.as_str()),
            None => Some(self.key(name).default).filter(|default| !default.is_empty()),
        }
    }

    /// A path as its source means it, and where it is written.
    pub(crate) fn path(&self, name: &str) -> Option<(PathBuf, &'a Place)> {
        let place = &self.written(name)?.place;
        // What holds a NUL was found at fault, and would be found again.
        self.scalar(name)
            .filter(|scalar| !scalar.text.contains('\0'))
            .map(|scalar| (place.resolve(&scalar.text), place))
    }

    /// A truth value.
    pub(crate) fn switch(&self, name: &str) -> bool {
        let default = self.key(name).default == "true";
        self.scalar(name).map_or(default, |scalar| scalar.kind() == Kind::Bool(true))
    }

    /// A whole number; `None` when there is none and no default.
    pub(crate) fn whole(&self, name: &str) -> Option<u64> {
        self.text(name).map(|text| text.parse().unwrap_or_default())
    }

    /// A whole number that the table bounds to 32 bits.
    pub(crate) fn small(&self, name: &str) -> Option<u32> {
        self.whole(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// A duration; `None` when there is none and no default.
    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.text(name).map(|text| units::duration(text).unwrap_or_default())
    }

    /// A size in bytes; `None` when there is none and no default.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        self.text(name).map(|text| units::size(text).unwrap_or_default())
    }

    /// The texts of a list; `None` when it is not written.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        self.written(name).map(|_| self.list(name).iter().filter_map(text_of).collect())
    }

    /// A map from names to lists of texts.
    pub(crate) fn lists(&self, name: &str) -> BTreeMap<String, Vec<String>> {
        let texts = |node: &'a Node| match &node.value {
            Value::List(items) => items.iter().filter_map(text_of).collect(),
            Value::Scalar(_) | Value::Map(_) => Vec::new(),
        };
        self.entries(name).map(|(key, node)| (key.to_owned(), texts(node))).collect()
    }

    /// The entries of the map at a key.
    pub(crate) fn entries(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let entries = match self.written(name).map(|node| &node.value) {
            Some(Value::Map(entries)) => entries.as_slice(),
            Some(Value::Scalar(_) | Value::List(_)) | None => &[],
        };
        entries.iter().map(|entry| (entry.key.as_str(), &entry.node))
    }

    /// The nodes of the list at a key.
    pub(crate) fn list(&self, name: &str) -> &'a [Node] {
        match self.written(name).map(|node| &node.value) {
            Some(Value::List(items)) => items,
            Some(Value::Scalar(_) | Value::Map(_)) | None => &[],
        }
    }

    fn scalar(&self, name: &str) -> Option<&'a Scalar> {
        match &self.written(name)?.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// A key that is read and not in the table is a bug that any test of a load finds.
    fn key(&self, name: &str) -> &'static Key {
        self.keys
            .iter()
            .find(|key| key.name == name)
            .unwrap_or_else(|| unreachable!("no key {name} in the table"))
    }
}

/// The text of a scalar.
pub(crate) fn text_of(node: &Node) -> Option<String> {
    match &node.value {
        Value::Scalar(scalar) => Some(scalar.text.clone()),
        Value::List(_) | Value::Map(_) => None,
    }
}

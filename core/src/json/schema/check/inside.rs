//! The rules that look into arrays and objects.

use super::super::equal::canonical;
use super::super::pattern::Pattern;
use super::super::{ListRule, NodeId, ObjectRule};
use super::{Fits, Part, Walk};
use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

impl<'w> Walk<'w> {
    pub(super) fn obeys_list(&mut self, rule: &'w ListRule, items: &'w [Value]) -> Fits {
        match rule {
            ListRule::Max(max) => Ok(self.at_most(*max, items.len(), "items")),
            ListRule::Min(min) => Ok(self.at_least(*min, items.len(), "items")),
            ListRule::Unique => self.are_unique(items),
            ListRule::Items { first, rest } => {
                let mut all = true;
                for (index, item) in items.iter().enumerate() {
                    if let Some(node) = first.get(index).or(rest.as_ref()) {
                        all &= self.fits_at(Part::Index(index), *node, item)?;
                    }
                    if !all && self.is_full() {
                        break;
                    }
                }
                Ok(all)
            }
            ListRule::Contains { node, min, max } => {
                let mut fitting = 0u64;
                for item in items {
                    fitting += u64::from(self.would_fit(*node, item)?);
                }
                let wanted = match max {
                    Some(max) => format!("{min} to {max}"),
                    None => format!("at least {min}"),
                };
                let fits = fitting >= *min && max.is_none_or(|max| fitting <= max);
                Ok(fits
                    || self
                        .misfit(format!("{fitting} of its items fit `contains` where {wanted} are expected")))
            }
        }
    }

    fn are_unique(&mut self, items: &[Value]) -> Fits {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let text = canonical(item);
            self.spend(text.len())?;
            if !seen.insert(text) {
                return Ok(self.misfit(format!("item {index} is there twice, and each must differ")));
            }
        }
        Ok(true)
    }

    pub(super) fn obeys_object(&mut self, rule: &'w ObjectRule, fields: &'w Map<String, Value>) -> Fits {
        let mut all = true;
        match rule {
            ObjectRule::Max(max) => all = self.at_most(*max, fields.len(), "properties"),
            ObjectRule::Min(min) => all = self.at_least(*min, fields.len(), "properties"),
            ObjectRule::Required(keys) => all = self.has_all(keys, fields)?,
            ObjectRule::Needs(needs) => {
                for (_, keys) in needs.iter().filter(|(key, _)| fields.contains_key(*key)) {
                    all &= self.has_all(keys, fields)?;
                }
            }
            ObjectRule::Names(node) => {
                for key in fields.keys() {
                    all &= self.is_name(*node, key)?;
                }
            }
            ObjectRule::Properties { named, alike, rest } => {
                for (key, value) in fields {
                    all &= self.fits_property(key, value, named, alike, *rest)?;
                    if !all && self.is_full() {
                        break;
                    }
                }
            }
            // It holds the object itself against a place: see where rules are told apart.
            ObjectRule::Implies(_) => {}
        }
        Ok(all)
    }

    fn has_all(&mut self, keys: &[String], fields: &Map<String, Value>) -> Fits {
        self.spend(keys.len())?;
        let mut all = true;
        for key in keys.iter().filter(|key| !fields.contains_key(*key)) {
            all = self.misfit(format!("the property \"{}\" is missing", preview(key, PREVIEW_BYTES)));
        }
        Ok(all)
    }

    fn fits_property(
        &mut self,
        key: &'w str,
        value: &'w Value,
        named: &BTreeMap<String, NodeId>,
        alike: &[(Pattern, NodeId)],
        rest: Option<NodeId>,
    ) -> Fits {
        let mut nodes: Vec<NodeId> = named.get(key).copied().into_iter().collect();
        for (pattern, node) in alike {
            if self.is_found(pattern, key)? {
                nodes.push(*node);
            }
        }
        if nodes.is_empty() {
            nodes.extend(rest);
        }
        let mut all = true;
        for node in nodes {
            all &= self.fits_at(Part::Key(key), node, value)?;
        }
        Ok(all)
    }

    /// Whether a key is one of those allowed.
    fn is_name(&mut self, node: NodeId, key: &str) -> Fits {
        self.spend(key.len())?;
        let name = Value::from(key);
        let (nodes, steps, nesting) = (self.nodes, self.steps, self.nesting);
        let mut walk = Walk { nodes, steps, nesting, path: Vec::new(), told: None };
        let fits = walk.fits(node, &name)?;
        self.steps = walk.steps;
        Ok(fits || self.misfit(format!("\"{}\" is no name for a property here", preview(key, PREVIEW_BYTES))))
    }
}

//! From a schema's JSON to its places: shapes of keywords, references, and what cannot be bounded.

use super::keywords::{self, SAME_DRAFTS};
use super::pattern::Pattern;
use super::{Node, NodeId, Rule, Schema, SchemaProblem};
use crate::json::preview;
use crate::limits::{OUTPUT_SCHEMA_PATTERNS, OUTPUT_SCHEMA_PLACES, PREVIEW_BYTES};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads the whole schema, place by place; nothing recurses.
pub(super) fn compile(root: &Value) -> Result<Schema, SchemaProblem> {
    let mut compiler =
        Compiler { root, ref_stands_alone: false, places: Vec::new(), known: BTreeMap::new(), patterns: 0 };
    compiler.ref_stands_alone = compiler.draft()?;
    compiler.place(None, String::new(), root)?;
    let mut nodes = Vec::new();
    while let Some(place) = compiler.places.get(nodes.len()) {
        let (at, value) = (nodes.len(), place.value);
        nodes.push(compiler.node(at, value)?);
    }
    if let Some(at) = endless(&nodes) {
        let what =
            "its references lead back to it without looking into the value, so nothing could ever be checked";
        return Err(compiler.problem(at, "", what));
    }
    Ok(Schema { nodes })
}

/// What is known while places are read.
pub(super) struct Compiler<'s> {
    root: &'s Value,
    /// Beside a `$ref` nothing counts, as up to draft 7.
    ref_stands_alone: bool,
    places: Vec<Place<'s>>,
    /// By where the value is in memory: a place that is referred to is read once.
    known: BTreeMap<usize, NodeId>,
    patterns: usize,
}

struct Place<'s> {
    value: &'s Value,
    parent: Option<NodeId>,
    /// From the parent, as a part of a JSON Pointer.
    path: String,
}

impl<'s> Compiler<'s> {
    /// The number of the place that holds `value`.
    pub(super) fn place(
        &mut self,
        parent: Option<NodeId>,
        path: String,
        value: &'s Value,
    ) -> Result<NodeId, SchemaProblem> {
        let address = std::ptr::from_ref(value).addr();
        if let Some(node) = self.known.get(&address) {
            return Ok(*node);
        }
        let node = self.places.len();
        if node >= OUTPUT_SCHEMA_PLACES {
            let what = format!("more than {OUTPUT_SCHEMA_PLACES} schemas in one: use a smaller one");
            return Err(SchemaProblem { at: String::new(), what });
        }
        self.places.push(Place { value, parent, path });
        self.known.insert(address, node);
        Ok(node)
    }

    /// A problem with the keyword at a place; an empty keyword is the place itself.
    pub(super) fn problem(&self, at: NodeId, keyword: &str, what: impl Into<String>) -> SchemaProblem {
        let mut parts = Vec::new();
        let mut place = self.places.get(at);
        while let Some(Place { parent, path, .. }) = place {
            parts.push(path.as_str());
            place = parent.and_then(|parent| self.places.get(parent));
        }
        parts.reverse();
        let mut path = parts.concat();
        if !keyword.is_empty() {
            path.push('/');
            path.push_str(&escaped(keyword));
        }
        SchemaProblem { at: path, what: what.into() }
    }

    pub(super) fn pattern(
        &mut self,
        at: NodeId,
        keyword: &str,
        text: &str,
    ) -> Result<Pattern, SchemaProblem> {
        self.patterns += 1;
        if self.patterns > OUTPUT_SCHEMA_PATTERNS {
            let what = format!("more than {OUTPUT_SCHEMA_PATTERNS} patterns in one schema: use fewer");
            return Err(self.problem(at, keyword, what));
        }
        Pattern::read(text).map_err(|why| self.problem(at, keyword, why))
    }

    fn node(&mut self, at: NodeId, value: &'s Value) -> Result<Node, SchemaProblem> {
        match value {
            Value::Bool(true) => Ok(Node::Anything),
            Value::Bool(false) => Ok(Node::Nothing),
            Value::Object(map) => self.rules(at, map).map(Node::Rules),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let what =
                    format!("{} where a schema is expected: an object, true or false", keywords::kind(value));
                Err(self.problem(at, "", what))
            }
        }
    }

    fn rules(&mut self, at: NodeId, map: &'s Map<String, Value>) -> Result<Vec<Rule>, SchemaProblem> {
        let mut rules = Vec::new();
        if let Some(target) = map.get("$ref") {
            rules.push(Rule::Ref(self.reference(at, target)?));
            if self.ref_stands_alone {
                return Ok(rules);
            }
        }
        keywords::read(self, at, map, &mut rules)?;
        Ok(rules)
    }

    /// The place a `$ref` means: `#`, or `#` and a JSON Pointer.
    fn reference(&mut self, at: NodeId, target: &Value) -> Result<NodeId, SchemaProblem> {
        let seen = target.as_str().map_or_else(|| target.to_string(), str::to_owned);
        let shown = preview(&seen, PREVIEW_BYTES);
        let Some(pointer) = target.as_str().and_then(|text| text.strip_prefix('#')).and_then(unquoted) else {
            let what = format!("`{shown}`: only `#` and `#/…`, a place in this schema, are accepted");
            return Err(self.problem(at, "$ref", what));
        };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let what = format!("`{shown}`: anchors are not supported; write the place as `#/$defs/…`");
            return Err(self.problem(at, "$ref", what));
        }
        match self.root.pointer(&pointer) {
            Some(value) => self.place(None, pointer, value),
            None => {
                Err(self.problem(at, "$ref", format!("`{shown}`: there is no such place in this schema")))
            }
        }
    }

    /// Whether `$schema` names a draft in which a `$ref` stands alone.
    fn draft(&self) -> Result<bool, SchemaProblem> {
        let Some(named) = self.root.get("$schema") else { return Ok(false) };
        let name = named.as_str().unwrap_or_default().trim_end_matches('#');
        let name = name.split_once("://").map_or(name, |(_, rest)| rest);
        match name {
            "json-schema.org/draft-06/schema" | "json-schema.org/draft-07/schema" => Ok(true),
            "json-schema.org/draft/2019-09/schema" | "json-schema.org/draft/2020-12/schema" => Ok(false),
            _ => {
                let what = format!("`{}`: {SAME_DRAFTS}", preview(named.to_string(), PREVIEW_BYTES));
                Err(SchemaProblem { at: "/$schema".to_owned(), what })
            }
        }
    }
}

/// A key as a part of a JSON Pointer.
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A fragment without its percent signs.
fn unquoted(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A place whose rules lead back to it on the same value.
fn endless(nodes: &[Node]) -> Option<NodeId> {
    let next = |node: NodeId| match nodes.get(node) {
        Some(Node::Rules(rules)) => rules.iter().flat_map(Rule::same_value).collect(),
        Some(Node::Anything | Node::Nothing) | None => Vec::new(),
    };
    let mut done = vec![false; nodes.len()];
    let mut on_path = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        if done[start] {
            continue;
        }
        on_path[start] = true;
        let mut path: Vec<(NodeId, Vec<NodeId>)> = vec![(start, next(start))];
        while let Some((node, left)) = path.last_mut() {
            let node = *node;
            match left.pop() {
                Some(child) if on_path[child] => return Some(child),
                Some(child) if done[child] => {}
                Some(child) => {
                    on_path[child] = true;
                    path.push((child, next(child)));
                }
                None => {
                    on_path[node] = false;
                    done[node] = true;
                    path.pop();
                }
            }
        }
    }
    None
}

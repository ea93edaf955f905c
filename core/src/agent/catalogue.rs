//! The tools of a run: what the model is offered, and what a call it made comes to.

use crate::agent::{FINISH_TOOL, Tool, ToolSource};
use crate::bytes::{Bytes, Json};
use crate::json::{object, preview};
use crate::limits::{ARGUMENT_BYTES, ARGUMENT_DEPTH, PREVIEW_BYTES};
use crate::model::names::legal;
use crate::model::{Call, WireNames};
use crate::policy::{Grant, Pattern};
use crate::wire::message::ToolDecl;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tool names that an error lists at most.
const LISTED: usize = 20;

/// Who answers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answerer {
    /// Somebody outside.
    Outside(ToolSource),
    /// The loop: it is the `finish` of the supervisor's tools.
    Loop,
}

/// A call that can be answered.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) by: Answerer,
    /// Registry name.
    pub(super) name: String,
    /// A JSON object on one line.
    pub(super) args: Json,
}

/// The granted tools.
#[derive(Debug)]
pub(super) struct Catalogue {
    tools: BTreeMap<String, Answerer>,
    /// For requests: in the order given, under wire names.
    pub(super) offered: Arc<[ToolDecl]>,
    /// For requests and replies.
    pub(super) names: Arc<WireNames>,
    /// Bytes of what is offered, for estimates.
    pub(super) bytes: usize,
}

impl Catalogue {
    /// Keeps what is granted: the supervisor's tools as given, of the servers' tools those that `grant` allows.
    /// A name that comes twice is the first one's.
    pub(super) fn new(tools: Vec<Tool>, grant: &Grant) -> Catalogue {
        let mut kept = BTreeMap::new();
        let mut decls = Vec::new();
        for Tool { decl, source } in tools {
            let granted = match source {
                ToolSource::Supervisor => true,
                ToolSource::Server { .. } => grant.allows(&decl.name),
            };
            if granted && !kept.contains_key(&decl.name) {
                let by = match source {
                    ToolSource::Supervisor if decl.name == FINISH_TOOL => Answerer::Loop,
                    source @ (ToolSource::Supervisor | ToolSource::Server { .. }) => {
                        Answerer::Outside(source)
                    }
                };
                kept.insert(decl.name.clone(), by);
                decls.push(decl);
            }
        }
        let of = |own: bool| {
            let tools = decls.iter().map(|decl| decl.name.as_str());
            tools.filter(|name| is_servers(&kept, name) != own).collect::<Vec<_>>()
        };
        // The supervisor's come first: no server takes the name of one of them.
        let mut names = WireNames::new(of(true));
        names.add(of(false));
        for decl in &mut decls {
            if let Some(wire) = names.wire(&decl.name) {
                decl.name = wire.to_owned();
            }
        }
        let bytes = decls.iter().map(|d| d.name.len() + d.description.len() + d.schema.0.len()).sum();
        Catalogue { tools: kept, offered: decls.into(), names: names.into(), bytes }
    }

    /// What a call comes to: who answers it, under which name, with which arguments; or what the model is told
    /// instead (S7.3). A tool that exists and is not granted reads exactly as one that does not exist.
    pub(super) fn resolve(&self, call: &Call) -> Result<Resolved, String> {
        let found = self.names.registry(&call.name).and_then(|name| Some((name, self.tools.get(name)?)));
        let Some((name, by)) = found else { return Err(self.unknown(&call.name)) };
        let args = arguments(&call.args).map_err(|problem| {
            let seen = preview(&call.args, PREVIEW_BYTES);
            format!("the call was not made; its arguments: {problem}. They were: `{seen}`")
        })?;
        Ok(Resolved { by: by.clone(), name: name.to_owned(), args })
    }

    /// What people are told of a call that was not made: the tool's registry name, or a look at what the model
    /// wrote.
    pub(super) fn label(&self, name: &str) -> String {
        self.names.registry(name).map_or_else(|| preview(name, PREVIEW_BYTES), str::to_owned)
    }

    /// The patterns of `grant` that match none of the tools.
    pub(super) fn unmatched<'g>(&self, grant: &'g Grant) -> Vec<&'g Pattern> {
        grant.unmatched(self.tools.keys().map(String::as_str))
    }

    /// What the servers' tools are called by a model where that is more than their names made legal, because another tool
    /// has that name: a sentence for each.
    pub(super) fn renamed(&self) -> impl Iterator<Item = String> {
        self.names.numbered().filter(|(name, _)| is_servers(&self.tools, name)).map(|(name, wire)| {
            let other = legal(name);
            let of = self.names.registry(&other).unwrap_or(&other);
            format!(
                "the tool {} is {wire} to the model: {other} stands for {}",
                preview(name, PREVIEW_BYTES),
                preview(of, PREVIEW_BYTES)
            )
        })
    }

    /// How many tools the servers offer, how many servers those are, and how many tools the supervisor has.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let mut servers = BTreeSet::new();
        let mut from_servers = 0;
        for source in self.tools.values() {
            match source {
                Answerer::Outside(ToolSource::Server { server, .. }) => {
                    servers.insert(server);
                    from_servers += 1;
                }
                Answerer::Outside(ToolSource::Supervisor) | Answerer::Loop => {}
            }
        }
        (from_servers, servers.len(), self.tools.len() - from_servers)
    }

    fn unknown(&self, name: &str) -> String {
        let seen = preview(name, PREVIEW_BYTES);
        let listed: Vec<&str> = self.offered.iter().take(LISTED).map(|decl| decl.name.as_str()).collect();
        let more = self.offered.len() - listed.len();
        let there_are = match (listed.is_empty(), more) {
            (true, _) => "there are no tools here".to_owned(),
            (false, 0) => format!("the tools are: {}", listed.join(", ")),
            (false, _) => format!("the tools are: {} and {more} more", listed.join(", ")),
        };
        format!("there is no tool `{seen}`; {there_are}")
    }
}

/// Whether a tool is a server's.
fn is_servers(tools: &BTreeMap<String, Answerer>, name: &str) -> bool {
    matches!(tools.get(name), Some(Answerer::Outside(ToolSource::Server { .. })))
}

/// The arguments as a JSON object on one line. Nothing at all is what some models send for a tool without
/// parameters (F04). The text is kept and not written anew, so a number stays as the model wrote it.
pub(super) fn arguments(raw: &str) -> Result<Json, String> {
    if raw.trim().is_empty() {
        return Ok(Json(Bytes::from(b"{}".as_slice())));
    }
    object(raw.as_bytes(), ARGUMENT_BYTES, ARGUMENT_DEPTH).map_err(|problem| problem.to_string())?;
    Ok(Json(Bytes::from(compact(raw))))
}

/// Valid JSON without the white space between its tokens.
fn compact(raw: &str) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    raw.bytes()
        .filter(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ => {}
            }
            in_string || !byte.is_ascii_whitespace()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(raw: &str) -> Result<String, String> {
        arguments(raw).map(|json| String::from_utf8(json.0.to_vec()).unwrap())
    }

    #[test]
    fn arguments_come_out_on_one_line_and_otherwise_as_written() {
        assert_eq!(texts("").unwrap(), "{}");
        assert_eq!(texts(" \n").unwrap(), "{}");
        assert_eq!(
            texts("{\n \"a b\" : [ 1.50 , 123456789012345678901234567890 ] }\n").unwrap(),
            "{\"a b\":[1.50,123456789012345678901234567890]}"
        );
        assert_eq!(texts(r#"{"q": "a \" b\\", "r": " "}"#).unwrap(), r#"{"q":"a \" b\\","r":" "}"#);
        for bad in ["{", "[]", "\"x\"", "null", "{\"a\":1,\"a\":2}", "{\"a\":NaN}", "{} x"] {
            assert!(texts(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_servers_tool_takes_no_name_of_an_own_one() {
        let tool = |name: &str, source: ToolSource| {
            let decl = ToolDecl {
                name: name.to_owned(),
                description: String::new(),
                schema: Json::of(&serde_json::json!({})),
            };
            Tool { decl, source }
        };
        let server = |tool: &str| ToolSource::Server { server: "s".into(), tool: tool.to_owned() };
        let tools = vec![
            tool("subagent_run", server("subagent_run")),
            tool("read", server("read")),
            tool("subagent.run", ToolSource::Supervisor),
        ];
        let (grant, _) = Grant::minted(Some(&["*".to_owned()]));
        let catalogue = Catalogue::new(tools, &grant);
        let offered: Vec<_> = catalogue.offered.iter().map(|decl| decl.name.as_str()).collect();
        assert_eq!(offered, ["subagent_run_2", "read", "subagent_run"]);
        let reached = |name: &str| {
            let call = Call { id: "1".into(), name: name.into(), args: "{}".into() };
            catalogue.resolve(&call).map(|resolved| (resolved.name, resolved.by)).unwrap()
        };
        let own = Answerer::Outside(ToolSource::Supervisor);
        assert_eq!(reached("subagent_run"), ("subagent.run".to_owned(), own));
        let theirs = Answerer::Outside(server("subagent_run"));
        assert_eq!(reached("subagent_run_2"), ("subagent_run".to_owned(), theirs));
        let renamed: Vec<_> = catalogue.renamed().collect();
        assert_eq!(
            renamed,
            ["the tool subagent_run is subagent_run_2 to the model: subagent_run stands for subagent.run"]
        );
    }

    proptest! {
        #[test]
        fn compacting_changes_no_value(text in "[\\[{:,\"\\\\ \\n0-9a}\\]]{0,40}") {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                let compacted = compact(&text);
                prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&compacted).unwrap(), value);
                prop_assert!(!compacted.contains(&b'\n'));
            }
        }
    }
}

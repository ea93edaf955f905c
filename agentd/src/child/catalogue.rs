//! The tools of a run, from what its servers offer and what it is granted (S3.6, S14.4, S14.6).
//!
//! Owns the list the first model request shows, which is exactly what can be dispatched: a tool that is not granted
//! is not in it, so the loop answers a call of it as one of an unknown tool. Called once, when the last server is
//! connected or given up.

use agentd_core::agent::{Tool, ToolSource};
use agentd_core::mcp::ToolInfo;
use agentd_core::policy::{Grant, registry};
use agentd_core::wire::message::{Event, Spawn, ToolDecl};
use std::collections::BTreeMap;

/// What came of it.
pub(super) struct Catalogue {
    /// The supervisor's tools, then the servers', in the payload's and the servers' order.
    pub(super) tools: Vec<Tool>,
    /// For the log, in order; the count of tools is the last.
    pub(super) events: Vec<Event>,
}

/// Names and filters `offered`: each connected server's tools, by its name.
pub(super) fn build(spawn: &Spawn, mut offered: BTreeMap<String, Vec<ToolInfo>>) -> Catalogue {
    let mut events = Vec::new();
    let (grant, problems) = Grant::minted(spawn.tools.as_deref());
    events
        .extend(problems.iter().map(|p| event("warn", "tools.invalid", format!("{p}; nothing is granted"))));
    let connected = offered.len();
    let own_names: BTreeMap<String, Vec<String>> =
        offered.iter().map(|(server, tools)| (server.clone(), names_of(tools))).collect();
    let names = registry::names(&spawn.servers, &own_names, &spawn.names);
    events.extend(names.collisions.iter().map(|text| event("warn", "tools.collision", text.clone())));
    events.extend(names.unusable.iter().map(|text| event("warn", "tools.unusable", text.clone())));

    let mut tools: Vec<Tool> = spawn.own_tools.iter().map(supervisors).collect();
    for name in names.names.iter().filter(|n| grant.allows(&n.name)) {
        let infos = offered.get_mut(&name.server).map(Vec::as_mut_slice).unwrap_or_default();
        if let Some(info) = infos.iter_mut().find(|info| info.name == name.tool) {
            tools.push(servers(&name.server, &name.name, info));
        }
    }
    let granted = tools.len() - spawn.own_tools.len();
    let all = names.names.iter().map(|n| n.name.as_str());
    for pattern in grant.unmatched(all.chain(spawn.own_tools.iter().map(|t| t.name.as_str()))) {
        let count = names.names.len();
        let text = format!(
            "the tools pattern {pattern} matches none of the {count} tools of this run's servers; it grants nothing"
        );
        events.push(event("warn", "tools.unmatched", text));
    }
    let mut count = event("info", "mcp.tools", format!("tools: {granted} from {connected} servers"));
    count.fields.insert("tools".into(), granted.to_string());
    count.fields.insert("servers".into(), connected.to_string());
    events.push(count);
    Catalogue { tools, events }
}

/// An event of one sentence.
pub(super) fn event(level: &str, name: &str, text: String) -> Event {
    Event { level: level.into(), name: name.into(), fields: BTreeMap::from([("text".into(), text)]) }
}

fn names_of(tools: &[ToolInfo]) -> Vec<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}

fn supervisors(decl: &ToolDecl) -> Tool {
    Tool { decl: decl.clone(), source: ToolSource::Supervisor }
}

/// Takes description and schema out of `info`; a tool has one name, so nobody asks for them twice.
fn servers(server: &str, name: &str, info: &mut ToolInfo) -> Tool {
    let decl = ToolDecl {
        name: name.to_owned(),
        description: std::mem::take(&mut info.description),
        schema: std::mem::take(&mut info.schema),
    };
    Tool { decl, source: ToolSource::Server { server: server.to_owned(), tool: info.name.clone() } }
}

#[cfg(test)]
mod tests;

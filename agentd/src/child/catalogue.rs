//! The tools of a run, from what its servers offer (S14.4).
//!
//! Owns which registry name each tool has; what of it is granted the loop decides, once for the list the model sees
//! and for what can be dispatched. Called when the last server is connected or given up, and when one offers something else.

use agentd_core::agent::{Tool, ToolSource};
use agentd_core::mcp::ToolInfo;
use agentd_core::policy::registry;
use agentd_core::wire::message::{Event, Spawn, ToolDecl, ToolName};
use std::collections::BTreeMap;

/// What came of it.
pub(super) struct Catalogue {
    /// The supervisor's tools, then the servers', in the payload's and the servers' order.
    pub(super) tools: Vec<Tool>,
    /// Names that were given now.
    pub(super) fresh: Vec<ToolName>,
    /// For the log.
    pub(super) events: Vec<Event>,
}

/// Names `offered`: each connected server's tools, by its name.
pub(super) fn build(spawn: &Spawn, offered: BTreeMap<String, Vec<ToolInfo>>) -> Catalogue {
    let own_names: BTreeMap<String, Vec<String>> =
        offered.iter().map(|(server, tools)| (server.clone(), names_of(tools))).collect();
    let names = registry::names(&spawn.servers, &own_names, &spawn.names);
    let mut events = Vec::new();
    events.extend(names.collisions.into_iter().map(|text| event("warn", "mcp.tools.collision", text)));
    events.extend(names.unusable.into_iter().map(|text| event("warn", "mcp.tools.unusable", text)));

    let mut infos: BTreeMap<(String, String), ToolInfo> = BTreeMap::new();
    for (server, tools) in offered {
        for tool in tools {
            infos.entry((server.clone(), tool.name.clone())).or_insert(tool);
        }
    }
    let known = |name: &ToolName| spawn.names.iter().any(|k| k.server == name.server && k.tool == name.tool);
    let fresh = names.names.iter().filter(|name| !known(name)).cloned().collect();
    let mut tools: Vec<Tool> = spawn.own_tools.iter().map(supervisors).collect();
    for name in names.names {
        if let Some(info) = infos.remove(&(name.server.clone(), name.tool.clone())) {
            let decl = ToolDecl { name: name.name, description: info.description, schema: info.schema };
            tools.push(Tool { decl, source: ToolSource::Server { server: name.server, tool: name.tool } });
        }
    }
    Catalogue { tools, fresh, events }
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

#[cfg(test)]
mod tests;

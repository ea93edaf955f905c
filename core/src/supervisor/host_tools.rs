//! Tools of the program that embeds the supervisor (S3.5): offered and granted as a server's are, called through the
//! supervisor, which the child asks as it asks for `subagent.run`.
//!
//! Owns their names and the calls that are open. Refuses calls beyond a run's grant, in the words of an unknown tool.

use super::Core;
use super::tools::Caller;
use crate::action::{Action, Actions, HostCall};
use crate::bytes::Json;
use crate::config::HostServer;
use crate::id::NodeId;
use crate::policy::grant::Grant;
use crate::run::Request;
use crate::wire::message::{ToolDecl, ToolName};
use serde_json::Value;

/// A tool of the embedding program as callers know it.
pub(super) fn registry_name(server: &str, tool: &str) -> String {
    format!("{server}.{tool}")
}

/// The names of all tools of these groups. They are given once and stand, so that a server's tool never takes one.
pub(super) fn names<'a>(host: impl IntoIterator<Item = &'a HostServer>) -> Vec<ToolName> {
    host.into_iter().flat_map(|group| group.tools.iter().map(|tool| named(group, tool))).collect()
}

fn named(group: &HostServer, tool: &ToolDecl) -> ToolName {
    ToolName {
        server: group.name.clone(),
        tool: tool.name.clone(),
        name: registry_name(&group.name, &tool.name),
    }
}

/// The tools of these groups that a grant allows, as a model is told of them.
pub(super) fn offered<'a>(host: impl IntoIterator<Item = &'a HostServer>, grant: &Grant) -> Vec<ToolDecl> {
    let all = host.into_iter().flat_map(|group| {
        group
            .tools
            .iter()
            .map(|tool| ToolDecl { name: registry_name(&group.name, &tool.name), ..tool.clone() })
    });
    all.filter(|tool| grant.allows(&tool.name)).collect()
}

impl Core {
    /// The group and the own name behind a registry name.
    pub(super) fn host_tool(&self, name: &str) -> Option<ToolName> {
        self.config.host.iter().find_map(|group| {
            let own = name.strip_prefix(group.name.as_str())?.strip_prefix('.')?;
            group.tools.iter().find(|tool| tool.name == own).map(|tool| named(group, tool))
        })
    }

    /// Hands a call on to the embedding program.
    pub(super) fn call_host_tool(
        &mut self,
        caller: Caller<'_>,
        tool: ToolName,
        args: &Json,
        out: &mut Actions,
    ) {
        self.last_host_call += 1;
        let (call, node) = (self.last_host_call, caller.node);
        let Some(run) = self.run(node) else { return };
        run.requests.insert(caller.id, Request::Host { call });
        let handle = run.record.handle;
        self.host_calls.insert(call, (node, caller.id));
        let ToolName { server, tool, .. } = tool;
        out.push(Action::CallHostTool(HostCall { call, node, handle, server, tool, args: args.clone() }));
    }

    /// The program has answered; whoever asked may have gone meanwhile.
    pub(super) fn host_tool_answered(&mut self, call: u64, error: bool, value: Json, out: &mut Actions) {
        let Some((node, id)) = self.host_calls.remove(&call) else { return };
        // What is no JSON would break the caller's frame.
        let value = if value.parse().is_ok() {
            value
        } else {
            Json::of(&Value::String(String::from_utf8_lossy(&value.0).into_owned()))
        };
        self.answer_json(node, id, error, value, out);
    }

    /// Nobody waits for this call any more.
    pub(super) fn cancel_host_tool(&mut self, call: u64, out: &mut Actions) {
        if self.host_calls.remove(&call).is_some() {
            out.push(Action::CancelHostTool { call });
        }
    }

    /// The groups that a run was given.
    pub(super) fn host_of(&self, caller: NodeId) -> Vec<&HostServer> {
        let groups = self.config.host.iter();
        match caller {
            NodeId::OPERATOR => groups.collect(),
            _ => {
                let given = self.runs.get(&caller).map(|run| run.servers.as_slice()).unwrap_or_default();
                groups.filter(|group| given.contains(&group.name)).collect()
            }
        }
    }
}

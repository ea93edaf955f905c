//! Who is who in a journal: the names of its runs, and what children say, taken from the bytes of their pipes.

use agentd_core::action::Action;
use agentd_core::error::ProtocolError;
use agentd_core::event::Event;
use agentd_core::id::{Handle, NodeId, RunId};
use agentd_core::machine::Machine;
use agentd_core::store::record_in;
use agentd_core::supervisor::Core;
use agentd_core::wire::message::Role;
use agentd_core::wire::{Decoded, Up, UpDecoder};
use std::collections::BTreeMap;

/// The runs that were met so far.
#[derive(Debug, Default)]
pub struct Cast {
    roles: BTreeMap<NodeId, Member>,
    nodes: BTreeMap<RunId, NodeId>,
    decoders: BTreeMap<NodeId, UpDecoder>,
}

/// One run.
#[derive(Debug, Clone, Copy)]
struct Member {
    handle: Option<Handle>,
    role: Role,
    run_id: Option<RunId>,
}

impl Cast {
    /// Those who live already where a replay begins.
    pub fn begin(&mut self, core: &Core) {
        for (node, (run_id, decoder)) in core.listeners() {
            self.nodes.insert(run_id, node);
            self.decoders.insert(node, decoder);
        }
        let run_ids: BTreeMap<NodeId, RunId> =
            self.nodes.iter().map(|(run_id, node)| (*node, *run_id)).collect();
        for view in core.snapshot().map(|snapshot| snapshot.runs).unwrap_or_default() {
            let run_id = run_ids.get(&view.node).copied();
            self.roles.insert(view.node, Member { handle: view.handle, role: view.role, run_id });
        }
    }

    /// Learns the names in what was decided; call it before asking for any.
    pub fn learn(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Persist { writes, .. } => {
                    let Some(record) = record_in(writes) else { continue };
                    let member =
                        Member { handle: record.handle, role: record.role, run_id: Some(record.run_id) };
                    self.roles.insert(record.node, member);
                    self.nodes.insert(record.run_id, record.node);
                }
                Action::Note(note) => {
                    if let (Some(node), Some(run_id)) = (note.node, note.run_id) {
                        self.nodes.insert(run_id, node);
                        if let Some(member) = self.roles.get_mut(&node) {
                            member.run_id = Some(run_id);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// What a child says in these bytes, each message once it is whole.
    pub fn hear(&mut self, event: &Event) -> Vec<Result<Up, ProtocolError>> {
        let Event::ChildBytes { node, bytes } = event else { return Vec::new() };
        let decoder = self.decoders.entry(*node).or_default();
        decoder.push(bytes);
        decoder
            .filter_map(|decoded| match decoded {
                Ok(Decoded::Message(up)) => Some(Ok(up)),
                Ok(Decoded::Ignored) => None,
                Err(error) => Some(Err(error)),
            })
            .collect()
    }

    /// What a run is called.
    pub fn name(&self, node: NodeId) -> String {
        match self.roles.get(&node) {
            Some(Member { handle: Some(handle), .. }) => handle.to_string(),
            Some(Member { role: Role::Worker, .. }) => "the conversation".to_owned(),
            Some(Member { role: Role::Subagent, .. }) | None => node.to_string(),
        }
    }

    /// The run of this id.
    pub fn node_of(&self, run_id: RunId) -> Option<NodeId> {
        self.nodes.get(&run_id).copied()
    }

    /// Whether a run serves the conversation.
    pub fn is_worker(&self, node: NodeId) -> bool {
        self.roles.get(&node).is_some_and(|member| member.role == Role::Worker)
    }

    /// A run's handle.
    pub fn handle(&self, node: NodeId) -> Option<Handle> {
        self.roles.get(&node)?.handle
    }

    /// A run's id, once it was told.
    pub fn run_id(&self, node: NodeId) -> Option<RunId> {
        self.roles.get(&node)?.run_id
    }

    /// Every run that was met.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.roles.keys().copied()
    }
}

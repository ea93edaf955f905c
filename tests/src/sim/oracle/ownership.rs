//! Nothing is signalled, swept, reaped or written to that is not ours, and reaping comes last (S5.4).

use super::facts::{Facts, Node};
use super::{Verdict, unless};
use crate::sim::kernel::Kernel;
use agentd_core::action::Action;
use agentd_core::id::NodeId;
use agentd_core::limits::{END_OF_FILE_WAIT, SWEEP_WAIT};
use agentd_core::time::Instant;

pub(super) fn judge(facts: &Facts, now: Instant, action: &Action, kernel: &Kernel) -> Verdict {
    match action {
        Action::Spawn { node, .. } => spawn(facts, *node),
        Action::SendSpawn { node, .. } => {
            let n = ours(facts, *node, "SendSpawn")?;
            unless(!n.first_frame, "the spawn frame is sent once", || format!("{node} got a second one"))
        }
        Action::SendToChild { node, .. } => ours(facts, *node, "SendToChild").map(|_| ()),
        Action::SendModel { node, .. } => ours(facts, *node, "SendModel").map(|_| ()),
        Action::CloseStdin { node } => ours(facts, *node, "CloseStdin").map(|_| ()),
        Action::Signal { node, .. } => ours(facts, *node, "Signal").map(|_| ()),
        Action::Sweep { node, .. } => {
            let n = ours(facts, *node, "Sweep")?;
            unless(n.exit.is_some(), "only what a dead child left is swept", || format!("{node} is alive"))?;
            unless(!n.sweeping, "one sweep pass at a time", || format!("{node} is being swept"))
        }
        Action::Reap { node } => reap(facts, now, *node, kernel),
        Action::ReapOrphans
        | Action::LoadConfig
        | Action::EndReload { .. }
        | Action::Persist { .. }
        | Action::Note(_)
        | Action::Deliver { .. }
        | Action::Answer { .. }
        | Action::CallHostTool(_)
        | Action::CancelHostTool { .. }
        | Action::ConnSend { .. }
        | Action::ConnShut { .. }
        | Action::Exit { .. } => Ok(()),
    }
}

/// The node, if it has a process that is ours: made, told of, not reaped.
fn ours<'f>(facts: &'f Facts, id: NodeId, what: &str) -> Verdict<&'f Node> {
    const RULE: &str = "only our own unreaped children are touched";
    let Some(node) = facts.nodes.get(&id) else {
        return Err((RULE, format!("{what} for {id}, which does not exist")));
    };
    unless(node.spawned.is_some(), RULE, || format!("{what} for {id} before its ChildSpawned"))?;
    unless(!node.reap_asked, RULE, || format!("{what} for {id} after its Reap"))?;
    Ok(node)
}

fn spawn(facts: &Facts, id: NodeId) -> Verdict {
    const RULE: &str = "a node is one process life";
    let Some(node) = facts.nodes.get(&id) else { return Ok(()) };
    let again = node.spawn_asked.is_some() && !node.spawn_failed;
    unless(!again && node.born.is_none(), RULE, || format!("{id} is spawned twice"))
}

fn reap(facts: &Facts, now: Instant, id: NodeId, kernel: &Kernel) -> Verdict {
    let node = ours(facts, id, "Reap")?;
    let Some((exit_at, _)) = node.exit else {
        return Err(("reaped only after its exit was observed", format!("{id}")));
    };
    const SWEPT: &str = "reaped only after its subtree is swept";
    unless(!node.sweeping && node.remaining.is_some(), SWEPT, || format!("{id}: no pass is finished"))?;
    let given_up = now.since(exit_at) >= SWEEP_WAIT;
    let left = kernel.below(id).count();
    unless(left == 0 || given_up, SWEPT, || format!("{id}: {left} processes are left"))?;
    // What it wrote before it died is read first (S2.6).
    let decided = facts.run_of(id).is_some_and(|r| r.terminal.as_ref().is_some_and(|(at, _)| *at < now));
    let read = node.eof || decided || node.terminal.is_some() || node.broken.is_some();
    unless(read || facts.read_time(node, now) >= END_OF_FILE_WAIT, "its last words are read", || {
        format!("{id} is reaped {:?} after its exit, its output still open", now.since(exit_at))
    })
}

//! What people are shown: a snapshot lists exactly the runs that are not over, each once, as its record says.

use super::facts::{Facts, Intent, Run, name};
use super::{Verdict, unless};
use agentd_core::id::NodeId;
use agentd_core::snapshot::Snapshot;
use std::collections::BTreeSet;

pub(super) fn judge(facts: &Facts, snapshot: &Snapshot) -> Verdict {
    const RULE: &str = "a snapshot shows what is not over";
    let shown: BTreeSet<NodeId> = snapshot.runs.iter().map(|run| run.node).collect();
    unless(shown.len() == snapshot.runs.len(), RULE, || "a run is shown twice".into())?;
    let live: BTreeSet<NodeId> =
        facts.runs.values().filter(|run| !is_over(facts, run)).map(|run| run.record.node).collect();
    unless(shown == live, RULE, || format!("{shown:?} are shown, {live:?} are not over"))?;
    for view in &snapshot.runs {
        let Some(run) = facts.run_of(view.node) else { continue };
        let same = view.handle == run.record.handle && view.mode == run.record.mode;
        let words = view.words(snapshot.now.mono, |until| until.to_string());
        unless(same && !words.is_empty(), RULE, || format!("{} is shown as {view:?}", name(&run.record)))?;
    }
    Ok(())
}

/// Its outcome is final and its process is gone, or it never was a run.
fn is_over(facts: &Facts, run: &Run) -> bool {
    if run.is_forgotten() {
        return true;
    }
    let Some(node) = facts.nodes.get(&run.record.node) else { return false };
    let made = node.spawn_asked.is_some() && !node.spawn_failed;
    let gone = if made { node.reaped } else { !matches!(run.intent, Intent::Out(_)) };
    run.settled.is_some() && gone
}

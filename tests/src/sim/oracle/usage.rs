//! Tokens and money: a record holds what its own frames reported, a subtree the sum of all below it, in every ending, and
//! nothing twice (S8.5).

use super::facts::{Facts, Run, name};
use super::{Verdict, unless};
use agentd_core::action::Costliest;
use agentd_core::id::{NodeId, RunId};
use agentd_core::record::{Record, Tokens, UsageSum};
use agentd_core::wire::message::Role;
use serde_json::Value;

const OWN: &str = "a run is charged what it used";
const SUBTREE: &str = "a subtree is the sum of what is below it";

/// Judges the usage in a record as it is saved.
pub(super) fn judge_record(facts: &mut Facts, record: &Record) -> Verdict {
    let ended = facts.runs.get(&record.run_id).is_some_and(|run| run.terminal.is_some());
    let Some(spent) = facts.spent.get_mut(&record.node) else {
        return unless(record.usage == Tokens::default(), OWN, || {
            format!("{} was never heard and used {:?}", name(record), record.usage)
        });
    };
    if record.status.is_terminal() && !ended {
        spent.decided(&record.usage);
    }
    unless(spent.may_be(&record.usage), OWN, || {
        format!("{} reported {:?} and has {:?}", name(record), spent.own, record.usage)
    })
}

/// Judges the sums in an answer to a prompt.
pub(super) fn judge_sum(facts: &Facts, run: &Run, sum: &UsageSum) -> Verdict {
    let node = run.record.node;
    let own = facts.spent.get(&node).map(|s| s.own).unwrap_or_default();
    let fits = facts.spent.get(&node).map_or(sum.own == own, |s| s.may_be(&sum.own));
    unless(fits, OWN, || format!("{} reported {own:?} and is told {:?}", name(&run.record), sum.own))?;
    let (mut subtree, vague) = below(facts, run.record.run_id);
    subtree.add(&sum.own);
    unless(vague || subtree == sum.subtree, SUBTREE, || {
        format!("{}: {subtree:?} is told as {:?}", name(&run.record), sum.subtree)
    })
}

/// Judges the sums that every reader of an ended run is given: those that stood as its end became durable.
pub(super) fn judge_object(run: &Run, object: &Value) -> Verdict {
    let (Some(usage), Some(told)) = (object.get("usage"), &run.told) else { return Ok(()) };
    let expected = serde_json::to_value(told).unwrap_or_default();
    unless(run.told_vaguely || *usage == expected, SUBTREE, || {
        format!("{}: {expected} is told as {usage}", name(&run.record))
    })
}

/// What a run and everything below it have used, and whether some of it cannot be told exactly.
pub(super) fn of(facts: &Facts, id: RunId) -> (UsageSum, bool) {
    let spent = facts.runs.get(&id).and_then(|run| facts.spent.get(&run.record.node));
    let own = spent.map(|s| s.own).unwrap_or_default();
    let (mut subtree, vague) = below(facts, id);
    subtree.add(&own);
    (UsageSum { own, subtree }, vague || spent.is_some_and(|s| s.is_vague))
}

/// The sum of all below a run.
fn below(facts: &Facts, id: RunId) -> (Tokens, bool) {
    let (mut sum, mut vague) = (Tokens::default(), false);
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for run in facts.children.get(&id).into_iter().flatten().filter_map(|child| facts.runs.get(child)) {
            if let Some(spent) = facts.spent.get(&run.record.node) {
                sum.add(&spent.own);
                vague |= spent.is_vague;
            }
            open.push(run.record.run_id);
        }
    }
    (sum, vague)
}

/// At the end the sums are those of all workers, and the run that used most is named.
pub(super) fn judge_exit(facts: &Facts, sum: &UsageSum, costliest: Option<Costliest>) -> Verdict {
    if facts.spent.values().any(|spent| spent.is_vague) {
        return Ok(());
    }
    let mut expected = UsageSum::default();
    for run in facts.runs.values().filter(|run| run.record.role == Role::Worker) {
        let (sum, _) = of(facts, run.record.run_id);
        expected.own.add(&sum.own);
        expected.subtree.add(&sum.subtree);
    }
    unless(*sum == expected, SUBTREE, || format!("in all {expected:?} is told as {sum:?}"))?;
    let own = |node: NodeId| facts.spent.get(&node).map(|s| s.own).unwrap_or_default();
    let subagents = facts.runs.values().filter(|run| run.record.handle.is_some() && !run.is_forgotten());
    let weight = |t: &Tokens| (t.usd.nanos(), t.input.saturating_add(t.output));
    let most = subagents.map(|run| weight(&own(run.record.node))).max();
    let told = costliest.map(|c| weight(&c.own));
    unless(told == most, "the costliest run is named", || format!("{told:?} for {most:?}"))
}

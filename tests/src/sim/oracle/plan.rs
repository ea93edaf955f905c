//! The conversation's plan: an item is what its calls made of it, and one that is bound to a run is done or blocked by that
//! run's end and nothing else (S6.10, S8.4).

use super::facts::{Facts, PlanSeen, Request};
use super::{Verdict, unless};
use agentd_core::id::NodeId;
use serde_json::Value;

const SETTLES: &str = "a plan's items are what calls and ends made of them";
const REFUSED: &str = "only a call that makes no sense is refused";

/// Judges the answer to a call of a plan's tool, and does to the plan that is seen what the call did.
pub(super) fn judge(facts: &mut Facts, node: NodeId, id: u64, value: &Value, error: bool) -> Verdict {
    let Some(Request { name, args, .. }) = facts.nodes.get(&node).and_then(|n| n.requests.get(&id)) else {
        return Ok(());
    };
    let seen = || format!("{name} {args}: {value:.300}");
    match name.as_str() {
        "plan.create" => {
            let plan = PlanSeen::create(args);
            unless(error == plan.is_none(), REFUSED, seen)?;
            let Some(plan) = plan else { return Ok(()) };
            unless(plan.shown() == *value, SETTLES, seen)?;
            facts.plan_seen = Some(plan);
        }
        "plan.get" => {
            let shown = facts.plan_seen.as_ref().map(PlanSeen::shown);
            unless(error == shown.is_none(), REFUSED, seen)?;
            unless(shown.is_none_or(|shown| shown == *value), SETTLES, seen)?;
        }
        "status" => {
            let shown = facts.plan_seen.as_ref().map_or(Value::Null, PlanSeen::shown);
            unless(value["plan"] == shown, SETTLES, seen)?;
        }
        _ => {
            let args = args.clone();
            return update(facts, &args, value, error);
        }
    }
    Ok(())
}

fn update(facts: &mut Facts, args: &Value, value: &Value, error: bool) -> Verdict {
    let seen = || format!("plan.update {args}: {value:.300}");
    let bound = args["bind"].as_str().map(|handle| facts.by_handle(handle).filter(|r| !r.is_forgotten()));
    let ended = bound.flatten().filter(|run| run.settled.is_some()).map(|run| {
        let cause = run.plan_cause().map(str::to_owned);
        (run.record.handle, cause)
    });
    let unknown = bound.is_some_and(|run| run.is_none());
    let number = args["item"].as_u64().unwrap_or_default();
    let there = facts.plan_seen.as_mut().is_some_and(|plan| plan.item(number).is_some());
    unless(error == (unknown || !there), REFUSED, seen)?;
    let Some(plan) = facts.plan_seen.as_mut().filter(|_| !error) else { return Ok(()) };
    plan.update(args);
    if let Some((Some(handle), cause)) = ended {
        plan.settle(handle, cause.as_deref());
    }
    let item = plan.item(number).map(|item| Value::Object(item.clone()));
    unless(item.as_ref() == Some(value), SETTLES, seen)
}

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
            let seen = seen();
            let args = args.clone();
            let taken = create(facts, &args);
            unless(error != taken, REFUSED, || seen.clone())?;
            let shown = facts.plan_seen.as_ref().map(PlanSeen::shown);
            unless(error || shown.as_ref() == Some(value), SETTLES, || seen)?;
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
            let seen = seen();
            let args = args.clone();
            let item = update(facts, &args);
            unless(error == item.is_none(), REFUSED, || seen.clone())?;
            unless(item.is_none_or(|item| item == *value), SETTLES, || seen)?;
        }
    }
    Ok(())
}

/// Does to the plan that is seen what a call did that nobody can be answered any more.
pub(in crate::sim::oracle) fn unanswered(facts: &mut Facts, tool: &str, args: &Value) {
    match tool {
        "plan.create" => _ = create(facts, args),
        "plan.update" => _ = update(facts, args),
        _ => {}
    }
}

/// Whether the call makes a plan.
fn create(facts: &mut Facts, args: &Value) -> bool {
    let plan = PlanSeen::create(args);
    let taken = plan.is_some();
    facts.plan_seen = plan.or(facts.plan_seen.take());
    taken
}

/// What a call makes of its item; `None` where it is refused.
fn update(facts: &mut Facts, args: &Value) -> Option<Value> {
    let bound = args["bind"].as_str().map(|handle| facts.by_handle(handle).filter(|r| !r.is_forgotten()));
    if bound.is_some_and(|run| run.is_none()) {
        return None;
    }
    let ended = bound.flatten().filter(|run| run.settled.is_some()).map(|run| {
        let cause = run.plan_cause().map(str::to_owned);
        (run.record.handle, cause)
    });
    let number = args["item"].as_u64().unwrap_or_default();
    let plan = facts.plan_seen.as_mut()?;
    plan.item(number)?;
    plan.update(args);
    if let Some((Some(handle), cause)) = ended {
        plan.settle(handle, cause.as_deref());
    }
    plan.item(number).map(|item| Value::Object(item.clone()))
}

//! What operators call for: each call has its one answer, in time, and nothing is told to who has hung up.

use super::bounds::Bounds;
use super::facts::{Facts, OperatorCall};
use super::{Verdict, answers, unless};
use agentd_core::bytes::Json;
use agentd_core::time::{Duration, Instant};

/// What an operator may call.
const TOOLS: [&str; 13] = [
    "subagent.run",
    "subagent.await",
    "subagent.status",
    "subagent.list",
    "subagent.send",
    "subagent.steer",
    "subagent.finish",
    "subagent.retire",
    "subagent.kill",
    "subagent.pause",
    "subagent.resume",
    "plan.get",
    "status",
];

const ONCE: &str = "every operator's call is answered exactly once";

/// Judges an answer, and marks its call as answered.
pub(super) fn judge(facts: &mut Facts, call: u64, error: bool, value: &Json) -> Verdict {
    let Some(asked) = facts.operator_calls.get_mut(&call) else {
        return Err((ONCE, format!("nobody called {call}")));
    };
    unless(!asked.answered && !asked.hung_up, ONCE, || format!("{call}: {} again", asked.tool))?;
    asked.answered = true;
    let value = value.parse().map_err(|e| ("an answer is JSON", format!("{call}: {e}")))?;
    let Some(OperatorCall { tool, handle, only, .. }) = facts.operator_calls.get(&call).cloned() else {
        return Ok(());
    };
    let seen = || format!("{tool} of {handle}: {value:.200}");
    if !TOOLS.contains(&tool.as_str()) {
        return unless(error, "an unknown tool is an error", seen);
    }
    if handle.is_empty() {
        return Ok(());
    }
    let Some(run) = facts.by_handle(&handle).filter(|run| !run.is_forgotten()) else {
        return unless(error, "an unknown handle is an error", seen);
    };
    match tool.as_str() {
        "subagent.kill" => {
            answers::kill(facts, &handle, only, error)?;
        }
        // It has a reason to be refused: its end, or that nobody reads any more.
        "subagent.pause" | "subagent.resume" => {
            let node = facts.nodes.get(&run.record.node);
            let unheard = node.is_some_and(|n| n.exit.is_some() || n.write_failed);
            let over = run.terminal.is_some() || unheard;
            unless(!error || over, "only who cannot be told is refused", seen)?;
        }
        _ => {}
    }
    answers::same_objects(facts, &value)
}

/// No call waits longer than it may.
pub(super) fn judge_time(facts: &Facts, bounds: &Bounds, now: Instant) -> Verdict {
    let slack = bounds.slack() + Duration::from_secs(3);
    for (id, call) in facts.operator_calls.iter().filter(|(_, call)| !call.answered && !call.hung_up) {
        let waits = match call.tool.as_str() {
            "subagent.run" => true,
            "subagent.await" => facts.by_handle(&call.handle).is_some_and(|run| run.settled.is_none()),
            "subagent.kill" => facts.by_handle(&call.handle).is_some_and(|run| run.unsaved.is_some()),
            _ => false,
        };
        unless(waits || now <= call.at + slack, "a request is answered in time", || {
            format!("the operator's {id}: {} of {}", call.tool, call.handle)
        })?;
    }
    Ok(())
}

/// At the end nobody is left waiting.
pub(super) fn judge_exit(facts: &Facts) -> Verdict {
    let open = facts.operator_calls.iter().find(|(_, call)| !call.answered && !call.hung_up);
    unless(open.is_none(), ONCE, || format!("exit without an answer to {:?}", open.map(|(id, _)| id)))
}

//! Every request is answered exactly once, in time, and with the result of the run that it asked for (S6.4, S6.6).

use super::bounds::Bounds;
use super::facts::{Facts, Message, Request, Run, name};
use super::{Verdict, plan, turns, unless, usage};
use agentd_core::id::{NodeId, RunId};
use agentd_core::record::Status;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::ToolResult;
use serde_json::Value;

const OWN: &str = "a result goes to the call that asked for it";
const SAME: &str = "every reader gets the record's result";

/// Judges one answer, and marks its request as answered.
pub(super) fn judge(facts: &mut Facts, now: Instant, node: NodeId, answer: &ToolResult) -> Verdict {
    const ONCE: &str = "every request is answered exactly once";
    facts.hear_on(now, node);
    let request = facts.node(node).requests.get_mut(&answer.id);
    let Some(request) = request else {
        return Err((ONCE, format!("{node} never asked {}", answer.id)));
    };
    unless(!request.answered, ONCE, || format!("{node} gets a second answer to {}", answer.id))?;
    request.answered = true;
    let value = answer.value.parse().map_err(|e| ("an answer is JSON", format!("{node}: {e}")))?;
    if value["error"]["gate"] == "cancelled" {
        return called_off(facts, now, node, answer.id);
    }
    if value["error"]["gate"] == "tool" {
        let seen = || format!("{node} has no such tool: {value}");
        return unless(!facts.node(node).is_offered(answer.id), "an offered tool is there", seen);
    }
    let Some(request) = facts.nodes.get(&node).and_then(|n| n.requests.get(&answer.id)) else {
        return Ok(());
    };
    if let Some(message) = message_of(request) {
        return turns::judge_await(facts, request, message, &value, answer.error);
    }
    match request.name.as_str() {
        "subagent.run" => run(facts, node, request, &value)?,
        "subagent.await" | "subagent.status" => same_objects(facts, &value)?,
        // A list shows how things stand: what is told late is counted.
        "subagent.list" => objects(&value).into_iter().try_for_each(|o| same_as_record(facts, o))?,
        "subagent.kill" => {
            let handle = request.args["handle"].as_str().unwrap_or_default().to_owned();
            let only = request.args["only"] == Value::Bool(true);
            kill(facts, &handle, only, answer.error)?;
        }
        "plan.create" | "plan.get" | "plan.update" | "status" => {
            plan::judge(facts, node, answer.id, &value, answer.error)?;
        }
        "subagent.send" | "subagent.steer" | "subagent.finish" | "subagent.retire" => {
            turns::judge_answer(facts, now, node, answer.id, &value, answer.error)?;
        }
        other => unless(answer.error, "an unknown tool is an error", || format!("{other} gave {value}"))?,
    }
    Ok(())
}

/// Open calls are called off when their run or the turn that made them is over.
fn called_off(facts: &Facts, now: Instant, node: NodeId, id: u64) -> Verdict {
    let over = facts.run_of(node).is_some_and(|r| r.terminal.is_some());
    let turn = facts.nodes.get(&node).is_some_and(|n| n.called_off == Some(now));
    unless(over || turn, "only an ended run's calls are called off", || {
        format!("call {id} of {node}, which goes on")
    })
}

/// The message whose turn a call awaits.
fn message_of(request: &Request) -> Option<u64> {
    if request.name != "subagent.await" || !request.args["handle"].is_string() {
        return None;
    }
    request.args["message_id"].as_u64()
}

fn run(facts: &Facts, node: NodeId, request: &Request, value: &Value) -> Verdict {
    let made = facts.made_by(node, &request.call_id);
    if value["error"]["gate"].is_string() {
        let seen = || format!("{} was refused and has a record", request.call_id);
        return unless(made.is_none_or(|r| !r.stored), "a refusal makes no record", seen);
    }
    let Some(handle) = value["handle"].as_str() else {
        // Failed before there was a run to speak of.
        return unless(!value["error"].is_null(), "an answer says what became of the run", || {
            value.to_string()
        });
    };
    let Some(made) = made else {
        return Err((OWN, format!("{} made no run and gets {handle}", request.call_id)));
    };
    unless(name(&made.record) == handle, OWN, || {
        format!("{} made {} and gets {handle}", request.call_id, name(&made.record))
    })?;
    unless(made.stored || made.store_failed, "a handle is told when its record is durable", || {
        format!("{handle} is not yet stored")
    })?;
    same_as_record(facts, value)?;
    same_sums(facts, value)?;
    if value["status"] == Status::Completed.name() {
        let token = request.call_id.strip_prefix("call-").unwrap_or_default();
        let told = value["result"].to_string();
        unless(holds_token(&told, token), OWN, || format!("{} gets {told:.80}", request.call_id))?;
    }
    let sync = request.args["mode"] == "sync";
    let over = made.terminal.is_some();
    unless(!sync || over, "a sync call is answered by the end of its run", || format!("{handle} is live"))
}

/// Whether a result text is that of the run with this token, and not of one whose token it begins.
pub(super) fn holds_token(text: &str, token: &str) -> bool {
    let mark = format!("token={token}");
    text.match_indices(&mark)
        .any(|(at, _)| !text[at + mark.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.'))
}

/// A kill is answered: its run has ended, and by the end of the event in hand so has all that it delegated.
pub(super) fn kill(facts: &mut Facts, handle: &str, only: bool, error: bool) -> Verdict {
    let Some(run) = facts.by_handle(handle) else {
        return unless(error, "an unknown handle is an error", || format!("kill of {handle}"));
    };
    unless(error || run.settled.is_some(), "killed is said when it is durable", || {
        format!("{handle} is {}", run.record.status.name())
    })?;
    let id = run.record.run_id;
    if !only && !error {
        facts.killed_whole.push(id);
    }
    Ok(())
}

/// What must hold once an event is done: who was killed has taken along what it delegated (S9.4).
pub(super) fn judge_settled(facts: &mut Facts) -> Verdict {
    let mut below: Vec<RunId> = std::mem::take(&mut facts.killed_whole);
    while let Some(id) = below.pop() {
        let Some(run) = facts.runs.get(&id) else { continue };
        let over = run.terminal.is_some() || run.is_forgotten();
        unless(over, "a kill ends all that was delegated", || format!("{} is live", name(&run.record)))?;
        below.extend(facts.children.get(&id).into_iter().flatten());
    }
    Ok(())
}

/// A status or result in an answer is the record's.
fn same_as_record(facts: &Facts, object: &Value) -> Verdict {
    let (Some(handle), Some(status)) = (object["handle"].as_str(), object["status"].as_str()) else {
        return Ok(());
    };
    let Some(run) = facts.by_handle(handle) else {
        return Err((SAME, format!("{handle} has no record")));
    };
    let Some((_, terminal)) = &run.terminal else {
        return unless(status == run.record.status.name() || is_live(status), SAME, || {
            format!("{handle} is told {status}, its record says {}", run.record.status.name())
        });
    };
    unless(status == terminal.status.name(), SAME, || {
        format!("{handle} is told {status}, its record says {}", terminal.status.name())
    })?;
    let same = object.get("result").is_none_or(|result| *result == terminal.result);
    unless(same, SAME, || {
        format!("{handle}: {:.80} for {:.80}", object["result"].to_string(), terminal.result)
    })?;
    took(run, object)
}

/// Every run's object in an answer is its record's.
pub(super) fn same_objects(facts: &Facts, value: &Value) -> Verdict {
    for object in objects(value) {
        same_as_record(facts, object)?;
        same_sums(facts, object)?;
    }
    Ok(())
}

/// An ended run's sums are the same for every reader.
fn same_sums(facts: &Facts, object: &Value) -> Verdict {
    let run = object["handle"].as_str().and_then(|handle| facts.by_handle(handle));
    run.map_or(Ok(()), |run| usage::judge_object(run, object))
}

/// How long a run took is measured, whatever anybody does to the wall clock.
fn took(run: &Run, object: &Value) -> Verdict {
    let (Some(told), Some((at, _))) = (object["evidence"]["duration_ms"].as_u64(), &run.terminal) else {
        return Ok(());
    };
    let took = u64::try_from(at.since(run.admitted).as_millis()).unwrap_or(u64::MAX);
    unless(told == took, "a duration is measured", || {
        format!("{} took {took} ms and is told as {told} ms", name(&run.record))
    })
}

fn is_live(status: &str) -> bool {
    [Status::Held, Status::Spawned, Status::Running, Status::Retiring].iter().any(|s| s.name() == status)
}

/// Every object in a value that could be a run's.
fn objects(value: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                // A turn's object is not the run's.
                if map.contains_key("handle") && !map.contains_key("message_id") {
                    all.push(value);
                }
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    all
}

/// No request waits longer than it may, while its child lives and is not being ended.
pub(super) fn judge_time(facts: &Facts, bounds: &Bounds, now: Instant) -> Verdict {
    for (id, node) in &facts.nodes {
        let Some(run) = facts.run_of(*id) else { continue };
        let ending = node.exit.is_some() || node.terminal.is_some() || node.broken.is_some();
        if ending || run.terminal.is_some() || run.doomed.is_some() || facts.draining().is_some() {
            continue;
        }
        for request in node.requests.values().filter(|r| !r.answered) {
            let due = due(facts, bounds, *id, request);
            unless(due.is_none_or(|at| now <= at), "a request is answered in time", || {
                format!("{id} waits for {} {} since {:?}", request.name, request.args, now.since(request.at))
            })?;
        }
    }
    Ok(())
}

/// When a request must be answered; `None` while what it waits for goes on.
fn due(facts: &Facts, bounds: &Bounds, node: NodeId, request: &Request) -> Option<Instant> {
    let slack = bounds.slack() + Duration::from_millis(500);
    let settled = |run: &Run| run.settled.map(|at| at + slack);
    let soon = request.at + slack + Duration::from_secs(2);
    match request.name.as_str() {
        "subagent.run" => match facts.made_by(node, &request.call_id) {
            Some(run) if request.args["mode"] == "sync" => settled(run),
            Some(_) | None => Some(soon),
        },
        "subagent.await" => {
            let timeout = request.args["timeout"].as_str().and_then(|t| t.strip_suffix("ms"));
            let timeout = timeout.and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
            let one = request.args["handle"].as_str().into_iter();
            let many = request.args["handles"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let message = message_of(request);
            let ended = |run: &Run| match message.and_then(|id| run.talk.messages.get(&id)) {
                Some(Message { turn: Some(turn), .. }) => Some(turn.at + slack),
                Some(Message { dropped: Some(at), .. }) if run.terminal.is_none() => Some(*at + slack),
                // Unless it was taken from a caller that died before it could be told.
                None if message.is_some_and(|id| id != 1) && facts.unheard_sends(run) == 0 => Some(soon),
                Some(_) | None => settled(run),
            };
            let ends: Vec<Option<Instant>> = one
                .chain(many)
                .map(|h| facts.by_handle(h).map_or(Some(soon), |run| ended(run).map(|at| at.max(soon))))
                .collect();
            let all = if request.args["until"] == "any" {
                ends.into_iter().flatten().min()
            } else {
                ends.into_iter().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
            };
            let timed_out = timeout.map(|t| request.at + t + slack);
            all.into_iter().chain(timed_out).min()
        }
        "subagent.kill" => Some(soon),
        _ => Some(request.at + slack),
    }
}

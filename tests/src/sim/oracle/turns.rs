//! What is said to a run: every message has exactly one turn, in the order they were taken, or an explicit word that it
//! never will (S6.3); steers are handed on once and in order (S6.9); a retirement ends with the turn in hand (S6.5).

use super::answers::holds_token;
use super::facts::{Facts, Message, Node, Request, Run, TurnSeen, name};
use super::{Verdict, unless};
use crate::sim::program::token_of;
use agentd_core::id::{NodeId, RunId};
use agentd_core::limits::{STEERS, WARM_QUEUE};
use agentd_core::note::Note;
use agentd_core::record::Status;
use agentd_core::time::Instant;
use agentd_core::wire::Down;
use agentd_core::wire::message::{Mode, Role, Text};
use serde_json::Value;
use std::collections::BTreeSet;

const DECIDED: &str = "nothing is said to a run that is decided";
const ORDER: &str = "messages keep their order";
const ONE: &str = "one message is in hand at a time";
const TAKEN: &str = "what is taken is handed on";
const NEVER: &str = "a message has its turn or a word that it has none";
const REFUSED: &str = "only who cannot be told is refused";
const GRANTED: &str = "who cannot be told is refused";
const OWN: &str = "a turn's result goes to who awaits that message";

/// Judges a frame to a child as it is sent, and remembers it.
pub(super) fn judge_down(facts: &mut Facts, now: Instant, node: NodeId, down: &Down) -> Verdict {
    let decided = facts.run_of(node).is_some_and(|run| run.terminal.is_some());
    let said = |what: &str| format!("{node} gets {what} after its end was decided");
    match down {
        Down::Message(text) => {
            unless(!decided, DECIDED, || said("a message"))?;
            message(facts, now, node, text)
        }
        Down::Steer(text) => {
            unless(!decided, DECIDED, || said("a steer"))?;
            steer(facts, node, text)
        }
        Down::Finish(_) => {
            unless(!decided, DECIDED, || said("a finish"))?;
            if let Some(run) = facts.run_of_mut(node) {
                run.talk.finish_sent = Some(now);
            }
            Ok(())
        }
        Down::Cancel(cancel) => {
            let Some(turn) = cancel.turn else { return Ok(()) };
            let n = facts.node(node);
            let asked = n.turn_cancelled.is_some();
            let in_hand = facts.run_of(node).and_then(|run| run.talk.in_hand);
            unless(asked && in_hand == Some(turn), "only a turn that was taken back is cancelled", || {
                format!("{node}: turn {turn} is cancelled, {in_hand:?} is in hand")
            })
        }
        Down::Spawn(_) | Down::Ping(_) | Down::ToolResult(_) => Ok(()),
        Down::Pause(_) | Down::Resume(_) | Down::BudgetGrant(_) | Down::Throttle(_) | Down::Model(_) => {
            Ok(())
        }
    }
}

fn message(facts: &mut Facts, now: Instant, node: NodeId, text: &Text) -> Verdict {
    let is_worker = facts.run_of(node).is_some_and(|run| run.record.role == Role::Worker);
    if is_worker {
        let before = facts.prompts.last_begun;
        if let Some(number) = facts.prompt_begun(node, text.id, &text.text) {
            unless(number > before, "prompts begin in order", || format!("{number} after {before}"))?;
        }
    }
    facts.node(node).arm(now);
    let Some(run) = facts.run_of_mut(node) else { return Ok(()) };
    let who = name(&run.record);
    unless(run.record.mode == Mode::Warm || is_worker, GRANTED, || format!("{who} is not warm"))?;
    let talk = &mut run.talk;
    unless(talk.in_hand.is_none(), ONE, || {
        format!("{who} is handed {} in the turn of {:?}", text.id, talk.in_hand)
    })?;
    let skipped = talk.first_waiting().filter(|id| *id < text.id);
    unless(text.id > talk.last_handed && skipped.is_none(), ORDER, || {
        format!("{who} is handed {} after {}, {skipped:?} waits", text.id, talk.last_handed)
    })?;
    let none = Message::default();
    let message = talk.messages.get(&text.id).unwrap_or(&none);
    unless(message.dropped.is_none(), NEVER, || {
        format!("{who}: {} was dropped and is handed over", text.id)
    })?;
    unless(!message.accepted || message.text == text.text, TAKEN, || {
        format!("{who}: {} says {:?} for {:?}", text.id, text.text, message.text)
    })?;
    talk.hand(text.id, &text.text);
    Ok(())
}

fn steer(facts: &mut Facts, node: NodeId, text: &Text) -> Verdict {
    if facts.run_of(node).is_some_and(|run| run.record.role == Role::Worker) {
        facts.prompts.note_sent(node, text.id, &text.text);
    }
    let Some(run) = facts.run_of_mut(node) else { return Ok(()) };
    let who = name(&run.record);
    unless(text.id > run.talk.last_steer, ORDER, || {
        format!("{who} gets steer {} after {}", text.id, run.talk.last_steer)
    })?;
    let steer = run.talk.steer(text.id, &text.text);
    unless(steer.text == text.text, TAKEN, || {
        format!("{who}: steer {} says {:?} for {:?}", text.id, text.text, steer.text)
    })?;
    run.talk.steer_sent(text.id);
    Ok(())
}

/// The log says which messages never get a turn.
pub(super) fn judge_note(facts: &mut Facts, now: Instant, note: &Note) -> Verdict {
    if note.event != "subagent.messages_dropped" {
        return Ok(());
    }
    let Some(node) = note.node else { return Ok(()) };
    let ids: Vec<u64> = note
        .fields
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .collect();
    let silent = facts.run_of(node).map_or(0, |run| facts.unheard_sends(run));
    let Some(run) = facts.run_of_mut(node).filter(|run| run.record.role == Role::Subagent) else {
        return Ok(());
    };
    for id in ids {
        let who = name(&run.record);
        // Taken from a caller that died before it could be told.
        if silent > 0 && !run.talk.messages.contains_key(&id) {
            continue;
        }
        let waited = run.talk.give_up(id, now);
        unless(waited, NEVER, || format!("{who}: {id} is dropped and does not wait"))?;
    }
    Ok(())
}

/// Judges an answer to a call that says something to a run.
pub(super) fn judge_answer(
    facts: &mut Facts,
    now: Instant,
    node: NodeId,
    id: u64,
    value: &Value,
    error: bool,
) -> Verdict {
    let Some(request) = facts.nodes.get(&node).and_then(|n| n.requests.get(&id)) else { return Ok(()) };
    let handle = request.args["handle"].as_str().unwrap_or_default().to_owned();
    let text = request.args["text"].as_str().unwrap_or_default().to_owned();
    let what = request.name.clone();
    let seen = format!("{what} to {handle}: {value}");
    let Some(target) = facts.by_handle(&handle).filter(|run| !run.is_forgotten()) else {
        return unless(error, "an unknown handle is an error", || seen);
    };
    if error {
        let none = Node::default();
        let n = facts.nodes.get(&target.record.node).unwrap_or(&none);
        let silent = facts.unheard_sends(target);
        return unless(cannot_be_told(target, n, &what, silent), REFUSED, || seen);
    }
    let target_node = target.record.node;
    let n = facts.nodes.get(&target_node);
    let has_frame = n.is_some_and(|n| n.first_frame);
    let silent = facts.unheard_sends(target);
    let Some(run) = facts.run_of_mut(target_node) else { return Ok(()) };
    match what.as_str() {
        "subagent.send" => {
            let message = value["message_id"].as_u64().unwrap_or_default();
            sent(run, message, &text, value["queued"].as_u64().unwrap_or_default(), silent)
        }
        "subagent.steer" => {
            unless(run.terminal.is_none(), GRANTED, || seen.clone())?;
            let steer = value["steer_id"].as_u64().unwrap_or_default();
            let known = run.talk.steer(steer, &text);
            let same = known.text == text && (known.sent || !has_frame);
            unless(same, TAKEN, || seen.clone())?;
            let out = run.talk.steers_out();
            unless(out <= STEERS, GRANTED, || format!("{seen}: {out} steers wait"))
        }
        "subagent.finish" if run.terminal.is_none() => {
            run.talk.finish_owed |= !has_frame;
            unless(!has_frame || run.talk.finish_sent == Some(now), TAKEN, || seen)
        }
        "subagent.retire" => retired(run, now, value, silent, seen),
        _ => Ok(()),
    }
}

fn sent(run: &mut Run, id: u64, text: &str, queued: u64, silent: usize) -> Verdict {
    let who = name(&run.record);
    let able = run.record.mode == Mode::Warm && run.terminal.is_none() && run.talk.retiring.is_none();
    unless(able, GRANTED, || format!("{who} takes message {id}"))?;
    let above = run.talk.messages.last_key_value().map_or(1, |(last, _)| *last);
    let handed = run.talk.messages.get(&id).is_some_and(|m| m.handed);
    unless(handed || id > above.max(1), ORDER, || format!("{who} takes {id} after {above}"))?;
    let none = Message::default();
    let message = run.talk.messages.get(&id).unwrap_or(&none);
    unless(!message.accepted && (!handed || message.text == text), TAKEN, || {
        format!("{who}: {id} says {:?} for {text:?}", message.text)
    })?;
    run.talk.accept(id, text);
    let waiting = run.talk.waiting();
    unless(waiting <= WARM_QUEUE, "a queue has a bound", || format!("{waiting} messages wait for {who}"))?;
    unless((waiting..=waiting + silent).contains(&(queued as usize)), "an answer counts what waits", || {
        format!("{who}: {queued} are told and {waiting} wait")
    })
}

fn retired(run: &mut Run, now: Instant, value: &Value, silent: usize, seen: String) -> Verdict {
    if value["status"] != "retiring" {
        // It has ended: the answer is its result.
        return unless(run.settled.is_some(), GRANTED, || seen);
    }
    unless(run.record.mode == Mode::Warm, GRANTED, || seen.clone())?;
    let dropped: Vec<u64> =
        value["dropped"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    // Or it was taken from a caller that died before it could be told.
    let told = |id: &u64| run.talk.messages.get(id).map_or(silent > 0, |m| m.dropped.is_some());
    unless(dropped.iter().all(told) && run.talk.waiting() == 0, NEVER, || seen)?;
    if run.terminal.is_none() {
        run.talk.retiring.get_or_insert(now);
    }
    Ok(())
}

/// Whether there is a reason to refuse a call that says something to this run.
fn cannot_be_told(run: &Run, node: &Node, what: &str, silent: usize) -> bool {
    let over = run.terminal.is_some();
    let unheard = node.exit.is_some() || node.write_failed;
    let warm = run.record.mode == Mode::Warm;
    match what {
        "subagent.send" => {
            let full = run.talk.waiting() + silent >= WARM_QUEUE;
            over || !warm || run.talk.retire_asked.is_some() || full
        }
        "subagent.steer" => over || unheard || run.talk.steers_out() >= STEERS,
        "subagent.finish" => {
            let idle = warm && node.first_frame && run.talk.in_hand.is_none();
            over || unheard || idle
        }
        "subagent.retire" => over || !warm,
        _ => false,
    }
}

/// Judges the answer to an await of one turn.
pub(super) fn judge_await(facts: &Facts, request: &Request, id: u64, value: &Value, error: bool) -> Verdict {
    let handle = request.args["handle"].as_str().unwrap_or_default();
    let seen = || format!("message {id} of {handle}: {value:.200}");
    let Some(run) = facts.by_handle(handle) else {
        return unless(error, "an unknown handle is an error", seen);
    };
    if error && value["error"]["gate"] == "message" {
        return unless(never_comes(run, id), NEVER, seen);
    }
    if error || value["timed_out"] == true {
        return Ok(());
    }
    let Some(turn) = run.talk.messages.get(&id).and_then(|m| m.turn.as_ref()) else {
        return Err((OWN, seen()));
    };
    unless(value["message_id"] == id && value["status"] == turn.status.name(), OWN, seen)?;
    unless(is_turns(turn, &value["result"]), OWN, seen)
}

/// Whether nobody will ever hear how the turn of this message ended.
fn never_comes(run: &Run, id: u64) -> bool {
    let over = run.terminal.is_some();
    match run.talk.messages.get(&id) {
        // The instruction is the first message before the run is handed it.
        None => over || id != 1,
        Some(Message { turn: Some(turn), .. }) => {
            // One read may bring its end and, behind it, the turn: then the turn was late.
            let late = run.terminal.as_ref().is_some_and(|(at, _)| *at == turn.at);
            late || !run.talk.is_kept(id)
        }
        Some(m) => over || m.dropped.is_some(),
    }
}

/// Whether a value is what this turn ended with.
pub(super) fn is_turns(turn: &TurnSeen, value: &Value) -> bool {
    match turn.text.as_deref().map(token_of) {
        None => value.is_null(),
        Some(None) => true,
        Some(Some(token)) => holds_token(&value.to_string(), token),
    }
}

/// What must hold once an event is done.
pub(super) fn judge_settled(facts: &mut Facts, now: Instant) -> Verdict {
    let stirred = std::mem::take(&mut facts.stirred);
    stirred.iter().for_each(|id| facts.hear_on(now, *id));
    for run in facts.live.iter().filter_map(|id| facts.runs.get(id)) {
        let talk = &run.talk;
        let Some(node) = facts.nodes.get(&run.record.node) else { continue };
        let who = || name(&run.record);
        if run.terminal.is_some() || run.is_forgotten() {
            // What waits for a parked run is kept for the next start.
            let parked = facts.plan.knobs.keeps && run.record.status == Status::Parked;
            unless(parked || talk.waiting() == 0, NEVER, || {
                format!("{} is over, {} wait", who(), talk.waiting())
            })?;
            continue;
        }
        let told = node.first_frame && node.exit.is_none() && !node.write_failed && node.broken.is_none();
        if !told {
            continue;
        }
        let idle = run.record.mode == Mode::Warm && talk.in_hand.is_none();
        unless(!(idle && talk.retiring.is_some()), "a retirement ends with the turn in hand", || {
            format!("{} is idle since {:?}", who(), talk.last_turn)
        })?;
        unless(!(idle && talk.waiting() > 0), TAKEN, || {
            format!("{} is idle and {} messages wait", who(), talk.waiting())
        })?;
        let unsent = talk.first_unsent();
        unless(unsent.is_none(), TAKEN, || format!("{} was never sent steer {unsent:?}", who()))?;
        unless(!talk.finish_owed || talk.finish_sent.is_some(), TAKEN, || {
            format!("{} has no finish", who())
        })?;
    }
    let is_over = |id: &RunId| facts.runs.get(id).is_none_or(|r| r.terminal.is_some() || r.is_forgotten());
    let over: Vec<RunId> = facts.live.iter().filter(|id| is_over(id)).copied().collect();
    for id in over {
        facts.live.remove(&id);
    }
    ended_with_its_turn(facts, now, stirred)
}

/// What a turn waited for has ended with it (S6.7).
fn ended_with_its_turn(facts: &mut Facts, now: Instant, stirred: BTreeSet<NodeId>) -> Verdict {
    for id in stirred.into_iter().chain(std::mem::take(&mut facts.stirred)) {
        let below = std::mem::take(&mut facts.node(id).end_now);
        if facts.run_of(id).is_some_and(|run| run.terminal.is_some()) {
            continue;
        }
        let left = below.iter().filter_map(|b| facts.runs.get(b)).find(|r| r.terminal.is_none());
        unless(left.is_none_or(Run::is_forgotten), "a turn's sync runs end with it", || {
            format!("{id} at {now:?}: {} goes on", left.map(|r| name(&r.record)).unwrap_or_default())
        })?;
    }
    Ok(())
}

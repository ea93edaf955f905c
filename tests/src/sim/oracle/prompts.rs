//! The conversation: every prompt has exactly one answer, those that had a turn in order, a prompt that is taken back
//! soon, and a daemon ends only by a drain (S6.7, S14.1, S9.6).

use super::bounds::Bounds;
use super::facts::{Facts, Prompt, Run, name};
use super::turns::is_turns;
use super::{Verdict, unless, usage};
use agentd_core::event::SupervisorSignal;
use agentd_core::limits::WAITING_PROMPTS;
use agentd_core::record::{ResultObject, Status};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::Role;

const ONCE: &str = "the answer is delivered once";
const OWN: &str = "the answer is the turn's";
const CAUSE: &str = "a prompt without a turn has a cause";

/// Judges an answer as it is delivered, and remembers it.
pub(super) fn judge_delivery(facts: &mut Facts, now: Instant, number: u64, result: &ResultObject) -> Verdict {
    let seen =
        || format!("prompt {number}: {} {:?} {:.80}", result.status.name(), result.error, result.result);
    if let Some(run) = facts.runs.get(&result.run_id) {
        usage::judge_sum(facts, run, &result.usage)?;
    }
    if number == 0 {
        facts.prompts.notes_answered += 1;
        if never_handed(facts, result) {
            // That it could not be told is told.
            facts.prompts.owed.clear();
        }
        let (told, turns) = (facts.prompts.notes_answered, facts.prompts.notes.len());
        return unless(told <= turns || facts.plan.knobs.wake, ONCE, seen);
    }
    let draining = facts.draining().is_some();
    let waiting = facts.prompts.open().filter(|(_, p)| p.begun.is_none()).count();
    let Some(prompt) = facts.prompts.all.get(&number) else { return Err((ONCE, seen())) };
    unless(prompt.delivered.is_none(), ONCE, seen)?;
    let cause = if prompt.begun.is_some() {
        let last = facts.prompts.last_answered;
        unless(number > last, "answers come in the order of their turns", || {
            format!("{number} after {last}")
        })?;
        facts.prompts.last_answered = number;
        unless(is_answer(facts, number, result), OWN, seen)?;
        true
    } else {
        let prompt = &facts.prompts.all[&number];
        match result.status {
            Status::Cancelled => prompt.cancelled.is_some() || draining,
            Status::Refused => waiting > WAITING_PROMPTS,
            _ => never_handed(facts, result),
        }
    };
    unless(cause, CAUSE, seen)?;
    if let Some(prompt) = facts.prompts.all.get_mut(&number) {
        prompt.delivered = Some(now);
    }
    Ok(())
}

/// The result is that of the turn, or of its worker, which has ended.
fn is_answer(facts: &Facts, number: u64, result: &ResultObject) -> bool {
    let Some((node, message)) = facts.prompts.all.get(&number).and_then(|p| p.begun) else { return false };
    let Some(run) = facts.run_of(node).filter(|run| run.record.run_id == result.run_id) else {
        return false;
    };
    if let Some(turn) = run.talk.messages.get(&message).and_then(|m| m.turn.as_ref()) {
        return turn.status == result.status && is_turns(turn, &result.result);
    }
    let ended = run.terminal.as_ref().filter(|_| run.settled.is_some());
    ended.is_some_and(|(_, record)| record.status == result.status && record.result == result.result)
}

/// The worker that was made for it was never handed anything.
fn never_handed(facts: &Facts, result: &ResultObject) -> bool {
    let run = facts.runs.get(&result.run_id).filter(|run| run.record.role == Role::Worker);
    run.is_some_and(|run| {
        let unhanded = facts.nodes.get(&run.record.node).is_none_or(|n| !n.first_frame);
        unhanded && run.settled.is_some() && run.record.status == result.status
    })
}

/// A prompt that is taken back is answered soon, and an idle worker goes.
pub(super) fn judge_time(facts: &Facts, bounds: &Bounds, now: Instant) -> Verdict {
    let knobs = &facts.plan.knobs;
    let wait = Duration::from_millis(knobs.term_ms) + bounds.slack();
    let overdue = |p: &Prompt| p.cancelled.is_some_and(|at| now > at.max(p.at) + wait);
    let late = facts.prompts.open().find(|(_, p)| overdue(p)).map(|(number, _)| number);
    unless(late.is_none(), "a cancelled turn ends in time", || format!("prompt {late:?}"))?;
    if knobs.one_shot || facts.prompts.open().next().is_some() {
        return Ok(());
    }
    let idle = Duration::from_millis(knobs.idle_ms) + bounds.slack();
    for run in facts.runs.values().filter(|r| r.record.role == Role::Worker && r.terminal.is_none()) {
        let since = run.talk.last_turn.as_ref().filter(|_| run.talk.in_hand.is_none()).map(|t| t.at);
        unless(since.is_none_or(|at| now <= at + idle), "an idle worker goes", || {
            format!("{} is idle since {since:?}", name(&run.record))
        })?;
    }
    Ok(())
}

/// A conversation in which nothing goes on has been told of every run that ended (S8.4).
pub(super) fn judge_notes(facts: &mut Facts, bounds: &Bounds, now: Instant) -> Verdict {
    let at_work = |run: &&Run| run.terminal.is_none() && (!run.is_idle(facts) || !facts.plan.knobs.wake);
    let mut workers = facts.runs.values().filter(|r| r.record.role == Role::Worker);
    let busy = workers.any(|run| at_work(&run)) || facts.prompts.open().next().is_some();
    let quiet = !busy && !facts.prompts.owed.is_empty() && facts.draining().is_none();
    facts.prompts.quiet = quiet.then(|| facts.prompts.quiet.unwrap_or(now));
    let due = facts.prompts.quiet.map(|at| at + bounds.slack() + Duration::from_millis(500));
    unless(due.is_none_or(|at| now <= at), "the conversation is told of what ended", || {
        format!("{:?} since {:?}", facts.prompts.owed, facts.prompts.quiet)
    })
}

/// At the end every prompt has its answer; one that nobody may end but a signal was ended by one.
pub(super) fn judge_exit(facts: &Facts, bounds: &Bounds, by: Option<SupervisorSignal>) -> Verdict {
    const ALL: &str = "the answer is delivered";
    let one_shot = facts.plan.knobs.one_shot;
    unless(one_shot || by.is_some(), "a daemon ends only by a drain", || "it ends by itself".into())?;
    let open: Vec<u64> = facts.prompts.open().map(|(number, _)| number).collect();
    let excused = one_shot && bounds.was_interrupted();
    unless(open.is_empty() || excused, ALL, || format!("exit without that of prompts {open:?}"))
}

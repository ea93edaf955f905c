//! One outcome per run, with a cause that was seen; a terminal record stands for ever; intent is durable before the effect
//! (S8.2, S8.3, S10.2).

use super::answers::holds_token;
use super::bounds::Bounds;
use super::facts::{Facts, Intent, Node, OperatorCall, Run, name};
use super::turns::is_turns;
use super::{Misdeed, Verdict, unless};
use crate::sim::program::token_of;
use agentd_core::id::NodeId;
use agentd_core::limits::{END_OF_FILE_WAIT, STORE_RETRY};
use agentd_core::record::{Record, Status};
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{Mode, Role};

/// Judges the number of a save.
pub(super) fn judge_number(facts: &Facts, seq: u64) -> Verdict {
    unless(facts.last_seq.is_none_or(|last| seq == last + 1), "store numbers rise by one", || {
        format!("{seq} after {:?}", facts.last_seq)
    })
}

/// Judges a record as it is handed to the store.
pub(super) fn judge(facts: &Facts, bounds: &Bounds, now: Instant, record: &Record) -> Verdict {
    let known = facts.runs.get(&record.run_id);
    match known {
        None => first(facts, record)?,
        Some(run) => {
            stands(run, record)?;
            leaves_in_peace(run, now)?;
        }
    }
    let again = known.is_some_and(|run| run.terminal.is_some());
    if !record.status.is_terminal() || again {
        return Ok(());
    }
    let none = Node::default();
    let node = facts.nodes.get(&record.node).unwrap_or(&none);
    cause(facts, bounds, now, record, known, node)
}

/// A run's first record names where it comes from.
fn first(facts: &Facts, record: &Record) -> Verdict {
    const DEPTH: &str = "depth is minted from the requester's record";
    if let Some(handle) = record.handle {
        let last = facts.handles.last_key_value().map(|(h, _)| *h);
        unless(last.is_none_or(|l| l < handle), "handles are never reused", || {
            format!("{handle} after {last:?}")
        })?;
    }
    match record.role {
        Role::Worker => unless(record.depth == 0, DEPTH, || format!("the worker has depth {}", record.depth)),
        Role::Subagent => {
            let parent = record.parent.and_then(|id| facts.runs.get(&id));
            let above = match parent {
                Some(parent) => parent.record.depth,
                None if record.parent.is_none() && operator_asked(facts) => 0,
                None => return Err((DEPTH, format!("{} has no parent", name(record)))),
            };
            unless(record.depth == above + 1, DEPTH, || {
                format!("{} has depth {} below depth {above}", name(record), record.depth)
            })
        }
    }
}

/// Whether an operator has asked for more runs than there are without a parent.
fn operator_asked(facts: &Facts) -> bool {
    let asked = facts.operator_calls.values().filter(|call| call.tool == "subagent.run").count();
    let theirs = |run: &&Run| run.record.role == Role::Subagent && run.record.parent.is_none();
    facts.runs.values().filter(theirs).count() < asked
}

/// Nothing changes a terminal record, and nothing changes who a run is.
fn stands(run: &Run, record: &Record) -> Verdict {
    let was = &run.record;
    let who = |r: &Record| (r.handle, r.parent, r.call_id.clone(), r.depth, r.role, r.mode, r.created);
    unless(who(was) == who(record), "a run stays who it is", || format!("{was:?} became {record:?}"))?;
    let Some((_, terminal)) = &run.terminal else {
        return unless(was.status <= record.status, "a live run does not go back", || {
            format!("{} was {} and is {}", name(record), was.status.name(), record.status.name())
        });
    };
    // Tokens that are reported on the way out are still charged.
    let same = Record { usage: record.usage, ..terminal.clone() } == *record;
    unless(same, "a terminal record stands", || {
        format!(
            "{} was {} {:?} and becomes {} {:?}",
            name(record),
            terminal.status.name(),
            terminal.error,
            record.status.name(),
            record.error
        )
    })
}

/// A store that fails is asked again after a while, and after longer each time.
fn leaves_in_peace(run: &Run, now: Instant) -> Verdict {
    let Some((at, times)) = run.unsaved else { return Ok(()) };
    let (first, longest) = STORE_RETRY;
    let wait = (first * 2u32.saturating_pow(times - 1)).min(longest);
    unless(now.since(at) >= wait, "a failing store is left in peace", || {
        format!("{} is saved again after {:?}, the {times}th time", name(&run.record), now.since(at))
    })
}

/// A terminal status has a cause, and the first terminal frame is the strongest.
fn cause(
    facts: &Facts,
    bounds: &Bounds,
    now: Instant,
    record: &Record,
    known: Option<&Run>,
    node: &Node,
) -> Verdict {
    const CAUSE: &str = "an outcome has a cause";
    let doomed = known.is_some_and(|run| run.doomed.is_some());
    let unsaved = known.is_some_and(|run| run.store_failed);
    let told = node.terminal.as_ref();
    let stopping = !node.signals.is_empty() || node.cancelled.is_some();
    // One read may bring a kill and, behind it, a last word: the first of them stands.
    let killed = |at: Instant| known.and_then(|run| run.doomed).is_some_and(|doomed| doomed <= at);
    if let Some((at, status, text)) = told
        && !stopping
        && !(record.status == Status::Cancelled && killed(*at))
    {
        unless(record.status == *status, "the first terminal frame stands", || {
            format!("{} said {} and is {}", name(record), status.name(), record.status.name())
        })?;
        let token = text.as_deref().and_then(token_of);
        if let Some(token) = token.filter(|_| record.status == Status::Completed) {
            unless(holds_token(&record.result.to_string(), token), "a result is the run's own", || {
                format!("{} said {token} and has {:.80}", name(record), record.result.to_string())
            })?;
        }
        return Ok(());
    }
    let told_this = told.is_some_and(|(_, status, _)| *status == record.status);
    let draining = facts.draining().is_some();
    let ok = match record.status {
        Status::Held | Status::Spawned | Status::Running | Status::Retiring => true,
        Status::Cancelled => {
            told_this || doomed || draining || orphaned(facts, record) || taken_back(facts, now, record, node)
        }
        Status::Parked => draining || known.is_some_and(|run| facts.left_over(run, now)),
        Status::Failed => told_this || unsaved || failed(facts, bounds, now, node),
        Status::Completed => told_this || known.is_some_and(|run| retired(facts, now, run, record, node)),
        Status::Crashed => false,
        Status::Refused
        | Status::ExhaustedSteps
        | Status::ExhaustedTokens
        | Status::Deadline
        | Status::LoopDetected => told_this,
    };
    unless(ok, CAUSE, || {
        format!("{} is {} ({:?}), and nothing was seen", name(record), record.status.name(), record.error)
    })
}

/// A person took the prompt of its turn back, and a warm worker had its time to end it.
fn taken_back(facts: &Facts, now: Instant, record: &Record, node: &Node) -> bool {
    // A worker that cannot be told any more is not waited for.
    let at_once = facts.plan.knobs.one_shot || node.exit.is_some() || node.write_failed;
    let wait = match at_once {
        true => Duration::ZERO,
        false => Duration::from_millis(facts.plan.knobs.term_ms),
    };
    let since = node.turn_cancelled.or_else(|| {
        // It was made for a prompt that was taken back before it could be handed it.
        let open = facts.prompts.open().find(|(_, p)| p.begun.is_none());
        open.and_then(|(_, p)| p.cancelled).filter(|_| !node.first_frame)
    });
    record.role == Role::Worker && since.is_some_and(|at| now >= at + wait)
}

/// A warm run between turns ends with its last turn's result: it was retired, or it is a worker that nobody needs.
fn retired(facts: &Facts, now: Instant, run: &Run, record: &Record, node: &Node) -> bool {
    let last = run.talk.last_turn.as_ref();
    let reason = match run.record.role {
        Role::Subagent => run.record.mode == Mode::Warm && run.talk.retire_asked.is_some(),
        Role::Worker => {
            let idle = Duration::from_millis(facts.plan.knobs.idle_ms);
            // One that reads nothing any more is of no use to the next turn.
            !facts.plan.knobs.one_shot
                && (node.write_failed
                    || node.outdated
                    || facts.draining().is_some()
                    || last.is_some_and(|turn| now >= turn.at + idle))
        }
    };
    let same = last.map_or(record.result.is_null(), |turn| is_turns(turn, &record.result));
    reason && run.talk.in_hand.is_none() && same
}

/// Who waited for it, or the whole conversation, is over.
fn orphaned(facts: &Facts, record: &Record) -> bool {
    let over = |run: &Run| run.terminal.is_some();
    let mut parent = record.parent.and_then(|id| facts.runs.get(&id));
    while let Some(run) = parent {
        if over(run) {
            return true;
        }
        parent = run.record.parent.and_then(|id| facts.runs.get(&id));
    }
    // An operator who waited for its run has hung up.
    let gone = |call: &OperatorCall| call.tool == "subagent.run" && call.hung_up;
    record.parent.is_none() && record.mode == Mode::Sync && facts.operator_calls.values().any(gone)
}

/// What makes a run fail without a word of its own.
fn failed(facts: &Facts, bounds: &Bounds, now: Instant, node: &Node) -> bool {
    let knobs = &facts.plan.knobs;
    let past =
        |since: Option<Instant>, ms: u64| since.is_some_and(|at| now >= at + Duration::from_millis(ms));
    let read_out = node.exit.is_some() && (node.eof || facts.read_time(node, now) >= END_OF_FILE_WAIT);
    let silent = node.misdeeds.iter().any(|(at, m)| match m {
        Misdeed::Silent => past(Some(node.judged_from(*at)), facts.shortest_silence_ms()),
        Misdeed::ClosedStdout => true,
    });
    let deaf = facts.plan.scripts.iter().any(|s| s.nature.deaf);
    // Paused time is nobody's fault (S6.9).
    let judged = node.paused.is_none();
    let paused_ms = u64::try_from(node.paused_for.as_millis()).unwrap_or(u64::MAX);
    read_out
        || node.spawn_failed
        || node.broken.is_some()
        || node.write_failed
        || node.frame_failed.is_some()
        || (judged && silent)
        || deaf
        || (judged && node.ready.is_none() && past(node.spawned, knobs.ready_ms + paused_ms))
        || (judged && past(node.armed, node.deadline_ms + knobs.grace_ms + paused_ms))
        || (facts.draining().is_some() && bounds.drain_over(facts, now))
}

/// A process is made only for a run whose record is durable.
pub(super) fn judge_spawn(facts: &Facts, node: NodeId) -> Verdict {
    const RULE: &str = "intent is durable before the effect";
    let run = facts.run_of(node);
    unless(run.is_some_and(|r| r.intent == Intent::Stored), RULE, || {
        format!("{node} is spawned, its record not stored")
    })?;
    let over = run.is_some_and(|r| r.terminal.is_some());
    unless(!over, "no start revives what ended", || format!("{node}"))
}

/// At the end every record is terminal.
pub(super) fn judge_exit(facts: &Facts) -> Verdict {
    // A run whose intent could not be saved never was one.
    let live = facts.runs.values().find(|r| r.terminal.is_none() && !r.is_forgotten());
    match live {
        None => Ok(()),
        Some(run) => {
            let seen = format!("{} is {}", name(&run.record), run.record.status.name());
            Err(("every record is terminal at the end", seen))
        }
    }
}

//! What a start takes up of an earlier life of the daemon (S10.3 to S10.6).
//!
//! Every run that has not ended is begun again, once, as the next attempt under its old names; one after the other and
//! not all at once. Owns which run is taken up and which is told to be over. Refuses to revive what was killed, what was
//! not to outlive its daemon, and detached runs that a crash cut off. Connections are looked up in the configuration of
//! now; what was kept has names only.

use super::conversation::{NOTE, Phase, Prompt, Turn};
use super::keeping::Purpose;
use super::{Core, daemon_note};
use crate::action::Actions;
use crate::budget::Amount;
use crate::bytes::Json;
use crate::id::{NodeId, RunId};
use crate::limits;
use crate::note::Level;
use crate::record::{Status, Tokens};
use crate::run::process::Process;
use crate::run::warm::{FIRST_TURN, Warm};
use crate::run::{Ending, Outcome, Run};
use crate::store::{ConversationRow, Letter, PromptRow, Quarantined, RunRow, Saved, TurnRow, Work, Write};
use crate::time::Duration;
use crate::wire::message::{Mode, Role};
use std::collections::{BTreeMap, BTreeSet};

/// Values put aside that are named in the log one by one; the rest is counted.
const NAMED: usize = 16;

/// What becomes of one run.
enum Fate {
    /// It ended; its result can still be asked for.
    Ended,
    /// It is begun again.
    Again(Box<Work>),
    /// It waits for a permit again.
    Held(Box<Work>),
    /// It is over now.
    Over(Ending),
    /// It was not to outlive its daemon.
    Gone,
}

/// How many of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    restored: u32,
    /// Of these, those that go on from their transcripts.
    resumed: u32,
    lost: u32,
}

impl Core {
    /// What the store held. It comes before anything else; at any other time nothing could be taken up only once.
    pub(super) fn restored(&mut self, saved: Saved, out: &mut Actions) {
        if self.last_node > 0 || self.conversation.was_asked() {
            out.push(daemon_note(Level::Warn, "restore.ignored").into());
            return;
        }
        self.skip_handles(saved.handles);
        if let Some(row) = &saved.ledger {
            self.ledger.go_on(row, self.now.wall);
        }
        self.plan = saved.plan;
        note_quarantined(&saved.quarantined, out);
        let quarantined = saved.quarantined.len();
        let turn = saved.conversation.as_ref().and_then(|row| row.turn.clone());
        self.clear_litter(&saved.runs, &saved.work, &saved.letters);
        let mut work: BTreeMap<RunId, Work> = saved.work.into_iter().map(|w| (w.run_id, w)).collect();
        let mut letters: BTreeMap<RunId, Vec<Letter>> = BTreeMap::new();
        for (run, letter) in saved.letters {
            letters.entry(run).or_default().push(letter);
        }
        let mut rows = saved.runs;
        // Whoever delegated stands before those it delegated to.
        rows.sort_by_key(|row| (row.record.depth, row.record.handle, row.record.run_id));
        let doomed = taken_along(&rows);
        let mut nodes: BTreeMap<RunId, NodeId> = BTreeMap::new();
        let mut fates: Vec<(NodeId, Fate)> = Vec::new();
        for row in rows {
            let run_id = row.record.run_id;
            let serves = turn.as_ref().filter(|turn| turn.worker == run_id);
            let fate = self.fate(&row, work.remove(&run_id), doomed.contains(&run_id), serves);
            if matches!(fate, Fate::Gone) {
                let letters = letters.remove(&run_id).into_iter().flatten().map(|letter| letter.id());
                self.keep_no_longer(run_id, letters);
                fates.push((NodeId::OPERATOR, Fate::Gone));
                continue;
            }
            let parent = row.record.parent.and_then(|id| nodes.get(&id)).copied();
            let node = self.put_back(row, &fate, parent, letters.remove(&run_id).unwrap_or_default());
            nodes.insert(run_id, node);
            fates.push((node, fate));
        }
        self.sum_up();
        let conversation = saved.conversation.unwrap_or_default();
        let context = conversation.context;
        self.go_on_talking(conversation, &nodes, out);
        self.restore_tasks(context, saved.tasks);
        let tally = self.meet_fates(fates, &saved.written, out);
        self.answer_the_cut_off_turn(out);
        self.stop_warm_when_over(out);
        self.next_turn(out);
        out.push(
            daemon_note(Level::Info, "restore.done")
                .with("restored", tally.restored)
                .with("resumed", tally.resumed)
                .with("replayed", tally.restored.saturating_sub(tally.resumed))
                .with("lost", tally.lost)
                .with("quarantined", quarantined)
                .into(),
        );
    }

    fn fate(&mut self, row: &RunRow, work: Option<Work>, doomed: bool, serves: Option<&TurnRow>) -> Fate {
        let record = &row.record;
        if record.status.has_ended() {
            return Fate::Ended;
        }
        // What the store could not say is put aside already.
        let Some(work) = work.map(Box::new) else { return Fate::Gone };
        let over = |status, why: String| Fate::Over(Ending::without_result(status, why));
        let with_last = |status| {
            let (result, partial) = (record.result.clone(), record.partial);
            Fate::Over(Ending { status, result, partial, error: None })
        };
        if doomed {
            return over(Status::Cancelled, "the run that delegated it was killed".to_owned());
        }
        if record.role == Role::Worker && serves.is_none() {
            return with_last(Status::Completed);
        }
        let retired = row.turns.as_ref().is_some_and(|turns| turns.retiring && turns.in_hand.is_none());
        if retired && record.status != Status::Held {
            return with_last(Status::Completed);
        }
        if !work.durable {
            return Fate::Gone;
        }
        if record.status == Status::Held {
            return Fate::Held(work);
        }
        if record.mode == Mode::Detached && record.status != Status::Parked {
            return over(Status::Crashed, "the daemon died while it ran, and nobody waits for it".to_owned());
        }
        // The first attempt is one.
        if row.restarts + 1 >= self.config.max_attempts {
            let (tries, most) = (row.restarts + 1, self.config.max_attempts);
            return over(
                Status::Failed,
                format!("begun {tries} times and cut off each time; subagents.max_attempts is {most}"),
            );
        }
        Fate::Again(work)
    }

    /// Puts a run of an earlier life into the table, as it was; nothing of it moves yet.
    fn put_back(&mut self, row: RunRow, fate: &Fate, parent: Option<NodeId>, letters: Vec<Letter>) -> NodeId {
        self.last_node += 1;
        let node = NodeId(self.last_node);
        let now = self.now.mono;
        let ended = matches!(fate, Fate::Ended);
        let mut record = row.record;
        record.node = node;
        let last = (!record.result.is_null()).then(|| Ending {
            status: Status::Completed,
            result: record.result.clone(),
            partial: record.partial,
            error: None,
        });
        let warm = row.turns.as_ref().filter(|_| record.mode == Mode::Warm);
        let warm = warm.map(|turns| Warm::again(turns, letters, last, now));
        let mut run = Run {
            parent,
            warm,
            title: row.title,
            before: row.evidence,
            subtree: row.subtree,
            restarts: row.restarts,
            takes_below: row.takes_below,
            last_text: row.last_text.max(FIRST_TURN),
            ..Run::resting(record, now)
        };
        if ended {
            let object = run.object();
            run.outcome =
                Outcome::Final(serde_json::to_value(&object).map(|v| Json::of(&v)).unwrap_or_default());
        }
        if let Some(handle) = run.record.handle {
            self.by_handle.insert(handle, node);
        }
        if let Some(parent) = parent.and_then(|p| self.runs.get_mut(&p)) {
            parent.children.push(node);
        }
        let (caps, used) = match fate {
            Fate::Again(work) | Fate::Held(work) => (work.caps, Amount::of(&run.subtree)),
            Fate::Ended | Fate::Over(_) | Fate::Gone => Default::default(),
        };
        self.ledger.open(node, parent, caps);
        // Each turn of a warm run has its own.
        if run.record.mode != Mode::Warm {
            self.ledger.used_before(node, used);
        }
        self.runs.insert(node, run);
        match ended {
            true => self.ended.push_back(node),
            false => drop(self.busy.insert(node)),
        }
        self.touched.insert(node);
        node
    }

    /// Each sum was saved at another moment: a run's is at least what is known of it and of all below it.
    fn sum_up(&mut self) {
        let nodes: Vec<NodeId> = self.runs.keys().rev().copied().collect();
        let mut below: BTreeMap<NodeId, Tokens> = BTreeMap::new();
        for node in nodes {
            let Some(run) = self.runs.get_mut(&node) else { continue };
            let mut sum = run.record.usage;
            sum.add(&below.remove(&node).unwrap_or_default());
            run.subtree = run.subtree.at_least(&sum);
            if let Some(parent) = run.parent {
                below.entry(parent).or_default().add(&run.subtree);
            }
        }
    }

    fn meet_fates(
        &mut self,
        fates: Vec<(NodeId, Fate)>,
        written: &BTreeSet<RunId>,
        out: &mut Actions,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut turns = 0;
        for (node, fate) in fates {
            match fate {
                Fate::Ended => {
                    // Its end was durable, and what the plan makes of it may not have been.
                    self.settle_plan(node);
                }
                Fate::Gone => tally.lost += 1,
                Fate::Over(ending) => {
                    let planned = matches!(ending.status, Status::Completed | Status::Cancelled);
                    tally.lost += u32::from(!planned);
                    self.decide(node, ending, out);
                }
                Fate::Again(work) => match self.provide(node, &work) {
                    Ok(()) => {
                        tally.restored += 1;
                        tally.resumed += u32::from(work.resume && written.contains(&work.run_id));
                        self.take_up(node, turns);
                        turns += 1;
                    }
                    Err(why) => {
                        tally.lost += 1;
                        self.cannot_be_taken_up(node, &why, out);
                    }
                },
                Fate::Held(work) => {
                    let priority = work.priority;
                    match self.provide(node, &work) {
                        Ok(()) => {
                            tally.restored += 1;
                            let place = self.admission.place_again();
                            if let Some(run) = self.run(node) {
                                run.place = Some(place);
                                run.process = Process::Held { stored: true };
                            }
                            self.queue.join(node, priority);
                        }
                        Err(why) => {
                            tally.lost += 1;
                            self.cannot_be_taken_up(node, &why, out);
                        }
                    }
                }
            }
        }
        tally
    }

    fn cannot_be_taken_up(&mut self, node: NodeId, why: &str, out: &mut Actions) {
        let why = format!("could not be taken up again: {why}");
        self.decide(node, Ending::without_result(Status::Failed, why), out);
    }

    /// A run's turn to begin again: it has its permit already, beside total and rate, so that nobody new takes its place.
    fn take_up(&mut self, node: NodeId, turn: u32) {
        let now = self.now.mono;
        let is_worker = self.is_worker(node);
        let permit = (!is_worker).then(|| self.admission.permit_again());
        let Some(run) = self.run(node) else { return };
        run.permit = permit;
        if run.record.status != Status::Retiring {
            run.record.status = Status::Spawned;
        }
        run.record.ended = None;
        run.record.error = None;
        let at = now + limits::RESTORE_STAGGER * turn + wait_before(run.restarts);
        run.process = Process::Restored { at };
    }

    /// Its turn has come: the next attempt is made durable, then forked.
    pub(super) fn begin_again(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.record.attempt = run.record.attempt.saturating_add(1);
        run.restarts = run.restarts.saturating_add(1);
        let attempt = run.record.attempt;
        if let Some(payload) = &mut run.payload {
            payload.attempt = attempt;
        }
        run.process = Process::Recording;
        out.push(self.note(node, Level::Info, "subagent.respawn").with("attempt", attempt).into());
        self.persist(node, Purpose::Revival, out);
    }

    /// The next attempt could not be recorded: it is not made, and is tried again where that can help.
    pub(super) fn revival_failed(&mut self, node: NodeId, error: &str, retryable: bool, out: &mut Actions) {
        let now = self.now.mono;
        out.push(
            self.note(node, Level::Warn, "store.failed")
                .with("error", error)
                .with("retryable", retryable)
                .into(),
        );
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Recording) {
            return;
        }
        if run.outcome.is_decided() {
            return self.never_made(node, out);
        }
        if !retryable {
            let why = format!("store: its next attempt could not be recorded: {error}");
            self.never_made(node, out);
            return self.decide(node, Ending::without_result(Status::Failed, why), out);
        }
        run.record.attempt -= 1;
        run.restarts -= 1;
        run.process = Process::Restored { at: now + limits::RESTORE_WAIT.0 };
    }

    /// The conversation as it was: what was said, who waits, and the turn that was cut off.
    fn go_on_talking(&mut self, row: ConversationRow, nodes: &BTreeMap<RunId, NodeId>, out: &mut Actions) {
        let ConversationRow { last, over, turn, waiting, past, spent, session, context: _ } = row;
        let conversation = &mut self.conversation;
        conversation.last = last;
        conversation.past = past;
        conversation.spent = spent;
        conversation.session = session;
        conversation.waiting = waiting.into_iter().map(Prompt::from).collect();
        if over && self.config.one_shot {
            let until = self.now.mono + self.config.drain_timeout;
            self.conversation.phase = Phase::Over { until, stopped: false };
        }
        let Some(TurnRow { prompt, worker, written }) = turn else { return };
        let Some(worker) = nodes.get(&worker).copied() else {
            self.conversation.waiting.push_front(Prompt::from(prompt));
            return;
        };
        let used_before = self.runs.get(&worker).map_or(0, |run| run.record.usage.both());
        self.conversation.worker = Some(worker);
        self.conversation.phase = Phase::Turn(Turn {
            prompt: prompt.number,
            text: prompt.text,
            worker,
            message: FIRST_TURN,
            written,
            since: self.now.mono,
            used_before,
            cancel_until: None,
            unhanded: false,
        });
        out.push(self.note(worker, Level::Info, "prompt.replayed").with("prompt", prompt.number).into());
    }

    /// A turn whose worker's end was durable and whose answer may never have been given: it is given now.
    fn answer_the_cut_off_turn(&mut self, out: &mut Actions) {
        let Some(worker) = self.conversation.at_work() else { return };
        if self.final_object(worker).is_some() {
            self.worker_ended(worker, out);
        }
    }

    /// The conversation, as it is kept. Notes that the worker has not taken are for the next turn.
    pub(super) fn conversation_row(&self) -> ConversationRow {
        let conversation = &self.conversation;
        let mut waiting: Vec<PromptRow> = conversation.waiting.iter().map(PromptRow::from).collect();
        let told: Vec<&str> = conversation.told.values().map(String::as_str).collect();
        if !told.is_empty() {
            waiting.push(PromptRow { number: NOTE, text: told.join("\n") });
        }
        let turn = match &conversation.phase {
            Phase::Turn(turn) => self.runs.get(&turn.worker).map(|run| TurnRow {
                prompt: PromptRow { number: turn.prompt, text: turn.text.clone() },
                worker: run.record.run_id,
                written: turn.written,
            }),
            Phase::Quiet | Phase::Over { .. } => None,
        };
        ConversationRow {
            last: conversation.last,
            over: conversation.is_over(),
            turn,
            waiting,
            past: conversation.past.clone(),
            spent: conversation.spent,
            session: conversation.session.clone(),
            context: self.conversation_name(),
        }
    }

    /// What is of no run that goes on, because taking it out never came to be.
    fn clear_litter(&mut self, rows: &[RunRow], work: &[Work], letters: &[(RunId, Letter)]) {
        let live: BTreeSet<RunId> =
            rows.iter().filter(|row| !row.record.status.has_ended()).map(|row| row.record.run_id).collect();
        let known: BTreeSet<RunId> = rows.iter().map(|row| row.record.run_id).collect();
        let done = work.iter().map(|work| work.run_id).filter(|run| !live.contains(run)).map(Write::NoWork);
        let stray = letters.iter().filter(|(run, letter)| match letter {
            Letter::Open(_) => !live.contains(run),
            Letter::Ended { .. } => !known.contains(run),
        });
        let stray = stray.map(|(run, letter)| Write::NoLetter { run: *run, id: letter.id() });
        let litter: Vec<Write> = done.chain(stray).collect();
        self.throw_away(litter);
    }

    /// Gives a run what its process will be handed, from what was kept and the configuration of now.
    fn provide(&mut self, node: NodeId, work: &Work) -> Result<(), String> {
        let gear = self.gear_again(node, work)?;
        if let Some(run) = self.run(node) {
            gear.equip(run);
        }
        Ok(())
    }
}

/// Runs below one that was killed with all that it delegated: their own marks may not have come to be durable.
fn taken_along(rows: &[RunRow]) -> BTreeSet<RunId> {
    let killed = |row: &RunRow| row.takes_below && row.record.status.has_ended();
    let mut doomed: BTreeSet<RunId> =
        rows.iter().filter(|row| killed(row)).map(|row| row.record.run_id).collect();
    let heads = doomed.clone();
    for row in rows {
        if row.record.parent.is_some_and(|parent| doomed.contains(&parent)) {
            doomed.insert(row.record.run_id);
        }
    }
    &doomed - &heads
}

/// How long a run that did not get anywhere waits before it is begun once more.
fn wait_before(restarts: u32) -> Duration {
    let (first, longest) = limits::RESTORE_WAIT;
    match restarts {
        0 => Duration::ZERO,
        n => (first * 2u32.saturating_pow(n - 1)).min(longest),
    }
}

fn note_quarantined(all: &[Quarantined], out: &mut Actions) {
    for Quarantined { kind, key, why } in all.iter().take(NAMED) {
        let note = daemon_note(Level::Warn, "store.quarantined").with("kind", kind.as_str());
        out.push(note.with("key", key.as_str()).with("why", why.as_str()).into());
    }
}

impl From<PromptRow> for Prompt {
    fn from(PromptRow { number, text }: PromptRow) -> Prompt {
        Prompt { number, text }
    }
}

impl From<&Prompt> for PromptRow {
    fn from(prompt: &Prompt) -> PromptRow {
        PromptRow { number: prompt.number, text: prompt.text.clone() }
    }
}

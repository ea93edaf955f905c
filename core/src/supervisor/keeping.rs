//! What is made durable, and when.
//!
//! Two ways lead to the store. A run's beginning and its end are saved for themselves, because something waits for each
//! ([`Purpose`]). Everything else lies on a [`Shelf`]: it is marked where it changes and saved at the end of the event,
//! one save at a time, so that however slow the disk is no shelf has more than one save on its way and the next one
//! holds all that came meanwhile. A save that fails is made again after a wait that doubles.
//!
//! Owns the numbers of saves, what each was for, and whether the store works (S10.7). Refuses to wait: the core goes on.

use super::{Core, daemon_note, ms};
use crate::action::{Action, Actions};
use crate::id::{Handle, NodeId, RunId};
use crate::limits;
use crate::machine::Deadline;
use crate::metrics::Counter;
use crate::note::Level;
use crate::record::Status;
use crate::run::Outcome;
use crate::run::process::Process;
use crate::snapshot::StoreView;
use crate::store::{Class, Work, Write};
use crate::time::{Duration, Instant, Wall};
use crate::wire::message::Role;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a save of a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Before a caller hears that its run waits.
    Held,
    /// Before the process is made.
    Intent,
    /// The same, of a run that waited and whose caller has its handle.
    Promotion,
    /// The same, of a run of an earlier life of the daemon.
    Revival,
    /// Before anybody is told of the end.
    Ending,
    /// So that less is lost, where the store does not outlive the daemon and is told each step of a record.
    Progress,
}

/// Something that is saved as it is at the time, over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Shelf {
    /// A run that has begun.
    Run(NodeId),
    /// The conversation's plan.
    Plan,
    /// The conversation.
    Conversation,
    /// What was used of the budget.
    Ledger,
    /// What is to be kept no longer.
    Litter,
}

/// How a shelf stands; one that is not mentioned is as it was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// It has changed.
    Marked,
    /// A save is on its way, the last of them under this number, and whether there was a change since.
    Out { seq: u64, again: bool, wait: Duration },
    /// A save failed.
    Failed { at: Instant, wait: Duration },
}

/// A save that is on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Out {
    of: Of,
    /// Other shelves that are saved with it.
    also: Vec<Shelf>,
    /// Messages of the run that it holds.
    letters: Vec<u64>,
    /// What it takes out, for another try.
    litter: Vec<Write>,
    /// Tasks that it holds.
    tasks: Vec<RunId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Of {
    Run(NodeId, Purpose),
    Shelf(Shelf),
}

/// The store gives no more than errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Down {
    since: Instant,
    wall: Wall,
    error: String,
}

impl Out {
    fn shelves(&self) -> impl Iterator<Item = Shelf> + '_ {
        let own = match self.of {
            Of::Shelf(shelf) => Some(shelf),
            Of::Run(..) => None,
        };
        own.into_iter().chain(self.also.iter().copied())
    }
}

/// See the module.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Keeping {
    last_seq: u64,
    out: BTreeMap<u64, Out>,
    shelves: BTreeMap<Shelf, State>,
    /// The shelves that have changed and have no save on its way.
    marked: BTreeSet<Shelf>,
    /// When which shelf is tried again.
    due: BTreeSet<(Instant, Shelf)>,
    litter: Vec<Write>,
    down: Option<Down>,
    /// The last save of a run in the event in hand: what else has changed in it becomes durable with it.
    joined: Option<u64>,
    /// Ends that are told without waiting for the store, at the end of the event.
    pub(super) to_tell: Vec<NodeId>,
}

impl Keeping {
    /// Nothing is on its way, and nothing is to be saved.
    pub(super) fn is_done(&self) -> bool {
        self.shelves.is_empty()
    }

    fn set(&mut self, shelf: Shelf, state: Option<State>) {
        let old = match state {
            Some(state) => self.shelves.insert(shelf, state),
            None => self.shelves.remove(&shelf),
        };
        if let Some(State::Failed { at, .. }) = old {
            self.due.remove(&(at, shelf));
        }
        self.marked.remove(&shelf);
        match state {
            Some(State::Marked) => {
                self.marked.insert(shelf);
            }
            Some(State::Failed { at, .. }) => {
                self.due.insert((at, shelf));
            }
            Some(State::Out { .. }) | None => {}
        }
    }

    fn mark(&mut self, shelf: Shelf) {
        match self.shelves.get(&shelf).copied() {
            None => self.set(shelf, Some(State::Marked)),
            Some(State::Out { seq, again: false, wait }) => {
                self.set(shelf, Some(State::Out { seq, again: true, wait }));
            }
            Some(State::Out { again: true, .. } | State::Marked | State::Failed { .. }) => {}
        }
    }

    /// The shelf's save under this number is over, and whether it was its last.
    fn over(&self, shelf: Shelf, seq: u64) -> Option<(bool, Duration)> {
        match self.shelves.get(&shelf) {
            Some(State::Out { seq: last, again, wait }) if *last == seq => Some((*again, *wait)),
            Some(State::Out { .. } | State::Marked | State::Failed { .. }) | None => None,
        }
    }

    /// Those that have changed in the event in hand and may go with another save of it.
    fn joining(&self) -> Vec<Shelf> {
        let all = [Shelf::Plan, Shelf::Conversation, Shelf::Ledger, Shelf::Litter];
        let changed = |shelf: &Shelf| {
            matches!(self.shelves.get(shelf), Some(State::Marked | State::Out { again: true, .. }))
        };
        all.into_iter().filter(changed).collect()
    }
}

impl Core {
    /// Something on this shelf has changed.
    pub(super) fn mark(&mut self, shelf: Shelf) {
        if self.config.store.keeps {
            self.keeping.mark(shelf);
        }
    }

    /// A run's record has come a step further. A store that outlives the daemon is told of as many steps as it can take;
    /// any other of each.
    pub(super) fn mark_step(&mut self, node: NodeId, out: &mut Actions) {
        match self.config.store.keeps {
            true => self.keeping.mark(Shelf::Run(node)),
            false => self.persist(node, Purpose::Progress, out),
        }
    }

    /// The same, of what only a store that outlives the daemon is told: what a run used, what it was sent.
    pub(super) fn mark_progress(&mut self, node: NodeId) {
        self.mark(Shelf::Run(node));
    }

    /// A message to a warm run has come, or its turn has ended.
    pub(super) fn mark_letter(&mut self, node: NodeId, id: u64) {
        if self.config.store.keeps
            && let Some(run) = self.run(node).filter(|run| run.record.role == Role::Subagent)
        {
            run.unkept.insert(id);
            self.keeping.mark(Shelf::Run(node));
        }
    }

    /// These are to be kept no longer. What cannot be taken out in time is found and taken out by a later start.
    pub(super) fn throw_away(&mut self, writes: impl IntoIterator<Item = Write>) {
        if self.config.store.keeps {
            self.keeping.litter.extend(writes);
            let over = self.keeping.litter.len().saturating_sub(limits::STORE_LITTER);
            self.keeping.litter.drain(..over);
            if !self.keeping.litter.is_empty() {
                self.keeping.mark(Shelf::Litter);
            }
        }
    }

    /// Saves a run as it is now.
    pub(super) fn persist(&mut self, node: NodeId, purpose: Purpose, out: &mut Actions) {
        let Some(mut writes) = self.run_writes(node) else { return };
        let class = match purpose {
            Purpose::Held => Class::Held,
            Purpose::Intent | Purpose::Promotion | Purpose::Revival => Class::Spawn,
            Purpose::Ending => Class::Ending,
            Purpose::Progress => Class::Progress,
        };
        if matches!(purpose, Purpose::Held | Purpose::Intent) && self.config.store.keeps {
            let work = self.runs.get(&node).and_then(|run| run.work());
            let work = work.map(|work| Work { own_model: self.is_own_model(&work.model), ..work });
            writes.extend(work.map(|work| Write::Work(Box::new(work))));
            writes.push(Write::Handles(self.last_handle));
        }
        // Whatever else of it was to be saved is in this one.
        if matches!(self.keeping.shelves.get(&Shelf::Run(node)), Some(State::Marked | State::Failed { .. })) {
            self.keeping.set(Shelf::Run(node), None);
        }
        self.save(Of::Run(node, purpose), class, writes, out);
    }

    /// Everything that is kept of a run, as it is now, but that one whose process is on its way is `running`, for that is
    /// what a restart must take it for; and the messages that have changed since they were last sent.
    fn run_writes(&mut self, node: NodeId) -> Option<Vec<Write>> {
        let keeps = self.config.store.keeps;
        let run = self.runs.get_mut(&node)?;
        let mut row = run.row();
        if row.record.status == Status::Spawned {
            row.record.status = Status::Running;
        }
        let mut writes = vec![Write::Run(Box::new(row))];
        if !keeps {
            return Some(writes);
        }
        run.changed = false;
        let run_id = run.record.run_id;
        let over = run.outcome.is_decided() && run.record.status.has_ended();
        if over {
            writes.push(Write::NoWork(run_id));
        }
        if let Some(warm) = &run.warm {
            let unkept = std::mem::take(&mut run.unkept);
            writes.extend(unkept.into_iter().map(|id| match warm.letter(id) {
                Some(letter) => Write::Letter { run: run_id, letter },
                None => Write::NoLetter { run: run_id, id },
            }));
        }
        Some(writes)
    }

    fn save(&mut self, of: Of, class: Class, writes: Vec<Write>, out: &mut Actions) {
        let letters = match of {
            Of::Run(..) | Of::Shelf(Shelf::Run(_)) => writes.iter().filter_map(letter_of).collect(),
            Of::Shelf(Shelf::Plan | Shelf::Conversation | Shelf::Ledger | Shelf::Litter) => Vec::new(),
        };
        let litter = if of == Of::Shelf(Shelf::Litter) { writes.clone() } else { Vec::new() };
        let tasks = writes.iter().filter_map(task_of).collect();
        self.keeping.last_seq += 1;
        let seq = self.keeping.last_seq;
        self.keeping.out.insert(seq, Out { of, also: Vec::new(), letters, litter, tasks });
        if matches!(of, Of::Run(..)) {
            self.keeping.joined = Some(seq);
        }
        out.push(Action::Persist { seq, class, writes });
    }

    /// What else has changed in this event becomes durable together with its last run's beginning or end: a turn with
    /// the worker that serves it, a plan with the run that settles it.
    fn join_marked(&mut self, out: &mut Actions) {
        let Some(seq) = self.keeping.joined.take() else { return };
        for shelf in self.keeping.joining() {
            let Some(more) = self.writes_of(shelf) else { continue };
            let found = out.iter_mut().rev().find_map(|action| {
                let Action::Persist { seq: of, writes, .. } = action else { return None };
                (*of == seq).then_some(writes)
            });
            let (Some(writes), Some(saving)) = (found, self.keeping.out.get_mut(&seq)) else { return };
            if shelf == Shelf::Litter {
                saving.litter.extend(more.iter().cloned());
            }
            saving.tasks.extend(more.iter().filter_map(task_of));
            saving.also.push(shelf);
            writes.extend(more);
            self.keeping.set(shelf, Some(State::Out { seq, again: false, wait: limits::STORE_RETRY.0 }));
        }
    }

    /// Saves what this event has marked.
    pub(super) fn save_marked(&mut self, out: &mut Actions) {
        self.join_marked(out);
        while let Some(shelf) = self.keeping.marked.pop_first() {
            self.keeping.shelves.remove(&shelf);
            self.save_shelf(shelf, limits::STORE_RETRY.0, out);
        }
    }

    fn save_shelf(&mut self, shelf: Shelf, wait: Duration, out: &mut Actions) {
        let Some(writes) = self.writes_of(shelf).filter(|writes| !writes.is_empty()) else { return };
        let seq = self.keeping.last_seq + 1;
        self.keeping.set(shelf, Some(State::Out { seq, again: false, wait }));
        self.save(Of::Shelf(shelf), Class::Progress, writes, out);
    }

    /// What there is to save of a shelf; `None` where that is done otherwise, or not yet.
    fn writes_of(&mut self, shelf: Shelf) -> Option<Vec<Write>> {
        match shelf {
            Shelf::Run(node) => {
                let run = self.runs.get_mut(&node)?;
                // While its beginning is on its way there may never be such a run, and its end is saved for itself.
                let begins = matches!(run.process, Process::Recording | Process::Held { stored: false });
                let waits = match &run.outcome {
                    Outcome::Open => begins,
                    Outcome::Saving { .. } | Outcome::Unsaved { .. } => true,
                    Outcome::Final(_) => false,
                };
                run.changed |= waits;
                if waits { None } else { self.run_writes(node) }
            }
            Shelf::Plan => Some(vec![Write::Plan(self.plan.clone())]),
            Shelf::Conversation => {
                // A task is a prompt as its client sees it: neither is kept without the other.
                let conversation = Write::Conversation(Box::new(self.conversation_row()));
                Some([conversation].into_iter().chain(self.changed_tasks()).collect())
            }
            Shelf::Ledger => Some(vec![Write::Ledger(self.ledger.row())]),
            Shelf::Litter => Some(std::mem::take(&mut self.keeping.litter)),
        }
    }

    /// A save is durable.
    pub(super) fn stored(&mut self, seq: u64, out: &mut Actions) {
        let Some(saved) = self.keeping.out.remove(&seq) else { return };
        self.store_works(out);
        for shelf in saved.shelves() {
            if let Some((again, _)) = self.keeping.over(shelf, seq) {
                self.keeping.set(shelf, again.then_some(State::Marked));
            }
        }
        if let Of::Run(node, _) | Of::Shelf(Shelf::Run(node)) = saved.of {
            self.messages_kept(node, &saved.letters, true, out);
        }
        self.tasks_kept(&saved.tasks, out);
        match saved.of {
            Of::Run(node, Purpose::Intent | Purpose::Promotion | Purpose::Revival) => {
                self.intent_stored(node, out);
            }
            Of::Run(node, Purpose::Held) => self.held_stored(node, out),
            Of::Run(node, Purpose::Ending) => self.ending_told(node, out),
            Of::Run(_, Purpose::Progress) | Of::Shelf(_) => return,
        }
        // What changed of it while its beginning or its end was on its way is saved now.
        if let Of::Run(node, _) = saved.of
            && self.runs.get(&node).is_some_and(|run| run.changed)
        {
            self.keeping.mark(Shelf::Run(node));
        }
    }

    /// A save failed. An intent that cannot be saved starts nothing; anything else is kept and tried again.
    pub(super) fn store_failed(&mut self, seq: u64, error: &str, retryable: bool, out: &mut Actions) {
        self.meter(Counter::StoreFailures, &[]);
        let Some(failed) = self.keeping.out.remove(&seq) else { return };
        self.store_is_down(error, out);
        let (node, note) = match failed.of {
            Of::Run(node, _) | Of::Shelf(Shelf::Run(node)) => {
                (Some(node), self.note(node, Level::Warn, "store.failed"))
            }
            Of::Shelf(_) => (None, daemon_note(Level::Warn, "store.failed")),
        };
        if let Some(run) = node.and_then(|node| self.run(node)) {
            run.unkept.extend(failed.letters.iter().copied());
        }
        self.tasks_not_kept(&failed.tasks, out);
        if let Some(node) = node {
            self.messages_kept(node, &failed.letters, false, out);
        }
        self.shelves_failed(&failed, seq, retryable);
        match failed.of {
            Of::Run(node, Purpose::Intent | Purpose::Held) => return self.intent_failed(node, error, out),
            Of::Run(node, Purpose::Promotion) => return self.promotion_failed(node, error, out),
            Of::Run(node, Purpose::Revival) => return self.revival_failed(node, error, retryable, out),
            Of::Run(..) | Of::Shelf(_) => {}
        }
        out.push(note.with("error", error).with("retryable", retryable).into());
        // Of a step the next save holds all.
        if let Of::Run(node, Purpose::Ending) = failed.of {
            self.ending_failed(node, retryable, out);
        }
    }

    /// The shelves of a save that failed are tried again after a while; a later save that is on its way holds them too.
    fn shelves_failed(&mut self, failed: &Out, seq: u64, retryable: bool) {
        for shelf in failed.shelves() {
            let Some((_, wait)) = self.keeping.over(shelf, seq) else { continue };
            if !retryable {
                self.keeping.set(shelf, None);
                continue;
            }
            let (at, wait) = (self.now.mono + wait, (wait * 2).min(limits::STORE_RETRY.1));
            self.keeping.set(shelf, Some(State::Failed { at, wait }));
        }
        if retryable {
            self.keeping.litter.extend(failed.litter.iter().cloned());
        }
    }

    /// An end that could not be saved is due again after a while.
    fn ending_failed(&mut self, node: NodeId, retryable: bool, out: &mut Actions) {
        let now = self.now.mono;
        if !retryable {
            // It will never be durable: holding the answer back any longer helps nobody.
            return self.ending_told(node, out);
        }
        let Some(run) = self.run(node) else { return };
        let (first, longest) = limits::STORE_RETRY;
        let wait = match run.outcome {
            Outcome::Saving { wait } => wait,
            // It was told without waiting; the record follows.
            Outcome::Final(_) => return self.fail_shelf(Shelf::Run(node)),
            Outcome::Open | Outcome::Unsaved { .. } => first,
        };
        run.outcome = Outcome::Unsaved { at: now + wait, wait: (wait * 2).min(longest) };
        self.tell_unrecorded(node, out);
    }

    fn fail_shelf(&mut self, shelf: Shelf) {
        let (first, longest) = limits::STORE_RETRY;
        let (at, wait) = (self.now.mono + first, (first * 2).min(longest));
        self.keeping.set(shelf, Some(State::Failed { at, wait }));
    }

    /// Shelves whose next try is due.
    pub(super) fn tick_keeping(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        while let Some((at, shelf)) = self.keeping.due.first().copied().filter(|(at, _)| *at <= now) {
            let wait = match self.keeping.shelves.get(&shelf) {
                Some(State::Failed { wait, .. }) => *wait,
                Some(State::Marked | State::Out { .. }) | None => limits::STORE_RETRY.0,
            };
            self.keeping.due.remove(&(at, shelf));
            self.keeping.shelves.remove(&shelf);
            self.save_shelf(shelf, wait, out);
        }
    }

    /// When a shelf is tried again.
    pub(super) fn keeping_due(&self) -> Option<Deadline> {
        self.keeping.due.first().map(|(at, _)| Deadline { at: *at, why: "a save that failed" })
    }

    fn store_works(&mut self, out: &mut Actions) {
        if let Some(down) = self.keeping.down.take() {
            let after = ms(self.now.mono.since(down.since));
            out.push(daemon_note(Level::Info, "store.healed").with("after_ms", after).into());
        }
    }

    fn store_is_down(&mut self, error: &str, out: &mut Actions) {
        if self.keeping.down.is_none() {
            let (since, wall, error) = (self.now.mono, self.now.wall, error.to_owned());
            out.push(daemon_note(Level::Warn, "store.down").with("error", error.as_str()).into());
            self.keeping.down = Some(Down { since, wall, error });
        }
    }

    /// Why the store fails, while a save is to be tried again: that one tells whether it works.
    pub(super) fn store_owes(&self) -> Option<&str> {
        let down = self.keeping.down.as_ref().filter(|_| !self.keeping.due.is_empty())?;
        Some(&down.error)
    }

    /// Whether the store works, for people (S10.7).
    pub(super) fn store_view(&self) -> StoreView {
        let unsaved = self.keeping.due.len();
        match &self.keeping.down {
            None => StoreView::Works,
            Some(Down { since, wall, error }) => {
                StoreView::Down { since: *since, wall: *wall, error: error.clone(), unsaved }
            }
        }
    }

    /// A run leaves the table for good: nothing of it is kept.
    pub(super) fn keep_no_longer(&mut self, run_id: RunId, letters: impl IntoIterator<Item = u64>) {
        let letters = letters.into_iter().map(|id| Write::NoLetter { run: run_id, id });
        self.throw_away([Write::NoRun(run_id), Write::NoWork(run_id)].into_iter().chain(letters));
    }

    /// Handles up to this one were given in an earlier life.
    pub(super) fn skip_handles(&mut self, last: u64) {
        self.last_handle = self.last_handle.max(last);
    }

    /// The next short name; never used again.
    pub(super) fn mint_handle(&mut self) -> Handle {
        self.last_handle += 1;
        Handle(self.last_handle)
    }
}

/// The message that a write is about.
fn letter_of(write: &Write) -> Option<u64> {
    match write {
        Write::Letter { letter, .. } => Some(letter.id()),
        Write::NoLetter { id, .. } => Some(*id),
        Write::Run(_)
        | Write::NoRun(_)
        | Write::Work(_)
        | Write::NoWork(_)
        | Write::Handles(_)
        | Write::Plan(_)
        | Write::Conversation(_)
        | Write::Ledger(_)
        | Write::Task(_)
        | Write::NoTask(_) => None,
    }
}

/// The task that a write is about.
fn task_of(write: &Write) -> Option<RunId> {
    if let Write::Task(row) = write { Some(row.id) } else { None }
}

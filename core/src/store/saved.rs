//! What a store holds at the daemon's start, read as one whole.

use super::entry::{self, Kind, Unreadable};
use super::row::{ConversationRow, LedgerRow, Letter, RunRow, TaskRow, Work};
use super::write::Write;
use crate::id::{Handle, RunId};
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that was kept and can be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The runs, in the order of their ids, which is that of their beginnings.
    pub runs: Vec<RunRow>,
    /// What it takes to begin those again that have not ended.
    pub work: Vec<Work>,
    /// Messages to warm runs, and what became of them, in order.
    pub letters: Vec<(RunId, Letter)>,
    /// The number of the last handle that was given.
    pub handles: u64,
    /// The conversation's plan.
    pub plan: Option<Plan>,
    /// The conversation; `None` before it was ever asked.
    pub conversation: Option<ConversationRow>,
    /// What was used of the daemon's budget.
    pub ledger: Option<LedgerRow>,
    /// A2A tasks, in the order of their ids, which is that of their beginnings.
    #[serde(default)]
    pub tasks: Vec<TaskRow>,
    /// What could not be read and is put aside.
    pub quarantined: Vec<Quarantined>,
    /// Runs whose transcript is there. No entry says so: whoever opens the store looks for the files.
    #[serde(default)]
    pub written: BTreeSet<RunId>,
}

/// A value that cannot be used (S10.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// Its kind, as it is on disk.
    pub kind: String,
    /// Its key.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

impl Saved {
    /// Reads entries in any order, each a kind's name, a key and a value. Those that cannot be used are named in
    /// `quarantined`, and the rest stands.
    pub fn read<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str, &'a [u8])>) -> Saved {
        let mut saved = Saved::default();
        let mut letters: BTreeMap<(RunId, u64), Letter> = BTreeMap::new();
        for (kind, key, value) in entries {
            let read =
                Kind::named(kind).ok_or(Unreadable::Kind).and_then(|known| entry::read(known, key, value));
            match read {
                Ok(Write::Run(row)) => saved.runs.push(*row),
                Ok(Write::Work(work)) => saved.work.push(*work),
                Ok(Write::Letter { run, letter }) => {
                    letters.insert((run, letter.id()), letter);
                }
                Ok(Write::Handles(last)) => saved.handles = last,
                Ok(Write::Plan(plan)) => saved.plan = plan,
                Ok(Write::Conversation(row)) => saved.conversation = Some(*row),
                Ok(Write::Ledger(row)) => saved.ledger = Some(row),
                Ok(Write::Task(row)) => saved.tasks.push(*row),
                // What is taken out leaves no entry.
                Ok(Write::NoRun(_) | Write::NoWork(_) | Write::NoLetter { .. } | Write::NoTask(_)) => {}
                Err(why) => saved.put_aside(kind, key, &why),
            }
        }
        saved.letters = letters.into_iter().map(|((run, _), letter)| (run, letter)).collect();
        saved.runs.sort_by_key(|row| row.record.run_id);
        saved.work.sort_by_key(|work| work.run_id);
        saved.tasks.sort_by_key(|task| task.id);
        // What is put aside keeps its handle: it was given.
        let given = saved.runs.iter().filter_map(|row| row.record.handle).map(|handle| handle.0);
        saved.handles = given.fold(saved.handles, u64::max);
        saved.without_a_way_back();
        saved.without_namesakes();
        saved
    }

    /// Names a value that cannot be used.
    pub fn put_aside(&mut self, kind: &str, key: &str, why: &impl ToString) {
        let (kind, key, why) = (kind.to_owned(), key.to_owned(), why.to_string());
        self.quarantined.push(Quarantined { kind, key, why });
    }

    /// A run that is to be begun again and of which nobody knows any more what it was to do.
    fn without_a_way_back(&mut self) {
        let known: Vec<RunId> = self.work.iter().map(|work| work.run_id).collect();
        let (usable, lost): (Vec<RunRow>, Vec<RunRow>) =
            std::mem::take(&mut self.runs).into_iter().partition(|row| {
                row.record.status.has_ended() || known.binary_search(&row.record.run_id).is_ok()
            });
        self.runs = usable;
        for row in lost {
            self.put_aside(Kind::Run.name(), &row.record.run_id.to_string(), &Unreadable::Orphan);
        }
    }

    /// Two runs with one handle: one row is foreign, and two processes never serve one handle.
    fn without_namesakes(&mut self) {
        let mut taken: BTreeSet<Handle> = BTreeSet::new();
        let (first, others): (Vec<RunRow>, Vec<RunRow>) = std::mem::take(&mut self.runs)
            .into_iter()
            .partition(|row| row.record.handle.is_none_or(|handle| taken.insert(handle)));
        self.runs = first;
        for row in others {
            self.put_aside(Kind::Run.name(), &row.record.run_id.to_string(), &Unreadable::Namesake);
        }
    }
}

//! What `top` knows and shows: a plain value that news and keys change. It has no terminal, no daemon and no clock, so that
//! every key and every answer is tested by itself.

use super::asking::{Asking, Line, Verb};
use super::pane::Pane;
use super::run::{Run, Used, runs};
use crate::cells::one_line;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The status of a run that waits for a permit.
const HELD: &str = "held";

/// Everything.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The daemon's name.
    pub(super) name: String,
    /// Time since `top` began.
    pub(super) now: Duration,
    /// When the daemon last answered.
    pub(super) heard: Duration,
    /// Why it does not, where it does not.
    pub(super) gone: Option<String>,
    pub(super) sums: Sums,
    /// What is left of budgets, in words.
    pub(super) budget: Option<String>,
    /// All that the daemon told, each below the one that asked for it.
    runs: Vec<Run>,
    /// Ended ones too.
    pub(super) all: bool,
    /// What rows have to hold.
    pub(super) filter: String,
    /// Runs whose children are hidden.
    folded: BTreeSet<String>,
    /// The run id of the selected row.
    selected: Option<String>,
    /// The first row that is shown.
    pub(super) top: usize,
    pub(super) pane: Option<Pane>,
    pub(super) asking: Option<Asking>,
    /// The last thing that is to be said, and whether it is trouble.
    pub(super) said: Option<(String, bool)>,
}

/// How things stand in all.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) live: usize,
    pub(super) held: u64,
    pub(super) prompts_waiting: u64,
    pub(super) draining: bool,
    /// By all model calls since the daemon began.
    pub(super) used: Used,
}

/// What the daemon is to be asked again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Watch {
    /// Ended runs too.
    pub(super) all: bool,
    /// The run whose events are shown.
    pub(super) log: Option<String>,
}

impl State {
    /// Nothing known yet.
    pub(super) fn new(name: &str, all: bool) -> State {
        State { name: one_line(name), all, ..State::default() }
    }

    /// What the daemon is to be asked.
    pub(super) fn watch(&self) -> Watch {
        Watch { all: self.all, log: self.pane.as_ref().map(|pane| pane.name.clone()) }
    }

    /// An answer of `ps`.
    pub(super) fn told(&mut self, told: &Value) {
        self.heard = self.now;
        self.gone = None;
        let before = self.place();
        self.runs = runs(told);
        let known: BTreeSet<&str> = self.runs.iter().map(|run| run.id.as_str()).collect();
        self.folded.retain(|id| known.contains(id.as_str()));
        self.sums = Sums {
            live: self.runs.iter().filter(|run| run.is_live && !run.is_root() && run.status != HELD).count(),
            held: told["held"].as_u64().unwrap_or(0),
            prompts_waiting: told["prompts_waiting"].as_u64().unwrap_or(0),
            draining: told["draining"] == true,
            used: Used::of(&told["used"]),
        };
        self.keep_selected(before);
    }

    /// The daemon does not answer.
    pub(super) fn lost(&mut self, why: &str) {
        self.gone = Some(one_line(why));
    }

    /// The rows that are shown: those that fit the filter with those above them, without what is folded away.
    pub(super) fn rows(&self) -> Vec<&Run> {
        let wanted = self.wanted();
        let mut rows = Vec::new();
        let mut hidden_below = usize::MAX;
        for (run, wanted) in self.runs.iter().zip(wanted) {
            if run.depth > hidden_below {
                continue;
            }
            hidden_below = usize::MAX;
            if !wanted {
                continue;
            }
            // A filter looks into what is folded too.
            if self.filter.is_empty() && self.folded.contains(&run.id) {
                hidden_below = run.depth;
            }
            rows.push(run);
        }
        rows
    }

    /// Of each run, whether it or one below it fits the filter.
    fn wanted(&self) -> Vec<bool> {
        let filter = self.filter.to_lowercase();
        let fits = |run: &Run| {
            [&run.name, &run.status, &run.mode, &run.about, &run.title]
                .into_iter()
                .any(|text| text.to_lowercase().contains(&filter))
        };
        let mut wanted: Vec<bool> = self.runs.iter().map(|run| self.filter.is_empty() || fits(run)).collect();
        // From the end: the depth that is still wanted above what was seen.
        let mut above = 0;
        for (run, wanted) in self.runs.iter().zip(&mut wanted).rev() {
            *wanted |= run.depth < above;
            if *wanted {
                above = run.depth;
            }
        }
        wanted
    }

    /// The selected row, while there are rows.
    pub(super) fn selected(&self) -> Option<&Run> {
        self.rows().get(self.place()?).copied()
    }

    /// Its place among the rows.
    pub(super) fn place(&self) -> Option<usize> {
        let rows = self.rows();
        let at = self.selected.as_ref().and_then(|id| rows.iter().position(|run| run.id == *id));
        at.or_else(|| (!rows.is_empty()).then_some(0))
    }

    /// Whether what is below this run is folded away.
    pub(super) fn is_folded(&self, run: &Run) -> bool {
        self.filter.is_empty() && run.has_children && self.folded.contains(&run.id)
    }

    /// The selection stays with its run; of one that is gone, with its place.
    fn keep_selected(&mut self, before: Option<usize>) {
        let rows = self.rows();
        let stays = self.selected.as_ref().is_some_and(|id| rows.iter().any(|run| run.id == *id));
        if !stays {
            let at = before.unwrap_or(0).min(rows.len().saturating_sub(1));
            self.selected = rows.get(at).map(|run| run.id.clone());
        }
    }

    /// Selects the row that is so many below, or above.
    pub(super) fn step(&mut self, by: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let at = self.place().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = rows.get(at).map(|run| run.id.clone());
    }

    /// Hides what is below the selected row; where there is nothing to hide, selects the row above it in the tree.
    pub(super) fn fold(&mut self) {
        let Some(run) = self.selected().cloned() else { return };
        if run.has_children && !self.is_folded(&run) && self.filter.is_empty() {
            self.folded.insert(run.id);
            return;
        }
        let rows = self.rows();
        let at = self.place().unwrap_or(0);
        let parent = rows.iter().take(at).rev().find(|row| row.depth < run.depth).map(|row| row.id.clone());
        self.selected = parent.or(self.selected.take());
    }

    /// Shows what is below the selected row.
    pub(super) fn unfold(&mut self) {
        if let Some(id) = self.selected().map(|run| run.id.clone()) {
            self.folded.remove(&id);
        }
    }

    /// Opens the events of the selected run, or closes them where they are open.
    pub(super) fn toggle_pane(&mut self) {
        let Some(run) = self.selected() else { return };
        let name = run.name.clone();
        self.pane = match self.pane.take() {
            Some(pane) if pane.name == name => None,
            Some(_) | None => Some(Pane::of(&name)),
        };
    }

    /// Events came for the pane. Those of a pane that was closed meanwhile are nobody's.
    pub(super) fn events(&mut self, name: &str, page: &Value, fresh: bool) {
        if let Some(pane) = self.pane.as_mut().filter(|pane| pane.name == name) {
            pane.take(page, fresh);
        }
    }

    /// Something is to be said below the rows.
    pub(super) fn say(&mut self, words: &str, trouble: bool) {
        self.said = Some((one_line(words), trouble));
    }

    /// Asks for the text of a command for the selected run.
    pub(super) fn ask_text(&mut self, verb: Verb) {
        if let Some(name) = self.selected_for(verb == Verb::Send) {
            self.asking = Some(Asking::Text { verb, name, line: Line::default() });
        }
    }

    /// The selected run, where commands of this kind are for it; else says why not.
    pub(super) fn selected_for(&mut self, takes_root: bool) -> Option<String> {
        let Some(run) = self.selected() else {
            self.say("no run is selected", true);
            return None;
        };
        let (name, is_live, status) = (run.name.clone(), run.is_live, run.status.clone());
        let run_is_root = run.is_root();
        if !is_live {
            self.say(&format!("{name} has ended as {status}"), true);
            return None;
        }
        if run_is_root && !takes_root {
            self.say("root is the conversation: it is sent messages, the rest is for its runs", true);
            return None;
        }
        Some(name)
    }

    /// How many runs are below the selected one.
    pub(super) fn below_selected(&self) -> usize {
        let Some(selected) = self.selected() else { return 0 };
        let from = self.runs.iter().skip_while(|run| run.id != selected.id).skip(1);
        from.take_while(|run| run.depth > selected.depth).filter(|run| run.is_live).count()
    }
}

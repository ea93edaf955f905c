//! Walks one run through every state it can come to, by trying every event in every state, and prints what it saw:
//! `docs/lifecycle.md`. The page is held to the code here.
//!
//! A state is what the process is and how far the outcome is. Each is reached by the shortest way there is, from
//! which everything that can happen next is tried on a fresh core. What a lawful driver cannot say is not said.

mod page;
mod stage;

use crate::run::Outcome;
use stage::{Happening, Owes, Stage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where a run is: its process's name, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Position in [`PROCESS`], so that states print in the order of a life.
    process: usize,
    outcome: Stand,
}

/// How far the outcome is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    Open,
    Decided,
    Final,
}

/// The names of a process's states, in the order of a life.
const PROCESS: [&str; 12] = [
    "held",
    "restored",
    "recording",
    "spawning",
    "retrying",
    "starting",
    "running",
    "stopping",
    "sweeping",
    "draining",
    "reaping",
    "gone",
];

impl State {
    fn of(stage: &Stage) -> Option<State> {
        let run = stage.run()?;
        let name = run.process.name();
        let process =
            PROCESS.iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name} is not in PROCESS"));
        let outcome = match run.outcome {
            Outcome::Open => Stand::Open,
            Outcome::Saving { .. } | Outcome::Unsaved { .. } => Stand::Decided,
            Outcome::Final(_) => Stand::Final,
        };
        Some(State { process, outcome })
    }

    fn process(&self) -> &'static str {
        PROCESS[self.process]
    }
}

/// What one event did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    happening: Happening,
    /// `None`: there is no such run any more, nor was there ever.
    to: Option<State>,
    /// What was done about it, in order.
    did: Vec<String>,
    /// What the record says now, if that was decided here.
    became: Option<String>,
}

/// Everything that can happen in every state. What the driver still owes makes a difference too (an earlier save, the
/// rest of the output), so a state is looked at once for each such difference.
fn explore() -> BTreeMap<State, BTreeSet<Step>> {
    let mut seen: BTreeSet<(State, Owes)> = BTreeSet::new();
    let mut table: BTreeMap<State, BTreeSet<Step>> = BTreeMap::new();
    let mut ways: VecDeque<Vec<Happening>> = VecDeque::new();
    // A run begins by being recorded, by waiting for a permit, or in an earlier life of the daemon.
    ways.extend([vec![Happening::Asked], vec![Happening::AskedWhileFull], vec![Happening::TakenUp]]);
    while let Some(way) = ways.pop_front() {
        let stage = Stage::after(&way);
        let Some(state) = State::of(&stage) else { continue };
        if !seen.insert((state.clone(), stage.owes())) {
            continue;
        }
        let steps = table.entry(state).or_default();
        for happening in Happening::ALL.into_iter().filter(|h| stage.allows(*h)) {
            let mut next = Stage::after(&way);
            let step = next.step(happening);
            if step.to.is_some() {
                ways.push_back(way.iter().copied().chain([happening]).collect());
            }
            steps.insert(step);
        }
    }
    table
}

/// The order of S5.4 and the finality of S8.3, over the whole table.
#[test]
fn no_step_leads_back_and_no_outcome_is_taken_back() {
    let table = explore();
    assert!(table.len() >= 20, "{} states", table.len());
    for (from, steps) in &table {
        for step in steps {
            let Some(to) = &step.to else { continue };
            assert!(to.outcome >= from.outcome, "{from:?}: {step:?}");
            // Two ways lead back: a fork is tried again, and so is a next attempt that could not be recorded.
            let way = (from.process(), to.process());
            let again = [("retrying", "spawning"), ("recording", "restored")].contains(&way);
            assert!(again || to.process >= from.process, "{from:?}: {step:?}");
            let signals = step.did.iter().any(|did| did.starts_with("SIG"));
            assert!(
                !signals
                    || from.process() == "starting"
                    || from.process() == "running"
                    || from.process() == "stopping"
                    || from.process() == "spawning",
                "a signal to what is not alive: {from:?}: {step:?}"
            );
            let reaps = step.did.iter().any(|did| did == "reap");
            assert!(!reaps || ["sweeping", "draining"].contains(&from.process()), "{from:?}: {step:?}");
        }
    }
}

#[test]
fn every_state_but_the_last_can_be_left_and_the_last_cannot() {
    let table = explore();
    for (state, steps) in &table {
        let leaves = steps.iter().any(|step| step.to.as_ref() != Some(state));
        let last = state.process() == "gone" && state.outcome == Stand::Final;
        assert_eq!(leaves, !last, "{state:?}: {steps:?}");
    }
}

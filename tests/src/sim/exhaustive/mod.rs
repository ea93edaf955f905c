//! Exhaustive small scope: two runs and up to seven steps, in every order there is. At each place everything that the
//! machine, the store, the children, an operator or the clock could do next is done in a life of its own; then all goes
//! well, and everything must come to rest. The oracles are those of the simulator.
//!
//! Orders that lead to the same state of core, machine and children go on as one, so that no future is lived twice; how many
//! orders that were is counted.

mod puppet;
mod step;
mod table;

pub use step::Kind;

use crate::sim::oracle::Violation;
use crate::sim::plan::{Knobs, Mode};
use agentd_core::config::Config;
use agentd_core::machine::Machine;
use agentd_core::time::Now;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use step::Step;
use table::Table;

/// Where two runs are as the steps begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// They were asked for; their records are on the way to the store.
    Asked,
    /// Their processes are being made.
    Forking,
    /// They are ready and at work.
    Working,
}

/// Two runs, and what may happen to them.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// How the runs are asked for.
    pub modes: [Mode; 2],
    /// The second is asked for by the first.
    pub nested: bool,
    /// Where they are.
    pub stage: Stage,
    /// Limits and durations.
    pub knobs: Knobs,
    /// What may happen.
    pub kinds: &'static [Kind],
    /// How many steps.
    pub depth: usize,
}

/// What an exhaustive search has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    /// Orders of steps.
    pub orderings: u64,
    /// Lives to the end: as many as there are different states after the last step.
    pub lives: u64,
}

/// An order of steps that breaks a rule.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The steps, in order.
    pub steps: Vec<String>,
    /// What was seen.
    pub violation: Violation,
    /// Every event and action.
    pub story: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "in the order [{}]: {}", self.steps.join(", "), self.violation)?;
        self.story.iter().try_for_each(|line| writeln!(f, "{line:.300}"))
    }
}

/// Lives every order of a case.
///
/// # Errors
/// The first order that breaks a rule.
pub fn explore<M: Machine + Debug>(
    case: &Case,
    make: &dyn Fn(Config, Now) -> M,
) -> Result<Explored, Box<Broken>> {
    let mut search = Search { case, make, known: BTreeMap::new(), lives: 0 };
    let begun = Table::at(case, make(case.config(), Now::default()), false);
    let orderings = search.from(&mut Vec::new(), begun)?;
    Ok(Explored { orderings, lives: search.lives })
}

struct Search<'a, M> {
    case: &'a Case,
    make: &'a dyn Fn(Config, Now) -> M,
    /// How many orders lead on from a state with so many steps to go.
    known: BTreeMap<(u64, usize), u64>,
    lives: u64,
}

impl<'a, M: Machine + Debug> Search<'a, M> {
    /// A world after these steps.
    fn after(&self, steps: &[Step]) -> Table<'a, M> {
        let mut table = Table::at(self.case, (self.make)(self.case.config(), Now::default()), false);
        steps.iter().for_each(|step| table.take(*step));
        table
    }

    /// Everything that begins with these steps, which have led to `table`; how many orders that is.
    fn from(&mut self, steps: &mut Vec<Step>, mut table: Table<'a, M>) -> Result<u64, Box<Broken>> {
        if table.is_broken() {
            return Err(self.broken(steps));
        }
        let left = self.case.depth - steps.len();
        let key = (table.state(), left);
        if let Some(orderings) = self.known.get(&key) {
            return Ok(*orderings);
        }
        let open = if left == 0 { Vec::new() } else { table.open() };
        let mut orderings = 0;
        // The last goes on in this world; a core cannot be copied, so each other one has its own from the beginning.
        if let Some((last, others)) = open.split_last() {
            for step in others {
                steps.push(*step);
                let next = self.after(steps);
                orderings += self.from(steps, next)?;
                steps.pop();
            }
            steps.push(*last);
            table.take(*last);
            orderings += self.from(steps, table)?;
            steps.pop();
        } else {
            self.lives += 1;
            orderings = 1;
            table.heal();
            if table.is_broken() {
                return Err(self.broken(steps));
            }
        }
        self.known.insert(key, orderings);
        Ok(orderings)
    }

    /// The same once more, with its story.
    fn broken(&self, steps: &[Step]) -> Box<Broken> {
        let mut table = Table::at(self.case, (self.make)(self.case.config(), Now::default()), true);
        steps.iter().for_each(|step| table.take(*step));
        table.heal();
        let (violation, story) = table.end();
        let steps = steps.iter().map(|step| format!("{step:?}")).collect();
        let none = || Violation {
            rule: "a life repeats",
            at: agentd_core::time::Instant::ZERO,
            seen: "it broke a rule once, and not again".to_owned(),
        };
        Box::new(Broken { steps, violation: violation.unwrap_or_else(none), story })
    }
}

impl Case {
    fn config(&self) -> Config {
        crate::sim::replay::config(&self.knobs)
    }
}

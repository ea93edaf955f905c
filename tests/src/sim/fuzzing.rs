//! The body of the fuzz target `core_plan`: a plan that is decoded from bytes is lived under all oracles.

use super::draw;
use super::replay::{self, Keep};
use agentd_core::action::{Action, Actions};
use agentd_core::event::Event;
use agentd_core::machine::{Deadline, Machine};
use agentd_core::note;
use agentd_core::snapshot::Snapshot;
use agentd_core::store::record_in;
use agentd_core::supervisor::Core;
use agentd_core::time::Now;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What was seen of a life.
type Reached = Arc<Mutex<BTreeSet<&'static str>>>;

/// Lives the plan that `data` means. Gives the statuses that runs came to, and what was noted.
///
/// # Panics
///
/// When a rule breaks; the message has the smallest plan that breaks it.
pub fn core_plan(data: &[u8]) -> BTreeSet<&'static str> {
    let plan = draw::plan_of_bytes(data);
    let reached = Reached::default();
    let watched = Arc::clone(&reached);
    let make = move |config, now| -> Box<dyn Machine> {
        Box::new(Watched { core: Core::new(config, now), reached: Arc::clone(&watched) })
    };
    if replay::live(&plan, &make, Keep::Verdict).violation.is_some() {
        panic!("{}", replay::report("this input", None, &plan, &make));
    }
    std::mem::take(&mut *reached.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A core, and what became of its runs.
struct Watched {
    core: Core,
    reached: Reached,
}

impl Machine for Watched {
    fn handle(&mut self, now: Now, event: Event, out: &mut Actions) {
        let before = out.len();
        self.core.handle(now, event, out);
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        for action in out.iter().skip(before) {
            match action {
                Action::Persist { writes, .. } => {
                    reached.extend(record_in(writes).map(|record| record.status.name()));
                }
                Action::Note(note) => {
                    reached.extend(note::names::ALL.iter().map(|(name, _)| *name).find(|n| *n == note.event));
                }
                _ => {}
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.core.poll_timeout()
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Machine::snapshot(&self.core)
    }
}

//! One daemon after the other on one disk: each begins with what the one before had made durable.

use super::oracle::Violation;
use super::plan::{Fault, Plan};
use super::replay::{Keep, Maker, config};
use super::story::Story;
use super::world::{Legacy, Outcome, World};
use agentd_core::time::Now;
use std::sync::Arc;

/// Lives all lives of a plan.
pub(super) fn live(plan: &Plan, make: Maker<'_>, keep: Keep) -> Outcome {
    let plan = Arc::new(plan.clone());
    let mut restarts = plan.faults.iter().filter_map(|fault| match fault {
        Fault::Restart { at_action, torn } => Some((*at_action, *torn)),
        _ => None,
    });
    let mut whole = Outcome::default();
    let mut legacy = Legacy::default();
    loop {
        let mut machine = make(config(&plan.knobs), Now::default());
        let world =
            World::reborn(Arc::clone(&plan), machine.as_mut(), Story::new(keep), legacy, restarts.next());
        let (outcome, next) = world.live_on();
        whole.add(outcome);
        match next {
            Some(next) if whole.violation.is_none() => legacy = next,
            Some(_) | None => return whole,
        }
    }
}

impl Outcome {
    /// What the next life was.
    fn add(&mut self, next: Outcome) {
        let violation: Option<Violation> = next.violation;
        self.violation = self.violation.take().or(violation);
        self.events += next.events;
        self.digest = self.digest.rotate_left(7) ^ next.digest;
        self.story.extend(next.story);
        self.options.extend(next.options);
    }
}

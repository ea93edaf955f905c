//! The arm of the simulator: the scenario on the fake machine, under all oracles, and in many tempers of it. A scenario
//! must come out the same in all of them: one that does not is a race between two lawful ends, and says nothing when
//! a real machine runs it once.

use super::scenario::Scenario;
use super::transcript::Transcript;
use super::watched::{Stagehand, Watched, replay};
use crate::sim::plan::Plan;
use crate::sim::replay::Keep;
use crate::sim::story::Story;
use crate::sim::world::{Acts, World};
use crate::sim::{Act, Outcome};
use agentd_core::action::Action;
use agentd_core::event::Event;
use std::sync::Arc;

/// Tempers of the machine: how late its notices may be, in milliseconds, and how much is read at once.
const TEMPERS: [(u64, usize); 3] = [(1, 65_536), (8, 65_536), (20, 65_536)];

/// Lives in each temper; one when a result of megabytes is about, which takes a while in a build that is not optimised.
const LIVES: (u64, u64) = (4, 1);

/// Performs the scenario on the fake machine.
///
/// # Errors
/// A rule of the simulator is broken, the scenario has more than one outcome, or a cue's moment does not come.
pub fn perform(scenario: &Scenario) -> Result<Transcript, String> {
    let mut first: Option<Transcript> = None;
    let lives = if scenario.has_giants() { LIVES.1 } else { LIVES.0 };
    for (jitter_ms, read) in TEMPERS {
        for life in 0..lives {
            let mut plan = scenario.plan.clone();
            plan.seed = life + 1;
            plan.knobs.jitter_ms = jitter_ms;
            plan.knobs.read = read;
            plan.knobs.tick_first = life % 2 == 1;
            let transcript = live(scenario, plan)
                .map_err(|what| format!("in life {life} of a machine that is {jitter_ms} ms late: {what}"))?;
            if let Some(first) = &first
                && let Some(difference) = first.difference(&transcript)
            {
                return Err(format!(
                    "it comes out in two ways, so no arm can be held to it; in life {life} of a machine that is \
                     {jitter_ms} ms late: {difference}"
                ));
            }
            first.get_or_insert(transcript);
        }
    }
    first.ok_or_else(|| "no life was lived".to_owned())
}

fn live(scenario: &Scenario, plan: Plan) -> Result<Transcript, String> {
    let plan = Arc::new(plan);
    let (machine, outcome) = life(scenario, &plan, Keep::Verdict);
    if let Some(violation) = outcome.violation {
        let story = life(scenario, &plan, Keep::Story).1.story;
        return Err(format!("{violation}\n{}", story[story.len().saturating_sub(60)..].join("\n")));
    }
    let turns = machine.finish()?;
    replay(scenario, &turns)?;
    Ok(Transcript::of(&turns))
}

fn life(scenario: &Scenario, plan: &Arc<Plan>, keep: Keep) -> (Watched<Waits>, Outcome) {
    let acts = Acts::default();
    let mut machine = Watched::new(scenario, Waits(Acts::clone(&acts)));
    let outcome = World::new(Arc::clone(plan), &mut machine, Story::new(keep)).with_acts(acts).live();
    (machine, outcome)
}

/// Leaves acts to the world, which does them once it has done what the core said.
struct Waits(Acts);

impl Stagehand for Waits {
    fn saw(&mut self, _event: &Event, _actions: &[Action]) {}

    fn act(&mut self, act: Act) {
        self.0.borrow_mut().push_back(act);
    }
}

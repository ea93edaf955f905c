//! The conversation's worker: the one that is warm is asked again, and a new one is told what was said before.

use super::spawn::{Plan, Right};
use super::{Core, operator};
use crate::action::Actions;
use crate::id::NodeId;
use crate::run::Run;
use crate::run::warm::FIRST_TURN;
use crate::wire::message::{Begins, Role, Text};

impl Core {
    /// Whether this run serves the conversation.
    pub(super) fn is_worker(&self, node: NodeId) -> bool {
        self.runs.get(&node).is_some_and(|run| run.record.role == Role::Worker)
    }

    /// The next turn of the worker that is warm; `None` when it cannot take one any more. One that lives on and reads
    /// nothing is of no use then, and ends.
    pub(super) fn ask_again(
        &mut self,
        worker: NodeId,
        text: &str,
        out: &mut Actions,
    ) -> Option<(NodeId, u64)> {
        // One whose exit is known and whose last words are still to be read takes nothing any more.
        let lives = |run: &&mut Run| !run.outcome.is_decided() && !run.process.has_ended();
        let run = self.run(worker).filter(lives)?;
        if !run.channel.is_open() {
            self.conversation.worker = None;
            self.conversation.outdated = false;
            self.complete_retirement(worker, out);
            return None;
        }
        let id = run.next_text();
        let pushed = run.warm.as_mut().is_some_and(|w| w.push(Text { id, text: text.to_owned() }));
        pushed.then(|| {
            self.hand_next(worker, out);
            (worker, id)
        })
    }

    pub(super) fn begin_worker(&mut self, text: &str, out: &mut Actions) -> NodeId {
        let (run_id, trace) = self.mint_names(None, None);
        let (place, is_next) = self.place_of_conversation(run_id);
        let begins = if is_next { Begins::After } else { Begins::Anew };
        let transcript = self.transcript(place.as_ref(), None, FIRST_TURN, begins);
        let plan = Plan {
            right: Right::Worker,
            parent: None,
            call_id: None,
            principal: operator::PRINCIPAL.to_owned(),
            gear: self.worker_gear(text, run_id, trace, place, transcript),
        };
        self.begin(plan, out)
    }
}

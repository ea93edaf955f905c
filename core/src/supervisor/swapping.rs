//! The models of runs that work, after a reload (S10.8): who is sent another one, and when it counts.
//!
//! `intelligence.swap_policy: finish-on-old` reaches runs that have turns to come, and with the next of them;
//! `restart-turn` reaches every run at once. A run calls, asks and pays as before until its child has said that it took
//! the new model, so nothing is charged at a price that it was not made at.

use super::Core;
use crate::action::{Action, Actions, ModelFrame};
use crate::config::{Config, ModelChoice, SwapPolicy};
use crate::id::NodeId;
use crate::note::Level;
use crate::run::channel::Sent;
use crate::run::process::Process;
use crate::run::swap::{Calls, Cheaper, Swap};
use crate::wire::message::{Down, Mode, Model, ModelSwap};
use std::collections::BTreeSet;

impl Core {
    /// The model of `intelligence.budget.degrade`, as a run that begins now knows it.
    pub(super) fn cheaper(&self) -> Option<Cheaper> {
        let choice = self.config.degraded.as_ref()?;
        Some(Cheaper { name: choice.model.name.clone(), price: choice.price })
    }

    /// What the model of this name is now. A run that has the agent's own follows the agent; one that is configured no more
    /// has no successor.
    pub(super) fn successor(&self, old: &Config, name: &str) -> Option<&ModelChoice> {
        if !old.models.contains_key(name) && old.model.model.name == name {
            return Some(&self.config.model);
        }
        self.named_model(name)
    }

    /// Sends the runs that work what their models are now, where that is not what they have. `renewed` are models whose
    /// connection is another one though it looks the same.
    pub(super) fn swap_models(&mut self, old: &Config, renewed: &BTreeSet<String>, out: &mut Actions) {
        let restarts = self.config.swap == SwapPolicy::RestartTurn;
        let works = |run: &crate::run::Run| {
            let taken = run.payload.is_none() && matches!(run.process, Process::Alive(_));
            taken && !run.outcome.is_decided() && (restarts || run.record.mode == Mode::Warm)
        };
        for node in self.busy_with(works) {
            // One that is replaced after this turn takes nothing before.
            let replaced = self.conversation.outdated && self.conversation.worker == Some(node);
            if replaced && !restarts {
                continue;
            }
            if let Some((calls, model)) = self.next_model(node, old, renewed) {
                self.send_model(node, calls, model, restarts, out);
            }
        }
    }

    /// The model that a run is to go on with, where that is another one.
    fn next_model(&self, node: NodeId, old: &Config, renewed: &BTreeSet<String>) -> Option<(Calls, Model)> {
        let run = self.runs.get(&node)?;
        let before = run.calls_to_come();
        let choice = self.successor(old, &before.model).filter(|choice| choice.unusable.is_none())?;
        let asks = self.call_budget(run.parent, &run.caps).is_some();
        let after = Calls {
            model: choice.model.name.clone(),
            price: choice.price,
            asks,
            cheaper: self.cheaper().filter(|_| asks),
        };
        let named = |config: &Config| {
            let own = Some(&config.model).filter(|own| own.model.name == before.model);
            config.models.get(&before.model).or(own).map(|choice| choice.model.without_values())
        };
        let degraded = |config: &Config| config.degraded.as_ref().map(|choice| choice.model.without_values());
        let is_same = before == after
            && named(old).as_ref() == Some(&choice.model.without_values())
            && !renewed.contains(&after.model)
            && (!asks || degraded(old) == degraded(&self.config))
            && !after.cheaper.as_ref().is_some_and(|cheaper| renewed.contains(&cheaper.name));
        (!is_same).then(|| (after, choice.model.clone()))
    }

    fn send_model(&mut self, node: NodeId, calls: Calls, model: Model, restart: bool, out: &mut Actions) {
        let Some((parent, caps)) = self.runs.get(&node).map(|run| (run.parent, run.caps)) else { return };
        let budget = self.call_budget(parent, &caps).filter(|_| calls.asks);
        let Some(run) = self.run(node) else { return };
        let id = run.next_text();
        let endpoints = super::gear::endpoints(&model);
        let message = Down::Model(Box::new(ModelSwap { id, model: Some(model), budget, restart }));
        match run.channel.send(&message) {
            Sent::Frame(_) => {}
            Sent::Closed => return,
            Sent::Full => {
                let note = self.note(node, Level::Warn, "model.swap_failed");
                out.push(note.with("error", "it does not read: too much waits for it").into());
                return;
            }
        }
        let Down::Model(swap) = message else { return };
        let number = run.channel.last_number();
        run.swap_sent(Swap { id, calls });
        // It may ask there as soon as it takes the model, and what it reports of the old ones may still be on its way.
        let new: Vec<String> = endpoints.into_iter().filter(|url| !run.endpoints.contains(url)).collect();
        run.endpoints.extend(new);
        out.push(Action::SendModel { node, number, payload: ModelFrame(swap) });
        self.tell_throttles(node, out);
    }

    /// A child has taken a model: no call that it was granted before will be made any more.
    pub(super) fn model_taken(&mut self, node: NodeId, id: u64, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if !run.swap_taken(id) {
            return;
        }
        run.in_flight = None;
        let model = run.model.clone();
        self.not_called(node);
        out.push(self.note(node, Level::Info, "model.swap").with("model", model).into());
    }

    /// The frame had no model in it, for a secret was gone: the child goes on with what it has.
    pub(super) fn model_frame_failed(&mut self, node: NodeId, id: u64, error: &str, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.swaps.retain(|swap| swap.id != id);
        out.push(self.note(node, Level::Warn, "model.swap_failed").with("error", error).into());
    }
}

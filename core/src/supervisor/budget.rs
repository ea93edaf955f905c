//! Model calls are asked for before they are made (S15.6): what each may cost goes to the ledger, whoever has to wait
//! does so in the order of asking, and what a call came to is charged.

use super::{Core, ms};
use crate::action::Actions;
use crate::budget::{Amount, Ask, Caps, Decision, Tariff};
use crate::id::NodeId;
use crate::limits;
use crate::machine::Deadline;
use crate::money::Price;
use crate::note::Level;
use crate::record::Tokens;
use crate::run::channel::Sent;
use crate::time::{Duration, Wall};
use crate::wire::Down;
use crate::wire::message::{BudgetGrant, BudgetRequest, BudgetVerdict, CallBudget, Usage, WaitingOn};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Who waits for room in a budget.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct BudgetQueue {
    /// In the order of asking.
    waiting: VecDeque<NodeId>,
    /// When the first one may have room, by the wall clock.
    until: Option<Wall>,
    /// Something was asked, charged or given back since they were last looked at.
    moved: bool,
}

impl Core {
    /// How a run's child asks, if it has to: what it spends is bounded by the daemon's budget, or by its own or that of
    /// a run above it.
    pub(super) fn call_budget(&self, requester: Option<NodeId>, caps: &Caps) -> Option<CallBudget> {
        let above = requester.and_then(|node| self.runs.get(&node)).is_some_and(|run| run.asks);
        if self.config.budget.is_empty() && caps.is_empty() && !above {
            return None;
        }
        Some(CallBudget { degraded: self.config.degraded.as_ref().map(|choice| choice.model.clone()) })
    }

    /// A child wants to make a model call.
    pub(super) fn budget_requested(&mut self, node: NodeId, ask: BudgetRequest, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if !run.asks {
            return self.protocol_error(node, "`budget_request` of a run that is not to ask", out);
        }
        if run.asking.is_some() || ask.id <= run.last_ask {
            let why = "`budget_request` while one is open, or with a number that was used before";
            return self.protocol_error(node, why, out);
        }
        run.last_ask = ask.id;
        if run.outcome.is_decided() {
            // Its end is on the way to it, and a call would be paid for nothing.
            return;
        }
        run.asking = Some(ask);
        // Who has had its answer asks again: what it was granted before and never reported was not made.
        self.ledger.give_back(node);
        self.budget.waiting.push_back(node);
        self.budget.moved = true;
        self.grant_calls(out);
        let now = self.now.mono;
        if let Some(run) = self.run(node).filter(|run| run.asking.is_some()) {
            let step = run.waiting.as_ref().map_or(0, |(_, _, step)| *step);
            run.waiting = Some((WaitingOn::Budget, now, step));
        }
    }

    /// Answers those who wait, in order, as far as there is room. Who waits for the daemon's room is not overtaken.
    pub(super) fn grant_calls(&mut self, out: &mut Actions) {
        self.budget.moved |= self.budget.until.is_some_and(|at| at <= self.now.wall);
        // Who cannot be answered any more gives back what was granted, and that is for the others.
        while std::mem::take(&mut self.budget.moved) {
            self.budget.until = None;
            self.grant_once(out);
        }
    }

    fn grant_once(&mut self, out: &mut Actions) {
        let mut waiting = std::mem::take(&mut self.budget.waiting);
        let mut still = VecDeque::new();
        while let Some(node) = waiting.pop_front() {
            // Without a question nobody waits any more.
            let Some(ask) = self.worst_case(node) else { continue };
            let verdict = match self.ledger.ask(node, &ask, self.now.wall) {
                Decision::WaitForOwn => {
                    still.push_back(node);
                    continue;
                }
                Decision::Wait { until } => {
                    self.budget.until = until;
                    still.push_back(node);
                    break;
                }
                Decision::Granted(Tariff::Own) => BudgetVerdict::Own,
                Decision::Granted(Tariff::Degraded) => BudgetVerdict::Degraded,
                Decision::Refused { why } => BudgetVerdict::Refused(why),
                Decision::Failed { why } => BudgetVerdict::Failed(why),
            };
            self.answer_budget(node, verdict, out);
        }
        still.append(&mut waiting);
        self.budget.waiting = still;
    }

    fn answer_budget(&mut self, node: NodeId, verdict: BudgetVerdict, out: &mut Actions) {
        match &verdict {
            BudgetVerdict::Own => {}
            BudgetVerdict::Degraded => {
                out.push(self.note(node, Level::Info, "budget.degraded").into());
            }
            BudgetVerdict::Refused(why) | BudgetVerdict::Failed(why) => {
                let why = why.as_str();
                out.push(self.note(node, Level::Warn, "budget.exhausted").with("why", why).into());
            }
        }
        let Some(run) = self.run(node) else { return };
        let Some(ask) = run.asking.take() else { return };
        if let Some((WaitingOn::Budget, since, _)) = run.waiting {
            run.waiting = None;
            let waited = ms(self.now.mono.since(since));
            out.push(self.note(node, Level::Debug, "budget.waited").with("after_ms", waited).into());
        }
        let Some(run) = self.run(node) else { return };
        match run.channel.send(&Down::BudgetGrant(BudgetGrant { id: ask.id, verdict })) {
            Sent::Frame(frame) => self.queue(node, frame, out),
            Sent::Closed => self.not_called(node),
            Sent::Full => {
                self.not_called(node);
                self.does_not_read(node, out);
            }
        }
    }

    /// There is other room than before: whoever waits is looked at again when the event is done.
    pub(super) fn budget_moved(&mut self) {
        self.budget.moved = true;
    }

    /// What the call that a run asks for may cost at most.
    fn worst_case(&self, node: NodeId) -> Option<Ask> {
        let run = self.runs.get(&node)?;
        let ask = run.asking.filter(|_| !run.outcome.is_decided())?;
        let amount = |price: Option<&Price>| {
            let mut tokens = Tokens { input: ask.input, output: ask.output, ..Tokens::default() };
            tokens.usd = price.map(|price| price.of(&tokens)).unwrap_or_default();
            Amount::of(&tokens)
        };
        let degraded = run.cheaper.as_ref().map(|cheaper| amount(cheaper.price.as_ref()));
        Some(Ask { own: amount(run.price.as_ref()), degraded })
    }

    /// What one call used, at its model's price.
    pub(super) fn priced(&self, node: NodeId, usage: &Usage) -> Tokens {
        let mut tokens = Tokens {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            estimated: usage.estimated,
            ..Tokens::default()
        };
        let run = self.runs.get(&node);
        let cheaper = run.and_then(|run| run.cheaper.as_ref()).filter(|cheaper| cheaper.name == usage.model);
        match cheaper.map_or(run.and_then(|run| run.price), |cheaper| cheaper.price) {
            Some(price) => tokens.usd = price.of(&tokens),
            None => tokens.unpriced = true,
        }
        tokens
    }

    /// A call is over and used so much. One that was cut off is charged what its child takes it to have cost: the same
    /// against the caps as in the bill.
    pub(super) fn called(&mut self, node: NodeId, used: &Tokens) {
        self.ledger.charge(node, Amount::of(used), self.now.wall);
        self.budget.moved = true;
    }

    /// A run whose child speaks for itself ends its turn: a call that it was granted and has not reported was not made.
    pub(super) fn not_called(&mut self, node: NodeId) {
        self.ledger.give_back(node);
        self.stops_asking(node);
    }

    /// A run's end is decided for it: what it was granted may be spent by now.
    pub(super) fn call_cut(&mut self, node: NodeId) {
        self.ledger.cut(node, self.now.wall);
        self.stops_asking(node);
    }

    fn stops_asking(&mut self, node: NodeId) {
        if let Some(run) = self.run(node) {
            run.asking = None;
        }
        self.budget.moved = true;
    }

    /// When somebody who waits for a budget may have room. The wall clock may be set meanwhile, so it is looked at now
    /// and then.
    pub(super) fn budget_due(&self) -> Option<Deadline> {
        let until = self.budget.until.filter(|_| !self.budget.waiting.is_empty())?;
        let wait = Duration::from_millis(until.0.saturating_sub(self.now.wall.0)).min(limits::BUDGET_LOOK);
        Some(Deadline { at: self.now.mono + wait, why: "a budget" })
    }
}

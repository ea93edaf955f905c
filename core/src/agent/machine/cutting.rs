//! Model calls that break off with a part of their reply: it is paid for, by estimate and once, however the call goes on
//! (S7.5, S8.5). Where calls are asked for (S15.6), so is each attempt after one that was paid.

use super::{Loop, Phase, Thought};
use crate::agent::budget::estimate;
use crate::agent::{Output, log};
use crate::model::{ModelError, Partial};
use crate::time::{Duration, Instant};
use crate::wire::Up;
use crate::wire::message::{BudgetRequest, BudgetVerdict, FailKind, LoopEnd, Usage, WaitingOn};

impl Loop {
    /// A call that has failed for good.
    pub(super) fn failed_call(
        &mut self,
        thought: &Thought,
        took: Duration,
        error: &ModelError,
        out: &mut Vec<Output>,
    ) {
        out.push(log::model_failed(self.budget.steps, took, error));
        if let Some(came) = &error.came {
            self.pay_for_cut(thought, came, out);
        }
    }

    pub(super) fn pay_for_cut(&mut self, thought: &Thought, came: &Partial, out: &mut Vec<Output>) {
        let model = self.called(thought.degraded).to_owned();
        let usage: Usage = self.budget.charge_cut(&model, thought.sent, came);
        out.push(Output::Emit(Up::Usage(usage)));
    }

    /// An attempt broke off, and the connection has another one to make: within what is left.
    pub(super) fn cut(&mut self, thought: Thought, came: &Partial, out: &mut Vec<Output>) -> Phase {
        self.pay_for_cut(&thought, came, out);
        // The supervisor takes nothing to be in flight now.
        self.told = None;
        if let Some(why) = self.budget.out_of_tokens() {
            out.push(Output::AbandonModel { call: thought.call });
            return self.finish(LoopEnd::ExhaustedTokens, Some(why), out);
        }
        let thought = Thought { came: Partial::default(), ..thought };
        let Some(asks) = &self.asks else { return self.go_on(thought, out) };
        let (output, messages) = (asks.output, self.history.messages().len());
        let input = self.budget.most_input(thought.sent, messages);
        let id = self.mint();
        out.push(Output::Emit(Up::BudgetRequest(BudgetRequest { id, input, output })));
        Phase::Thinking(Thought { again: Some(id), ..thought })
    }

    /// Whether the next attempt may be made. A budget that wants the other model by now wants another call.
    pub(super) fn granted_again(
        &mut self,
        now: Instant,
        thought: Thought,
        verdict: BudgetVerdict,
        out: &mut Vec<Output>,
    ) -> Phase {
        let degraded = match &verdict {
            BudgetVerdict::Own => Some(false),
            BudgetVerdict::Degraded => Some(true),
            BudgetVerdict::Refused(_) | BudgetVerdict::Failed(_) => None,
        };
        if degraded == Some(thought.degraded) {
            return self.go_on(thought, out);
        }
        out.push(Output::AbandonModel { call: thought.call });
        match verdict {
            BudgetVerdict::Refused(why) => return self.finish(LoopEnd::ExhaustedTokens, Some(why), out),
            BudgetVerdict::Failed(why) => return self.fail(FailKind::Budget, why, out),
            BudgetVerdict::Own | BudgetVerdict::Degraded => {}
        }
        if let Some((end, why)) = self.budget.exhausted(now) {
            return self.finish(end, Some(why), out);
        }
        let (call, degraded) = (self.mint(), !thought.degraded);
        match thought.condenses {
            Some(before) => self.condense(now, call, before, degraded, out),
            None => self.think(now, call, thought.last, degraded, out),
        }
    }

    fn go_on(&mut self, thought: Thought, out: &mut Vec<Output>) -> Phase {
        if !thought.held_up {
            self.tell(WaitingOn::Model, Some(estimate(thought.sent)), out);
        }
        out.push(Output::GoOnModel { call: thought.call });
        Phase::Thinking(Thought { again: None, ..thought })
    }
}

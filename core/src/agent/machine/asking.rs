//! Asking before a model call is made (S15.6): the worst case in tokens goes to the supervisor, which holds it against the
//! budgets and says with which model the call is made, or why it is not.

use super::{Asking, Loop, Phase, Wanted};
use crate::agent::Output;
use crate::limits::MODEL_OUTPUT;
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::{BudgetRequest, BudgetVerdict, CallBudget, Dialect, FailKind, LoopEnd, Model};

/// How a run asks.
#[derive(Debug)]
pub(super) struct Asks {
    /// Most tokens of a reply: what is asked for, and more than which no provider is told. A cheaper model that may write
    /// more than the run's own is not used to do so.
    pub(super) output: u64,
    /// The cheaper model's name.
    degraded: Option<String>,
}

impl Asks {
    pub(super) fn new(own: &Model, budget: &CallBudget) -> Asks {
        Asks { output: max_output(own), degraded: budget.degraded.as_ref().map(|model| model.name.clone()) }
    }
}

/// Most tokens of one reply of a model.
fn max_output(model: &Model) -> u64 {
    match &model.dialect {
        Dialect::Openai(remote) | Dialect::OpenaiResponses(remote) | Dialect::Anthropic(remote) => {
            remote.max_output.unwrap_or(MODEL_OUTPUT)
        }
        Dialect::Mock(_) => MODEL_OUTPUT,
    }
}

impl Loop {
    /// Asks for a call whose request has so many bytes and messages.
    pub(super) fn ask(
        &self,
        output: u64,
        asking: Asking,
        (bytes, messages): (usize, usize),
        out: &mut Vec<Output>,
    ) -> Phase {
        let input = self.budget.most_input(bytes, messages);
        out.push(Output::Emit(Up::BudgetRequest(BudgetRequest { id: asking.call, input, output })));
        Phase::Asking(asking)
    }

    pub(super) fn granted(
        &mut self,
        now: Instant,
        asking: Asking,
        verdict: BudgetVerdict,
        out: &mut Vec<Output>,
    ) -> Phase {
        let degraded = match verdict {
            BudgetVerdict::Own => false,
            BudgetVerdict::Degraded => true,
            BudgetVerdict::Refused(why) => return self.finish(LoopEnd::ExhaustedTokens, Some(why), out),
            BudgetVerdict::Failed(why) => return self.fail(FailKind::Budget, why, out),
        };
        match asking.what {
            Wanted::Next { last } => self.think(now, asking.call, last, degraded, out),
            Wanted::Summary { before } => self.condense(now, asking.call, before, degraded, out),
        }
    }

    /// The name of the model that a call is made with.
    pub(super) fn called(&self, degraded: bool) -> &str {
        let cheaper = self.asks.as_ref().and_then(|asks| asks.degraded.as_deref()).filter(|_| degraded);
        cheaper.unwrap_or(&self.model)
    }
}

//! When the provider says that the history no longer fits (S7.7): it is compacted once, and the call is made again.

use super::{Asking, Loop, Phase, Thought, Wanted};
use crate::agent::budget::estimate;
use crate::agent::{Output, compact, log};
use crate::model::{Message, ModelError, ModelErrorKind, ModelRequest, Reply};
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::WaitingOn;
use std::sync::Arc;

impl Loop {
    /// A call failed for being too long. A second time in a row ends the run with the provider's words.
    pub(super) fn too_long(&mut self, now: Instant, error: &ModelError, out: &mut Vec<Output>) -> Phase {
        if self.turn.compacted {
            let why =
                format!("model {}: {error}; the history was compacted, and is still too long", self.model);
            return self.fail(error.kind.fails_as(), why, out);
        }
        let before = self.history.bytes;
        let shed = compact::shed(&mut self.history, before / 2);
        let folds = !shed.enough && !compact::middle(&self.history).is_empty();
        if shed.results == 0 && !folds {
            let why = format!("model {}: {error}; nothing in the history can be left out", self.model);
            return self.fail(error.kind.fails_as(), why, out);
        }
        self.turn.compacted = true;
        if folds && self.budget.exhausted(now).is_none() {
            return self.ask_for_summary(now, before, out);
        }
        let folded = if folds { compact::fold(&mut self.history, None) } else { 0 };
        self.record_compacted(out);
        out.push(log::compacted(self.budget.steps, before, self.history.bytes, folded, false));
        self.boundary(now, out)
    }

    /// One model call without tools, which counts like any other.
    pub(super) fn ask_for_summary(&mut self, now: Instant, before: usize, out: &mut Vec<Output>) -> Phase {
        let call = self.mint();
        match &self.asks {
            Some(asks) => {
                let record = compact::record(&self.history);
                let bytes = record.len() + compact::ASK.len();
                self.ask(asks.output, Asking { call, what: Wanted::Summary { before } }, (bytes, 1), out)
            }
            None => self.condense(now, call, before, false, out),
        }
    }

    pub(super) fn condense(
        &mut self,
        now: Instant,
        call: u64,
        before: usize,
        degraded: bool,
        out: &mut Vec<Output>,
    ) -> Phase {
        let record = compact::record(&self.history);
        let sent = record.len() + compact::ASK.len();
        self.budget.steps += 1;
        self.evidence.model_calls = self.evidence.model_calls.saturating_add(1);
        let request = ModelRequest {
            model: self.called(degraded).to_owned(),
            degraded,
            max_output: self.asks.as_ref().map(|asks| asks.output),
            system: compact::ASK.to_owned(),
            messages: vec![Arc::new(Message::User(record))],
            context: 0,
            begins: 0,
            turn: self.turn.number,
            tools: Arc::default(),
            declared: Arc::default(),
            names: self.catalogue.names.clone(),
            step: self.budget.steps,
            tokens_left: self.budget.tokens_left(),
        };
        self.tell(WaitingOn::Model, Some(estimate(sent)), out);
        out.push(Output::CallModel { call, request: Box::new(request) });
        Phase::Thinking(Thought { condenses: Some(before), ..Thought::new(call, now, degraded, sent) })
    }

    /// What came of it. A summary that could not be had is gone without; a model that cannot be reached is not.
    pub(super) fn condensed(
        &mut self,
        now: Instant,
        thought: &Thought,
        before: usize,
        reply: Result<Reply, ModelError>,
        out: &mut Vec<Output>,
    ) -> Phase {
        let took = now.since(thought.began);
        let summary = match reply {
            Ok(reply) => {
                let model = self.called(thought.degraded).to_owned();
                let usage = self.budget.charge(&model, thought.sent, &reply);
                out.push(log::model_answered(self.budget.steps, took, &reply, &usage));
                out.push(Output::Emit(Up::Usage(usage)));
                reply.text.filter(|text| !text.trim().is_empty())
            }
            Err(error) => {
                self.failed_call(thought, took, &error, out);
                if error.kind != ModelErrorKind::TooLong && !self.budget.is_overdue(now) {
                    let model = self.called(thought.degraded);
                    return self.fail(error.kind.fails_as(), format!("model {model}: {error}"), out);
                }
                None
            }
        };
        let told = summary.is_some();
        let folded = compact::fold(&mut self.history, summary);
        self.record_compacted(out);
        out.push(log::compacted(self.budget.steps, before, self.history.bytes, folded, told));
        self.boundary(now, out)
    }
}

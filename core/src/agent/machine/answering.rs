//! What a reply comes to (S7.4), and when an answer is one (S7.8).

use super::{Loop, Phase, Thought, acting};
use crate::agent::finish::{Verdict, verdict};
use crate::agent::{Output, answer, log, prompt};
use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use crate::model::{ModelError, ModelErrorKind, Reply};
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::{FailKind, LoopEnd};

impl Loop {
    pub(super) fn replied(
        &mut self,
        now: Instant,
        thought: &Thought,
        reply: Result<Reply, ModelError>,
        out: &mut Vec<Output>,
    ) -> Phase {
        if let Some(before) = thought.condenses {
            return self.condensed(now, thought, before, reply, out);
        }
        let took = now.since(thought.began);
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                self.failed_call(thought, took, &error, out);
                if self.budget.is_overdue(now) {
                    return self.out_of_time(out);
                }
                if error.kind == ModelErrorKind::TooLong {
                    return self.too_long(now, &error, out);
                }
                let model = self.called(thought.degraded);
                return self.fail(error.kind.fails_as(), format!("model {model}: {error}"), out);
            }
        };
        self.turn.compacted = false;
        let model = self.called(thought.degraded).to_owned();
        let usage = self.budget.charge(&model, thought.sent, &reply);
        out.push(log::model_answered(self.budget.steps, took, &reply, &usage));
        out.push(Output::Emit(Up::Usage(usage)));
        let said = reply.text.as_ref().filter(|text| !text.trim().is_empty()).cloned();
        let verdict = verdict(said.is_some(), !reply.calls.is_empty(), &reply.finish);
        if said.is_some() {
            self.turn.last_text.clone_from(&said);
        }
        if verdict != Verdict::Empty {
            self.turn.empty_before = false;
        }
        match verdict {
            Verdict::Refused => {
                self.history.answered(said);
                self.finish(LoopEnd::Refused, Some("the model's provider refused to answer".to_owned()), out)
            }
            Verdict::Calls | Verdict::CutCalls | Verdict::Answer { .. } if thought.last => {
                self.last_answer(now, said, reply, out)
            }
            Verdict::Calls if self.budget.is_overdue(now) => {
                self.act(now, said, reply, Some("the call was not made: the run is out of time"), out)
            }
            Verdict::Calls => self.act(now, said, reply, None, out),
            Verdict::CutCalls => self.act(now, said, reply, Some(acting::CUT), out),
            Verdict::Answer { partial } => {
                self.history.answered(said);
                if self.budget.is_overdue(now) {
                    self.out_of_time(out)
                } else {
                    self.answered(now, partial, out)
                }
            }
            Verdict::Empty => self.empty(now, thought.last, out),
        }
    }

    /// The last text is a final answer, unless there is something the model is still to be told or it does not fit.
    fn answered(&mut self, now: Instant, partial: bool, out: &mut Vec<Output>) -> Phase {
        if self.is_to_go_on(now) {
            return self.boundary(now, out);
        }
        match self.fit() {
            Ok(()) => self.complete(partial, out),
            Err(misfits) if self.turn.corrected => self.never_fits(&misfits, out),
            Err(misfits) => {
                self.turn.corrected = true;
                out.push(log::misfit(self.budget.steps, misfits.len()));
                self.history.told(prompt::misfit(&misfits));
                self.boundary(now, out)
            }
        }
    }

    /// Whether a steer waits that the answer does not know of, and can still be told.
    pub(super) fn is_to_go_on(&self, now: Instant) -> bool {
        !self.steers.is_empty() && self.budget.exhausted(now).is_none()
    }

    /// Holds the last text against the schema, and keeps the JSON of it.
    pub(super) fn fit(&mut self) -> Result<(), Vec<String>> {
        let (Some(schema), Some(text)) = (&self.schema, &self.turn.last_text) else { return Ok(()) };
        self.turn.last_text = Some(answer::fitting(schema, text)?);
        Ok(())
    }

    pub(super) fn never_fits(&mut self, misfits: &[String], out: &mut Vec<Output>) -> Phase {
        out.push(log::misfit(self.budget.steps, misfits.len()));
        let first = preview(misfits.join("; "), 2 * PREVIEW_BYTES);
        self.fail(
            FailKind::Schema,
            format!("schema: the answer does not fit output_schema, twice: {first}"),
            out,
        )
    }

    /// What came of the last call of a turn that is to be finished. Its text is the result as it is: a schema is not
    /// held against work that was cut short, only its JSON is kept where it fits. Without a text the one before
    /// stands.
    fn last_answer(
        &mut self,
        now: Instant,
        said: Option<String>,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Phase {
        if reply.calls.is_empty() {
            self.history.answered(said);
        } else {
            self.round(now, said, reply, Some(acting::NO_MORE), out).close("", &mut self.history);
        }
        if self.budget.is_overdue(now) {
            return self.out_of_time(out);
        }
        if self.turn.last_text.is_none() {
            return self.empty(now, true, out);
        }
        let _stands_anyway = self.fit();
        self.complete(true, out)
    }

    /// A reply with nothing in it.
    fn empty(&mut self, now: Instant, last: bool, out: &mut Vec<Output>) -> Phase {
        if last && self.turn.last_text.is_some() {
            return if self.budget.is_overdue(now) {
                self.out_of_time(out)
            } else {
                self.complete(true, out)
            };
        }
        if self.turn.empty_before {
            let error = "empty reply: the model gave neither text nor calls, twice in a row";
            return self.fail(FailKind::EmptyReply, error.to_owned(), out);
        }
        self.turn.empty_before = true;
        self.boundary(now, out)
    }
}

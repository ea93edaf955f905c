//! The loop's states and what moves it between them.

mod acting;

use crate::agent::budget::{Budget, estimate};
use crate::agent::catalogue::Catalogue;
use crate::agent::finish::{Verdict, verdict};
use crate::agent::history::History;
use crate::agent::round::Round;
use crate::agent::{Input, Output, Terminal, Tool, log, prompt};
use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use crate::model::{Message, ModelError, ModelRequest, Reply};
use crate::policy::Grant;
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::{FailKind, Failed, LoopEnd, LoopEvidence, RunResult, Spawn, State, WaitingOn};
use std::mem;
use std::sync::Arc;

/// One run's loop. It begins at [`Input::Start`], ends with one [`Output::Finish`], and ignores everything
/// after that.
#[derive(Debug)]
pub struct Loop {
    phase: Phase,
    model: String,
    system: String,
    catalogue: Catalogue,
    history: History,
    budget: Budget,
    repeats: u32,
    result_bytes: usize,
    evidence: LoopEvidence,
    last_text: Option<String>,
    /// The reply before was empty; a second one ends the run (S7.4).
    empty_before: bool,
    next_call: u64,
    /// The last state that was told.
    told: Option<State>,
    /// To tell at the start: what is odd about the grant.
    remarks: Vec<Output>,
}

#[derive(Debug)]
enum Phase {
    /// Not begun.
    Waiting,
    /// A model call is in flight.
    Thinking(Thought),
    /// Tool calls are in flight.
    Acting(Round),
    Ended,
}

#[derive(Debug)]
struct Thought {
    call: u64,
    began: Instant,
    /// Bytes of the request, for estimates.
    sent: usize,
}

impl Loop {
    /// A loop for the run that `spec` describes, over the tools of `catalogue`: those of servers that the
    /// grant does not allow are left out here once more. `missing` are the servers it goes on without. The
    /// deadline counts from `since`, the time of `ready`.
    pub fn new(spec: &Spawn, catalogue: Vec<Tool>, missing: Vec<String>, since: Instant) -> Loop {
        let (grant, problems) = Grant::minted(spec.tools.as_deref());
        let catalogue = Catalogue::new(catalogue, &grant);
        let mut remarks: Vec<Output> = problems.iter().map(log::unreadable_grant).collect();
        remarks.extend(catalogue.unmatched(&grant).into_iter().map(log::unmatched_grant));
        remarks.push(log::tools(&catalogue));
        Loop {
            phase: Phase::Waiting,
            model: spec.model.name.clone(),
            system: prompt::system(spec, &missing),
            history: History::new(prompt::opening(spec)),
            budget: Budget::new(spec.limits.clone(), since),
            repeats: spec.limits.repeats,
            result_bytes: usize::try_from(spec.limits.tool_result_bytes).unwrap_or(usize::MAX),
            evidence: LoopEvidence::default(),
            last_text: None,
            empty_before: false,
            next_call: 1,
            told: None,
            catalogue,
            remarks,
        }
    }

    /// Takes one input and appends what is to be done.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let phase = match (mem::replace(&mut self.phase, Phase::Ended), input) {
            (Phase::Ended, _) => Phase::Ended,
            (phase, Input::Cancel { reason }) => {
                let why = format!("cancelled: {}", preview(&reason, PREVIEW_BYTES));
                self.stop(now, phase, LoopEnd::Cancelled, why, out)
            }
            (Phase::Waiting, Input::Start) => {
                out.append(&mut self.remarks);
                self.boundary(now, out)
            }
            (Phase::Thinking(thought), Input::ModelReply { call, reply }) if call == thought.call => {
                self.replied(now, &thought, reply, out)
            }
            (Phase::Acting(round), Input::ToolDone { call, outcome }) => {
                self.tool_done(now, round, call, outcome, out)
            }
            // A second start, time passing, and answers that nobody waits for any more.
            (
                phase @ (Phase::Waiting | Phase::Thinking(_) | Phase::Acting(_)),
                Input::Start | Input::ModelReply { .. } | Input::ToolDone { .. } | Input::Tick,
            ) => phase,
        };
        self.phase = match phase {
            Phase::Ended => Phase::Ended,
            // The deadline bounds what is in flight, whichever input it is noticed at.
            phase @ (Phase::Waiting | Phase::Thinking(_) | Phase::Acting(_))
                if self.budget.is_overdue(now) =>
            {
                self.stop(now, phase, LoopEnd::Deadline, self.budget.overdue(), out)
            }
            phase @ (Phase::Waiting | Phase::Thinking(_) | Phase::Acting(_)) => phase,
        };
    }

    /// When the next [`Input::Tick`] is due; `None` once it has ended.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting | Phase::Thinking(_) | Phase::Acting(_) => Some(self.budget.deadline()),
            Phase::Ended => None,
        }
    }

    /// The messages so far. Calls in flight are not in it yet; once the loop has ended, every call that was
    /// ever made is, with its result.
    pub fn history(&self) -> &[Arc<Message>] {
        self.history.messages()
    }

    /// Between steps: what S7.1 checks, in its order, then the next model call.
    fn boundary(&mut self, now: Instant, out: &mut Vec<Output>) -> Phase {
        if let Some((end, why)) = self.budget.exhausted(now) {
            return self.finish(end, Some(why), out);
        }
        let call = self.mint();
        self.budget.steps += 1;
        self.evidence.model_calls = self.budget.steps;
        let request = ModelRequest {
            model: self.model.clone(),
            system: self.system.clone(),
            messages: self.history.messages().to_vec(),
            context: self.history.context,
            tools: self.catalogue.offered.clone(),
            names: self.catalogue.names.clone(),
            step: self.budget.steps,
            tokens_left: self.budget.tokens_left(),
        };
        let sent = self.system.len() + self.catalogue.bytes + self.history.bytes;
        self.tell(WaitingOn::Model, Some(estimate(sent)), out);
        out.push(Output::CallModel { call, request: Box::new(request) });
        Phase::Thinking(Thought { call, began: now, sent })
    }

    fn replied(
        &mut self,
        now: Instant,
        thought: &Thought,
        reply: Result<Reply, ModelError>,
        out: &mut Vec<Output>,
    ) -> Phase {
        let took = now.since(thought.began);
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                out.push(log::model_failed(self.budget.steps, took, &error));
                if self.budget.is_overdue(now) {
                    return self.out_of_time(out);
                }
                return self.fail(FailKind::Model, format!("model {}: {error}", self.model), out);
            }
        };
        let usage = self.budget.charge(&self.model, thought.sent, &reply);
        out.push(log::model_answered(self.budget.steps, took, &reply, &usage));
        out.push(Output::Emit(Up::Usage(usage)));
        let said = reply.text.as_ref().filter(|text| !text.trim().is_empty());
        let verdict = verdict(said.is_some(), !reply.calls.is_empty(), &reply.finish);
        if let Some(text) = said {
            self.last_text = Some(text.clone());
        }
        if verdict != Verdict::Empty {
            self.empty_before = false;
        }
        let said = said.cloned();
        match verdict {
            Verdict::Calls if self.budget.is_overdue(now) => {
                self.act(now, said, reply, Some("the call was not made: the run is out of time"), out)
            }
            Verdict::Calls => self.act(now, said, reply, None, out),
            Verdict::CutCalls => self.act(now, said, reply, Some(acting::CUT), out),
            Verdict::Answer { partial } => {
                self.history.answered(said);
                if self.budget.is_overdue(now) { self.out_of_time(out) } else { self.complete(partial, out) }
            }
            Verdict::Refused => {
                self.history.answered(said);
                self.finish(LoopEnd::Refused, Some("the model's provider refused to answer".to_owned()), out)
            }
            Verdict::Empty if self.empty_before => {
                let error = "empty reply: the model gave neither text nor calls, twice in a row";
                self.fail(FailKind::EmptyReply, error.to_owned(), out)
            }
            Verdict::Empty => {
                self.empty_before = true;
                self.boundary(now, out)
            }
        }
    }

    /// Ends the run from wherever it is: what is in flight is abandoned, and every open call is answered in
    /// the history.
    fn stop(
        &mut self,
        now: Instant,
        phase: Phase,
        end: LoopEnd,
        why: String,
        out: &mut Vec<Output>,
    ) -> Phase {
        match phase {
            Phase::Waiting | Phase::Ended => {}
            Phase::Thinking(thought) => {
                out.push(Output::AbandonModel { call: thought.call });
                let usage = self.budget.charge_cut(&self.model, thought.sent);
                out.push(log::model_abandoned(self.budget.steps, now.since(thought.began), &why));
                out.push(Output::Emit(Up::Usage(usage)));
            }
            Phase::Acting(round) => {
                for slot in &round.slots {
                    if let Some(call) = slot.number() {
                        out.push(Output::AbandonTool { call });
                        out.push(log::tool_called(slot, now.since(round.began), true));
                    }
                }
                self.observe(round, &why);
            }
        }
        self.finish(end, Some(why), out)
    }

    fn out_of_time(&mut self, out: &mut Vec<Output>) -> Phase {
        self.finish(LoopEnd::Deadline, Some(self.budget.overdue()), out)
    }

    fn complete(&mut self, partial: bool, out: &mut Vec<Output>) -> Phase {
        self.result(LoopEnd::Completed, partial, None, out)
    }

    /// Ends the run without a full answer: the last text stands for it.
    fn finish(&mut self, end: LoopEnd, error: Option<String>, out: &mut Vec<Output>) -> Phase {
        self.result(end, true, error, out)
    }

    fn result(&mut self, end: LoopEnd, partial: bool, error: Option<String>, out: &mut Vec<Output>) -> Phase {
        let text = self.last_text.take();
        let result = RunResult { end, text, partial, error, evidence: self.evidence };
        out.push(Output::Finish(Terminal::Result(result)));
        Phase::Ended
    }

    fn fail(&mut self, kind: FailKind, error: String, out: &mut Vec<Output>) -> Phase {
        let failed = Failed { kind, error, text: self.last_text.take(), evidence: self.evidence };
        out.push(Output::Finish(Terminal::Failed(failed)));
        Phase::Ended
    }

    /// Tells what the run waits on, when that is news; `in_flight` is what a model call has sent, in tokens.
    fn tell(&mut self, waiting_on: WaitingOn, in_flight: Option<u64>, out: &mut Vec<Output>) {
        let state = State { waiting_on, step: self.budget.steps, evidence: self.evidence, in_flight };
        if self.told.as_ref() != Some(&state) {
            out.push(Output::Emit(Up::State(state.clone())));
            self.told = Some(state);
        }
    }

    fn mint(&mut self) -> u64 {
        let call = self.next_call;
        self.next_call += 1;
        call
    }
}

//! From a reply with calls to the results that the model sees next (S6.6, S7.3).

use super::{Loop, Phase};
use crate::agent::history::past_call;
use crate::agent::round::{Round, Slot, SlotState, text};
use crate::agent::{Output, ToolOutcome, bound, log};
use crate::limits::CALLS_PER_MESSAGE;
use crate::model::Reply;
use crate::time::Instant;
use crate::wire::message::LoopEnd;

/// Result of a call in a reply that was cut.
pub(super) const CUT: &str = "the call was not made: the reply was cut at its length limit, so the call may be incomplete; \
                   make it again with less in one reply";

impl Loop {
    /// Makes the calls of a reply. What cannot be called has its result at once; with `instead`, none is
    /// made and that is every call's result.
    pub(super) fn act(
        &mut self,
        now: Instant,
        said: Option<String>,
        reply: Reply,
        instead: Option<&str>,
        out: &mut Vec<Output>,
    ) -> Phase {
        let mut round = Round { text: said, began: now, slots: Vec::with_capacity(reply.calls.len()) };
        for (index, call) in reply.calls.iter().enumerate() {
            self.evidence.tool_calls = self.evidence.tool_calls.saturating_add(1);
            let id = self.history.id(&call.id);
            let resolved = match instead {
                Some(text) => Err(text.to_owned()),
                None if index >= CALLS_PER_MESSAGE => Err(too_many()),
                None => self.catalogue.resolve(call),
            };
            let slot = match resolved {
                Ok((source, name, args)) => {
                    let number = self.mint();
                    let call = past_call(&id, call, Some(args.clone()));
                    let state = SlotState::Open { number, source: source.clone() };
                    let slot = Slot { call, label: name.clone(), state };
                    out.push(Output::CallTool { call: number, call_id: id, source, name, args });
                    slot
                }
                Err(text) => {
                    let label = self.catalogue.label(&call.name);
                    let call = past_call(&id, call, None);
                    let mut slot =
                        Slot { call, label, state: SlotState::Done { error: true, text: String::new() } };
                    self.settle(&mut slot, now, now, true, text, out);
                    slot
                }
            };
            round.slots.push(slot);
        }
        self.act_on(now, round, out)
    }

    pub(super) fn tool_done(
        &mut self,
        now: Instant,
        mut round: Round,
        call: u64,
        outcome: ToolOutcome,
        out: &mut Vec<Output>,
    ) -> Phase {
        let began = round.began;
        if let Some(slot) = round.open(call) {
            let error = outcome.error;
            self.settle(slot, began, now, error, bound::bounded(text(outcome), self.result_bytes), out);
            return self.act_on(now, round, out);
        }
        Phase::Acting(round)
    }

    /// Gives a call its result.
    fn settle(
        &mut self,
        slot: &mut Slot,
        began: Instant,
        now: Instant,
        error: bool,
        text: String,
        out: &mut Vec<Output>,
    ) {
        if error {
            self.evidence.tool_errors = self.evidence.tool_errors.saturating_add(1);
        }
        out.push(log::tool_called(slot, now.since(began), error));
        slot.state = SlotState::Done { error, text };
    }

    /// Waits for the calls that are open; when none is, the model sees the results.
    fn act_on(&mut self, now: Instant, round: Round, out: &mut Vec<Output>) -> Phase {
        if !round.is_done() {
            self.tell(round.waiting_on(), None, out);
            return Phase::Acting(round);
        }
        self.observe(round, "");
        if self.budget.is_overdue(now) {
            return self.out_of_time(out);
        }
        if self.repeats > 0 && self.history.streak >= self.repeats {
            let why = format!(
                "the same calls with the same arguments gave the same results {} times in a row \
                 (limits.repeats)",
                self.history.streak
            );
            return self.finish(LoopEnd::LoopDetected, Some(why), out);
        }
        self.boundary(now, out)
    }

    pub(super) fn observe(&mut self, round: Round, unanswered: &str) {
        let (text, calls, results) = round.close(unanswered);
        self.history.observed(text, calls, results);
    }
}

fn too_many() -> String {
    format!(
        "the call was not made: one message runs at most {CALLS_PER_MESSAGE} calls; make it in a later message"
    )
}

//! From a reply with calls to the results that the model sees next (S6.6, S7.3), and the loop's own `finish`.

use super::{Finishing as TurnFinishing, Loop, Phase};
use crate::agent::catalogue::{Answerer, Resolved, arguments};
use crate::agent::history::{fingerprint, past_call};
use crate::agent::round::{Finishing, Round, Slot, SlotState, text};
use crate::agent::{Output, ToolOutcome, ToolSource, bound, log, prompt};
use crate::bytes::Json;
use crate::limits::CALLS_PER_MESSAGE;
use crate::model::{Call, Reply};
use crate::time::Instant;
use crate::wire::message::LoopEnd;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Result of a call in a reply that was cut.
pub(super) const CUT: &str = "the call was not made: the reply was cut at its length limit, so the call may be incomplete; \
                   make it again with less in one reply";

/// Result of a call in the last reply of a turn that is to be finished.
pub(super) const NO_MORE: &str =
    "the call was not made: the work is to be finished, and no more tools can be called for it";

const FINISHED: &str = "this is the result; the turn has ended";

const NOT_YET: &str = "the turn has not ended: something came up meanwhile, and it follows; call finish again when it is \
                       dealt with";

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
        let round = self.round(now, said, reply, instead, out);
        self.act_on(now, round, out)
    }

    /// The same, without going on.
    pub(super) fn round(
        &mut self,
        now: Instant,
        said: Option<String>,
        reply: Reply,
        instead: Option<&str>,
        out: &mut Vec<Output>,
    ) -> Round {
        let slots = Vec::with_capacity(reply.calls.len());
        // The calls are written down before any of them is made.
        let mut made = Vec::new();
        let mut round = Round { text: said, began: now, slots, finish: None };
        for (index, call) in reply.calls.iter().enumerate() {
            self.evidence.tool_calls = self.evidence.tool_calls.saturating_add(1);
            let id = self.history.id(&call.id);
            let resolved = match instead {
                Some(text) => Err(text.to_owned()),
                None if index >= CALLS_PER_MESSAGE => Err(too_many()),
                None => self.catalogue.resolve(call),
            };
            let resolved = resolved.and_then(|Resolved { by, name, args }| match by {
                Answerer::Outside(source) => Ok(Some((source, name, args))),
                Answerer::Loop if round.finish.is_some() => Err(twice()),
                Answerer::Loop => {
                    round.finish = Some(Finishing { slot: index, text: finish_text(&args)? });
                    Ok(None)
                }
            });
            let slot = match resolved {
                Ok(Some((source, name, args))) => self.call(id, call, source, name, args, &mut made),
                // It has its result when the others have theirs.
                Ok(None) => self.slot(&id, call, false),
                Err(text) => {
                    let mut slot = self.slot(&id, call, true);
                    self.settle(&mut slot, now, now, true, text, &mut made);
                    slot
                }
            };
            round.slots.push(slot);
        }
        self.record_calls(round.text.as_ref(), round.slots.iter().map(|slot| &slot.call), out);
        out.append(&mut made);
        round
    }

    fn call(
        &mut self,
        id: String,
        call: &Call,
        source: ToolSource,
        name: String,
        args: Json,
        out: &mut Vec<Output>,
    ) -> Slot {
        let number = self.mint();
        let past = past_call(&id, call, Some(args.clone()));
        let state = SlotState::Open { number, source: source.clone() };
        out.push(Output::CallTool { call: number, call_id: id, source, name: name.clone(), args });
        Slot { call: past, unusable: None, label: name, state }
    }

    /// A call that is made nowhere. Its arguments are kept where a provider would take them back.
    fn slot(&self, id: &str, call: &Call, unusable: bool) -> Slot {
        Slot {
            call: past_call(id, call, arguments(&call.args).ok()),
            unusable: unusable.then(|| fingerprint(call)),
            label: self.catalogue.label(&call.name),
            state: SlotState::Done { error: false, text: String::new() },
        }
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
        self.record_result(&slot.call, error, &text, out);
        out.push(log::tool_called(slot, now.since(began), error));
        slot.state = SlotState::Done { error, text };
    }

    /// Waits for the calls that are open; when none is, the model sees the results, or the turn ends with what it
    /// said in `finish`.
    fn act_on(&mut self, now: Instant, mut round: Round, out: &mut Vec<Output>) -> Phase {
        if !round.is_done() {
            self.tell(round.waiting_on(), None, out);
            return Phase::Acting(round);
        }
        if let Some(finish) = round.finish.take() {
            return self.finish_called(now, round, finish, out);
        }
        round.close("", &mut self.history);
        let spins = self.repeats > 0 && self.history.streak >= self.repeats;
        // The deadline comes first; a last call ends the spinning as well, and a steer may.
        let goes_on = self.turn.finish != TurnFinishing::No || !self.steers.is_empty();
        if spins && !goes_on && !self.budget.is_overdue(now) {
            let why = format!(
                "the same calls with the same arguments gave the same results {} times in a row \
                 (limits.repeats)",
                self.history.streak
            );
            return self.finish(LoopEnd::LoopDetected, Some(why), out);
        }
        self.boundary(now, out)
    }

    /// The turn ends with the value that the model called `finish` with, under the rules of any answer.
    fn finish_called(
        &mut self,
        now: Instant,
        mut round: Round,
        finish: Finishing,
        out: &mut Vec<Output>,
    ) -> Phase {
        self.turn.last_text = Some(finish.text);
        let on_time = !self.budget.is_overdue(now);
        let goes_on = self.is_to_go_on(now);
        let fits = if on_time && !goes_on { self.fit() } else { Ok(()) };
        let (error, text) = match &fits {
            Err(misfits) => (true, prompt::misfit(misfits)),
            Ok(()) if goes_on => (false, NOT_YET.to_owned()),
            Ok(()) => (false, FINISHED.to_owned()),
        };
        let began = round.began;
        if let Some(slot) = round.slots.get_mut(finish.slot) {
            self.settle(slot, began, now, error, text, out);
        }
        round.close("", &mut self.history);
        match fits {
            _ if !on_time => self.out_of_time(out),
            Ok(()) if goes_on => self.boundary(now, out),
            Ok(()) => self.complete(false, out),
            Err(misfits) if self.turn.corrected => self.never_fits(&misfits, out),
            Err(misfits) => {
                self.turn.corrected = true;
                out.push(log::misfit(self.budget.steps, misfits.len()));
                self.boundary(now, out)
            }
        }
    }
}

/// The answer in the arguments of `finish`: a string as it is, any other value as its JSON.
fn finish_text(args: &Json) -> Result<String, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        result: Box<RawValue>,
    }
    let expected = "the turn has not ended: the arguments of finish are {\"result\": value}";
    let arguments: Arguments =
        serde_json::from_slice(&args.0).map_err(|error| format!("{expected}; {error}"))?;
    let raw = arguments.result.get();
    let text = if raw.starts_with('"') {
        serde_json::from_str(raw).map_err(|error| format!("{expected}; {error}"))?
    } else {
        raw.to_owned()
    };
    if text.trim().is_empty() { Err(format!("{expected}, and the value is empty")) } else { Ok(text) }
}

fn twice() -> String {
    "the call was not made: finish is called once in a message, and the first one counts".to_owned()
}

fn too_many() -> String {
    format!(
        "the call was not made: one message runs at most {CALLS_PER_MESSAGE} calls; make it in a later message"
    )
}

//! How turns and runs end.

use super::{Loop, Phase};
use crate::agent::{Output, Terminal, log};
use crate::json::preview;
use crate::limits::PREVIEW_BYTES;
use crate::time::Instant;
use crate::wire::message::{FailKind, Failed, LoopEnd, RunResult, Turn, TurnOutcome};

impl Loop {
    /// Ends the run.
    pub(super) fn cancel(
        &mut self,
        now: Instant,
        phase: Phase,
        reason: &str,
        out: &mut Vec<Output>,
    ) -> Phase {
        let why = cancelled(reason);
        self.abandon(now, phase, &why, out);
        let result = self.result(LoopEnd::Cancelled, true, Some(why));
        if !self.turn.over {
            self.record_end(&TurnOutcome::Result(result.clone()), true, out);
        }
        out.push(Output::Finish(Terminal::Result(result)));
        Phase::Ended
    }

    /// Ends the turn in hand, when it is this one.
    pub(super) fn cancel_turn(
        &mut self,
        now: Instant,
        phase: Phase,
        turn: u64,
        reason: &str,
        out: &mut Vec<Output>,
    ) -> Phase {
        if self.turn.over || self.turn.id != turn {
            return phase;
        }
        self.stop(now, phase, LoopEnd::Cancelled, cancelled(reason), out)
    }

    /// Ends the turn from wherever it is.
    pub(super) fn stop(
        &mut self,
        now: Instant,
        phase: Phase,
        end: LoopEnd,
        why: String,
        out: &mut Vec<Output>,
    ) -> Phase {
        let begun = !matches!(phase, Phase::Waiting);
        self.abandon(now, phase, &why, out);
        let ended = self.finish(end, Some(why), out);
        // Before `Start` there is no next turn yet, only its beginning to wait for.
        if begun || matches!(ended, Phase::Ended) { ended } else { Phase::Waiting }
    }

    /// What is in flight is abandoned, and every open call is answered in the history.
    pub(super) fn abandon(&mut self, now: Instant, phase: Phase, why: &str, out: &mut Vec<Output>) {
        match phase {
            Phase::Waiting | Phase::Asking(_) | Phase::Paused(_) | Phase::Idle | Phase::Ended => {}
            Phase::Thinking(thought) => {
                out.push(Output::AbandonModel { call: thought.call });
                out.push(log::model_abandoned(self.budget.steps, now.since(thought.began), why));
                // What a provider has turned away so far costs nothing, and what was cut off before is paid.
                if !thought.held_up && thought.again.is_none() {
                    self.pay_for_cut(&thought, &thought.came, out);
                }
            }
            Phase::Acting(round) => {
                for slot in &round.slots {
                    if let Some(call) = slot.number() {
                        out.push(Output::AbandonTool { call });
                        self.record_result(&slot.call, true, why, out);
                        out.push(log::tool_called(slot, now.since(round.began), true));
                    }
                }
                round.close(why, &mut self.history);
            }
        }
    }

    pub(super) fn out_of_time(&mut self, out: &mut Vec<Output>) -> Phase {
        self.finish(LoopEnd::Deadline, Some(self.budget.overdue()), out)
    }

    /// Ends the turn with its last text as the answer. An answer stands even when the call that gave it took more
    /// tokens than there were: S7.2 forbids the next call, and what is paid for is not thrown away.
    pub(super) fn complete(&mut self, partial: bool, out: &mut Vec<Output>) -> Phase {
        let result = self.result(LoopEnd::Completed, partial, None);
        self.end(TurnOutcome::Result(result), out)
    }

    /// Ends the turn without a full answer: the last text stands for it.
    pub(super) fn finish(&mut self, end: LoopEnd, error: Option<String>, out: &mut Vec<Output>) -> Phase {
        let result = self.result(end, true, error);
        self.end(TurnOutcome::Result(result), out)
    }

    pub(super) fn fail(&mut self, kind: FailKind, error: String, out: &mut Vec<Output>) -> Phase {
        let text = self.turn.last_text.take();
        self.end(TurnOutcome::Failed(Failed { kind, error, text, evidence: self.evidence }), out)
    }

    fn result(&mut self, end: LoopEnd, partial: bool, error: Option<String>) -> RunResult {
        RunResult { end, text: self.turn.last_text.take(), partial, error, evidence: self.evidence }
    }

    /// A warm loop's turn ends and the loop stays, unless the next turn would meet the same.
    fn end(&mut self, outcome: TurnOutcome, out: &mut Vec<Output>) -> Phase {
        self.turn.over = true;
        self.record_end(&outcome, false, out);
        match outcome {
            TurnOutcome::Failed(failed) if !self.warm || ends_run(failed.kind) => {
                out.push(Output::Finish(Terminal::Failed(failed)));
                Phase::Ended
            }
            TurnOutcome::Result(result) if !self.warm => {
                out.push(Output::Finish(Terminal::Result(result)));
                Phase::Ended
            }
            outcome @ (TurnOutcome::Result(_) | TurnOutcome::Failed(_)) => {
                out.push(Output::Turn(Turn { id: self.turn.id, outcome }));
                Phase::Idle
            }
        }
    }
}

/// Whether what gave out stays so. A model connection has been patient before it fails.
fn ends_run(kind: FailKind) -> bool {
    match kind {
        FailKind::Spawn | FailKind::Server | FailKind::Model | FailKind::Reply | FailKind::Internal => true,
        FailKind::EmptyReply | FailKind::Schema | FailKind::Budget => false,
    }
}

fn cancelled(reason: &str) -> String {
    match preview(reason, PREVIEW_BYTES) {
        reason if reason.is_empty() => "cancelled".to_owned(),
        reason => format!("cancelled: {reason}"),
    }
}

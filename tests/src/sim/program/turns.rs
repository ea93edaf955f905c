//! The side of a fake child that has many turns, takes steers and is hurried.

use super::speak;
use super::{Phase, Program};
use crate::sim::plan::{OnTurnCancel, Step, TurnEnd};
use agentd_core::event::Exit;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::Up;
use agentd_core::wire::message::{
    Ack, FailKind, Failed, LoopEnd, LoopEvidence, RunResult, State, Text, Turn, TurnOutcome, WaitingOn,
};

/// What a program knows of its turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    warm: bool,
    in_hand: Option<u64>,
    /// The last message that began a turn.
    last: u64,
    /// Turns begun.
    begun: usize,
    /// When it obeys the cancel of which turn.
    cancelling: Option<(Instant, u64)>,
    /// Steers that it takes at its next step.
    steers: Vec<u64>,
    last_steer: u64,
    /// It is to end with what it has.
    pub(super) finish: bool,
}

impl Turns {
    /// A program that has its spawn frame.
    pub(super) fn begun(warm: bool) -> Turns {
        Turns { warm, in_hand: warm.then_some(1), last: 1, begun: 1, ..Turns::default() }
    }

    /// The message whose turn is in hand.
    pub(super) fn in_hand(&self) -> Option<u64> {
        self.in_hand
    }

    /// When a cancelled turn is obeyed.
    pub(super) fn cancel_due(&self) -> Option<Instant> {
        self.cancelling.map(|(at, _)| at)
    }

    fn is_idle(&self) -> bool {
        self.warm && self.in_hand.is_none()
    }
}

impl Program {
    /// It is in a turn, or has only one.
    pub(super) fn has_work(&self) -> bool {
        !self.turns.is_idle()
    }

    /// What it follows now.
    pub(super) fn steps(&self) -> Option<&[Step]> {
        let script = self.script_of()?;
        if self.turns.is_idle() {
            return Some(&script.between);
        }
        match self.turns.begun {
            0 | 1 => Some(&script.steps),
            n => script.turns.get(n - 2).map(Vec::as_slice),
        }
    }

    /// Between two turns with nothing left to do.
    pub(super) fn is_at_rest(&self) -> bool {
        self.turns.is_idle() && self.step >= self.steps().map_or(0, <[Step]>::len)
    }

    /// A token for what the step asks for that nobody else has.
    pub(super) fn call_token(&self, step: usize) -> String {
        if self.turns.is_idle() {
            format!("{}.b{}.{step}", self.token, self.turns.last)
        } else {
            format!("{}.{step}", self.token)
        }
    }

    /// The next turn.
    pub(super) fn message(&mut self, message: &Text) {
        if !self.turns.warm {
            return self.complain(format!("message {} and is not warm", message.id));
        }
        if let Some(in_hand) = self.turns.in_hand {
            return self.complain(format!("message {} in the turn of {in_hand}", message.id));
        }
        if message.id <= self.turns.last {
            return self.complain(format!("message {} after {}", message.id, self.turns.last));
        }
        let Some((_, token)) = speak::read_instruction(&message.text, message.id) else {
            return self.complain(format!("a message nobody sent: {:?}", message.text));
        };
        self.turns.in_hand = Some(message.id);
        self.turns.last = message.id;
        self.turns.begun += 1;
        self.token = token;
        self.begin_again();
        self.send(&Up::Ack(Ack { id: message.id }));
    }

    /// What it follows begins at its first step, and it waits for nothing.
    fn begin_again(&mut self) {
        (self.step, self.asleep, self.collecting, self.gate) = (0, None, false, None);
    }

    /// Something to be told at its next step.
    pub(super) fn steered(&mut self, steer: &Text) {
        if steer.id <= self.turns.last_steer {
            return self.complain(format!("steer {} after {}", steer.id, self.turns.last_steer));
        }
        self.turns.last_steer = steer.id;
        self.turns.steers.push(steer.id);
    }

    /// Before each step: takes what it was told. Whether it ended by that.
    pub(super) fn boundary(&mut self, now: Instant) -> bool {
        if self.turns.is_idle() {
            return false;
        }
        for id in std::mem::take(&mut self.turns.steers) {
            self.send(&Up::Ack(Ack { id }));
        }
        if !std::mem::take(&mut self.turns.finish) {
            return false;
        }
        let text = Some(format!("token={} so far", self.token));
        match self.turns.in_hand {
            Some(id) => self.tell_turn(id, LoopEnd::Completed, text, true),
            None => {
                self.end_hurried(text);
                self.leave(now, Exit::Code(0));
            }
        }
        true
    }

    fn end_hurried(&mut self, text: Option<String>) {
        self.ended = true;
        let evidence = LoopEvidence { model_calls: 1, ..LoopEvidence::default() };
        let result = RunResult { end: LoopEnd::Completed, text, partial: true, error: None, evidence };
        self.send(&Up::Result(result));
    }

    /// Ends the turn in hand, or says something of a turn that it should not.
    pub(super) fn end_turn(&mut self, how: TurnEnd) {
        let id = self.turns.in_hand.unwrap_or(self.turns.last);
        match how {
            TurnEnd::With(answer) => {
                let (end, text, _) = speak::answer(&self.token, answer);
                self.tell_turn(id, end, Some(text), end != LoopEnd::Completed);
            }
            TurnEnd::Failed => {
                let error = format!("the script of {} says so", self.token);
                let evidence = LoopEvidence::default();
                let failed = Failed { kind: FailKind::EmptyReply, error, text: None, evidence };
                self.over(Turn { id, outcome: TurnOutcome::Failed(failed) });
            }
            TurnEnd::Twice => {
                for _ in 0..2 {
                    let (end, text, _) = speak::answer(&self.token, crate::sim::plan::Answer::Text);
                    self.tell_turn(id, end, Some(text), false);
                }
            }
            TurnEnd::Other => {
                let text = Some(format!("token={}", self.token));
                self.tell_turn(id + 1_000, LoopEnd::Completed, text, false);
            }
        }
    }

    /// It is in a turn of many.
    pub(super) fn has_turn(&self) -> bool {
        self.turns.in_hand.is_some()
    }

    /// Ends the turn in hand: it may spend no more.
    pub(super) fn end_turn_exhausted(&mut self) {
        let id = self.turns.in_hand.unwrap_or(self.turns.last);
        let text = Some(format!("token={} so far", self.token));
        self.tell_turn(id, LoopEnd::ExhaustedTokens, text, true);
    }

    /// Ends the turn in hand: it may spend no more, and that is a failure.
    pub(super) fn end_turn_failed(&mut self, error: String) {
        let id = self.turns.in_hand.unwrap_or(self.turns.last);
        let evidence = LoopEvidence::default();
        let failed = Failed { kind: FailKind::Budget, error, text: None, evidence };
        self.over(Turn { id, outcome: TurnOutcome::Failed(failed) });
    }

    fn tell_turn(&mut self, id: u64, end: LoopEnd, text: Option<String>, partial: bool) {
        let evidence = LoopEvidence { model_calls: 1, ..LoopEvidence::default() };
        let error = (end != LoopEnd::Completed).then(|| "as the script says".to_owned());
        let result = RunResult { end, text, partial, error, evidence };
        self.over(Turn { id, outcome: TurnOutcome::Result(result) });
    }

    fn over(&mut self, turn: Turn) {
        self.send(&Up::Turn(turn));
        if !self.turns.warm {
            return;
        }
        // What it does between turns is done once.
        if self.turns.in_hand.take().is_none() {
            return;
        }
        self.turns.cancelling = None;
        self.turns.finish = false;
        self.begin_again();
        self.send(&Up::State(State::of(WaitingOn::Message, 1)));
    }

    /// Only the turn in hand is to end.
    pub(super) fn turn_cancelled(&mut self, now: Instant, turn: u64) {
        if self.turns.in_hand != Some(turn) || matches!(self.phase, Phase::Leaving(Some(_), _)) {
            return;
        }
        match self.nature().on_turn_cancel {
            OnTurnCancel::Obeys(ms) => {
                self.turns.cancelling = Some((now + Duration::from_millis(ms), turn));
            }
            OnTurnCancel::EndsItself => {
                self.begin_early();
                self.cut_call();
                self.end_with(LoopEnd::Cancelled, None, None);
                self.leave(now, Exit::Code(0));
            }
            OnTurnCancel::Leaves => self.leave(now, Exit::Code(0)),
            OnTurnCancel::Ignores => {}
        }
    }

    /// Obeys the cancel of a turn that is still in hand.
    pub(super) fn cancel_turn_due(&mut self, now: Instant) {
        let Some((_, turn)) = self.turns.cancelling.filter(|(at, _)| *at <= now) else { return };
        self.turns.cancelling = None;
        if self.turns.in_hand == Some(turn) && !matches!(self.phase, Phase::Leaving(..)) {
            self.begin_early();
            self.cut_call();
            self.tell_turn(turn, LoopEnd::Cancelled, None, true);
        }
    }

    /// Who speaks says first that it is ready.
    fn begin_early(&mut self) {
        if let Phase::Starting(Some(_)) = self.phase {
            self.say_ready();
            self.phase = Phase::Working;
        }
    }

    /// Calls a tool that tells a run something, so many times.
    pub(super) fn talk(&mut self, tool: &str, step: usize, handle: u64, times: u32) {
        for i in 0..times {
            let token = format!("{}.{i}", self.call_token(step));
            self.ask(tool, &token, speak::talk_args(handle, &token));
        }
    }
}

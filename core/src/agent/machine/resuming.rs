//! A past that an earlier process wrote down is taken up again (S11.6): no model call that it holds is made a second time,
//! and a turn that ended in it is told as it ended.

use super::{Loop, Phase, Turn};
use crate::agent::history::History;
use crate::agent::{Output, Terminal};
use crate::time::Instant;
use crate::transcript::{Item, Past};
use crate::wire::message::{self, Begins, TurnOutcome};

/// What is still to be told or gone on with of a past.
#[derive(Debug, Default)]
pub(super) struct TakenUp {
    /// How the instruction's turn ended: whoever supervises waits for it first.
    first: Option<TurnOutcome>,
    /// The last turn that ended, for who has not heard so.
    ended: Option<(u64, TurnOutcome)>,
    /// An answer that was to end the turn in hand: its text, and whether it is partial.
    answered: Option<(String, bool)>,
    /// The turn that was in hand: its message is in the history.
    interrupted: Option<u64>,
}

/// What a message to a run with a past means.
pub(super) enum Known {
    /// Nothing: it is news.
    New,
    /// Its turn goes on.
    Begun,
    /// Its turn is over.
    Over(TurnOutcome),
}

impl Loop {
    /// The same loop with the past of an earlier process, before its `Start`. Where that says nothing of use it begins
    /// as it would have.
    #[must_use]
    pub fn taking_up(mut self, past: Past, begins: Begins) -> Loop {
        if past.turn == 0 || begins == Begins::Anew {
            return self;
        }
        let in_turn = past.is_in_turn();
        let Past {
            messages, context, begins: from, turn, turns, answered, first, ended, steps, tokens, ..
        } = past;
        self.history = History::taken_up(messages, context, from);
        let orphans = past.orphans.into_iter().map(Item::ToolResult);
        if begins == Begins::After {
            let asked = self.opening.pop();
            self.opening = orphans.chain(asked).collect();
            if let Some(Item::Turn { text, .. }) = self.opening.last() {
                self.history.begin_turn(text.clone());
            }
            return self;
        }
        self.opening = orphans.collect();
        // Of many turns the first is the one that is waited for, until a message asks for another.
        let is_first = !self.warm || turn == 1;
        self.turn = Turn::new(if self.warm { 1 } else { turn }, turns);
        if in_turn {
            self.budget.take_up(steps, tokens);
        }
        let interrupted = (in_turn && !is_first).then_some(turn);
        let answered = answered.filter(|_| in_turn);
        self.taken_up = TakenUp { answered, first: first.filter(|_| self.warm), ended, interrupted };
        self
    }

    /// What `Start` means to a run with a past: the end of its turn, if that is known.
    pub(super) fn known_end(&mut self) -> Option<TurnOutcome> {
        match self.warm {
            true => self.taken_up.first.take(),
            false => self.taken_up.ended.take().map(|(_, outcome)| outcome),
        }
    }

    /// What a message means to a run with a past.
    pub(super) fn known(&mut self, id: u64) -> Known {
        if self.taken_up.interrupted.take_if(|turn| *turn == id).is_some() {
            return Known::Begun;
        }
        match self.taken_up.ended.take_if(|(turn, _)| *turn == id) {
            Some((_, outcome)) => Known::Over(outcome),
            None => Known::New,
        }
    }

    /// Goes on with the turn in hand: with the next model call, or with the answer that was to end it.
    pub(super) fn go_on_again(&mut self, now: Instant, out: &mut Vec<Output>) -> Phase {
        match self.taken_up.answered.take() {
            Some((text, partial)) => {
                self.turn.last_text = Some(text);
                self.answered(now, partial, out)
            }
            None => self.boundary(now, out),
        }
    }

    /// Tells an end that is in the transcript.
    pub(super) fn end_again(&mut self, outcome: TurnOutcome, out: &mut Vec<Output>) -> Phase {
        self.turn.over = true;
        if self.warm {
            out.push(Output::Turn(message::Turn { id: self.turn.id, outcome }));
            return Phase::Idle;
        }
        out.push(Output::Finish(match outcome {
            TurnOutcome::Result(result) => Terminal::Result(result),
            TurnOutcome::Failed(failed) => Terminal::Failed(failed),
        }));
        Phase::Ended
    }
}

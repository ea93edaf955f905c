//! A past that an earlier process wrote down is taken up again (S11.6): no model call that it holds is made a second time,
//! and a turn that ended in it is told as it ended.

use super::{Loop, Phase, Turn};
use crate::agent::history::History;
use crate::agent::{Output, Terminal};
use crate::time::Instant;
use crate::transcript::{Item, Past};
use crate::wire::message::{self, Begins, Role, Spawn, TurnOutcome};

/// What is still to be told or gone on with of a past.
#[derive(Debug, Default)]
pub(super) struct TakenUp {
    /// How the turn of the instruction ended: whoever supervises waits for it first.
    known: Option<TurnOutcome>,
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
    /// The same loop with the past that its transcript holds, before its `Start`. Where that says nothing of use it begins
    /// as it would have.
    #[must_use]
    pub fn taking_up(mut self, past: Past, spec: &Spawn) -> Loop {
        let Some(begins) = spec.transcript.as_ref().map(|transcript| transcript.begins) else { return self };
        if past.turn == 0 || begins == Begins::Anew {
            return self;
        }
        let asked = self.turn.written;
        let knows = match spec.role {
            // A conversation's file holds turns of other workers; the one that is asked for may not be in it yet.
            Role::Worker => past.run == Some(spec.run_id) && past.turn == asked,
            // What was written of a subagent begins with its instruction.
            Role::Subagent => true,
        };
        let in_turn = past.is_in_turn();
        let Past { messages, context, begins: from, turn, turns, answered, first, ended, .. } = past;
        self.history = History::taken_up(messages, context, from);
        let orphans = past.orphans.into_iter().map(Item::ToolResult);
        if begins == Begins::After || !knows {
            let next = self.opening.pop();
            self.opening = orphans.chain(next).collect();
            if let Some(Item::Turn { text, .. }) = self.opening.last() {
                self.history.begin_turn(text.clone());
            }
            self.turn.number = turns.saturating_add(1);
            return self;
        }
        self.opening = orphans.collect();
        self.turn = Turn { written: asked, ..Turn::new(1, turns) };
        if in_turn {
            self.budget.take_up(past.steps, past.tokens);
        }
        // Whoever supervises waits for the turn of the instruction first, and asks for later ones.
        let is_asked = |of: &(u64, TurnOutcome)| of.0 == asked;
        let known =
            ended.clone().filter(is_asked).map(|(_, outcome)| outcome).or(first.filter(|_| asked == 1));
        self.taken_up = TakenUp {
            known: known.filter(|_| !(in_turn && turn == asked)),
            ended: ended.filter(|of| !is_asked(of)),
            answered: answered.filter(|_| in_turn),
            interrupted: (in_turn && turn != asked).then_some(turn),
        };
        self
    }

    /// The end of the turn that `Start` begins, if it is known.
    pub(super) fn known_end(&mut self) -> Option<TurnOutcome> {
        self.taken_up.known.take()
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

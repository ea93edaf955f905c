//! What the supervisor says while a run is under way: messages, steers, finish, pause (S6.3, S6.9), and what the
//! model connection says of its waits.

use super::resuming::Known;
use super::{Finishing, Loop, Phase, Thought, Turn};
use crate::agent::budget::estimate;
use crate::agent::{Output, prompt};
use crate::limits::MESSAGES_WAITING;
use crate::time::Instant;
use crate::wire::Up;
use crate::wire::message::{Ack, FailKind, Text, WaitingOn};
use std::mem;

impl Loop {
    pub(super) fn start(&mut self, now: Instant, out: &mut Vec<Output>) -> Phase {
        out.append(&mut self.remarks);
        match self.known_end() {
            // Its first turn may have been cancelled before it began.
            _ if self.turn.over => Phase::Idle,
            Some(outcome) => self.end_again(outcome, out),
            None => {
                self.take_swap(false, out);
                self.go_on_again(now, out)
            }
        }
    }

    /// Begins a message's turn.
    pub(super) fn begin(&mut self, now: Instant, message: Text, out: &mut Vec<Output>) -> Phase {
        let known = self.known(message.id);
        self.turn = Turn::new(message.id, self.turn.number.saturating_add(1));
        match known {
            Known::New => {
                self.budget.renew(now);
                self.record_turn(&message.text, out);
                self.history.begin_turn(message.text);
            }
            Known::Begun => {
                self.turn.number -= 1;
                out.push(Output::Emit(Up::Ack(Ack { id: message.id })));
                return self.go_on_again(now, out);
            }
            Known::Over(outcome) => {
                self.turn.number -= 1;
                out.push(Output::Emit(Up::Ack(Ack { id: message.id })));
                return self.end_again(outcome, out);
            }
        }
        out.push(Output::Emit(Up::Ack(Ack { id: message.id })));
        self.boundary(now, out)
    }

    /// Every message has its turn, in order: one that comes early waits.
    pub(super) fn message(
        &mut self,
        now: Instant,
        phase: Phase,
        message: Text,
        out: &mut Vec<Output>,
    ) -> Phase {
        if !self.warm || !self.is_new(message.id) {
            return phase;
        }
        if self.messages.len() >= MESSAGES_WAITING {
            return self.flooded(now, phase, "messages", out);
        }
        self.messages.push_back(message);
        phase
    }

    pub(super) fn steer(&mut self, now: Instant, phase: Phase, steer: Text, out: &mut Vec<Output>) -> Phase {
        if !self.is_new(steer.id) {
            return phase;
        }
        if self.steers.len() >= MESSAGES_WAITING {
            return self.flooded(now, phase, "steers", out);
        }
        self.steers.push_back(steer);
        phase
    }

    pub(super) fn ask_to_finish(&mut self, phase: Phase, reason: String) -> Phase {
        if !self.turn.over && self.turn.finish == Finishing::No {
            self.turn.finish = Finishing::Asked(reason);
        }
        phase
    }

    pub(super) fn resume(&mut self, now: Instant, phase: Phase, out: &mut Vec<Output>) -> Phase {
        self.paused = false;
        match phase {
            Phase::Paused(since) => {
                self.budget.forgive(now.since(since));
                self.boundary(now, out)
            }
            Phase::Waiting
            | Phase::Asking(_)
            | Phase::Thinking(_)
            | Phase::Acting(_)
            | Phase::Idle
            | Phase::Ended => phase,
        }
    }

    pub(super) fn held_up(&mut self, thought: Thought, until: Option<u64>, out: &mut Vec<Output>) -> Phase {
        match until {
            Some(until) => self.tell(WaitingOn::Throttled(until), None, out),
            None => self.tell(WaitingOn::Model, Some(estimate(thought.sent)), out),
        }
        Phase::Thinking(Thought { held_up: until.is_some(), ..thought })
    }

    /// Puts what waits to be told into the history.
    pub(super) fn tell_steers(&mut self, out: &mut Vec<Output>) {
        for steer in mem::take(&mut self.steers) {
            self.say(steer.text, out);
            out.push(Output::Emit(Up::Ack(Ack { id: steer.id })));
        }
    }

    /// Whether the next model call is the last of its turn; the model is told so once.
    pub(super) fn tell_to_finish(&mut self, out: &mut Vec<Output>) -> bool {
        match mem::replace(&mut self.turn.finish, Finishing::Told) {
            Finishing::No => {
                self.turn.finish = Finishing::No;
                false
            }
            Finishing::Asked(reason) => {
                self.say(prompt::finish(&reason), out);
                true
            }
            Finishing::Told => true,
        }
    }

    /// Ids rise, so one that does not has come before.
    pub(super) fn is_new(&mut self, id: u64) -> bool {
        let new = id > self.last_id;
        self.last_id = self.last_id.max(id);
        new
    }

    fn flooded(&mut self, now: Instant, phase: Phase, what: &str, out: &mut Vec<Output>) -> Phase {
        let error = format!("the supervisor sent more than {MESSAGES_WAITING} {what} ahead");
        self.abandon(now, phase, &error, out);
        self.fail(FailKind::Internal, error, out)
    }
}

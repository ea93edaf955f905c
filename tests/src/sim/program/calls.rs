//! How a fake child makes model calls that cost something: it asks before each where it has to, makes none that it was
//! not granted, and tells what each has used.

use super::{Phase, Program};
use agentd_core::event::Exit;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::Up;
use agentd_core::wire::message::{
    BudgetGrant, BudgetRequest, BudgetVerdict, FailKind, Failed, LoopEnd, LoopEvidence, Spawn, State, Usage,
    WaitingOn,
};

/// A call as its script has it.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    used: u64,
    ms: u64,
}

/// What a program knows of its calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The model it was given, and the one that it may be told to use instead.
    own: String,
    cheaper: Option<String>,
    /// It asks before each.
    pub(super) asks: bool,
    /// Questions so far, and the last one that was answered.
    asked: u64,
    answered: u64,
    /// What the open question is about.
    wanted: Option<Wanted>,
    /// Tokens of the call in flight, and of which model.
    in_flight: Option<(u64, String)>,
}

impl Calls {
    pub(super) fn of(spawn: &Spawn) -> Calls {
        let cheaper = spawn.budget.as_ref().and_then(|budget| budget.degraded.as_ref());
        Calls {
            own: spawn.model.name.clone(),
            cheaper: cheaper.map(|model| model.name.clone()),
            asks: spawn.budget.is_some(),
            ..Calls::default()
        }
    }

    /// Whether it does nothing before it is answered.
    pub(super) fn waits(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whatever it wanted or did ends with its turn.
    pub(super) fn drop_question(&mut self) {
        self.wanted = None;
    }
}

impl Program {
    /// Makes a call, or asks whether it may.
    pub(super) fn call(&mut self, now: Instant, most: u64, used: u64, ms: u64) {
        let used = used.min(most);
        if !self.model_calls.asks {
            let own = self.model_calls.own.clone();
            return self.call_begins(now, Wanted { used, ms }, own);
        }
        self.model_calls.asked += 1;
        self.model_calls.wanted = Some(Wanted { used, ms });
        let id = self.model_calls.asked;
        self.send(&Up::BudgetRequest(BudgetRequest { id, input: most, output: 0 }));
    }

    fn call_begins(&mut self, now: Instant, call: Wanted, model: String) {
        let in_flight = Some(call.used / 2);
        self.send(&Up::State(State { in_flight, ..State::of(WaitingOn::Model, 1) }));
        self.model_calls.in_flight = Some((call.used, model));
        self.asleep = Some(now + Duration::from_millis(call.ms));
    }

    pub(super) fn granted(&mut self, now: Instant, grant: BudgetGrant) {
        let calls = &mut self.model_calls;
        if grant.id <= calls.answered || grant.id > calls.asked {
            return self.complain(format!("a grant of {}, which is not open", grant.id));
        }
        calls.answered = grant.id;
        // The answer may have crossed the end of the turn that asked.
        let Some(call) = calls.wanted.take_if(|_| grant.id == calls.asked) else { return };
        if self.phase != Phase::Working {
            return;
        }
        match grant.verdict {
            BudgetVerdict::Own => {
                let own = self.model_calls.own.clone();
                self.call_begins(now, call, own);
            }
            BudgetVerdict::Degraded => match self.model_calls.cheaper.clone() {
                Some(cheaper) => self.call_begins(now, call, cheaper),
                None => self.complain("a cheaper model than it has".into()),
            },
            BudgetVerdict::Refused(why) => self.stop_for(now, Ok(why)),
            BudgetVerdict::Failed(why) => self.stop_for(now, Err(why)),
        }
    }

    /// A call that it may not make ends its turn, or it as a whole: out of tokens, or failed.
    fn stop_for(&mut self, now: Instant, why: Result<String, String>) {
        let turn = self.has_turn();
        match (why, turn) {
            (Ok(_), true) => self.end_turn_exhausted(),
            (Err(why), true) => self.end_turn_failed(why),
            (Ok(why), false) => {
                let text = Some(format!("token={} so far", self.token));
                self.end_with(LoopEnd::ExhaustedTokens, text, Some(why));
                self.leave(now, Exit::Code(0));
            }
            (Err(error), false) => {
                self.ended = true;
                let evidence = LoopEvidence::default();
                self.send(&Up::Failed(Failed { kind: FailKind::Budget, error, text: None, evidence }));
                self.leave(now, Exit::Code(1));
            }
        }
    }

    /// The call in flight is answered: what it used is told.
    pub(super) fn call_answered(&mut self) {
        if let Some((input, model)) = self.model_calls.in_flight.take() {
            self.tell_usage(input, model, false);
        }
    }

    /// It ends before the call in flight is answered: what that cost is estimated.
    pub(super) fn cut_call(&mut self) {
        self.model_calls.drop_question();
        if let Some((used, model)) = self.model_calls.in_flight.take() {
            self.tell_usage(used / 2, model, true);
        }
    }

    fn tell_usage(&mut self, input: u64, model: String, cut: bool) {
        self.send(&Up::Usage(Usage { input, output: 0, cached: 0, estimated: cut, model }));
    }
}

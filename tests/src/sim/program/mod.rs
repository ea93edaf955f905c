//! A fake child: speaks the real control protocol through the real codec and follows its script. It knows nothing of
//! the supervisor but frames, as a real one. The world lends it a pipe each way and carries out its deeds.

mod asking;
mod calls;
mod speak;
mod turns;

pub(crate) use speak::{instruction, read_instruction, token_of};

use crate::sim::plan::{Answer, Nature, Offspring, OnCancel, OnTerm, Plan, Readiness, Script, Step, TurnEnd};
use agentd_core::event::Exit;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::{LoopEnd, Mode, Spawn, State, ToolResult, WaitingOn};
use agentd_core::wire::{Decoded, Down, DownDecoder, Encoder, Up};
use asking::Endpoints;
use calls::Calls;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use turns::Turns;

/// What a program does to its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Ends(Exit),
    ClosesStdout,
    Forks(Offspring),
    /// A stranger's SIGSTOP.
    Stops,
    /// From here on it answers nothing.
    Hangs,
    /// Writes to its stderr.
    Mutters(Vec<u8>),
}

/// What a program is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits for its spawn frame.
    Waiting,
    /// Not ready before this.
    Starting(Option<Instant>),
    Working,
    /// Answers nothing any more.
    Hung,
    /// Neither, but sends an old pong again then.
    Parroting(Instant),
    /// Exits then; `None` is never.
    Leaving(Option<Instant>, Exit),
}

/// A running program.
pub(crate) struct Program {
    plan: Arc<Plan>,
    /// Which script, once the spawn frame has told.
    script: Option<usize>,
    token: String,
    phase: Phase,
    step: usize,
    asleep: Option<Instant>,
    collecting: bool,
    /// The gate it waits at.
    gate: Option<String>,
    /// Gates that are open.
    open_gates: BTreeSet<String>,
    cancelling: Option<Instant>,
    terminating: Option<Instant>,
    calls: u64,
    open: BTreeSet<u64>,
    /// The last ping it answered.
    ponged: u64,
    /// Model calls it reported.
    used: u64,
    ended: bool,
    turns: Turns,
    endpoints: Endpoints,
    model_calls: Calls,
    /// It takes no step until it may go on.
    paused: bool,
    /// It began when nothing went wrong any more.
    is_well: bool,
    decoder: DownDecoder,
    encoder: Encoder,
    /// Its first frame could not be made.
    pub(crate) unspoken: bool,
    /// Bytes not yet in the pipe.
    pub(crate) out: VecDeque<u8>,
    /// What the supervisor did to it that it never may.
    pub(crate) complaint: Option<String>,
}

impl Program {
    /// A program that waits for its first frame.
    pub(crate) fn new(plan: Arc<Plan>) -> Program {
        Program {
            plan,
            script: None,
            token: String::new(),
            phase: Phase::Waiting,
            step: 0,
            asleep: None,
            collecting: false,
            gate: None,
            open_gates: BTreeSet::new(),
            cancelling: None,
            terminating: None,
            calls: 0,
            open: BTreeSet::new(),
            ponged: 0,
            used: 0,
            ended: false,
            turns: Turns::default(),
            endpoints: Endpoints::default(),
            model_calls: Calls::default(),
            paused: false,
            is_well: false,
            decoder: DownDecoder::new(),
            encoder: Encoder::new(),
            unspoken: false,
            out: VecDeque::new(),
            complaint: None,
        }
    }

    /// Whether it takes more bytes from its stdin.
    pub(crate) fn reads(&self) -> bool {
        self.phase != Phase::Hung && (self.script.is_none() || !self.nature().deaf)
    }

    /// Whether it has said its last word.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// A gate is open, from now on.
    pub(crate) fn gate_opened(&mut self, name: &str) {
        self.open_gates.insert(name.to_owned());
    }

    /// Bytes came on its stdin.
    pub(crate) fn received(&mut self, now: Instant, bytes: &[u8]) {
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next() {
            match frame {
                Ok(Decoded::Message(message)) => self.take(now, message),
                Ok(Decoded::Ignored) => self.complain("a frame of no known type".into()),
                // The driver could not make the first one; a process that is handed others instead leaves.
                Err(_) if self.script.is_none() && self.unspoken => {
                    return self.leave(now, Exit::Code(2));
                }
                Err(error) => return self.complain(format!("a frame it cannot read: {error}")),
            }
        }
    }

    /// Its stdin ended: the supervisor is gone or wants it gone.
    pub(crate) fn stdin_ended(&mut self, now: Instant) {
        if self.script.is_none() {
            self.phase = Phase::Leaving(Some(now), Exit::Code(2));
        } else {
            self.cancelled(now);
        }
    }

    /// SIGTERM.
    pub(crate) fn terminated(&mut self, now: Instant) {
        let at = match self.nature().on_term {
            OnTerm::Dies => now,
            OnTerm::Exits(ms) => now + Duration::from_millis(ms),
            OnTerm::Ignores => return,
        };
        self.terminating = Some(self.terminating.map_or(at, |was| was.min(at)));
    }

    /// When it wants to run again without being spoken to.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        let own = match self.phase {
            Phase::Waiting | Phase::Hung => None,
            Phase::Parroting(at) => Some(at),
            Phase::Starting(at) | Phase::Leaving(at, _) => at,
            Phase::Working => self.asleep,
        };
        [own, self.cancelling, self.terminating, self.turns.cancel_due()].into_iter().flatten().min()
    }

    /// Runs as far as it can.
    pub(crate) fn turn(&mut self, now: Instant) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if self.terminating.is_some_and(|at| at <= now) {
            let exit = match self.nature().on_term {
                OnTerm::Dies => Exit::Signal(crate::sim::kernel::SIGTERM),
                OnTerm::Exits(_) | OnTerm::Ignores => Exit::Code(0),
            };
            return vec![Deed::Ends(exit)];
        }
        if self.cancelling.is_some_and(|at| at <= now) {
            self.cancelling = None;
            if let Phase::Starting(Some(_)) = self.phase {
                self.say_ready();
            }
            if self.nature().on_cancel == OnCancel::Leaves(0) || !self.wants_word() {
                self.leave(now, Exit::Code(0));
            } else {
                self.cut_call();
                self.end_with(LoopEnd::Cancelled, None, None);
                self.leave(now, Exit::Code(0));
            }
        }
        self.cancel_turn_due(now);
        if let Phase::Starting(Some(at)) = self.phase
            && at <= now
        {
            self.say_ready();
            self.phase = Phase::Working;
        }
        if let Phase::Parroting(at) = self.phase
            && at <= now
        {
            self.parrot(now);
        }
        while self.phase == Phase::Working && !self.blocked(now) {
            self.perform(now, &mut deeds);
        }
        if let Phase::Leaving(Some(at), exit) = self.phase
            && at <= now
            && self.out.is_empty()
        {
            deeds.push(Deed::Ends(exit));
        }
        deeds
    }

    fn nature(&self) -> Nature {
        match self.script_of() {
            Some(script) if !self.is_well => script.nature.clone(),
            Some(_) | None => Nature::default(),
        }
    }

    fn script_of(&self) -> Option<&Script> {
        self.script.and_then(|i| self.plan.scripts.get(i))
    }

    /// Whether an obeyed cancel is told in a result.
    fn wants_word(&self) -> bool {
        !self.ended && matches!(self.nature().on_cancel, OnCancel::Obeys(_))
    }

    fn leave(&mut self, at: Instant, exit: Exit) {
        self.phase = Phase::Leaving(Some(at), exit);
    }

    fn complain(&mut self, what: String) {
        self.complaint.get_or_insert(what);
    }

    fn take(&mut self, now: Instant, message: Down) {
        if matches!(self.phase, Phase::Parroting(_)) {
            return;
        }
        match message {
            Down::Spawn(spawn) => self.begin(now, &spawn),
            Down::Ping(ping) => self.pong(ping.seq),
            Down::Cancel(cancel) => match cancel.turn {
                None => self.cancelled(now),
                Some(turn) => self.turn_cancelled(now, turn),
            },
            Down::ToolResult(result) => self.answered(&result),
            Down::Message(message) => self.message(&message),
            Down::Steer(steer) => self.steered(&steer),
            Down::Finish(_) => self.turns.finish = self.has_work(),
            Down::Pause(_) => self.paused = true,
            Down::Resume(_) => self.paused = false,
            Down::BudgetGrant(grant) => self.granted(now, grant),
            Down::Throttle(throttle) => self.throttled(now, &throttle),
            Down::Model(swap) => self.send(&Up::Ack(agentd_core::wire::message::Ack { id: swap.id })),
        }
    }

    fn begin(&mut self, now: Instant, spawn: &Spawn) {
        let Some((script, token)) = speak::read_instruction(&spawn.instruction, 1) else {
            return self.complain(format!("an instruction nobody gave: {:?}", spawn.instruction));
        };
        self.script = Some(script);
        self.is_well = self.plan.is_healed(now);
        self.token = token;
        self.turns = Turns::begun(spawn.mode == Mode::Warm);
        self.endpoints = Endpoints::of(spawn);
        self.model_calls = Calls::of(spawn);
        self.phase = match self.nature().ready {
            Readiness::After(ms) => Phase::Starting(Some(now + Duration::from_millis(ms))),
            Readiness::Never => Phase::Starting(None),
            Readiness::Exits(code) => Phase::Leaving(Some(now), Exit::Code(code)),
        };
    }

    fn cancelled(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Leaving(Some(_), _)) {
            return;
        }
        let at = match self.nature().on_cancel {
            OnCancel::Obeys(ms) | OnCancel::Leaves(ms) => now + Duration::from_millis(ms),
            OnCancel::Ignores => return,
        };
        self.cancelling = Some(self.cancelling.map_or(at, |was| was.min(at)));
    }

    fn answered(&mut self, result: &ToolResult) {
        if !self.open.remove(&result.id) {
            self.complain(format!("an answer to call {}, which is not open", result.id));
        }
    }

    fn blocked(&mut self, now: Instant) -> bool {
        if self.asleep.is_some_and(|at| at > now) {
            return true;
        }
        self.asleep = None;
        self.call_answered();
        self.endpoints.asking = false;
        self.collecting = self.collecting && !self.open.is_empty();
        if self.gate.as_ref().is_some_and(|gate| self.open_gates.contains(gate)) {
            self.gate = None;
        }
        // Asked for what it has, it waits at no gate.
        let gated = self.gate.is_some() && !self.turns.finish;
        self.collecting || self.paused || gated || self.model_calls.waits() || self.is_at_rest()
    }

    fn perform(&mut self, now: Instant, deeds: &mut Vec<Deed>) {
        if self.boundary(now) {
            return;
        }
        let at = self.step;
        let step = self.steps().and_then(|steps| steps.get(at)).cloned();
        self.step += 1;
        if self.is_well && step.as_ref().is_some_and(Step::is_wrong) {
            return;
        }
        let last = match self.turns.in_hand() {
            Some(_) => Step::EndTurn(TurnEnd::With(Answer::Text)),
            None => Step::Finish { answer: Answer::Text, exit_ms: Some(0) },
        };
        match step.unwrap_or(last) {
            Step::Wait(ms) => self.asleep = Some(now + Duration::from_millis(ms)),
            Step::Say(frames) => (0..frames).for_each(|i| self.progress(i)),
            Step::Run { script, mode, delegate, flaw, rank, item } => {
                let token = self.call_token(at);
                let mut args = speak::run_args(script, &token, mode, delegate, flaw, rank);
                if let Some(item) = item {
                    args["plan_item"] = item.into();
                }
                self.ask("subagent.run", &token, args);
            }
            Step::Await { handles, any, timeout_ms, message } => {
                self.ask_about("subagent.await", at, speak::await_args(&handles, any, timeout_ms, message));
            }
            Step::Send { handle, times } => self.talk("subagent.send", at, handle, times),
            Step::Steer { handle, times } => self.talk("subagent.steer", at, handle, times),
            Step::Hurry(handle) => self.ask_about("subagent.finish", at, speak::handle_args(handle)),
            Step::Retire(handle) => self.ask_about("subagent.retire", at, speak::handle_args(handle)),
            Step::Status(handle) => {
                self.ask_about("subagent.status", at, speak::handle_args(handle));
            }
            Step::List => self.ask_about("subagent.list", at, serde_json::json!({})),
            Step::Kill { handle, only } => {
                self.ask_about("subagent.kill", at, speak::kill_args(handle, only));
            }
            Step::Plan(items) => self.ask_about("plan.create", at, speak::plan_args(items)),
            Step::Item { item, bind, status } => {
                self.ask_about("plan.update", at, speak::item_args(item, bind, status));
            }
            Step::ShowPlan => self.ask_about("plan.get", at, serde_json::json!({})),
            Step::Overview => self.ask_about("status", at, serde_json::json!({})),
            Step::Think => self.think(),
            Step::Ask(says) => self.ask_model(now, says),
            Step::Call { most, used, ms } => self.call(now, most, used, ms),
            Step::Nonsense => self.ask_about("subagent.clone", at, serde_json::json!({})),
            Step::Collect => {
                self.collecting = true;
                if !self.open.is_empty() {
                    self.send(&Up::State(State::of(WaitingOn::Supervisor, 1)));
                }
            }
            Step::Hang => {
                self.phase = Phase::Hung;
                deeds.push(Deed::Hangs);
            }
            Step::Parrot => {
                self.phase = Phase::Parroting(now);
                deeds.push(Deed::Hangs);
            }
            Step::Stopped => {
                // Goes on with the next step when somebody continues it; until then the world lets it not run.
                self.asleep = Some(now + Duration::from_millis(1));
                deeds.push(Deed::Stops);
            }
            Step::Rubbish(what) => self.rubbish(what, now),
            Step::Mutter(lines) => deeds.push(Deed::Mutters(speak::muttering(lines))),
            Step::CloseStdout => deeds.push(Deed::ClosesStdout),
            Step::Fork(what) => deeds.push(Deed::Forks(what)),
            Step::Finish { answer, exit_ms } => {
                let (end, text, error) = speak::answer(&self.token, answer);
                self.end_with(end, Some(text), error);
                let at = exit_ms.map(|ms| now + Duration::from_millis(ms));
                self.phase = Phase::Leaving(at, Exit::Code(0));
            }
            Step::EndTurn(how) => self.end_turn(how),
            Step::Fail => {
                self.fail();
                self.leave(now, Exit::Code(1));
            }
            Step::Exit(code) => self.leave(now, Exit::Code(code)),
            Step::Die(signal) => deeds.push(Deed::Ends(Exit::Signal(signal))),
            Step::Until(gate) => self.gate = Some(gate),
        }
        if matches!(deeds.last(), Some(Deed::Ends(_))) {
            self.phase = Phase::Leaving(None, Exit::Code(0));
        }
    }
}

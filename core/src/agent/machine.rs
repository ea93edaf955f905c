//! The loop's states and what moves it between them.

mod acting;
mod answering;
mod asking;
mod compacting;
mod cutting;
mod ending;
mod orders;
mod recording;
mod resuming;
mod swapping;

use crate::agent::budget::{Budget, estimate};
use crate::agent::catalogue::Catalogue;
use crate::agent::history::History;
use crate::agent::round::Round;
use crate::agent::{Input, Output, Tool, log, prompt};
use crate::json::schema::Schema;
use crate::model::{Message, ModelRequest, Partial};
use crate::policy::Grant;
use crate::time::Instant;
use crate::transcript::Item;
use crate::wire::Up;
use crate::wire::message::{LoopEnd, LoopEvidence, Mode, Spawn, State, Text, WaitingOn};
use asking::Asks;
use resuming::TakenUp;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use swapping::Swap;

/// One run's loop. It begins at [`Input::Start`], ends with one [`Output::Finish`], and ignores everything
/// after that.
#[derive(Debug)]
pub struct Loop {
    phase: Phase,
    /// It has turns: one for the instruction and one for each message.
    warm: bool,
    model: String,
    /// Every model call is asked for first, and this is what it is told.
    asks: Option<Asks>,
    system: String,
    catalogue: Catalogue,
    grant: Grant,
    /// Takes the catalogue's place at the next boundary.
    changed: Option<Vec<Tool>>,
    /// What the answer must fit.
    schema: Option<Schema>,
    history: History,
    budget: Budget,
    repeats: u32,
    result_bytes: usize,
    /// Over all turns.
    evidence: LoopEvidence,
    turn: Turn,
    /// The turns that wait for this one's end.
    messages: VecDeque<Text>,
    /// Takes the place of `model` and `asks` when it may.
    swap: Option<Swap>,
    /// To be told before the next model call.
    steers: VecDeque<Text>,
    /// The highest id of a message or steer so far.
    last_id: u64,
    /// No model call is to be made.
    paused: bool,
    next_call: u64,
    /// The last state that was told.
    told: Option<State>,
    /// To tell at the start: what is odd about the grant.
    remarks: Vec<Output>,
    /// What it says and does is written down.
    records: bool,
    /// To write at the start.
    opening: Vec<Item>,
    /// Of the past that it took up.
    taken_up: TakenUp,
}

#[derive(Debug)]
enum Phase {
    /// Not begun.
    Waiting,
    /// A model call is to be made, once the supervisor grants it.
    Asking(Asking),
    /// A model call is in flight.
    Thinking(Thought),
    /// Tool calls are in flight.
    Acting(Round),
    /// At a boundary, since then, until it may go on.
    Paused(Instant),
    /// Between turns.
    Idle,
    Ended,
}

/// See [`Phase::Asking`].
#[derive(Debug, Clone, Copy)]
struct Asking {
    call: u64,
    what: Wanted,
}

/// Which model call is asked for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// The next of its turn; the last one is without tools.
    Next { last: bool },
    /// A summary of a history that had so many bytes (S7.7).
    Summary { before: usize },
}

#[derive(Debug)]
struct Thought {
    call: u64,
    began: Instant,
    /// It is made with the cheaper model.
    degraded: bool,
    /// Bytes of the request, for estimates.
    sent: usize,
    /// It is the last of its turn, without tools.
    last: bool,
    /// It is for a summary of a history that had so many bytes.
    condenses: Option<usize>,
    /// The connection waits for its provider, so nothing of it is being used.
    held_up: bool,
    /// Of the reply to the attempt in hand.
    came: Partial,
    /// The last attempt that was cut off and is paid for.
    paid: u64,
    /// The next one is asked for under this number.
    again: Option<u64>,
}

impl Thought {
    /// One that has just begun, of a request of so many bytes.
    fn new(call: u64, began: Instant, degraded: bool, sent: usize) -> Thought {
        let came = Partial::default();
        Thought {
            call,
            began,
            degraded,
            sent,
            last: false,
            condenses: None,
            held_up: false,
            came,
            paid: 0,
            again: None,
        }
    }
}

/// What belongs to one turn and to no other.
#[derive(Debug)]
struct Turn {
    /// The message that began it; the instruction is 1.
    id: u64,
    /// Its number in the transcript.
    written: u64,
    /// Its place among the turns, from 1.
    number: u32,
    over: bool,
    last_text: Option<String>,
    /// The reply before was empty; a second one ends the turn (S7.4).
    empty_before: bool,
    /// An answer was returned for not fitting; a second one ends the turn (S7.8).
    corrected: bool,
    /// The history was compacted for the call in hand; a call that is answered makes it ready for another time.
    compacted: bool,
    finish: Finishing,
}

/// How far a [`Input::Finish`] has come.
#[derive(Debug, PartialEq, Eq)]
enum Finishing {
    No,
    /// For this reason; the model does not know yet.
    Asked(String),
    /// The model knows, and what it says next is the result.
    Told,
}

impl Turn {
    fn new(id: u64, number: u32) -> Turn {
        Turn {
            id,
            written: id,
            number,
            over: false,
            last_text: None,
            empty_before: false,
            corrected: false,
            compacted: false,
            finish: Finishing::No,
        }
    }
}

impl Loop {
    /// A loop for the run that `spec` describes, over the tools of `catalogue`: those of servers that the
    /// grant does not allow are left out here once more. `missing` are the servers it goes on without, and `schema`
    /// is the payload's `output_schema`, read. The deadline of the first turn counts from `since`, the time of `ready`.
    pub fn new(
        spec: &Spawn,
        catalogue: Vec<Tool>,
        missing: Vec<String>,
        schema: Option<Schema>,
        since: Instant,
    ) -> Loop {
        let (grant, problems) = Grant::minted(spec.tools.as_deref());
        let catalogue = Catalogue::new(catalogue, &grant);
        let mut remarks: Vec<Output> = problems.iter().map(log::unreadable_grant).collect();
        remarks.extend(catalogue.unmatched(&grant).into_iter().map(log::unmatched_grant));
        remarks.extend(log::renamed(&catalogue));
        remarks.push(log::tools(&catalogue));
        let asked = spec.transcript.as_ref().map_or(1, |transcript| transcript.turn);
        let warm = match spec.mode {
            Mode::Warm => true,
            Mode::Sync | Mode::Async | Mode::Detached => false,
        };
        Loop {
            phase: Phase::Waiting,
            warm,
            model: spec.model.name.clone(),
            asks: spec.budget.as_ref().map(|budget| Asks::new(&spec.model, budget)),
            system: prompt::system(spec, &missing),
            schema,
            history: History::new(prompt::opening(spec)),
            budget: Budget::new(spec.limits.clone(), since),
            repeats: spec.limits.repeats,
            result_bytes: usize::try_from(spec.limits.tool_result_bytes).unwrap_or(usize::MAX),
            evidence: LoopEvidence::default(),
            turn: Turn { written: asked, ..Turn::new(1, 1) },
            messages: VecDeque::new(),
            swap: None,
            steers: VecDeque::new(),
            // The instruction of a warm child is its first message.
            last_id: u64::from(warm),
            paused: false,
            next_call: 1,
            told: None,
            catalogue,
            grant,
            changed: None,
            remarks,
            records: spec.transcript.is_some(),
            opening: recording::opening(spec, asked),
            taken_up: TakenUp::default(),
        }
    }

    /// Takes one input and appends what is to be done.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.record_opening(out);
        let phase = mem::replace(&mut self.phase, Phase::Ended);
        self.phase = self.moved(now, phase, input, out);
        if self.is_bounded() && self.budget.is_overdue(now) {
            // The deadline bounds what is in flight, whichever input it is noticed at.
            let phase = mem::replace(&mut self.phase, Phase::Ended);
            self.phase = self.stop(now, phase, LoopEnd::Deadline, self.budget.overdue(), out);
        }
        while let Phase::Idle = self.phase {
            self.take_swap(false, out);
            match self.messages.pop_front() {
                Some(message) => self.phase = self.begin(now, message, out),
                None => return self.tell(WaitingOn::Message, None, out),
            }
        }
    }

    /// When the next [`Input::Tick`] is due; `None` while nothing runs out of time, and once it has ended.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.is_bounded().then(|| self.budget.deadline())
    }

    /// The messages so far. Calls in flight are not in it yet; once the loop has ended, every call that was
    /// ever made is, with its result.
    pub fn history(&self) -> &[Arc<Message>] {
        self.history.messages()
    }

    /// What an input comes to.
    fn moved(&mut self, now: Instant, phase: Phase, input: Input, out: &mut Vec<Output>) -> Phase {
        match (phase, input) {
            (Phase::Ended, _) => Phase::Ended,
            (phase, Input::Cancel { reason }) => self.cancel(now, phase, &reason, out),
            (phase, Input::CancelTurn { turn, reason }) => self.cancel_turn(now, phase, turn, &reason, out),
            (phase, Input::Message { id, text }) => self.message(now, phase, Text { id, text }, out),
            (phase, Input::Steer { id, text }) => self.steer(now, phase, Text { id, text }, out),
            (phase, Input::Finish { reason }) => self.ask_to_finish(phase, reason),
            (phase, Input::ToolsChanged { tools }) => {
                self.changed = Some(tools);
                phase
            }
            (phase, Input::ModelChanged { id, model, budget, restart }) => {
                let swap = Swap::new(id, &model, budget.as_ref(), restart);
                self.swap(now, phase, swap, out)
            }
            (phase, Input::Pause) => {
                self.paused = true;
                phase
            }
            (phase, Input::Resume) => self.resume(now, phase, out),
            (Phase::Waiting, Input::Start) => self.start(now, out),
            (Phase::Asking(asking), Input::Granted { call, verdict }) if call == asking.call => {
                self.granted(now, asking, verdict, out)
            }
            (Phase::Thinking(thought), Input::ModelReply { call, reply }) if call == thought.call => {
                self.replied(now, &thought, reply, out)
            }
            (Phase::Thinking(thought), Input::ModelWaiting { call, until_ms }) if call == thought.call => {
                self.held_up(thought, until_ms, out)
            }
            (Phase::Thinking(thought), Input::ModelCame { call, attempt, came })
                if call == thought.call && attempt > thought.paid =>
            {
                Phase::Thinking(Thought { came, ..thought })
            }
            (Phase::Thinking(thought), Input::ModelCut { call, attempt, came })
                if call == thought.call && attempt > thought.paid =>
            {
                self.cut(Thought { paid: attempt, ..thought }, &came, out)
            }
            (Phase::Thinking(thought), Input::Granted { call, verdict }) if Some(call) == thought.again => {
                self.granted_again(now, thought, verdict, out)
            }
            (Phase::Acting(round), Input::ToolDone { call, outcome }) => {
                self.tool_done(now, round, call, outcome, out)
            }
            // A second start, time passing, and answers that nobody waits for any more.
            (
                phase @ (Phase::Waiting | Phase::Asking(_) | Phase::Thinking(_) | Phase::Acting(_)),
                Input::Start
                | Input::Granted { .. }
                | Input::ModelReply { .. }
                | Input::ModelWaiting { .. }
                | Input::ModelCame { .. }
                | Input::ModelCut { .. }
                | Input::ToolDone { .. }
                | Input::Tick,
            )
            | (
                phase @ (Phase::Paused(_) | Phase::Idle),
                Input::Start
                | Input::Granted { .. }
                | Input::ModelReply { .. }
                | Input::ModelWaiting { .. }
                | Input::ModelCame { .. }
                | Input::ModelCut { .. }
                | Input::ToolDone { .. }
                | Input::Tick,
            ) => phase,
        }
    }

    /// Whether the deadline runs: not between turns, and not while it stands still.
    fn is_bounded(&self) -> bool {
        match self.phase {
            Phase::Asking(_) | Phase::Thinking(_) | Phase::Acting(_) => true,
            Phase::Waiting => !self.turn.over,
            Phase::Paused(_) | Phase::Idle | Phase::Ended => false,
        }
    }

    /// Between steps: what S7.1 checks, in its order, then the next model call. A `cancel` has been obeyed by then,
    /// and a `finish` decides only which call it is.
    fn boundary(&mut self, now: Instant, out: &mut Vec<Output>) -> Phase {
        if self.paused {
            self.tell(WaitingOn::Paused, None, out);
            return Phase::Paused(now);
        }
        if let Some((end, why)) = self.budget.exhausted(now) {
            return self.finish(end, Some(why), out);
        }
        self.take_swap(true, out);
        self.tell_steers(out);
        if let Some(tools) = self.changed.take() {
            self.catalogue = Catalogue::new(tools, &self.grant);
            out.extend(log::renamed(&self.catalogue));
            out.push(log::tools(&self.catalogue));
        }
        let last = self.tell_to_finish(out);
        let call = self.mint();
        match &self.asks {
            Some(asks) => {
                let size = (self.sent(last), self.history.messages().len());
                self.ask(asks.output, Asking { call, what: Wanted::Next { last } }, size, out)
            }
            None => self.think(now, call, last, false, out),
        }
    }

    /// Makes a model call.
    fn think(&mut self, now: Instant, call: u64, last: bool, degraded: bool, out: &mut Vec<Output>) -> Phase {
        self.budget.steps += 1;
        self.evidence.model_calls = self.evidence.model_calls.saturating_add(1);
        let declared = self.catalogue.offered.clone();
        let request = ModelRequest {
            model: self.called(degraded).to_owned(),
            degraded,
            max_output: self.asks.as_ref().map(|asks| asks.output),
            system: self.system.clone(),
            messages: self.history.messages().to_vec(),
            context: self.history.context,
            begins: self.history.begins,
            turn: self.turn.number,
            tools: if last { Arc::default() } else { declared.clone() },
            declared,
            names: self.catalogue.names.clone(),
            step: self.budget.steps,
            tokens_left: self.budget.tokens_left(),
        };
        let sent = self.sent(last);
        self.tell(WaitingOn::Model, Some(estimate(sent)), out);
        out.push(Output::CallModel { call, request: Box::new(request) });
        Phase::Thinking(Thought { last, ..Thought::new(call, now, degraded, sent) })
    }

    /// Bytes of the next request.
    fn sent(&self, last: bool) -> usize {
        let tools = if last { 0 } else { self.catalogue.bytes };
        self.system.len() + tools + self.history.bytes
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

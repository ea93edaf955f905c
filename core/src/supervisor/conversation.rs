//! The root conversation: prompts in order, each one turn, and the worker that serves them.
//!
//! A one-shot conversation (`agentd run`) is one turn; when it has answered, the synchronous and asynchronous runs it
//! started are waited for, a warm one is stopped at once and a detached one after the drain's time (S9.6). Any other
//! keeps its worker warm between turns for `agent.worker_idle`, so that its servers are not started each time
//! (S14.1), and tells a new worker what was said before.

use super::Core;
use super::keeping::Shelf;
use crate::action::Actions;
use crate::id::NodeId;
use crate::limits;
use crate::machine::Deadline;
use crate::note::Level;
use crate::record::{Status, UsageSum};
use crate::run::Ending;
use crate::run::ladder::Push;
use crate::run::warm::FIRST_TURN;
use crate::time::Instant;
use crate::transcript::Location;
use crate::wire::message::{Cancel, ContextMessage, ContextRole, Down, Mode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The number of a turn that nobody asked for.
pub(super) const NOTE: u64 = 0;

/// Why a prompt has no turn once a drain has begun.
const STOPPING: &str = "the daemon is stopping";

/// The root conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub(super) phase: Phase,
    /// Prompts that wait for their turn.
    pub(super) waiting: VecDeque<Prompt>,
    /// The number of the last prompt.
    pub(super) last: u64,
    /// The worker that is warm, in a turn or between two.
    pub(super) worker: Option<NodeId>,
    /// A reload has made another of it than a worker is that begins now: it is replaced after the turn in hand.
    pub(super) outdated: bool,
    /// When it has been idle for too long.
    pub(super) idle_until: Option<Instant>,
    /// Notes that the worker was told by a steer and has not taken.
    pub(super) told: BTreeMap<u64, String>,
    /// What was said, for a new worker.
    pub(super) past: Vec<ContextMessage>,
    /// What workers that are forgotten by now have used.
    pub(super) spent: UsageSum,
    /// Where its workers write.
    pub(super) session: Option<Location>,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Nothing is asked.
    Quiet,
    /// A turn is in hand.
    Turn(Turn),
    /// A one-shot conversation has its answer; what it started is waited for.
    Over {
        /// When detached runs are stopped.
        until: Instant,
        /// They were.
        stopped: bool,
    },
}

/// The turn in hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) prompt: u64,
    pub(super) text: String,
    pub(super) worker: NodeId,
    /// Its number at the worker.
    pub(super) message: u64,
    /// Its number in the transcript.
    pub(super) written: u64,
    /// When it began, and what its worker had used until then.
    pub(super) since: Instant,
    pub(super) used_before: u64,
    /// It was cancelled; a worker that has not ended it by then is stopped.
    pub(super) cancel_until: Option<Instant>,
    /// Its worker ended and had not been handed it.
    pub(super) unhanded: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prompt {
    /// [`NOTE`] when nobody asked: it tells of ended runs, and takes in what comes next.
    pub(super) number: u64,
    pub(super) text: String,
}

impl Conversation {
    pub(super) fn new() -> Conversation {
        Conversation {
            phase: Phase::Quiet,
            waiting: VecDeque::new(),
            last: 0,
            worker: None,
            outdated: false,
            idle_until: None,
            told: BTreeMap::new(),
            past: Vec::new(),
            spent: UsageSum::default(),
            session: None,
        }
    }

    /// A prompt has come at some time.
    pub(super) fn was_asked(&self) -> bool {
        self.last > 0
    }

    /// The prompt of this number has no answer yet.
    pub(super) fn has_prompt(&self, number: u64) -> bool {
        let in_hand = matches!(&self.phase, Phase::Turn(turn) if turn.prompt == number);
        in_hand || self.waiting.iter().any(|prompt| prompt.number == number)
    }

    /// No prompt waits for its turn.
    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A one-shot conversation has its answer.
    pub(super) fn is_over(&self) -> bool {
        match self.phase {
            Phase::Over { .. } => true,
            Phase::Turn(_) | Phase::Quiet => false,
        }
    }

    /// The turn in hand, if this worker serves it.
    pub(super) fn turn_of(&self, worker: NodeId) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) if turn.worker == worker => Some(turn),
            Phase::Turn(_) | Phase::Quiet | Phase::Over { .. } => None,
        }
    }

    /// The worker of the turn in hand.
    pub(super) fn at_work(&self) -> Option<NodeId> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn.worker),
            Phase::Quiet | Phase::Over { .. } => None,
        }
    }

    pub(super) fn remember(&mut self, asked: &str, answered: String) {
        let message = |role, content| ContextMessage { role, content };
        self.past.push(message(ContextRole::User, asked.to_owned()));
        self.past.push(message(ContextRole::Assistant, answered));
        let mut bytes: usize = self.past.iter().map(|m| m.content.len()).sum();
        // Whole turns go, oldest first, so that the rest still reads as a conversation.
        let turns = self.past.chunks(2).take_while(|turn| {
            let over = bytes > limits::PAST_BYTES;
            bytes -= turn.iter().map(|m| m.content.len()).sum::<usize>();
            over
        });
        let gone = turns.count() * 2;
        self.past.drain(..gone);
    }
}

impl Core {
    /// The number that the next prompt gets.
    pub(super) fn next_prompt(&self) -> u64 {
        self.conversation.last + 1
    }

    /// A person asked.
    pub(super) fn prompt_submitted(&mut self, text: String, out: &mut Actions) {
        let conversation = &mut self.conversation;
        if self.config.one_shot && (conversation.was_asked() || self.drain.is_some()) {
            out.push(super::daemon_note(Level::Warn, "prompt.ignored").into());
            return;
        }
        conversation.last += 1;
        let number = conversation.last;
        if self.drain.is_some() {
            self.answer_unbegun(number, Status::Cancelled, STOPPING.to_owned(), out);
            return;
        }
        if conversation.waiting.len() >= limits::WAITING_PROMPTS {
            let why = format!("{} prompts wait already; ask again later", limits::WAITING_PROMPTS);
            self.answer_unbegun(number, Status::Refused, why, out);
            return;
        }
        conversation.waiting.push_back(Prompt { number, text });
        self.mark(Shelf::Conversation);
        self.next_turn(out);
    }

    /// Something the conversation is to know while nobody asks it anything: a turn of its own, one for all that
    /// comes before it begins (S8.4).
    pub(super) fn note_as_prompt(&mut self, text: &str, out: &mut Actions) {
        let conversation = &mut self.conversation;
        match conversation.waiting.back_mut() {
            Some(prompt) if prompt.number == NOTE => {
                prompt.text.push('\n');
                prompt.text.push_str(text);
            }
            Some(_) | None => {
                let prompt = Prompt { number: NOTE, text: text.to_owned() };
                conversation.waiting.push_back(prompt);
            }
        }
        self.mark(Shelf::Conversation);
        self.next_turn(out);
    }

    /// Begins the next turn, if none is in hand and one waits.
    pub(super) fn next_turn(&mut self, out: &mut Actions) {
        if self.conversation.phase != Phase::Quiet || self.drain.is_some() {
            return;
        }
        let Some(prompt) = self.conversation.waiting.pop_front() else { return };
        self.mark(Shelf::Conversation);
        self.conversation.idle_until = None;
        let warm = self.conversation.worker.and_then(|worker| self.ask_again(worker, &prompt.text, out));
        let is_new = warm.is_none();
        let (worker, message) = warm.unwrap_or_else(|| (self.begin_worker(&prompt.text, out), FIRST_TURN));
        self.conversation.worker = Some(worker);
        let used_before = self.runs.get(&worker).map_or(0, |run| run.record.usage.both());
        self.conversation.phase = Phase::Turn(Turn {
            prompt: prompt.number,
            text: prompt.text,
            worker,
            message,
            written: message,
            since: self.now.mono,
            used_before,
            cancel_until: None,
            unhanded: false,
        });
        self.task_begins(prompt.number, out);
        if is_new {
            self.hand_on_notes(out);
        }
    }

    /// A person takes a prompt back.
    pub(super) fn turn_cancelled(&mut self, prompt: u64, reason: &str, out: &mut Actions) {
        let why = if reason.is_empty() { "cancelled".to_owned() } else { format!("cancelled: {reason}") };
        if prompt == NOTE {
            return;
        }
        let waits = self.conversation.waiting.iter().position(|p| p.number == prompt);
        if let Some(at) = waits {
            self.conversation.waiting.remove(at);
            self.mark(Shelf::Conversation);
            self.answer_unbegun(prompt, Status::Cancelled, why, out);
            return;
        }
        let until = self.now.mono + self.config.kill.term_after;
        let Phase::Turn(turn) = &mut self.conversation.phase else { return };
        if turn.prompt != prompt || turn.cancel_until.is_some() {
            return;
        }
        turn.cancel_until = Some(until);
        let (worker, message) = (turn.worker, turn.message);
        if self.config.one_shot {
            self.cancel(worker, &why, out);
            return;
        }
        // What the turn waits for ends with it (S6.7); the worker stays for the next one.
        self.drop_requests(worker, out);
        if self
            .tell_child(worker, Down::Cancel(Cancel { reason: reason.to_owned(), turn: Some(message) }), out)
            .is_err()
        {
            self.cancel(worker, &why, out);
        }
    }

    /// A drain begins: prompts that wait get no turn, and a worker without a turn ends.
    pub(super) fn end_conversation(&mut self, out: &mut Actions) {
        self.mark(Shelf::Conversation);
        for prompt in std::mem::take(&mut self.conversation.waiting) {
            if prompt.number != NOTE {
                self.answer_unbegun(prompt.number, Status::Cancelled, STOPPING.to_owned(), out);
            }
        }
        if self.conversation.phase == Phase::Quiet {
            self.retire_worker(out);
        }
    }

    /// Ends the warm worker, which is between turns.
    pub(super) fn retire_worker(&mut self, out: &mut Actions) {
        self.conversation.idle_until = None;
        self.conversation.outdated = false;
        if let Some(worker) = self.conversation.worker.take() {
            self.complete_retirement(worker, out);
            self.hand_on_notes(out);
        }
    }

    /// What the conversation's own clocks do.
    pub(super) fn tick_conversation(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        if self.conversation.idle_until.is_some_and(|at| at <= now) {
            self.retire_worker(out);
        }
        match &mut self.conversation.phase {
            Phase::Turn(turn) if turn.cancel_until.is_some_and(|at| at <= now) => {
                turn.cancel_until = None;
                let worker = turn.worker;
                let why = "cancelled: its worker did not end the turn in time";
                self.decide(worker, Ending::without_result(Status::Cancelled, why), out);
                self.push_ladder(worker, Push::Insist, out);
            }
            Phase::Over { until, stopped } if !*stopped && *until <= now => {
                *stopped = true;
                for node in self.busy_with(|run| run.record.mode == Mode::Detached) {
                    self.stop(node, Push::Force, out);
                }
            }
            Phase::Turn(_) | Phase::Quiet | Phase::Over { .. } => {}
        }
    }

    /// When the conversation's own clocks want a tick.
    pub(super) fn conversation_due(&self) -> Option<Deadline> {
        let idle = self.conversation.idle_until.map(|at| Deadline { at, why: "an idle worker" });
        let phase = match &self.conversation.phase {
            Phase::Over { until, stopped: false } => Some(Deadline { at: *until, why: "detached runs" }),
            Phase::Turn(turn) => turn.cancel_until.map(|at| Deadline { at, why: "a cancelled turn" }),
            Phase::Quiet | Phase::Over { .. } => None,
        };
        [idle, phase].into_iter().flatten().min_by_key(|d| d.at)
    }
}

//! What is known of one process, and what its frames tell.

use crate::sim::oracle::Misdeed;
use agentd_core::action::ChildSignal;
use agentd_core::event::Exit;
use agentd_core::id::{Handle, RunId};
use agentd_core::record::Status;
use agentd_core::time::{Duration, Instant};
use agentd_core::wire::message::LoopEnd;
use agentd_core::wire::{Down, DownDecoder, Up, UpDecoder};
use serde_json::Value;
use std::collections::BTreeMap;

/// One call of a supervisor tool.
pub(in crate::sim::oracle) struct Request {
    pub(in crate::sim::oracle) at: Instant,
    pub(in crate::sim::oracle) name: String,
    pub(in crate::sim::oracle) call_id: String,
    pub(in crate::sim::oracle) args: Value,
    pub(in crate::sim::oracle) answered: bool,
}

/// What somebody wants of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sim::oracle) enum Ask {
    /// Its end.
    Kill { handle: String, only: bool },
    /// No more messages.
    Retire { handle: String },
}

impl Ask {
    pub(super) fn handle(&self) -> &str {
        match self {
            Ask::Kill { handle, .. } | Ask::Retire { handle } => handle,
        }
    }
}

/// One process.
#[derive(Default)]
pub(in crate::sim::oracle) struct Node {
    pub(in crate::sim::oracle) run: Option<RunId>,
    pub(in crate::sim::oracle) spawn_asked: Option<Instant>,
    pub(in crate::sim::oracle) spawn_failed: bool,
    pub(in crate::sim::oracle) spawned: Option<Instant>,
    pub(in crate::sim::oracle) first_frame: bool,
    /// A reload has made another of a conversation's worker than it is.
    pub(in crate::sim::oracle) outdated: bool,
    /// The supervisor's tools that its first frame offered.
    pub(in crate::sim::oracle) offered: Vec<String>,
    pub(in crate::sim::oracle) deadline_ms: u64,
    /// Since when its deadline runs: its process's, or of a warm one its turn's.
    pub(in crate::sim::oracle) armed: Option<Instant>,
    /// Since when it is to pause, how long it was to in all since it was armed, and when that last ended.
    pub(in crate::sim::oracle) paused: Option<Instant>,
    pub(in crate::sim::oracle) paused_for: Duration,
    pub(in crate::sim::oracle) resumed: Option<Instant>,
    /// Its first frame could not be made.
    pub(in crate::sim::oracle) frame_failed: Option<Instant>,
    /// When its open calls were last called off: a turn ended or was cancelled.
    pub(in crate::sim::oracle) called_off: Option<Instant>,
    /// Its sends that nobody can answer any more, by whom they were for.
    pub(in crate::sim::oracle) unheard: BTreeMap<Handle, usize>,
    /// It told of a turn that was not in hand. Where its run was decided before, in the same event, that is no fault.
    pub(in crate::sim::oracle) out_of_turn: Option<Instant>,
    /// Only its turn was cancelled.
    pub(in crate::sim::oracle) turn_cancelled: Option<Instant>,
    /// Runs that must end in this event, for the turn that waited for them has.
    pub(in crate::sim::oracle) end_now: Vec<RunId>,
    pub(in crate::sim::oracle) exit: Option<(Instant, Exit)>,
    /// How long the daemon had stood still by then.
    pub(in crate::sim::oracle) gaps_at_exit: Duration,
    pub(in crate::sim::oracle) eof: bool,
    /// A sweep was asked for and is not answered.
    pub(in crate::sim::oracle) sweeping: bool,
    pub(in crate::sim::oracle) remaining: Option<u32>,
    /// Swept clean and read to the end: nothing is left to wait for.
    pub(in crate::sim::oracle) finished: Option<Instant>,
    pub(in crate::sim::oracle) reap_asked: bool,
    pub(in crate::sim::oracle) reaped: bool,
    pub(in crate::sim::oracle) ready: Option<Instant>,
    /// Its first terminal frame, whole.
    pub(in crate::sim::oracle) terminal: Option<(Instant, Status, Option<String>)>,
    /// Its bytes stopped being frames.
    pub(in crate::sim::oracle) broken: Option<Instant>,
    pub(in crate::sim::oracle) write_failed: bool,
    pub(in crate::sim::oracle) requests: BTreeMap<u64, Request>,
    pub(in crate::sim::oracle) cancelled: Option<Instant>,
    pub(in crate::sim::oracle) signals: Vec<(Instant, ChildSignal)>,
    pub(in crate::sim::oracle) born: Option<Instant>,
    pub(in crate::sim::oracle) gone: Option<Instant>,
    pub(in crate::sim::oracle) misdeeds: Vec<(Instant, Misdeed)>,
    pub(super) up: Option<UpDecoder>,
    pub(super) down: Option<DownDecoder>,
}

impl Node {
    /// Whether a call is of a tool that it was offered.
    pub(in crate::sim::oracle) fn is_offered(&self, id: u64) -> bool {
        self.requests.get(&id).is_some_and(|request| self.offered.contains(&request.name))
    }

    /// Its deadline runs from now, and no pause before counts.
    pub(in crate::sim::oracle) fn arm(&mut self, now: Instant) {
        self.armed = Some(now);
        self.paused_for = Duration::ZERO;
        self.paused = self.paused.map(|_| now);
    }

    /// It was told to pause or to go on.
    pub(super) fn told(&mut self, now: Instant, down: &Down) {
        match down {
            Down::Pause(_) => self.paused = self.paused.or(Some(now)),
            Down::Resume(_) => {
                if let Some(since) = self.paused.take() {
                    self.paused_for += now.since(since);
                    self.resumed = Some(now);
                }
            }
            _ => {}
        }
    }

    /// From when on its silence counts.
    pub(in crate::sim::oracle) fn judged_from(&self, at: Instant) -> Instant {
        self.resumed.map_or(at, |resumed| resumed.max(at))
    }

    /// It can be told nothing any more.
    pub(in crate::sim::oracle) fn is_unheard(&self) -> bool {
        self.exit.is_some() || self.write_failed
    }

    /// Which of its sends nobody can answer any more.
    pub(super) fn count_unheard(&mut self) {
        self.unheard.clear();
        for request in self.requests.values().filter(|r| !r.answered && r.name == "subagent.send") {
            if let Some(handle) = request.args["handle"].as_str().and_then(|h| h.parse().ok()) {
                *self.unheard.entry(handle).or_default() += 1;
            }
        }
    }

    pub(super) fn note_finish(&mut self, now: Instant) {
        if self.eof && self.exit.is_some() && self.remaining == Some(0) {
            self.finished.get_or_insert(now);
        }
    }

    /// What a frame tells. Kills and retirements it asks for are returned.
    pub(super) fn heard(&mut self, now: Instant, up: &Up) -> Option<Ask> {
        if self.ready.is_none() && !matches!(up, Up::Ready(_) | Up::Failed(_)) {
            self.broken.get_or_insert(now);
            return None;
        }
        match up {
            Up::Ready(_) => {
                self.ready.get_or_insert(now);
            }
            Up::ToolRequest(request) => {
                if self.requests.last_key_value().is_some_and(|(last, _)| request.id <= *last) {
                    self.broken.get_or_insert(now);
                    return None;
                }
                let args = request.args.parse().unwrap_or(Value::Null);
                let handle = args["handle"].as_str().unwrap_or_default().to_owned();
                let ask = match request.name.as_str() {
                    "subagent.kill" => Some(Ask::Kill { handle, only: args["only"] == Value::Bool(true) }),
                    "subagent.retire" => Some(Ask::Retire { handle }),
                    _ => None,
                };
                let (name, call_id) = (request.name.clone(), request.call_id.clone());
                self.requests.insert(request.id, Request { at: now, name, call_id, args, answered: false });
                return ask;
            }
            Up::Result(result) => {
                self.terminal = Some((now, status_of(result.end), result.text.clone()));
            }
            Up::Failed(failed) => self.terminal = Some((now, Status::Failed, failed.text.clone())),
            Up::Pong(_)
            | Up::Event(_)
            | Up::State(_)
            | Up::Usage(_)
            | Up::Tools(_)
            | Up::BudgetRequest(_)
            | Up::Ack(_)
            | Up::ModelHealth(_)
            | Up::Turn(_) => {}
        }
        None
    }
}

pub(super) fn status_of(end: LoopEnd) -> Status {
    match end {
        LoopEnd::Completed => Status::Completed,
        LoopEnd::Cancelled => Status::Cancelled,
        LoopEnd::Refused => Status::Refused,
        LoopEnd::ExhaustedSteps => Status::ExhaustedSteps,
        LoopEnd::ExhaustedTokens => Status::ExhaustedTokens,
        LoopEnd::Deadline => Status::Deadline,
        LoopEnd::LoopDetected => Status::LoopDetected,
    }
}

//! `logs`: what was logged of each run, kept in memory and told to whoever asks or follows.
//!
//! Owns the ring of kept events, their numbers and the requests that wait for the next one. The events of one run are
//! numbered from 1 without a gap, so that a follower asks for what comes after the last it has: nothing is told twice, and
//! what the ring had to forget in between is counted exactly. Numbers begin anew with each life of the daemon; a number of
//! an earlier life is refused where it can be told. Called by `ops`, and by `Core::handle` after each event.

use super::super::Core;
use super::super::tools::{accept_only, arguments, handle_arg};
use super::Wait;
use super::ops::ROOT;
use crate::a2a;
use crate::action::{Action, Actions};
use crate::error::Refusal;
use crate::http::Response;
use crate::id::{ConnId, NodeId};
use crate::limits;
use crate::note::{Level, Note};
use crate::time::{Duration, Instant, Wall};
use crate::units;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// Log events that are kept, and their numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Logs {
    /// Oldest first.
    kept: VecDeque<Kept>,
    /// The number of the newest event of each run that is known.
    runs: BTreeMap<NodeId, u64>,
    /// The same of the conversation, whose workers come and go.
    conversation: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    log: Log,
    seq: u64,
    at: Wall,
    note: Note,
}

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Log {
    /// All workers of the conversation.
    Conversation,
    /// One subagent.
    Run(NodeId),
}

/// A request for what comes next in a log.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Following {
    log: Log,
    after: u64,
    lines: usize,
    /// Answered then at the latest.
    until: Instant,
}

/// One page of a log.
struct Page<'a> {
    events: Vec<&'a Kept>,
    /// The number to ask `after` next.
    last: u64,
    /// Events that were to be on it and are no longer kept.
    lost: u64,
}

impl Logs {
    /// Keeps an event of a run. Those of the daemon itself belong to no run and are only in its log.
    fn keep(&mut self, note: &Note, at: Wall) {
        let Some(node) = note.node else { return };
        let log = if note.handle.is_some() { Log::Run(node) } else { Log::Conversation };
        let last = match log {
            Log::Run(node) => self.runs.entry(node).or_default(),
            Log::Conversation => &mut self.conversation,
        };
        *last += 1;
        let seq = *last;
        if self.kept.len() >= limits::KEPT_NOTES {
            self.kept.pop_front();
        }
        self.kept.push_back(Kept { log, seq, at, note: note.clone() });
    }

    /// A run is forgotten, and nobody can ask for its log any more.
    fn forget(&mut self, node: NodeId) {
        self.runs.remove(&node);
    }

    fn last(&self, log: Log) -> u64 {
        match log {
            Log::Run(node) => self.runs.get(&node).copied().unwrap_or(0),
            Log::Conversation => self.conversation,
        }
    }

    /// The newest so many.
    fn newest(&self, log: Log, lines: usize) -> Page<'_> {
        let newest_first = self.kept.iter().rev().filter(|kept| kept.log == log);
        let mut events: Vec<&Kept> = newest_first.take(lines).collect();
        events.reverse();
        let before = events.first().map_or(self.last(log), |first| first.seq - 1);
        // Fewer than asked for are all that are kept.
        let lost = if events.len() < lines { before } else { 0 };
        Page { events, last: self.last(log), lost }
    }

    /// The first so many after this number.
    fn after(&self, log: Log, after: u64, lines: usize) -> Page<'_> {
        let newest_first = self.kept.iter().rev().filter(|kept| kept.log == log);
        let mut events: Vec<&Kept> = newest_first.take_while(|kept| kept.seq > after).collect();
        events.reverse();
        let lost = events.first().map_or(self.last(log), |first| first.seq - 1).saturating_sub(after);
        events.truncate(lines);
        let last = events.last().map_or(self.last(log), |last| last.seq);
        Page { events, last, lost }
    }
}

impl Kept {
    fn json(&self) -> Value {
        let mut event = json!(self.note);
        event["ts"] = self.at.to_string().into();
        event["seq"] = self.seq.into();
        event
    }
}

/// The arguments of `logs`.
struct Asked {
    lines: usize,
    after: Option<u64>,
    wait: Duration,
}

impl Asked {
    fn read(args: &Map<String, Value>) -> Result<Asked, Refusal> {
        accept_only(args, &["handle", "lines", "after", "wait"])?;
        let lines = match args.get("lines") {
            None => limits::SHOWN_NOTES,
            Some(value) => value
                .as_u64()
                .and_then(|lines| usize::try_from(lines).ok())
                .filter(|lines| (1..=limits::SHOWN_NOTES).contains(lines))
                .ok_or_else(|| arguments(format!("lines: accepted is 1 to {}", limits::SHOWN_NOTES)))?,
        };
        let after = match args.get("after") {
            None => None,
            Some(value) => Some(value.as_u64().ok_or_else(|| {
                arguments("after: accepted is the number of an event, or 0 for all that are kept".into())
            })?),
        };
        let wait = match args.get("wait") {
            None => Duration::ZERO,
            Some(_) if after.is_none() => {
                return Err(arguments(
                    "wait: accepted is beside `after`, which says what is waited for".into(),
                ));
            }
            Some(value) => {
                let most = limits::LOG_WAIT;
                let wait = value.as_str().and_then(|text| units::duration(text).ok());
                wait.filter(|wait| *wait <= most).ok_or_else(|| {
                    arguments(format!("wait: accepted is a duration from 0s to {}s", most.as_secs()))
                })?
            }
        };
        Ok(Asked { lines, after, wait })
    }
}

impl Core {
    /// What was logged of one run, oldest first; `None` when the request waits for more.
    pub(super) fn logs(
        &mut self,
        conn: ConnId,
        rpc: &Value,
        args: &Map<String, Value>,
    ) -> Result<Option<Value>, Refusal> {
        let Asked { lines, after, wait } = Asked::read(args)?;
        let log = match handle_arg(args)? {
            ROOT => Log::Conversation,
            _ => Log::Run(self.named(args)?),
        };
        let Some(after) = after else {
            return Ok(Some(self.log_page(log, &self.surface.logs.newest(log, lines), false)));
        };
        let last = self.surface.logs.last(log);
        if after > last {
            let why = format!(
                "after: {after} is beyond its last event, {last}; the daemon has begun anew since, so ask without it"
            );
            return Err(arguments(why));
        }
        if wait.is_zero() || self.log_goes_on(log, after) {
            return Ok(Some(self.log_page(log, &self.surface.logs.after(log, after, lines), false)));
        }
        let followers = self.followers().count();
        if followers >= limits::LOG_FOLLOWERS {
            return Err(too_many(followers));
        }
        let following = Following { log, after, lines, until: self.now.mono + wait };
        self.surface.waits.insert(conn, Wait::Log { following, rpc: rpc.clone() });
        Ok(None)
    }

    /// Whether there is something to tell after this event: a further one, or that there will be none.
    fn log_goes_on(&self, log: Log, after: u64) -> bool {
        self.surface.logs.last(log) > after || self.log_is_over(log)
    }

    /// Nothing more will be logged: the run has ended and its process is gone.
    fn log_is_over(&self, log: Log) -> bool {
        match log {
            Log::Conversation => false,
            Log::Run(node) => !self.busy.contains(&node),
        }
    }

    fn log_page(&self, log: Log, page: &Page<'_>, at_end: bool) -> Value {
        let events: Vec<Value> = page.events.iter().map(|kept| kept.json()).collect();
        let is_last = page.last == self.surface.logs.last(log);
        let ended = is_last && (at_end || self.log_is_over(log));
        json!({ "events": events, "last": page.last, "lost": page.lost, "ended": ended })
    }

    /// Has those who follow a log answered soon, where there is something to tell them. Called once an event has settled.
    ///
    /// In a tick a little later and not at once: a burst goes in one answer, and an answer may begin the next request of
    /// its connection, which no event may do once it has settled.
    pub(in crate::supervisor) fn hurry_followers(&mut self) {
        let soon = self.now.mono + limits::LOG_GATHER;
        let late: Vec<ConnId> = self
            .followers()
            .filter(|(_, following, _)| following.until > soon)
            .filter(|(_, following, _)| self.log_goes_on(following.log, following.after))
            .map(|(conn, ..)| conn)
            .collect();
        for conn in late {
            if let Some(Wait::Log { following, .. }) = self.surface.waits.get_mut(&conn) {
                following.until = soon;
            }
        }
    }

    /// When the first of those who follow a log is to be answered.
    pub(super) fn followers_due(&self) -> Option<Instant> {
        self.followers().map(|(_, following, _)| following.until).min()
    }

    /// Answers who follows a log, as far as that is due.
    pub(super) fn tell_followers(&mut self, out: &mut Actions) {
        let now = self.now.mono;
        let due = self.followers().filter(|(_, following, _)| following.until <= now);
        let due: Vec<(ConnId, Following, Value)> = due.map(|(conn, f, rpc)| (conn, f, rpc.clone())).collect();
        for (conn, following, rpc) in due {
            let response = self.followed(following, &rpc, false);
            self.respond_and_go_on(conn, &response, out);
        }
    }

    /// The daemon ends, and nothing more is logged: who follows a log has the rest of it.
    pub(in crate::supervisor) fn end_logs(&mut self, out: &mut Actions) {
        let all: Vec<(ConnId, Following, Value)> =
            self.followers().map(|(conn, following, rpc)| (conn, following, rpc.clone())).collect();
        for (conn, following, rpc) in all {
            let response = self.followed(following, &rpc, true);
            self.respond(conn, &response, out);
        }
    }

    fn followers(&self) -> impl Iterator<Item = (ConnId, Following, &Value)> {
        self.surface.waits.iter().filter_map(|(conn, wait)| match wait {
            Wait::Log { following, rpc } => Some((*conn, *following, rpc)),
            Wait::Call { .. } | Wait::Gone { .. } | Wait::Reload { .. } => None,
            Wait::Begun { .. } | Wait::Task { .. } | Wait::Cancel { .. } | Wait::Stream { .. } => None,
        })
    }

    fn followed(&mut self, following: Following, rpc: &Value, at_end: bool) -> Response {
        let Following { log, after, lines, .. } = following;
        let value = self.log_page(log, &self.surface.logs.after(log, after, lines), at_end);
        let result = self.op_result("logs", false, value);
        Response::of(200, "application/json", a2a::result(rpc, &result))
    }

    /// Keeps what was logged.
    pub(in crate::supervisor) fn keep_notes(&mut self, out: &[Action]) {
        if self.config.control.is_none() {
            return;
        }
        for action in out {
            let Action::Note(note) = action else { continue };
            if note.level <= Level::Info {
                self.surface.logs.keep(note, self.now.wall);
            }
        }
    }

    /// A run leaves the table for good.
    pub(in crate::supervisor) fn forget_log(&mut self, node: NodeId) {
        self.surface.logs.forget(node);
    }
}

fn too_many(followers: usize) -> Refusal {
    Refusal {
        gate: "followers".into(),
        message: format!("{followers} requests wait for what is logged next, as many as may"),
        limit: Some(limits::LOG_FOLLOWERS.to_string()),
        observed: Some(followers.to_string()),
        hint: "ask without `wait`, and again a little later".into(),
    }
}

//! From an admitted call, or a prompt, to a process; `handover` gives it its first frame.
//!
//! The intent is durable before the effect: a run is recorded, then forked. Whoever asked hears the handle
//! only when the process is there, so that a fork that fails is an answer and not a riddle.

use super::{Core, Write, daemon_note};
use crate::action::{Action, Actions, Walls};
use crate::admit::Verdict;
use crate::budget::Caps;
use crate::config::{HostServer, Priority};
use crate::error::Refusal;
use crate::id::{Handle, NodeId, RunId};
use crate::limits;
use crate::metrics::Counter;
use crate::money::Price;
use crate::note::Level;
use crate::policy::grant::Grant;
use crate::preview::misleads;
use crate::record::{Record, Status, Tokens};
use crate::run::channel::Channel;
use crate::run::process::Process;
use crate::run::stderr::Stderr;
use crate::run::warm::{FIRST_TURN, Warm};
use crate::run::{Ending, Outcome, Run};
use crate::time::Duration;
use crate::wire::message::{LoopEvidence, Mode, Role, Spawn, Trace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What makes a run: the payload without the names that are minted here.
pub(super) struct Plan {
    pub(super) right: Right,
    pub(super) parent: Option<NodeId>,
    pub(super) call_id: Option<String>,
    pub(super) principal: String,
    pub(super) grant: Grant,
    pub(super) host: Vec<HostServer>,
    pub(super) walls: Walls,
    pub(super) priority: Priority,
    pub(super) price: Option<Price>,
    /// What it and all below it may use.
    pub(super) caps: Caps,
    pub(super) payload: Spawn,
}

/// By what right a run is made.
pub(super) enum Right {
    /// It serves the conversation and takes nobody's permit.
    Worker,
    /// It was admitted.
    Subagent(Verdict),
}

impl Core {
    /// Puts a run into the table and makes its intent durable.
    pub(super) fn begin(&mut self, plan: Plan, out: &mut Actions) -> NodeId {
        self.last_node += 1;
        let node = NodeId(self.last_node);
        let payload = plan.payload;
        let (permit, place) = match plan.right {
            Right::Worker => (None, None),
            Right::Subagent(Verdict::Admit(permit)) => (Some(permit), None),
            Right::Subagent(Verdict::Hold(place)) => (None, Some(place)),
        };
        let held = place.is_some();
        let record = Record {
            run_id: payload.run_id,
            handle: payload.handle,
            node,
            parent: plan.parent.and_then(|p| self.runs.get(&p)).map(|p| p.record.run_id),
            call_id: plan.call_id,
            depth: payload.depth,
            principal: plan.principal,
            role: payload.role,
            mode: payload.mode,
            status: if held { Status::Held } else { Status::Spawned },
            result: Value::Null,
            partial: false,
            error: None,
            usage: Tokens::default(),
            attempt: payload.attempt,
            created: self.now.wall,
            ended: None,
        };
        let servers = payload.servers.iter().map(|s| &s.name);
        let endpoints = payload.model.dialect.remote().into_iter().flat_map(|remote| &remote.endpoints);
        let run = Run {
            record,
            parent: plan.parent,
            children: Vec::new(),
            trace_id: payload.trace.trace_id.clone(),
            span_id: payload.trace.span_id.clone(),
            walls: plan.walls,
            deadline: Duration::from_millis(payload.limits.deadline_ms),
            servers: servers.chain(plan.host.iter().map(|group| &group.name)).cloned().collect(),
            grant: plan.grant,
            offered: payload.own_tools.iter().map(|tool| tool.name.clone()).collect(),
            permit,
            place,
            priority: plan.priority,
            model: payload.model.name.clone(),
            endpoints: endpoints.map(|endpoint| endpoint.url.clone()).collect(),
            price: plan.price,
            asks: payload.budget.is_some(),
            asking: None,
            last_ask: 0,
            title: title(&payload.instruction),
            warm: (payload.mode == Mode::Warm).then(|| Warm::begun(self.now.mono)),
            last_text: FIRST_TURN,
            steers: BTreeSet::new(),
            early: Vec::new(),
            paused: false,
            process: if held { Process::Held { stored: false } } else { Process::Recording },
            channel: Channel::new(),
            stderr: Stderr::default(),
            outcome: Outcome::Open,
            counted: LoopEvidence::default(),
            fault: None,
            subtree: Tokens::default(),
            in_flight: None,
            charged_ahead: 0,
            waiting: None,
            requests: BTreeMap::new(),
            last_request: 0,
            waiters: Vec::new(),
            pid: None,
            admitted: self.now.mono,
            decided: None,
            payload: Some(Box::new(payload)),
        };
        if let Some(handle) = run.record.handle {
            self.by_handle.insert(handle, node);
        }
        if let Some(parent) = plan.parent.and_then(|p| self.run(p)) {
            parent.children.push(node);
        }
        self.ledger.open(node, plan.parent, plan.caps);
        self.runs.insert(node, run);
        self.busy.insert(node);
        self.touched.insert(node);
        if held {
            self.queue.join(node, plan.priority);
            self.persist(node, Write::Held, out);
        } else {
            self.persist(node, Write::Intent, out);
        }
        node
    }

    /// Saves a run's record as it is now; the intent says `running`, which is what it will be.
    pub(super) fn persist(&mut self, node: NodeId, write: Write, out: &mut Actions) {
        let Some(run) = self.runs.get(&node) else { return };
        let mut record = Box::new(run.record.clone());
        if matches!(write, Write::Intent | Write::Promotion) && record.status == Status::Spawned {
            record.status = Status::Running;
        }
        self.last_seq += 1;
        self.writes.insert(self.last_seq, (node, write));
        out.push(Action::Persist { seq: self.last_seq, record });
    }

    /// The next short name; never used again.
    pub(super) fn mint_handle(&mut self) -> Handle {
        self.last_handle += 1;
        Handle(self.last_handle)
    }

    /// A new run id and the trace context below `parent`.
    pub(super) fn mint_names(&mut self, parent: Option<NodeId>) -> (RunId, Trace) {
        let run_id = RunId::mint(self.now.wall, &mut self.rng);
        let span_id = format!("{:016x}", self.rng.next_u64().max(1));
        let above = parent.and_then(|p| self.runs.get(&p)).map(|p| (p.trace_id.clone(), p.span_id.clone()));
        let (trace_id, parent_span_id) = match above {
            Some((trace, span)) => (trace, Some(span)),
            None => (format!("{:016x}{:016x}", self.rng.next_u64().max(1), self.rng.next_u64()), None),
        };
        (run_id, Trace { trace_id, span_id, parent_span_id })
    }

    /// The intent is durable: fork, unless the run was ended meanwhile.
    pub(super) fn intent_stored(&mut self, node: NodeId, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Recording) {
            return;
        }
        if run.outcome.is_decided() {
            self.never_made(node, out);
            return;
        }
        let retiring = run.is_retiring();
        self.fork(node, 1, out);
        if retiring {
            self.mark_retiring(node, out);
        }
    }

    /// The intent could not be saved: there is no run, and the caller is told why (S10.7).
    pub(super) fn intent_failed(&mut self, node: NodeId, error: &str, out: &mut Actions) {
        let message = format!("store: the run could not be recorded: {error}");
        let Some(run) = self.run(node) else { return };
        if !matches!(run.process, Process::Recording | Process::Held { .. }) {
            return;
        }
        if run.record.role == Role::Worker || run.outcome.is_decided() {
            self.never_made(node, out);
            self.decide(node, Ending::without_result(Status::Failed, message), out);
            return;
        }
        let refusal = Refusal {
            gate: "store".into(),
            message,
            limit: None,
            observed: None,
            hint: "try again when the store works; nothing was started".into(),
        };
        let waiters = std::mem::take(&mut run.waiters);
        // Somebody may have guessed its handle and sent it something.
        let unread = run.warm.as_mut().map(Warm::drop_waiting).unwrap_or_default();
        self.note_dropped(node, &unread, out);
        self.forget(node);
        for waiter in waiters {
            // A caller that ended meanwhile was answered then.
            if self.asked_by(waiter).is_some() {
                self.answer_refusal(waiter.node, waiter.request, &refusal, out);
            }
        }
    }

    /// A run that waited cannot be recorded as begun. Its caller has its handle, so it does not vanish: it fails.
    pub(super) fn promotion_failed(&mut self, node: NodeId, error: &str, out: &mut Actions) {
        let why = format!("store: the run could not be recorded: {error}");
        self.never_made(node, out);
        self.decide(node, Ending::without_result(Status::Failed, why), out);
    }

    /// Takes a run that never came to be out of the table.
    fn forget(&mut self, node: NodeId) {
        self.leave_queue(node);
        let Some(mut run) = self.runs.remove(&node) else { return };
        self.ledger.close(node, self.now.wall);
        self.busy.remove(&node);
        self.touched.insert(node);
        if let Some(handle) = run.record.handle {
            self.by_handle.remove(&handle);
        }
        if let Some(parent) = run.parent.and_then(|p| self.run(p)) {
            parent.children.retain(|child| *child != node);
        }
        if let Some(permit) = run.permit.take() {
            self.admission.give_back(permit);
        }
    }

    fn fork(&mut self, node: NodeId, tries: usize, out: &mut Actions) {
        let Some(run) = self.run(node) else { return };
        run.process = Process::Spawning { tries };
        let name = run.record.handle.map_or_else(|| "agentd:worker".to_owned(), |h| format!("agentd:{h}"));
        out.push(Action::Spawn { node, name, walls: run.walls });
    }

    /// A retry is due.
    pub(super) fn fork_again(&mut self, node: NodeId, tries: usize, out: &mut Actions) {
        if self.runs.get(&node).is_some_and(|run| run.outcome.is_decided()) {
            self.never_made(node, out);
        } else {
            self.fork(node, tries + 1, out);
        }
    }

    /// The driver could not fork.
    pub(super) fn spawn_failed(&mut self, node: NodeId, error: &str, transient: bool, out: &mut Actions) {
        let now = self.now.mono;
        let Some(run) = self.run(node) else { return };
        let Process::Spawning { tries } = run.process else { return };
        if transient && !run.outcome.is_decided() && tries <= limits::FORK_RETRIES.len() {
            run.process = Process::Retrying { tries, at: now + limits::FORK_RETRIES[tries - 1] };
            out.push(self.note(node, Level::Warn, "child.spawn_retry").with("error", error).into());
            return;
        }
        out.push(self.note(node, Level::Warn, "child.spawn_failed").with("error", error).into());
        self.never_made(node, out);
        let why = format!("could not be started: {error}");
        self.decide(node, Ending::without_result(Status::Failed, why), out);
    }

    /// There is no process and there will be none.
    pub(super) fn never_made(&mut self, node: NodeId, out: &mut Actions) {
        self.leave_queue(node);
        let Some(run) = self.run(node) else { return };
        run.process = Process::Gone;
        run.payload = None;
        if let Some(permit) = run.permit.take() {
            self.admission.give_back(permit);
        }
        self.tell_gone(node, out);
    }

    /// Tells a caller that its spawn was turned down.
    pub(super) fn answer_refusal(
        &mut self,
        node: NodeId,
        request: u64,
        refusal: &Refusal,
        out: &mut Actions,
    ) {
        self.meter(Counter::Refused, &[&refusal.gate]);
        let note = match node {
            NodeId::OPERATOR => daemon_note(Level::Info, "subagent.refused"),
            _ => self.note(node, Level::Info, "subagent.refused"),
        };
        out.push(note.with("gate", refusal.gate.as_str()).with("message", refusal.message.as_str()).into());
        self.answer(node, request, true, &json!({ "error": refusal }), out);
    }
}

/// The beginning of an instruction, on one line.
fn title(instruction: &str) -> String {
    let words = instruction.split_whitespace();
    // An instruction may have megabytes: no more of it is looked at than is shown.
    let line = words.flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut shown = line.filter(|c| !c.is_control() && !misleads(*c));
    let mut head: String = shown.by_ref().take(limits::TITLE_CHARS).collect();
    if shown.next().is_some() {
        head.push('…');
    }
    head
}

/// A mode's name in logs.
pub(super) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Sync => "sync",
        Mode::Async => "async",
        Mode::Detached => "detached",
        Mode::Warm => "warm",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_plain_line_of_bounded_length() {
        assert_eq!(title("  look\n\taround \u{1b}[2J\u{202e}x "), "look around [2Jx");
        assert_eq!(title(&"é".repeat(limits::TITLE_CHARS)), "é".repeat(limits::TITLE_CHARS));
        let cut = title(&"word ".repeat(1_000_000));
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (limits::TITLE_CHARS + 1, true));
        assert_eq!(title(" \n "), "");
    }
}

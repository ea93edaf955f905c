//! From an admitted call, or a prompt, to a process; `handover` gives it its first frame.
//!
//! The intent is durable before the effect: a run is recorded, then forked. Whoever asked hears the handle
//! only when the process is there, so that a fork that fails is an answer and not a riddle.

use super::gear::Gear;
use super::keeping::Purpose;
use super::{Core, daemon_note};
use crate::action::{Action, Actions};
use crate::admit::Verdict;
use crate::error::Refusal;
use crate::id::{NodeId, RunId};
use crate::limits;
use crate::metrics::Counter;
use crate::note::Level;
use crate::preview::misleads;
use crate::record::{Record, Status, Tokens};
use crate::run::process::Process;
use crate::run::warm::Warm;
use crate::run::{Ending, Run};
use crate::transcript::span;
use crate::wire::message::{Mode, Role, Trace};
use serde_json::{Value, json};

/// What makes a run.
pub(super) struct Plan {
    pub(super) right: Right,
    pub(super) parent: Option<NodeId>,
    pub(super) call_id: Option<String>,
    pub(super) principal: String,
    pub(super) gear: Gear,
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
        let payload = &plan.gear.payload;
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
        let (caps, priority) = (plan.gear.caps, plan.gear.priority);
        let process = if held { Process::Held { stored: false } } else { Process::Recording };
        let warm = (payload.mode == Mode::Warm).then(|| Warm::begun(self.now.mono));
        let resting = Run::resting(record, self.now.mono);
        let mut run = Run { parent: plan.parent, permit, place, process, warm, ..resting };
        plan.gear.equip(&mut run);
        if let Some(handle) = run.record.handle {
            self.by_handle.insert(handle, node);
        }
        if let Some(parent) = plan.parent.and_then(|p| self.run(p)) {
            parent.children.push(node);
        }
        self.ledger.open(node, plan.parent, caps);
        self.runs.insert(node, run);
        self.busy.insert(node);
        self.touched.insert(node);
        if held {
            self.queue.join(node, priority);
            self.persist(node, Purpose::Held, out);
        } else {
            self.persist(node, Purpose::Intent, out);
        }
        node
    }

    /// A new run id, and the trace context below the call of `parent` that asked (S11.4).
    pub(super) fn mint_names(&mut self, parent: Option<NodeId>, call_id: Option<&str>) -> (RunId, Trace) {
        let run_id = RunId::mint(self.now.wall, &mut self.rng);
        let span_id = format!("{:016x}", self.rng.next_u64().max(1));
        let above = parent.and_then(|p| self.runs.get(&p)).map(|p| (p.trace_id.clone(), p.span_id.clone()));
        let (trace_id, parent_span_id) = match above {
            Some((trace, above)) => {
                let call = call_id.map(|id| span::of_call(&above, id));
                (trace, Some(call.unwrap_or(above)))
            }
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
            // Nothing durable says that there ever was such a worker, so its end need not be either: whoever asked is not
            // held up by a store that fails.
            if self.is_worker(node) {
                self.ending_told(node, out);
            }
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
        // The store may have kept of it what it could not confirm.
        self.keep_no_longer(run.record.run_id, []);
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

    pub(super) fn fork(&mut self, node: NodeId, tries: usize, out: &mut Actions) {
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
pub(super) fn title(instruction: &str) -> String {
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
